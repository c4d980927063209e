//! The network, its cost, a batch with its labels, the state that a step starts from, and a step in float64.

use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

use ndarray::{Array2, Axis};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::kernel::Source;
use crate::model::{Cost, Format, LinkBytes};
use crate::workload::matmul::uniform;
use crate::workload::network::model::{Kept, Model, RowCost};
use crate::workload::network::reference::{InFloat64, wide};
use crate::workload::network::{layers::NETWORK, rms};
use crate::workload::prepare::{kernels, seed};
use crate::workload::product::{CUBLAS_WORKSPACE, FEW_ROWS, LINEAR};
use crate::workload::routine::{Workload, visit_f32};
use crossover_arithmetic::adamw::{Counter, State};

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
    let activations = [
        (INPUTS, Kept::Narrow),
        (HIDDEN, Kept::Relu),
        (CLASSES, Kept::Wide),
    ];
    let [inputs, hidden, logits] = activations.map(|(width, kept)| model.activation(width, kept));
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

/// Cost of the forward pass in five kernels: parameters are read once, and each bias and ReLU reads and
/// writes once more what it is applied to.
pub fn cost_forward(batch: u64) -> Cost {
    let mut row = RowCost::new(Format::F32, false);
    row.forward(&model());
    row.of_rows(batch, row.element * PARAMETERS)
}

/// Cost of a step, with operands of products in this format. The loss reads the logits and writes their
/// gradient, one by one in three kernels in two passes more. Parameters are read once (W2 twice), their
/// gradient is written, and the update has seven passes (one by one in eight kernels 18).
///
/// Fused it is nine kernels: five products, the loss, the sums of two biases (one of them with the
/// derivative of ReLU), the update. Otherwise it is one kernel per operation: 22. BF16 has half of the
/// bytes, except of the logits themselves, the gradient of the parameters and their update, which also
/// writes the copies.
pub fn cost(batch: u64, format: Format, fused: bool) -> Cost {
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

/// Bytes of inputs and labels on their way to the device, and of the loss on its way back.
pub fn link_bytes(batch: u64) -> LinkBytes {
    LinkBytes::new((4 * batch * (INPUTS as u64 + 1)) as f64, 4.0)
}

/// The kernels of the loss and the update.
pub(super) static MLP_TRAINING: Source = kernels!("mlp_training.cu", after "values.cuh");

/// Steps before the one that is verified. In the first step of all, AdamW moves each parameter by
/// the sign of its gradient alone, and a wrong moment or correction would hardly show.
const STEPS_BEFORE: u32 = 9;

/// The parameters, their moments and the steps so far.
pub(super) struct Start {
    pub(super) parameters: Vec<f32>,
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    pub(super) counter: Counter,
}

impl Start {
    pub(super) fn state(&self) -> State<'_> {
        State {
            parameters: &self.parameters,
            first: &self.first,
            second: &self.second,
        }
    }
}

/// One batch of inputs with its labels, and the state that a step starts from, the same in every
/// run. The size is the batch.
pub struct Training {
    pub(super) batch: usize,
    pub(super) model: Rc<Model>,
    /// Row by row, uniform in [-1, 1).
    pub(super) inputs: Vec<f32>,
    /// The class of each row.
    pub(super) labels: Vec<u32>,
    pub(super) start: Start,
    reference: OnceCell<Reference>,
}

impl Training {
    /// The step in float64, computed when something is first compared with it.
    pub(super) fn reference(&self) -> &Reference {
        self.reference.get_or_init(|| {
            let parameters = wide(&self.start.parameters);
            Reference::of(wide(&self.inputs), &self.labels, &parameters)
        })
    }
}

/// The results of a step in float64, from the same inputs and parameters.
pub(super) struct Reference {
    pub(super) inputs: Array2<f64>,
    /// The pre-activations.
    pub(super) hidden: Array2<f64>,
    pub(super) logits: Array2<f64>,
    pub(super) loss: f64,
    /// Gradient of the loss with respect to the outputs of ReLU.
    pub(super) of_hidden: Array2<f64>,
    /// Gradient of the loss with respect to the parameters.
    pub(super) gradients: Vec<f64>,
    pub(super) scales: Scales,
}

/// The sizes that errors are relative to, as `verify.rs` says.
pub(super) struct Scales {
    /// Root mean squares: of the inputs, before and behind ReLU, and of the logits.
    pub(super) inputs: f64,
    pub(super) hidden: f64,
    pub(super) activated: f64,
    pub(super) logits: f64,
    /// Each column of the gradient with respect to the logits: independent terms, and the
    /// probabilities, which have a common sign.
    pub(super) columns_of_logits: Vec<f64>,
    /// A row of the gradient with respect to what ReLU gave, squared.
    pub(super) rows_of_hidden: Vec<f64>,
}

