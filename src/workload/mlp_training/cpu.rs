//! A step on the CPU.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::{Format, Verified};
use crate::workload::mlp_training::problem::{CLASSES, GRADIENTS, Training};
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::operations::{GRAIN, rows_per_task};
use crate::workload::network::{CpuRoutine, OnCpu, products::Products};
use crate::workload::prepare::{Threads, wide};
use crate::workload::routine::{Result, Routine};
use crossover_arithmetic::adamw::{Counter, step_in_f32};
use crossover_arithmetic::exponential::exponentials;

/// On up to `threads` threads: each product in the way that is fastest in a short calibration, the rest in
/// the widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Training>, threads: usize) -> Result<Box<dyn Routine>> {
    let (start, threads) = (&problem.start, Threads::up_to(threads));
    let products = Products::new(threads, "a training step");
    let network = OnCpu::new(&problem.model, products, &start.parameters, problem.batch);
    let mut network = network.trained(&problem.inputs);
    let mut state = StepState {
        first: start.first.clone(),
        second: start.second.clone(),
        counter: start.counter,
        loss: f32::NAN,
        problem: problem.clone(),
    };
    // Chooses the ways, each on the results of the one before.
    step(&mut network, &mut state);
    put_back(&mut network, &mut state);
    Ok(Box::new(CpuRoutine {
        network,
        state,
        run: step,
        restore: put_back,
        check,
    }))
}

/// The state that a step reads and writes beside its network.
struct StepState {
    problem: Rc<Training>,
    first: Vec<f32>,
    second: Vec<f32>,
    counter: Counter,
    loss: f32,
}

fn put_back(network: &mut OnCpu, state: &mut StepState) {
    let start = &state.problem.start;
    for (to, from) in [
        (&mut network.parameters, &start.parameters),
        (&mut state.first, &start.first),
        (&mut state.second, &start.second),
    ] {
        to.par_chunks_mut(GRAIN)
            .zip(from.par_chunks(GRAIN))
            .for_each(|(to, from)| to.copy_from_slice(from));
    }
    (state.counter, state.loss) = (start.counter, f32::NAN);
}

fn step(network: &mut OnCpu, state: &mut StepState) {
    network.forward(&[]);
    let (threads, labels) = (&network.products.threads, &state.problem.labels);
    let (logits, of_logits) = (&network.values[2], &mut network.of_values[2]);
    state.loss = cross_entropy(threads, logits, labels, of_logits);
    network.backward(&GRADIENTS);

    state.counter = state.counter.next();
    let (rate, root) = (state.counter.rate as f32, state.counter.root as f32);
    let tasks = (network.parameters.chunks_mut(GRAIN))
        .zip(network.of_parameters.chunks(GRAIN))
        .zip(state.first.chunks_mut(GRAIN))
        .zip(state.second.chunks_mut(GRAIN));
    let threads = &network.products.threads;
    threads.each(tasks.collect(), |(((w, g), m), v)| {
        step_in_f32(w, g, m, v, rate, root);
    });
}

fn check(network: &OnCpu, state: &StepState) -> Verified {
    let outputs = Outputs {
        hidden: &network.values[1],
        logits: &network.values[2],
        loss: state.loss,
        gradients: &network.of_parameters,
        parameters: &network.parameters,
        first: &state.first,
        second: &state.second,
        copies: None,
        counter: state.counter.values(),
    };
    verified(&state.problem, Format::F32, &outputs)
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
pub(super) fn cross_entropy(
    threads: &Threads,
    logits: &[f32],
    labels: &[u32],
    gradient: &mut [f32],
) -> f32 {
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
