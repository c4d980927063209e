//! What a step costs, and the forward pass alone.

use crate::model::Cost;
use crate::workload::mlp_training::model::{CLASSES, INPUTS, PARAMETERS, model, ranges};
use crate::workload::network::{Format, cost::RowCost};

/// Cost of the forward pass: parameters are read once.
pub(super) fn forward_cost(batch: u64, fused: bool) -> Cost {
    let mut row = RowCost::new(Format::F32, fused);
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

/// As [`cost`], with inputs and labels uploaded to the device and the loss downloaded.
pub fn cost_transfer(batch: u64) -> Cost {
    let inputs = 4 * batch * (INPUTS as u64 + 1);
    cost(batch).over_link(inputs as f64, 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_a_known_batch() {
        let costs = [cost, cost_bf16, cost_eager].map(|cost| cost(256));
        assert_eq!(costs.map(|cost| cost.launches), [9, 9, 22].map(Some));
        // Inputs, values between the layers and logits, each with its gradient; parameters, W2.
        let expected = [
            [2 * 4, 8 * 4, 6 * 4, 9 * 4, 4],
            [2 * 2, 8 * 2, 2 * 4 + 4 * 2, 2 + 8 * 4 + 2, 2],
            [2 * 4, 13 * 4, 10 * 4, 20 * 4, 4],
        ];
        for (cost, [inputs, hidden, logits, parameters, w2]) in costs.into_iter().zip(expected) {
            assert_eq!(cost.flop, Some(256.0 * 14_680_064.0));
            let per_input = f64::from(inputs * 1024 + hidden * 2048 + logits * 512);
            let parameters = f64::from(parameters) * 3_148_288.0 + f64::from(w2) * 1_048_576.0;
            assert_eq!(cost.bytes, Some(256.0 * per_input + parameters));
        }
        assert_eq!(
            cost_transfer(1).link_bytes,
            Some(crate::model::LinkBytes::new(4100.0, 4.0))
        );
        for (fused, launches, values) in [(true, 2, 1024 + 2 * 2048 + 512), (false, 5, 14848)] {
            let cost = forward_cost(1, fused);
            assert_eq!(cost.launches, Some(launches));
            assert_eq!(cost.flop, Some(2.0 * 2048.0 * 1536.0));
            assert_eq!(cost.bytes, Some(4.0 * f64::from(3_148_288 + values)));
        }
    }
}
