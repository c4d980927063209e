//! Transforms on the CPU, by rustfft in the widest vectors that it has code for.

use std::rc::Rc;
use std::sync::Arc;

use crossover_fourier::{Complex, Fft as Transform, FftDirection};
use rayon::prelude::*;

use crate::workload::fft::problem::{BATCH, Fft, complex, complex_mut};
use crate::workload::prepare::{Threads, choose};
use crate::workload::routine::{Result, Routine};
use crate::workload::simple::OnCpu;

/// One signal after the other, on one thread.
pub fn one_thread(problem: &Rc<Fft>) -> Result<Box<dyn Routine>> {
    Ok(routine(problem, Threads::One, 1))
}

/// A task of Rayon for each signal.
pub fn rayon(problem: &Rc<Fft>) -> Result<Box<dyn Routine>> {
    Ok(routine(problem, Threads::Rayon, BATCH))
}

/// Calibrates the number of tasks. The threads spin for a moment before they sleep.
pub fn best(problem: &Rc<Fft>) -> Result<Box<dyn Routine>> {
    let (n, threads) = (problem.n, Threads::all());
    let count = threads.count();
    let choice = format!("{BATCH} transforms of {n} on the CPU, {count} threads at most");
    let mut tasks = vec![1, count.min(BATCH), (4 * count).min(BATCH)];
    tasks.dedup();
    // Allocated only for a calibration, because it doubles the routine's memory.
    let mut trial = None;
    let tasks = choose::on_cpu(&threads, &choice, &tasks, |tasks, times| {
        let (plan, y) = trial.get_or_insert_with(|| {
            let plan = HostPlan::new(n, FftDirection::Forward, BATCH);
            (plan, vec![0.0; problem.x.len()])
        });
        (0..times).for_each(|_| plan.transform(&threads, tasks, &problem.x, y));
    });
    drop(trial);
    let threads = if tasks == 1 { Threads::One } else { threads };
    Ok(routine(problem, threads, tasks))
}

/// The inverse transforms of spectra of N values each.
pub(super) fn inverse(n: usize, spectra: &[f32]) -> Vec<f32> {
    let mut back = vec![f32::NAN; spectra.len()];
    let mut plan = HostPlan::new(n, FftDirection::Inverse, BATCH);
    plan.transform(&Threads::Rayon, BATCH, spectra, &mut back);
    scale(n, &mut back);
    back
}

/// Multiplies by 1/N, which libraries leave out of the inverse.
pub(super) fn scale(n: usize, back: &mut [f32]) {
    back.par_iter_mut().for_each(|x| *x /= n as f32);
}

/// A transform of one direction, with memory of its own for each task.
struct HostPlan {
    fft: Arc<dyn Transform<f32>>,
    scratch: Vec<Vec<Complex<f32>>>,
}

impl HostPlan {
    fn new(n: usize, direction: FftDirection, tasks: usize) -> Self {
        let fft = crossover_fourier::plan(n, direction);
        let len = fft.get_immutable_scratch_len();
        let scratch = vec![vec![Complex::default(); len]; tasks];
        Self { fft, scratch }
    }

    /// Transforms all signals, divided into this number of tasks.
    fn transform(&mut self, threads: &Threads, tasks: usize, x: &[f32], y: &mut [f32]) {
        let signals = BATCH.div_ceil(tasks) * self.fft.len();
        let (x, y) = (
            complex(x).chunks(signals),
            complex_mut(y).chunks_mut(signals),
        );
        let tasks = x.zip(y).zip(&mut self.scratch);
        threads.each(tasks.collect(), |((x, y), scratch)| {
            self.fft.process_immutable_with_scratch(x, y, scratch);
        });
    }
}

fn routine(problem: &Rc<Fft>, threads: Threads, tasks: usize) -> Box<dyn Routine> {
    let mut plan = HostPlan::new(problem.n, FftDirection::Forward, tasks);
    let (signals, judge) = (problem.clone(), problem.clone());
    Box::new(OnCpu {
        output: vec![f32::NAN; problem.x.len()],
        poison: f32::NAN,
        notes: vec![format!(
            "rustfft, {tasks} tasks, {} threads",
            threads.count().min(tasks)
        )],
        threads,
        compute: move |threads: &Threads, y: &mut [f32]| {
            plan.transform(threads, tasks, &signals.x, y);
        },
        check: move |y: &[f32]| judge.check(y, &inverse(judge.n, y)),
    })
}
