//! The source of the kernels.

use crate::device::kernel::Source;

/// What lies between the products.
pub(super) static TRANSFORMER: Source = Source {
    name: "transformer.cu",
    text: include_str!("../../../kernels/transformer.cu"),
    options: &[],
    oldest: (7, 5),
};
