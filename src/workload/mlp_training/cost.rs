//! The cost of a training step, and of the forward pass alone.

use crate::model::{Cost, LinkBytes};
use crate::workload::mlp_training::model::{CLASSES, INPUTS, PARAMETERS, model, ranges};
use crate::workload::network::{Format, cost::RowCost};

/// Cost of the forward pass in five kernels: parameters are read once, and each bias and ReLU reads and
/// writes once more what it is applied to.
pub fn cost_forward(batch: u64) -> Cost {
    let mut row = RowCost::new(Format::F32, false);
    row.forward(&model());
    row.of_rows(batch, row.element * PARAMETERS)
}

/// Cost of a step. The loss reads the logits and writes their gradient, one by one in three kernels
/// in two passes more. Parameters are read once (W2 twice), their gradient is written, and the update
/// has seven passes (one by one in eight kernels 18), and with BF16 one that writes the copies.
fn step(batch: u64, format: Format, fused: bool) -> Cost {
    let (mut row, model) = (RowCost::new(format, fused), model());
    row.forward(&model);
    row.backward(&model);
    let (of_loss, of_update, kernels) = if fused { (1, 7, 2) } else { (3, 18, 11) };
    row.add(0, CLASSES * (4 + row.element * of_loss), kernels);
    let copies = if format == Format::Bf16 { 2 } else { 0 };
    let parameters = PARAMETERS * (row.element + 4 + 4 * of_update + copies);
    let [_, _, w2, _] = ranges();
    row.of_rows(batch, parameters + row.element * w2.len())
}

/// Cost of a step in nine kernels: five products, the loss, the sums of two biases (one of them
/// with the derivative of ReLU), the update.
pub fn cost(batch: u64) -> Cost {
    step(batch, Format::F32, true)
}

/// As [`cost`], where products read BF16: half of the bytes, except of the logits themselves, the
/// gradient of the parameters and their update, which also writes the copies.
pub fn cost_bf16(batch: u64) -> Cost {
    step(batch, Format::Bf16, true)
}

/// As [`cost`], in one kernel per operation: 22.
pub fn cost_eager(batch: u64) -> Cost {
    step(batch, Format::F32, false)
}

/// Bytes of inputs and labels on their way to the device, and of the loss on its way back.
pub fn link_bytes(batch: u64) -> LinkBytes {
    LinkBytes::new((4 * batch * (INPUTS as u64 + 1)) as f64, 4.0)
}
