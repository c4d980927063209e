//! What a step costs.

use crate::model::Cost;
use crate::workload::mlp_training::model::{CLASSES, HIDDEN, INPUTS, PARAMETERS, W2};

/// Bytes that a step moves, by the passes over each kind of value. Every kernel is taken to read
/// its data from memory.
struct Passes {
    inputs: usize,
    /// Passes over the values between the layers and their gradient.
    hidden: usize,
    /// Passes over the logits and their gradient.
    logits: usize,
    parameters: usize,
    second_weights: usize,
}

impl Passes {
    fn bytes(&self, batch: u64) -> f64 {
        let per_input = self.inputs * INPUTS + self.hidden * HIDDEN + self.logits * CLASSES;
        let of_parameters = self.parameters * PARAMETERS + self.second_weights * W2.len();
        batch as f64 * per_input as f64 + of_parameters as f64
    }
}

/// FLOP of the products alone: the steps between them are bound by memory.
fn flop(batch: u64) -> f64 {
    let multiply_adds = 2 * INPUTS * HIDDEN + 3 * HIDDEN * CLASSES;
    2.0 * batch as f64 * multiply_adds as f64
}

fn of(batch: u64, passes: &Passes, launches: u32) -> Cost {
    Cost::default()
        .flop(flop(batch))
        .bytes(passes.bytes(batch))
        .launches(launches)
}

/// Cost of a step in nine kernels: five products, the loss, the sums of two biases (one of them
/// with the derivative of ReLU), the update. The inputs are read twice. The values between the
/// layers are written, read twice by products and once for the derivative; their gradient is
/// written, read and written for the derivative, and read. The logits take five passes, and the sum
/// of a bias. Parameters are read once (W2 twice), their gradient is written, and the update has
/// seven passes.
pub fn cost(batch: u64) -> Cost {
    let passes = Passes {
        inputs: 2 * 4,
        hidden: 8 * 4,
        logits: 6 * 4,
        parameters: 9 * 4,
        second_weights: 4,
    };
    of(batch, &passes, 9)
}

/// As [`cost`], where products read BF16: half of the bytes, except of the logits themselves, the
/// gradient of the parameters and their update, which also writes the copies.
pub fn cost_bf16(batch: u64) -> Cost {
    let passes = Passes {
        inputs: 2 * 2,
        hidden: 8 * 2,
        logits: 2 * 4 + 4 * 2,
        parameters: 2 + 8 * 4 + 2,
        second_weights: 2,
    };
    of(batch, &passes, 9)
}

/// As [`cost`], in one kernel per operation: 22. Biases and ReLU take passes of their own, the loss
/// and its gradient each one more pass over the logits, the sum of a bias one more over the values
/// between the layers; and the update has 18 passes.
pub fn cost_eager(batch: u64) -> Cost {
    let passes = Passes {
        inputs: 2 * 4,
        hidden: 13 * 4,
        logits: 10 * 4,
        parameters: 20 * 4,
        second_weights: 4,
    };
    of(batch, &passes, 22)
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
        let cost = cost(256);
        assert_eq!(cost.flop, Some(256.0 * 14_680_064.0));
        let per_input = 4.0 * 21_504.0;
        let parameters = 4.0 * (9.0 * 3_148_288.0 + 1_048_576.0);
        assert_eq!(cost.bytes, Some(256.0 * per_input + parameters));
        assert_eq!(
            cost_transfer(1).link_bytes,
            Some(crate::model::LinkBytes::new(4100.0, 4.0))
        );
    }
}
