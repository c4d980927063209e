//! The description of a network, from which its cost, its float64 reference, and its code for the CPU
//! and the GPU are derived.

use std::ops::Range;

/// Values of a token between the layers of a transformer. `kernels/transformer.cu` and
/// `kernels/attention.cu` repeat this constant and the next four.
pub(crate) const WIDTH: usize = 256;
/// Heads of an attention.
pub(crate) const HEADS: usize = 4;
/// Values of a head.
pub(crate) const HEAD: usize = WIDTH / HEADS;
/// Tokens of a sequence.
pub(crate) const SEQUENCE: usize = 128;
/// The term that a layer norm adds to the variance, as in PyTorch:
/// <https://docs.pytorch.org/docs/stable/generated/torch.nn.LayerNorm.html>
pub(crate) const EPSILON: f64 = 1e-5;
/// Queries, keys and values of a token, side by side.
pub(crate) const QKV: usize = 3 * WIDTH;

/// How an activation is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// In the format of the products' operands.
    Narrow,
    /// In the format of the products' operands, after ReLU.
    Relu,
    /// In f32, whatever the format of the operands.
    Wide,
}

/// An activation: a row for each input or token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activation {
    /// The index of the activation in the network.
    pub(crate) place: usize,
    /// Values of a row.
    pub(crate) width: usize,
    pub(crate) kept: Kept,
}

impl Activation {
    pub(crate) fn relu(self) -> bool {
        self.kept == Kept::Relu
    }
}

/// The parameters of a linear layer.
#[derive(Debug)]
pub(crate) struct Linear {
    pub(crate) name: &'static str,
    /// A row for each output.
    pub(crate) weights: Range<usize>,
    pub(crate) bias: Range<usize>,
    /// If the layer adds to y: the index of an activation like y that nothing else uses, for the added
    /// values or for the sum.
    pub(crate) spare: Option<usize>,
}

/// The operation of a layer, and where its parameters lie.
#[derive(Debug)]
pub(crate) enum LayerKind {
    /// The row of each token in this table.
    Embed(Range<usize>),
    /// Each row with mean 0 and variance 1, times the gain, plus the bias: the two ranges.
    Norm([Range<usize>; 2]),
    /// x W^T + b, and ReLU if y is after ReLU.
    Linear(Linear),
    /// softmax(q k^T / sqrt([`HEAD`])) v of each sequence and head, without a mask. The input rows have
    /// queries, keys and values side by side, the output rows the results of all heads.
    Attention,
    /// x in the format of the products' operands. Nothing reads x afterwards.
    Narrow,
}

/// Computes the activation y from x.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) kind: LayerKind,
    pub(crate) x: Activation,
    pub(crate) y: Activation,
}

/// A network: layers that follow one another, and one buffer that holds all parameters.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The first is the input: values, or a token for each row.
    pub(crate) activations: Vec<Activation>,
    pub(crate) layers: Vec<Layer>,
    /// Number of parameters. Each range begins at a multiple of 256 bytes, also in BF16.
    pub(crate) parameters: usize,
}

impl Model {
    pub(crate) fn activation(&mut self, width: usize, kept: Kept) -> Activation {
        let place = self.activations.len();
        self.activations.push(Activation { place, width, kept });
        self.activations[place]
    }

    /// Reserves room for more parameters.
    pub(crate) fn room(&mut self, len: usize) -> Range<usize> {
        self.parameters += len;
        self.parameters - len..self.parameters
    }

    pub(crate) fn layer(&mut self, kind: LayerKind, x: Activation, y: Activation) {
        self.layers.push(Layer { kind, x, y });
    }

    /// Adds a linear layer; with `spare`, one that adds to y.
    pub(crate) fn linear(
        &mut self,
        name: &'static str,
        [x, y]: [Activation; 2],
        spare: Option<Activation>,
    ) {
        let linear = Linear {
            name,
            weights: self.room(x.width * y.width),
            bias: self.room(y.width),
            spare: spare.map(|spare| spare.place),
        };
        self.layer(LayerKind::Linear(linear), x, y);
    }

    pub(crate) fn linears(
        &self,
    ) -> impl DoubleEndedIterator<Item = (&Linear, Activation, Activation)> {
        self.layers.iter().filter_map(|layer| match &layer.kind {
            LayerKind::Linear(linear) => Some((linear, layer.x, layer.y)),
            _ => None,
        })
    }

    /// Scales values uniform in [-1, 1) to parameters. Those of a linear layer with n inputs become
    /// uniform in ±1/sqrt(n), as PyTorch initialises it. Gains of norms lie in [0.5, 1.5), so that a
    /// wrong one shows, and their biases in [-0.1, 0.1); tables stay as they are.
    pub(crate) fn initialise(&self, parameters: &mut [f32]) {
        let mut change = |range: &Range<usize>, to: &dyn Fn(f32) -> f32| {
            let range = &mut parameters[range.clone()];
            range.iter_mut().for_each(|w| *w = to(*w));
        };
        for layer in &self.layers {
            if let LayerKind::Norm([gain, bias]) = &layer.kind {
                change(gain, &|g| 1.0 + 0.5 * g);
                change(bias, &|b| b * 0.1);
            }
        }
        for (linear, x, _) in self.linears() {
            let factor = (x.width as f32).sqrt().recip();
            change(&linear.weights, &|w| w * factor);
            change(&linear.bias, &|b| b * factor);
        }
    }
}

/// Requires that every parameter is in one range, and that each range is aligned.
///
/// # Panics
/// If not.
#[cfg(test)]
pub(crate) fn assert_ranges(model: &Model) {
    let mut ranges = Vec::new();
    for layer in &model.layers {
        match &layer.kind {
            LayerKind::Embed(table) => ranges.push(table),
            LayerKind::Norm(both) => ranges.extend(both),
            LayerKind::Linear(linear) => ranges.extend([&linear.weights, &linear.bias]),
            LayerKind::Attention | LayerKind::Narrow => {}
        }
    }
    ranges.sort_by_key(|range| range.start);
    let mut end = 0;
    for range in ranges {
        assert_eq!(range.start, end, "{range:?}");
        assert_eq!(range.start * 2 % 256, 0, "{range:?}");
        end = range.end;
    }
    assert_eq!(end, model.parameters);
    assert_eq!(end % 4, 0);
}
