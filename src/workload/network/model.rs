//! The description of a network, from which its cost, its float64 reference, and its code for the CPU
//! and the GPU are derived.
//!
//! Its cost is the FLOP of its products, the bytes that its kernels move, and their number. Every kernel is
//! assumed to read its data from memory, and the steps between products to be bound by it.

use std::ops::Range;

use crate::model::{Cost, Format};
use crate::workload::product::properties;

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
    assert_eq!((end, end % 4), (model.parameters, 0));
}

/// The cost of a row without that of the parameters; and the kernels of all rows.
pub(crate) struct RowCost {
    /// Bytes of a value that products read.
    pub(crate) element: usize,
    /// Whether an operation takes as few kernels as possible, or one kernel for each of its steps.
    fused: bool,
    flop: usize,
    bytes: usize,
    launches: usize,
}

impl RowCost {
    /// The cost of no operation.
    pub(crate) fn new(format: Format, fused: bool) -> Self {
        Self {
            element: properties(format).bytes,
            fused,
            flop: 0,
            bytes: 0,
            launches: 0,
        }
    }

    pub(crate) fn add(&mut self, flop: usize, bytes: usize, launches: usize) {
        self.flop += flop;
        self.bytes += bytes;
        self.launches += launches;
    }

    /// Bytes of an activation.
    fn of(&self, activation: Activation) -> usize {
        let wide = activation.kept == Kept::Wide;
        activation.width * if wide { 4 } else { self.element }
    }

    /// Adds the forward pass of all layers.
    pub(crate) fn forward(&mut self, model: &Model) {
        let fused = self.fused;
        let either = |few, steps| if fused { few } else { steps };
        for layer in &model.layers {
            let (x, y) = (self.of(layer.x), self.of(layer.y));
            let (flop, bytes, launches) = match &layer.kind {
                // A token and a row of the table are read. If fused, the next norm has that row in
                // registers, which counts as read there.
                LayerKind::Embed(_) => (0, 4 + either(y, 2 * y), either(0, 1)),
                LayerKind::Norm(_) => (0, x + y, 1),
                LayerKind::Linear(linear) => {
                    let [relu, adds] = [layer.y.relu(), linear.spare.is_some()].map(usize::from);
                    // Unfused, the bias and ReLU read and write y, and a sum reads the added values.
                    let passes = either(1 + adds, 3 + 2 * relu + 3 * adds);
                    let product = 2 * layer.x.width * layer.y.width;
                    (product, x + passes * y, either(1, 2 + relu + adds))
                }
                // Unfused, queries, keys and values are copied into matrices, and the heads' results
                // out of them; scores are written, read and written by softmax, and read.
                LayerKind::Attention => {
                    let scores = 4 * HEADS * SEQUENCE;
                    let bytes = either(x + y, 3 * x + 3 * y + 4 * scores);
                    (4 * SEQUENCE * WIDTH, bytes, either(1, 5))
                }
                LayerKind::Narrow if x == y => (0, 0, 0),
                LayerKind::Narrow => (0, x + y, 1),
            };
            self.add(flop, bytes, launches);
        }
    }

    /// Adds the gradients of all parameters, from that of the last activation; all layers are linear.
    pub(crate) fn backward(&mut self, model: &Model) {
        for (_, x, y) in model.linears() {
            let product = 2 * x.width * y.width;
            let [of_x, of_y] = [x, y].map(|activation| activation.width * self.element);
            // The gradient of the weights, and of the bias, fused with the derivative of ReLU.
            self.add(product, of_x + of_y, 1);
            if !(self.fused && y.relu()) {
                self.add(0, of_y, 1);
            }
            if x != model.activations[0] {
                // The gradient of x, which is written, and read and written for the derivative, which
                // reads x.
                self.add(product, of_y + 4 * of_x, 2);
            }
        }
    }

    /// The cost of these numbers of rows and of bytes of parameters.
    pub(crate) fn of_rows(&self, rows: u64, parameters: usize) -> Cost {
        Cost::default()
            .flop(rows as f64 * self.flop as f64)
            .bytes(rows as f64 * self.bytes as f64 + parameters as f64)
            .launches(self.launches as u32)
    }
}
