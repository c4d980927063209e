//! A step on the CPU.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::mlp_training::loss::cross_entropy;
use crate::workload::mlp_training::model::GRADIENTS;
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::{Format, OnCpu, operations::GRAIN, product::Products};
use crate::workload::prepare::Threads;
use crate::workload::routine::{Made, Routine, RoutineError};
use crossover_arithmetic::adamw::{Counter, step_in_f32};

/// On all cores: each product in the way that is fastest in a short calibration, the rest in the
/// widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Training>) -> Made {
    Ok(Box::new(Step::new(problem, Threads::all())))
}

/// As [`best`], on one thread.
pub fn one_thread(problem: &Rc<Training>) -> Made {
    Ok(Box::new(Step::new(problem, Threads::One)))
}

/// A step, and what it reads and writes beside its batch.
struct Step {
    problem: Rc<Training>,
    network: OnCpu,
    first: Vec<f32>,
    second: Vec<f32>,
    counter: Counter,
    loss: f32,
}

impl Step {
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

impl Routine for Step {
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
