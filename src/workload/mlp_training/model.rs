//! The network: its lengths, and where its parameters lie.

use std::ops::Range;

use crate::workload::network::Linear;

/// Values of one input.
pub(super) const INPUTS: usize = 1024;
/// Values between the two layers.
pub(super) const HIDDEN: usize = 2048;
/// Classes, and logits of one input.
pub(super) const CLASSES: usize = 512;

/// The first layer's weights, `HIDDEN` rows of `INPUTS`, within the one buffer that holds all
/// parameters; gradients and moments lie in the same order. Each range begins at a multiple of
/// 256 bytes, also of BF16.
pub(super) const W1: Range<usize> = 0..HIDDEN * INPUTS;
/// The first layer's bias.
pub(super) const B1: Range<usize> = W1.end..W1.end + HIDDEN;
/// The second layer's weights, `CLASSES` rows of `HIDDEN`.
pub(super) const W2: Range<usize> = B1.end..B1.end + CLASSES * HIDDEN;
/// The second layer's bias.
pub(super) const B2: Range<usize> = W2.end..W2.end + CLASSES;
/// All of them.
pub(super) const PARAMETERS: usize = B2.end;

/// Bytes of each of its tensors.
pub fn tensor_bytes() -> Vec<usize> {
    let tensors = layers()
        .into_iter()
        .flat_map(|layer| [layer.weights, layer.bias]);
    tensors
        .map(|place| place.len() * size_of::<f32>())
        .collect()
}

/// Both layers: the first has ReLU behind it.
pub(super) fn layers() -> [Linear; 2] {
    [(W1, B1), (W2, B2)].map(|(weights, bias)| Linear { weights, bias })
}

/// Terms of the longest sums of a step, which run over the hidden layer or over the batch.
pub(super) fn longest_sum(batch: usize) -> usize {
    HIDDEN.max(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_is_aligned() {
        assert_eq!(PARAMETERS, 3_148_288);
        for range in [W1, B1, W2, B2] {
            assert_eq!(range.start * 2 % 256, 0, "{range:?}");
        }
        assert_eq!(PARAMETERS % 4, 0);
    }
}
