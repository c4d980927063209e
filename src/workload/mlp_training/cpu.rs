//! A step on the CPU.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::{Format, Verified};
use crate::workload::mlp_training::problem::{CLASSES, GRADIENTS, Training};
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::operations::{GRAIN, rows_per_task};
use crate::workload::network::{OnCpu, products::Products};
use crate::workload::prepare::{Threads, exponentials, wide};
use crate::workload::routine::{Made, Routine, RoutineError};
use crossover_arithmetic::adamw::{Counter, step_in_f32};

/// On up to `threads` threads: each product in the way that is fastest in a short calibration, the rest in
/// the widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Training>, threads: usize) -> Made {
    Ok(Box::new(CpuStep::new(problem, Threads::up_to(threads))))
}

/// A step, and what it reads and writes beside its batch.
struct CpuStep {
    problem: Rc<Training>,
    network: OnCpu,
    first: Vec<f32>,
    second: Vec<f32>,
    counter: Counter,
    loss: f32,
}

impl CpuStep {
    fn new(problem: &Rc<Training>, threads: Threads) -> Self {
        let (start, products) = (&problem.start, Products::new(threads, "a training step"));
        let (model, parameters) = (&problem.model, &start.parameters);
        let network = OnCpu::new(model, products, parameters, problem.batch);
        let mut step = Self {
            network: network.trained(&problem.inputs),
            first: start.first.clone(),
            second: start.second.clone(),
            counter: start.counter,
            loss: f32::NAN,
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
            (&mut self.network.parameters, &start.parameters),
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
        let network = &mut self.network;
        network.forward(&[]);
        let (threads, labels) = (&network.products.threads, &self.problem.labels);
        let (logits, of_logits) = (&network.values[2], &mut network.of_values[2]);
        self.loss = cross_entropy(threads, logits, labels, of_logits);
        network.backward(&GRADIENTS);

        self.counter = self.counter.next();
        let (rate, root) = (self.counter.rate as f32, self.counter.root as f32);
        let tasks = (network.parameters.chunks_mut(GRAIN))
            .zip(network.of_parameters.chunks(GRAIN))
            .zip(self.first.chunks_mut(GRAIN))
            .zip(self.second.chunks_mut(GRAIN));
        let threads = &network.products.threads;
        threads.each(tasks.collect(), |(((w, g), m), v)| {
            step_in_f32(w, g, m, v, rate, root);
        });
    }
}

impl Routine for CpuStep {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.loss = f32::NAN;
        self.network.poison();
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
        self.network.products.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let network = &self.network;
        let outputs = Outputs {
            hidden: &network.values[1],
            logits: &network.values[2],
            loss: self.loss,
            gradients: &network.of_parameters,
            parameters: &network.parameters,
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
        self.network.products.notes()
    }
}

wide! {
    /// The logits of some rows in, their gradient out. Gives the sum of the rows' losses.
    fn rows(logits: &[f32], labels: &[u32], share: f32, gradient: &mut [f32]) -> f64 {
        let mut losses = 0.0;
        let rows = logits.chunks_exact(CLASSES).zip(gradient.chunks_exact_mut(CLASSES));
        for ((z, g), &label) in rows.zip(labels) {
            g.copy_from_slice(z);
            let (largest, sum) = exponentials(g, 1.0);
            let factor = share / sum;
            for g in g.iter_mut() {
                *g *= factor;
            }
            g[label as usize] -= share;
            losses += f64::from(largest + sum.ln() - z[label as usize]);
        }
        losses
    }
}

/// The mean loss of the rows, and its gradient with respect to the logits.
fn cross_entropy(threads: &Threads, logits: &[f32], labels: &[u32], gradient: &mut [f32]) -> f32 {
    let share = 1.0 / labels.len() as f32;
    let task = rows_per_task(CLASSES);
    let mut sums = vec![0.0f64; labels.len().div_ceil(task)];
    let tasks = (logits.chunks(task * CLASSES))
        .zip(gradient.chunks_mut(task * CLASSES))
        .zip(labels.chunks(task))
        .zip(&mut sums);
    threads.each(tasks.collect(), |(((logits, gradient), labels), sum)| {
        *sum = rows(logits, labels, share, gradient);
    });
    (sums.iter().sum::<f64>() * f64::from(share)) as f32
}
