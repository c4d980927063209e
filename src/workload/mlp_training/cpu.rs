//! A step on the CPU.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::verified::Verified;
use crate::workload::mlp_training::adamw::{BETA_1, BETA_2, Counter, DECAY, EPSILON, RATE};
use crate::workload::mlp_training::loss::cross_entropy;
use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, INPUTS, PARAMETERS, W1, W2};
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::format::Format;
use crate::workload::network::operations::{
    GRAIN, add_bias, add_bias_relu, relu_backward, sum_rows,
};
use crate::workload::network::product::{Way, matrix, matrix_mut};
use crate::workload::prepare::threads::Threads;
use crate::workload::prepare::wide::wide;
use crate::workload::routine::{Made, Routine, RoutineError};

/// On all cores: each product in the way that is fastest in a short calibration, the rest in the
/// widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Training>) -> Made {
    Ok(Box::new(Step::new(problem, Threads::all())))
}

/// As [`best`], on one thread.
pub fn one_thread(problem: &Rc<Training>) -> Made {
    Ok(Box::new(Step::new(problem, Threads::One)))
}

/// How each product is computed.
#[derive(Clone, Copy)]
struct Ways {
    hidden: Way,
    logits: Way,
    of_w2: Way,
    of_hidden: Way,
    of_w1: Way,
}

struct Step {
    problem: Rc<Training>,
    threads: Threads,
    memory: Memory,
    ways: Ways,
}

/// What a step reads, as its threads share it.
#[derive(Clone, Copy)]
struct Batch<'a> {
    inputs: &'a [f32],
    labels: &'a [u32],
}

impl<'a> Batch<'a> {
    fn of(problem: &'a Training) -> Self {
        Self {
            inputs: &problem.inputs,
            labels: &problem.labels,
        }
    }
}

/// What a step reads and writes beside its batch.
struct Memory {
    parameters: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    counter: Counter,
    hidden: Vec<f32>,
    logits: Vec<f32>,
    loss: f32,
    of_logits: Vec<f32>,
    of_hidden: Vec<f32>,
    gradients: Vec<f32>,
    /// For the transposed of an operand, in ways that copy it.
    spare: Vec<f32>,
}

impl Step {
    fn new(problem: &Rc<Training>, threads: Threads) -> Self {
        let mut memory = Memory::new(problem);
        let batch = Batch::of(problem);
        let ways = memory.calibrate(&threads, batch);
        Self {
            problem: problem.clone(),
            threads,
            memory,
            ways,
        }
    }
}

impl Memory {
    fn new(problem: &Training) -> Self {
        let start = &problem.start;
        let rows = |width: usize| vec![f32::NAN; problem.batch * width];
        Self {
            parameters: start.parameters.clone(),
            first: start.first.clone(),
            second: start.second.clone(),
            counter: start.counter,
            hidden: rows(HIDDEN),
            logits: rows(CLASSES),
            loss: f32::NAN,
            of_logits: rows(CLASSES),
            of_hidden: rows(HIDDEN),
            gradients: vec![f32::NAN; PARAMETERS],
            // As long as the longest operand: W1, or the hidden activations' gradient.
            spare: vec![f32::NAN; HIDDEN * INPUTS.max(problem.batch)],
        }
    }

    fn restore(&mut self, problem: &Training) {
        let start = &problem.start;
        for (to, from) in [
            (&mut self.parameters, &start.parameters),
            (&mut self.first, &start.first),
            (&mut self.second, &start.second),
        ] {
            to.par_chunks_mut(GRAIN)
                .zip(from.par_chunks(GRAIN))
                .for_each(|(to, from)| to.copy_from_slice(from));
        }
        self.counter = start.counter;
    }

    /// Chooses the ways in the order of a step, each on the results of the one before, so that none
    /// is chosen by how it multiplies NaN.
    fn calibrate(&mut self, threads: &Threads, batch: Batch<'_>) -> Ways {
        let x = matrix(batch.inputs, INPUTS);
        let w1 = matrix(&self.parameters[W1], INPUTS);
        let w2 = matrix(&self.parameters[W2], HIDDEN);
        let name = |what: &str| format!("{what} of a training step");

        let to = matrix_mut(&mut self.hidden, HIDDEN);
        let spare = &mut self.spare;
        let hidden = Way::fastest(threads, &name("activations"), x, w1.t(), to, spare);
        let to = matrix_mut(&mut self.hidden, HIDDEN);
        hidden.multiply(threads, x, w1.t(), to, spare);
        add_bias_relu(threads, &mut self.hidden, &self.parameters[B1]);
        let activated = matrix(&self.hidden, HIDDEN);

        let to = matrix_mut(&mut self.logits, CLASSES);
        let logits = Way::fastest(threads, &name("logits"), activated, w2.t(), to, spare);
        let to = matrix_mut(&mut self.logits, CLASSES);
        logits.multiply(threads, activated, w2.t(), to, spare);
        cross_entropy(threads, &self.logits, batch.labels, &mut self.of_logits);
        let loss = matrix(&self.of_logits, CLASSES);

        let to = matrix_mut(&mut self.gradients[W2], HIDDEN);
        let of = name("gradient of W2");
        let of_w2 = Way::fastest(threads, &of, loss.t(), activated, to, spare);
        let to = matrix_mut(&mut self.of_hidden, HIDDEN);
        let of = name("gradient of activations");
        let of_hidden = Way::fastest(threads, &of, loss, w2, to, spare);
        let to = matrix_mut(&mut self.of_hidden, HIDDEN);
        of_hidden.multiply(threads, loss, w2, to, spare);
        let back = matrix(&self.of_hidden, HIDDEN);
        let to = matrix_mut(&mut self.gradients[W1], INPUTS);
        let of = name("gradient of W1");
        let of_w1 = Way::fastest(threads, &of, back.t(), x, to, spare);
        Ways {
            hidden,
            logits,
            of_w2,
            of_hidden,
            of_w1,
        }
    }