impl Reference {
    /// A step on `inputs`, row by row, with the class of each row.
    pub(super) fn of(inputs: Vec<f64>, labels: &[u32], parameters: &[f64]) -> Self {
        let model = model();
        let network = InFloat64 {
            model: &model,
            parameters,
        };
        let inputs = Array2::from_shape_vec((labels.len(), INPUTS), inputs).expect("whole rows");
        let values = network.forward(inputs, &[]);
        let (loss, of_logits) = cross_entropy(&values[2], labels);
        let gradients = network.backward(&values, of_logits);
        let [inputs, hidden, logits] = values.try_into().expect("two layers");
        let [_, of_hidden, of_logits] = gradients.activations.try_into().expect("two layers");
        let [.., w2, b2] = ranges();
        let rms_of = |values: &Array2<f64>| rms(values.as_slice().expect("row by row"));
        let squares = of_logits.mapv(|g| g * g);
        let mut labelled = vec![0.0; CLASSES];
        for &label in labels {
            labelled[label as usize] += 1.0 / labels.len() as f64;
        }
        let sums = gradients.parameters[b2].iter().zip(labelled);
        let columns = squares.sum_axis(Axis(0)).into_iter().zip(sums);
        let square_of_w2 = rms(&parameters[w2]).powi(2);
        let scales = Scales {
            inputs: rms_of(&inputs),
            hidden: rms_of(&hidden),
            activated: rms_of(&hidden.mapv(|z| z.max(0.0))),
            logits: rms_of(&logits),
            columns_of_logits: columns
                .map(|(squares, (sum, labelled))| (squares + (sum + labelled).powi(2)).sqrt())
                .collect(),
            rows_of_hidden: (squares.sum_axis(Axis(1)) * square_of_w2).to_vec(),
        };
        Self {
            inputs,
            hidden,
            logits,
            loss,
            of_hidden,
            gradients: gradients.parameters,
            scales,
        }
    }
}

/// The mean loss, and its gradient.
fn cross_entropy(logits: &Array2<f64>, labels: &[u32]) -> (f64, Array2<f64>) {
    let batch = labels.len() as f64;
    let mut loss = 0.0;
    let mut gradient = logits.clone();
    for (mut row, &label) in gradient.rows_mut().into_iter().zip(labels) {
        let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let sum: f64 = row.iter().map(|z| (z - largest).exp()).sum();
        let normal = largest + sum.ln();
        loss += (normal - row[label as usize]) / batch;
        row.mapv_inplace(|z| (z - normal).exp() / batch);
        row[label as usize] -= 1.0 / batch;
    }
    (loss, gradient)
}

impl Workload for Training {
    fn new(size: u64) -> Self {
        let batch = size as usize;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed(0x006d_6c70));
        let labels = (0..batch).map(|_| random.next_u32() % CLASSES as u32);
        let model = Rc::new(model());
        let mut parameters = uniform(PARAMETERS, 0x10);
        model.initialise(&mut parameters);
        // About as large as the gradients and their squares.
        let mut first = uniform(PARAMETERS, 0x11);
        first.iter_mut().for_each(|m| *m *= 1e-4);
        let mut second = uniform(PARAMETERS, 0x12);
        second.iter_mut().for_each(|v| *v = 5e-8 * (*v + 1.01));
        Self {
            batch,
            model,
            labels: labels.collect(),
            inputs: uniform(batch * INPUTS, 0x13),
            start: Start {
                parameters,
                first,
                second,
                counter: Counter::after(STEPS_BEFORE),
            },
            reference: OnceCell::new(),
        }
    }

    fn host_bytes(batch: u64) -> u64 {
        // The state, the same of an implementation on the CPU with its gradient, the float64
        // gradient and parameters; and per input its values in f32 and float64, what lies
        // between the layers three times in float64 and twice in f32, the logits likewise.
        let per_input = 12 * INPUTS + 32 * HIDDEN + 32 * CLASSES;
        48 * PARAMETERS as u64 + batch * per_input as u64
    }

    fn device_bytes(batch: u64) -> u64 {
        // The state twice, the gradient, a buffer of the update and two BF16 copies of the
        // parameters; the inputs, what lies between the layers and the logits, each with its
        // gradient; a workspace.
        let per_input = 4 * (INPUTS + 2 * HIDDEN + 3 * CLASSES);
        36 * PARAMETERS as u64 + batch * per_input as u64 + CUBLAS_WORKSPACE
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&NETWORK, &LINEAR, &FEW_ROWS, &MLP_TRAINING] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.inputs, visit);
        visit_f32(&self.start.parameters, visit);
        visit_f32(&self.start.first, visit);
        visit_f32(&self.start.second, visit);
        for label in &self.labels {
            visit(&label.to_le_bytes());
        }
    }
}
