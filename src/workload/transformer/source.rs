//! The sources of the kernels.

use crate::device::kernel::Source;
use crate::workload::prepare::source::with_header;

/// What lies between the products.
pub(super) static TRANSFORMER: Source = Source {
    name: "transformer.cu",
    text: with_header!("values.cuh", "transformer.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Attention of TF32 and BF16, on tensor cores.
pub(super) static ATTENTION: Source = Source {
    name: "attention.cu",
    text: with_header!("values.cuh", "attention.cu"),
    options: &[],
    oldest: (8, 0),
};
