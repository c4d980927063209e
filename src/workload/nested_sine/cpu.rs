//! Nested sine on the CPU: by the standard library's sine, and in vectors.

use std::fmt;
use std::rc::Rc;

use rayon::prelude::*;

use crate::workload::nested_sine::problem::{ACCURATE, NestedSine, PASSES, POISON};
use crate::workload::prepare::{Threads, choose};
use crate::workload::routine::{Result, Routine};
use crate::workload::simple::OnCpu;
use crossover_arithmetic::Isa;
use crossover_arithmetic::sine::Stores;
use crossover_words::units::counted;

/// Accuracy assumed of a C library's `sinf`: glibc documents 1 ulp.
/// <https://www.gnu.org/software/libc/manual/html_node/Errors-in-Math-Functions.html>
const SINF_ULP: f64 = 1.0;

/// Four calls of [`f32::sin`] per element, on all cores: one line of Rust, and rayon.
pub fn std(problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    // Some 15 µs of work, well above what handing it to another thread costs.
    const GRAIN: usize = 1 << 10;
    let compute = |x: &[f32], y: &mut [f32], _| {
        for (x, y) in x.iter().zip(y) {
            *y = x.sin().sin().sin().sin();
        }
    };
    let plan = Plan {
        grain: GRAIN,
        stores: Stores::Cached,
    };
    Ok(routine(
        problem,
        Threads::Rayon,
        plan,
        compute,
        SINF_ULP,
        "f32::sin",
    ))
}

/// Polynomials in the widest vectors that the CPU has. A short calibration chooses the threads,
/// which spin for a moment before they sleep, the elements per task, and whether results are stored
/// through the caches. The four sines stay in registers, so memory is read and written once.
pub fn simd(problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    let threads = Threads::all();
    let plans = plans(problem.len(), threads.count());
    let choice = format!(
        "nested sine of {} on the CPU, {} threads at most",
        problem.len(),
        threads.count()
    );
    let isa = Isa::best();
    let nested = move |x: &[f32], y: &mut [f32], stores| isa.nested_sine(x, y, stores);
    let mut y = vec![0.0; problem.len()];
    let plan = choose::on_cpu(&threads, &choice, &plans, |plan, times| {
        (0..times).for_each(|_| share_out(&threads, plan, problem.input(), &mut y, &nested));
    });
    let threads = match plan.grain >= problem.len() {
        // One task is work for one thread.
        true => Threads::One,
        false => threads,
    };
    Ok(routine(
        problem,
        threads,
        plan,
        nested,
        ACCURATE,
        isa.name(),
    ))
}

/// Nested sine without fusion, as a library computes it: four passes over memory between two arrays, in
/// the vectors of [`simd`], on all cores.
pub fn in_passes(problem: &Rc<NestedSine>) -> Result<Box<dyn Routine>> {
    /// A smaller problem stays on one thread, as PyTorch has it.
    const GRAIN: usize = 1 << 15;
    let isa = Isa::best();
    let n = problem.len();
    let threads = if n <= GRAIN {
        Threads::One
    } else {
        Threads::all()
    };
    let share = n.div_ceil(threads.count()).next_multiple_of(1 << 10);
    let plan = Plan {
        grain: share.max(GRAIN),
        stores: Stores::Cached,
    };
    let pass = move |x: &[f32], y: &mut [f32], _| isa.sine(x, y);
    let (input, judge) = (problem.clone(), problem.clone());
    let mut between = vec![0.0; n];
    Ok(Box::new(OnCpu {
        output: vec![0.0; n],
        poison: POISON,
        threads,
        compute: move |threads: &Threads, y: &mut [f32]| {
            share_out(threads, plan, input.input(), &mut between, &pass);
            share_out(threads, plan, &between, y, &pass);
            share_out(threads, plan, y, &mut between, &pass);
            share_out(threads, plan, &between, y, &pass);
        },
        check: move |y: &[f32]| judge.check_output(y),
        notes: vec![format!("{}, {PASSES} passes", isa.name())],
    }))
}

/// How the elements are shared out and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Elements per task. A problem that is no larger stays on the calling thread.
    grain: usize,
    stores: Stores,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements per task", self.grain)?;
        match self.stores {
            Stores::Cached => Ok(()),
            Stores::Streamed => write!(f, ", stored past the caches"),
        }
    }
}

