//! The cost of a network: FLOP of its products, bytes that its kernels move, and their number. Every
//! kernel is assumed to read its data from memory, and the steps between products to be bound by it.

use crate::model::{Cost, Format};
use crate::workload::network::model::{Activation, HEADS, Kept, LayerKind, Model, SEQUENCE, WIDTH};
use crate::workload::product::properties;

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
            let [of_x, of_y] = [x, y].map(|of| of.width * self.element);
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
