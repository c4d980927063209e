//! Where the parameters of a network lie within the one buffer that holds all.

use std::ops::Range;

/// A linear layer's parameters: the weights, a row for each output, and the bias.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Linear {
    pub(crate) weights: Range<usize>,
    pub(crate) bias: Range<usize>,
}

impl Linear {
    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub(crate) fn inputs(&self) -> usize {
        self.weights.len() / self.bias.len()
    }

    /// As PyTorch initialises a linear layer of n inputs: values uniform in [-1, 1) become uniform in
    /// ±1/sqrt(n).
    pub(crate) fn initialise(&self, parameters: &mut [f32]) {
        let factor = (self.inputs() as f32).sqrt().recip();
        for range in [&self.weights, &self.bias] {
            let range = &mut parameters[range.clone()];
            range.iter_mut().for_each(|w| *w *= factor);
        }
    }
}
