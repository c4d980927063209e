//! A step on the CPU.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::mlp_training::adamw::{BETA_1, BETA_2, Counter, DECAY, EPSILON, RATE};
use crate::workload::mlp_training::loss::cross_entropy;
use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, INPUTS, PARAMETERS, W1, W2};
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::{
    Format, Products, matrix, matrix_mut,
    operations::{GRAIN, add_bias, add_bias_relu, relu_backward, sum_rows},
};
use crate::workload::prepare::{Threads, wide};
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

/// The products of a step, in the names of choices and of notes.
const PRODUCTS: [(&str, &str); 5] = [
    ("activations", "activations"),
    ("logits", "logits"),
    ("gradient of W2", "gradient of W2"),
    ("gradient of activations", "gradient of the activations"),
    ("gradient of W1", "gradient of W1"),
];

/// A step, and what it reads and writes beside its batch.
struct Step {
    problem: Rc<Training>,
    products: Products,
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
}

impl Step {
    fn new(problem: &Rc<Training>, threads: Threads) -> Self {
        let start = &problem.start;
        let rows = |width: usize| vec![f32::NAN; problem.batch * width];
        // As long as the longest operand: W1, or the hidden activations' gradient.
        let spare = HIDDEN * INPUTS.max(problem.batch);
        let mut step = Self {
            products: Products::new(threads, "a training step", &PRODUCTS, spare),
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
            problem: problem.clone(),
        };
        // Chooses the ways, each on the results of the one before.
        step.step();
        step.put_back();
        step
    }

    fn put_back(&mut self) {
        let start = &self.problem.start;
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

    fn step(&mut self) {
        let products = &mut self.products;
        let labels = &self.problem.labels;
        let x = matrix(&self.problem.inputs, INPUTS);
        let w1 = matrix(&self.parameters[W1], INPUTS);
        let w2 = matrix(&self.parameters[W2], HIDDEN);
        products.multiply(0, x, w1.t(), matrix_mut(&mut self.hidden, HIDDEN));
        add_bias_relu(&products.threads, &mut self.hidden, &self.parameters[B1]);
        let hidden = matrix(&self.hidden, HIDDEN);
        products.multiply(1, hidden, w2.t(), matrix_mut(&mut self.logits, CLASSES));
        add_bias(&products.threads, &mut self.logits, &self.parameters[B2]);
        let of_logits = &mut self.of_logits;
        self.loss = cross_entropy(&products.threads, &self.logits, labels, of_logits);

        let of_logits = matrix(&self.of_logits, CLASSES);
        let of_w2 = matrix_mut(&mut self.gradients[W2], HIDDEN);
        products.multiply(2, of_logits.t(), hidden, of_w2);
        sum_rows(&products.threads, &self.of_logits, &mut self.gradients[B2]);
        products.multiply(3, of_logits, w2, matrix_mut(&mut self.of_hidden, HIDDEN));
        relu_backward(&products.threads, &mut self.of_hidden, &self.hidden);
        sum_rows(&products.threads, &self.of_hidden, &mut self.gradients[B1]);
        let of_hidden = matrix(&self.of_hidden, HIDDEN);
        let of_w1 = matrix_mut(&mut self.gradients[W1], INPUTS);
        products.multiply(4, of_hidden.t(), x, of_w1);

        self.counter = self.counter.next();
        let (rate, root) = (self.counter.rate() as f32, self.counter.root() as f32);
        let tasks = (self.parameters.chunks_mut(GRAIN))
            .zip(self.gradients.chunks(GRAIN))
            .zip(self.first.chunks_mut(GRAIN))
            .zip(self.second.chunks_mut(GRAIN));
        products.threads.each(tasks.collect(), |(((w, g), m), v)| {
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
        self.loss = f32::NAN;
        for values in [
            &mut self.hidden,
            &mut self.logits,
            &mut self.of_logits,
            &mut self.of_hidden,
            &mut self.gradients,
        ] {
            values.par_iter_mut().for_each(|v| *v = f32::NAN);
        }
        Ok(())
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        self.put_back();
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.step();
        Ok(())
    }

    fn park(&mut self) {
        self.products.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let outputs = Outputs {
            hidden: &self.hidden,
            logits: &self.logits,
            loss: self.loss,
            gradients: &self.gradients,
            parameters: &self.parameters,
            first: &self.first,
            second: &self.second,
            copies: None,
        };
        Ok(verified(&self.problem, Format::F32, &outputs))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        self.products.notes()
    }
}
