//! The sources of the kernels.

use crate::device::kernel::Source;
use crate::workload::network::source::with_values;

/// What lies between the products.
pub(super) static TRANSFORMER: Source = Source {
    name: "transformer.cu",
    text: with_values!("transformer.cu"),
    options: &[],
    oldest: (7, 5),
};

/// Attention of BF16, on tensor cores.
pub(super) static ATTENTION_BF16: Source = Source {
    name: "attention_bf16.cu",
    text: with_values!("attention_bf16.cu"),
    options: &[],
    oldest: (8, 0),
};