    fn run(&mut self, threads: &Threads, batch: Batch<'_>, ways: Ways) {
        self.forward(threads, batch, ways);
        self.loss = cross_entropy(threads, &self.logits, batch.labels, &mut self.of_logits);
        self.backward(threads, batch, ways);
        self.counter = self.counter.next();
        self.update(threads);
    }

    fn forward(&mut self, threads: &Threads, batch: Batch<'_>, ways: Ways) {
        let x = matrix(batch.inputs, INPUTS);
        let w1 = matrix(&self.parameters[W1], INPUTS);
        let w2 = matrix(&self.parameters[W2], HIDDEN);
        let to = matrix_mut(&mut self.hidden, HIDDEN);
        let spare = &mut self.spare;
        ways.hidden.multiply(threads, x, w1.t(), to, spare);
        add_bias_relu(threads, &mut self.hidden, &self.parameters[B1]);
        let to = matrix_mut(&mut self.logits, CLASSES);
        let hidden = matrix(&self.hidden, HIDDEN);
        ways.logits.multiply(threads, hidden, w2.t(), to, spare);
        add_bias(threads, &mut self.logits, &self.parameters[B2]);
    }

    fn backward(&mut self, threads: &Threads, batch: Batch<'_>, ways: Ways) {
        let x = matrix(batch.inputs, INPUTS);
        let w2 = matrix(&self.parameters[W2], HIDDEN);
        let activated = matrix(&self.hidden, HIDDEN);
        let of_logits = matrix(&self.of_logits, CLASSES);
        let to = matrix_mut(&mut self.gradients[W2], HIDDEN);
        let spare = &mut self.spare;
        ways.of_w2
            .multiply(threads, of_logits.t(), activated, to, spare);
        sum_rows(threads, &self.of_logits, &mut self.gradients[B2]);
        let to = matrix_mut(&mut self.of_hidden, HIDDEN);
        ways.of_hidden.multiply(threads, of_logits, w2, to, spare);
        relu_backward(threads, &mut self.of_hidden, &self.hidden);
        sum_rows(threads, &self.of_hidden, &mut self.gradients[B1]);
        let to = matrix_mut(&mut self.gradients[W1], INPUTS);
        let back = matrix(&self.of_hidden, HIDDEN);
        ways.of_w1.multiply(threads, back.t(), x, to, spare);
    }

    fn update(&mut self, threads: &Threads) {
        let (rate, root) = (self.counter.rate() as f32, self.counter.root() as f32);
        let tasks = (self.parameters.chunks_mut(GRAIN))
            .zip(self.gradients.chunks(GRAIN))
            .zip(self.first.chunks_mut(GRAIN))
            .zip(self.second.chunks_mut(GRAIN));
        threads.each(tasks.collect(), |(((w, g), m), v)| {
            adamw(w, g, m, v, rate, root);
        });
    }
}

wide! {
    fn adamw(w: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], rate: f32, root: f32) {
        for (((w, g), m), v) in w.iter_mut().zip(g).zip(m).zip(v) {
            *m += (1.0 - BETA_1) as f32 * (g - *m);
            *v = BETA_2 as f32 * *v + (1.0 - BETA_2) as f32 * g * g;
            let kept = *w * (1.0 - RATE * DECAY) as f32;
            *w = kept - rate * (*m / (v.sqrt() * root + EPSILON as f32));
        }
    }
}

impl Routine for Step {
    fn poison(&mut self) -> Result<(), RoutineError> {
        let Memory {
            hidden,
            logits,
            loss,
            of_logits,
            of_hidden,
            gradients,
            ..
        } = &mut self.memory;
        *loss = f32::NAN;
        for values in [hidden, logits, of_logits, of_hidden, gradients] {
            values.par_iter_mut().for_each(|v| *v = f32::NAN);
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        self.memory.restore(&self.problem);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Self {
            problem,
            threads,
            memory,
            ways,
        } = self;
        memory.run(threads, Batch::of(problem), *ways);
        Ok(())
    }

    fn park(&mut self) {
        self.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let memory = &self.memory;
        let outputs = Outputs {
            hidden: &memory.hidden,
            logits: &memory.logits,
            loss: memory.loss,
            gradients: &memory.gradients,
            parameters: &memory.parameters,
            first: &memory.first,
            second: &memory.second,
            copies: None,
        };
        Ok(verified(&self.problem, Format::F32, &outputs))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        let ways = &self.ways;
        [
            ("activations", ways.hidden),
            ("logits", ways.logits),
            ("gradient of W2", ways.of_w2),
            ("gradient of the activations", ways.of_hidden),
            ("gradient of W1", ways.of_w1),
        ]
        .map(|(name, way)| format!("{name}: {way}"))
        .into()
    }
}
