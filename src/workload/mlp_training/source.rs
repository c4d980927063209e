//! The source of the kernels.

use crate::device::kernel::Source;
use crate::workload::prepare::source::with_header;

/// The kernels of the loss and the update.
pub(super) static MLP_TRAINING: Source = Source {
    name: "mlp_training.cu",
    text: with_header!("values.cuh", "mlp_training.cu"),
    options: &[],
    oldest: (7, 5),
};
