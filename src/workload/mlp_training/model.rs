//! The network.

use std::ops::Range;

use crate::workload::network::model::{Kept, Model};

/// Values of one input.
pub(super) const INPUTS: usize = 1024;
/// Values between the two layers.
pub(super) const HIDDEN: usize = 2048;
/// Classes, and logits of one input.
pub(super) const CLASSES: usize = 512;
/// Parameters of both layers.
pub(super) const PARAMETERS: usize = HIDDEN * (INPUTS + 1) + CLASSES * (HIDDEN + 1);

/// Names of the products that give the gradients of a layer's weights and of its inputs, the last
/// layer's first.
pub(super) const GRADIENTS: [[&str; 2]; 2] = [
    ["gradient of W2", "gradient of the activations"],
    ["gradient of W1", "gradient of the inputs"],
];

/// Both layers: the first has ReLU behind it. Gradients and moments lie in the order of the
/// parameters.
pub(super) fn model() -> Model {
    let mut model = Model::default();
    let of = [
        (INPUTS, Kept::Narrow),
        (HIDDEN, Kept::Relu),
        (CLASSES, Kept::Wide),
    ];
    let [inputs, hidden, logits] = of.map(|(width, kept)| model.activation(width, kept));
    model.linear("activations", [inputs, hidden], None);
    model.linear("logits", [hidden, logits], None);
    model
}

/// Where the first layer's weights lie, its bias, and the second layer's.
pub(super) fn ranges() -> [Range<usize>; 4] {
    let model = model();
    let ranges = (model.linears()).flat_map(|(of, ..)| [of.weights.clone(), of.bias.clone()]);
    let ranges: Vec<_> = ranges.collect();
    ranges.try_into().expect("two layers")
}

/// Bytes of each of its tensors.
pub fn tensor_bytes() -> Vec<usize> {
    ranges().map(|range| range.len() * size_of::<f32>()).into()
}

/// Terms of the longest sums of a step, which run over the hidden layer or over the batch.
pub(super) fn longest_sum(batch: usize) -> usize {
    HIDDEN.max(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::network::model::assert_ranges;

    #[test]
    fn every_range_is_aligned() {
        assert_eq!(PARAMETERS, 3_148_288);
        assert_eq!(model().parameters, PARAMETERS);
        assert_ranges(&model());
    }
}
