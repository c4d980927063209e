//! The source of the kernels.

use crate::device::kernel::Source;

/// The kernels of the loss and the update.
pub(super) static MLP_TRAINING: Source = Source {
    name: "mlp_training.cu",
    text: include_str!("../../../kernels/mlp_training.cu"),
    options: &[],
    oldest: (7, 5),
};
