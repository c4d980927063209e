//! The sum on the CPU.

use std::hint::black_box;
use std::rc::Rc;

use rayon::prelude::*;

use crate::workload::prepare::{Threads, choose, wide};
use crate::workload::reduction::problem::Sum;
use crate::workload::routine::{Result, Routine};
use crate::workload::simple::OnCpu;

/// One addition after the other, on one thread.
pub fn one_by_one(problem: &Rc<Sum>) -> Result<Box<dyn Routine>> {
    let (longest, words) = (problem.x.len(), "from first to last");
    routine(problem, Threads::One, longest, words, |_, x| x.iter().sum())
}

/// As one writes it with Rayon: a task adds its terms from first to last, and the tasks' sums are added
/// in the order in which they end.
pub fn rayon(problem: &Rc<Sum>) -> Result<Box<dyn Routine>> {
    const TASK: usize = 1 << 14;
    let longest = TASK + problem.x.len().div_ceil(TASK);
    let words = "tasks of 16,384 terms from first to last, in no fixed order";
    routine(problem, Threads::Rayon, longest, words, |_, x| {
        x.par_chunks(TASK).map(|x| x.iter().sum::<f32>()).sum()
    })
}

/// Chains that a core adds to at once: eight of the widest vectors, to hide the latency of an addition.
const CHAINS: usize = 128;
/// Terms that are added in f32 before the chains' sums are added in float64.
const BLOCK: usize = 1 << 16;

/// In the widest vectors of the CPU, by a calibrated number of tasks.
pub fn simd(problem: &Rc<Sum>) -> Result<Box<dyn Routine>> {
    let (n, threads) = (problem.x.len(), Threads::all());
    let (count, blocks) = (threads.count(), n.div_ceil(BLOCK));
    let choice = format!("sum of {n} on the CPU, {count} threads at most");
    let mut tasks = vec![1, count, 4 * count, blocks];
    tasks.retain(|&tasks| tasks <= blocks);
    tasks.sort_unstable();
    tasks.dedup();
    let tasks = choose::on_cpu(&threads, &choice, &tasks, |tasks, times| {
        (0..times).for_each(|_| _ = black_box(in_tasks(&threads, tasks, &problem.x)));
    });
    let threads = if tasks == 1 { Threads::One } else { threads };
    let longest = BLOCK / CHAINS;
    let words = format!("{tasks} tasks of {CHAINS} chains of {longest} terms, added in float64");
    let add = move |threads: &Threads, x: &[f32]| in_tasks(threads, tasks, x);
    routine(problem, threads, longest, &words, add)
}

pub(super) fn in_tasks(threads: &Threads, tasks: usize, x: &[f32]) -> f32 {
    let task = x.len().div_ceil(tasks).next_multiple_of(BLOCK);
    let mut parts = vec![0.0; x.len().div_ceil(task)];
    let tasks = parts.iter_mut().zip(x.chunks(task)).collect();
    threads.each(tasks, |(part, x): (&mut f64, &[f32])| {
        *part = x.chunks(BLOCK).map(in_chains).sum();
    });
    parts.iter().sum::<f64>() as f32
}

wide! {
    fn in_chains(x: &[f32]) -> f64 {
        let mut sums = [0.0f32; CHAINS];
        let mut rounds = x.chunks_exact(CHAINS);
        for round in &mut rounds {
            for (sum, x) in sums.iter_mut().zip(round) {
                *sum += x;
            }
        }
        for (sum, x) in sums.iter_mut().zip(rounds.remainder()) {
            *sum += x;
        }
        sums.iter().map(|&sum| f64::from(sum)).sum()
    }
}

fn routine(
    problem: &Rc<Sum>,
    threads: Threads,
    longest: usize,
    words: &str,
    add: impl Fn(&Threads, &[f32]) -> f32 + 'static,
) -> Result<Box<dyn Routine>> {
    let (terms, judge) = (problem.clone(), problem.clone());
    Ok(Box::new(OnCpu {
        output: vec![f32::NAN],
        poison: f32::NAN,
        notes: vec![format!("order: {words}")],
        threads,
        compute: move |threads: &Threads, y: &mut [f32]| y[0] = add(threads, &terms.x),
        check: move |y: &[f32]| judge.check(longest, y),
    }))
}