/// The plans to try for `n` elements on `threads` threads.
fn plans(n: usize, threads: usize) -> Vec<Plan> {
    /// Some 5 µs of work, whose input and output fit in a level-2 cache.
    const GRAIN: usize = 1 << 14;
    /// Up to some 2 µs of work, about as much as sharing it out takes.
    const SMALL: usize = 1 << 13;
    /// From this many elements on one thread is many times slower than several.
    const LARGE: usize = 1 << 20;
    let mut grains = Vec::new();
    if threads == 1 || n < LARGE {
        grains.push(n);
    }
    if threads > 1 && n >= SMALL {
        // Tasks are whole pages, and so whole blocks of vectors.
        let share = |tasks: usize| n.div_ceil(tasks).next_multiple_of(1 << 10);
        grains.extend([share(threads), share(4 * threads)]);
    }
    if n >= LARGE {
        // Smaller tasks: each begins where the one before it ended, so the CPU prefetches it.
        grains.extend([GRAIN, 4 * GRAIN]);
    }
    grains.sort_unstable();
    grains.dedup();
    let stored = |stores| move |grain| Plan { grain, stores };
    let mut plans: Vec<Plan> = grains.iter().copied().map(stored(Stores::Cached)).collect();
    if n >= LARGE {
        // The results may exceed the caches, whose share is not known on a shared host.
        plans.extend(grains.into_iter().map(stored(Stores::Streamed)));
    }
    plans
}

/// The sines by `compute`, shared out as planned.
fn routine(
    problem: &Rc<NestedSine>,
    threads: Threads,
    plan: Plan,
    compute: impl Fn(&[f32], &mut [f32], Stores) + Sync + 'static,
    ulp: f64,
    by: &str,
) -> Box<dyn Routine> {
    let tasks = problem.len().div_ceil(plan.grain.max(1)).max(1);
    let on = counted(threads.count().min(tasks), "thread");
    let past = match plan.stores {
        Stores::Cached => "",
        Stores::Streamed => ", stored past the caches",
    };
    let (input, judge) = (problem.clone(), problem.clone());
    Box::new(OnCpu {
        // Its pages are first written by the threads that compute them.
        output: vec![0.0; problem.len()],
        poison: POISON,
        threads,
        compute: move |threads: &Threads, y: &mut [f32]| {
            share_out(threads, plan, input.input(), y, &compute);
        },
        check: move |y: &[f32]| judge.check_to(ulp, y),
        notes: vec![format!("{by}, {on}{past}")],
    })
}

/// Each task by `compute` on one of the threads.
fn share_out(
    threads: &Threads,
    Plan { grain, stores }: Plan,
    x: &[f32],
    y: &mut [f32],
    compute: &(impl Fn(&[f32], &mut [f32], Stores) + Sync),
) {
    if x.len() <= grain {
        compute(x, y, stores);
        return;
    }
    match threads {
        // As one writes it with Rayon.
        Threads::Rayon => (x.par_chunks(grain))
            .zip(y.par_chunks_mut(grain))
            .for_each(|(x, y)| compute(x, y, stores)),
        threads => {
            let tasks = x.chunks(grain).zip(y.chunks_mut(grain));
            threads.each(tasks.collect(), |(x, y)| compute(x, y, stores));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::routine::Workload;

    #[test]
    fn plans_by_length_and_threads() {
        let alone = |n: usize| Plan {
            grain: n,
            stores: Stores::Cached,
        };
        assert_eq!(plans(1 << 16, 1), [alone(1 << 16)]);
        let shared = plans(1 << 16, 16);
        assert!(shared.contains(&alone(1 << 16)) && shared.contains(&alone(1 << 12)));
        let large = plans(1 << 22, 16);
        assert!(!large.contains(&alone(1 << 22)));
        assert!(large.iter().any(|plan| plan.stores == Stores::Streamed));
        assert!(plans(0, 16).contains(&alone(0)));
    }

    #[test]
    fn every_plan_computes_every_element() {
        let n = (1 << 20) + 77;
        let problem = Rc::new(NestedSine::new(n as u64));
        // Every instruction set computes the same, in the tests of the sine.
        let isa = Isa::best();
        let compute = move |x: &[f32], y: &mut [f32], stores| isa.nested_sine(x, y, stores);
        for plan in plans(n, 3) {
            let threads = Threads::up_to(3);
            let mut routine = routine(&problem, threads, plan, compute, ACCURATE, isa.name());
            routine.poison().unwrap();
            routine.run().unwrap();
            let verified = routine.check().unwrap();
            assert!(verified.passed(), "{plan}: {verified:?}");
        }
    }
}
