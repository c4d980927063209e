//! A batch, its labels, and the state that a step starts from.

use std::cell::OnceCell;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::kernel::Source;
use crate::workload::matmul::uniform;
use crate::workload::mlp_training::model::{CLASSES, HIDDEN, INPUTS, PARAMETERS, model};
use crate::workload::mlp_training::reference::Reference;
use crate::workload::network::{LINEAR, Model, kernels::NETWORK, reference::wide};
use crate::workload::prepare::{CUBLAS_WORKSPACE, kernels, seed};
use crate::workload::routine::{Workload, visit_f32};
use crossover_arithmetic::adamw::{Counter, State};

/// The kernels of the loss and the update.
pub(super) static MLP_TRAINING: Source = kernels!("values.cuh", "mlp_training.cu");

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
        // gradient; a workspace for each of two streams.
        let per_input = 4 * (INPUTS + 2 * HIDDEN + 3 * CLASSES);
        36 * PARAMETERS as u64 + batch * per_input as u64 + 2 * CUBLAS_WORKSPACE
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&NETWORK, &LINEAR, &MLP_TRAINING] }
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
