//! Nested sine on the CPU: by the standard library's sine, and in vectors.

use std::fmt;
use std::rc::Rc;

use rayon::prelude::*;

use crate::machine::isa::Isa;
use crate::model::verified::Verified;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::sine::Stores;
use crate::workload::nested_sine::verify::{POISON, Tolerance};
use crate::workload::prepare::calibrate;
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Made, Routine, RoutineError};

/// Accuracy assumed of a C library's `sinf`: glibc documents 1 ulp.
/// <https://www.gnu.org/software/libc/manual/html_node/Errors-in-Math-Functions.html>
const SINF_ULP: f64 = 1.0;
/// Accuracy of every pass of the vectorised sine, as tested.
const SIMD_ULP: f64 = 2.0;

/// Four calls of [`f32::sin`] per element, on all cores: one line of Rust, and rayon.
pub fn std(problem: &Rc<NestedSine>) -> Made {
    // Some 15 µs of work, well above what handing it to another thread costs.
    const GRAIN: usize = 1 << 10;
    let compute = |x: &[f32], y: &mut [f32], _| {
        for (x, y) in x.iter().zip(y) {
            *y = x.sin().sin().sin().sin();
        }
    };
    Ok(Box::new(Cpu {
        problem: problem.clone(),
        y: vec![0.0; problem.len()],
        threads: Threads::Rayon,
        plan: Plan {
            grain: GRAIN,
            stores: Stores::Cached,
        },
        compute,
        tolerance: Tolerance::UlpPerPass(SINF_ULP),
        note: "f32::sin".to_owned(),
    }))
}

/// Polynomials in the widest vectors that the CPU has. A short calibration chooses the threads,
/// which spin for a moment before they sleep, the elements per task, and whether results are stored
/// through the caches. The four sines stay in registers, so memory is read and written once.
pub fn simd(problem: &Rc<NestedSine>) -> Made {
    let isa = Isa::best();
    let threads = Threads::all();
    let plans = plans(problem.len(), threads.count());
    let choice = format!(
        "nested sine of {} on the CPU, {} threads at most",
        problem.len(),
        threads.count()
    );
    let compute = move |x: &[f32], y: &mut [f32], stores| isa.nested_sine_stored(x, y, stores);
    let mut y = vec![0.0; problem.len()];
    let plan = calibrate::fastest(&threads, &choice, &plans, |plan, times| {
        (0..times).for_each(|_| share_out(&threads, plan, problem.input(), &mut y, &compute));
    });
    let threads = match plan.grain >= problem.len() {
        // One task is work for one thread.
        true => Threads::One,
        false => threads,
    };
    Ok(Box::new(Cpu {
        problem: problem.clone(),
        y,
        threads,
        plan,
        compute,
        tolerance: Tolerance::UlpPerPass(SIMD_ULP),
        note: isa.name().to_owned(),
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
    let of = |stores| move |grain| Plan { grain, stores };
    let mut plans: Vec<Plan> = grains.iter().copied().map(of(Stores::Cached)).collect();
    if n >= LARGE {
        // The results may exceed the caches, whose share is not known on a shared host.
        plans.extend(grains.into_iter().map(of(Stores::Streamed)));
    }
    plans
}

struct Cpu<F> {
    problem: Rc<NestedSine>,
    y: Vec<f32>,
    threads: Threads,
    plan: Plan,
    compute: F,
    tolerance: Tolerance,
    note: String,
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

impl<F: Fn(&[f32], &mut [f32], Stores) + Sync> Routine for Cpu<F> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.y.par_iter_mut().for_each(|y| *y = POISON);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let x = self.problem.input();
        share_out(&self.threads, self.plan, x, &mut self.y, &self.compute);
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.problem
            .compare(self.tolerance, |window| Ok(self.y[window].to_vec()))
    }

    fn park(&mut self) {
        self.threads.park();
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        let tasks = self.problem.len().div_ceil(self.plan.grain.max(1)).max(1);
        let threads = self.threads.count().min(tasks);
        let plural = if threads == 1 { "" } else { "s" };
        let past = match self.plan.stores {
            Stores::Cached => "",
            Stores::Streamed => ", stored past the caches",
        };
        vec![format!("{}, {threads} thread{plural}{past}", self.note)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_by_length_and_threads() {
        let alone = |n: usize| Plan {
            grain: n,
            stores: Stores::Cached,
        };
        assert_eq!(plans(1 << 10, 16), [alone(1 << 10)]);
        assert_eq!(plans(1 << 16, 1), [alone(1 << 16)]);
        let shared = plans(1 << 16, 16);
        assert!(shared.contains(&alone(1 << 16)) && shared.contains(&alone(1 << 12)));
        assert!(!shared.iter().any(|plan| plan.stores == Stores::Streamed));
        let large = plans(1 << 22, 16);
        assert!(!large.contains(&alone(1 << 22)));
        assert!(large.iter().any(|plan| plan.stores == Stores::Streamed));
        assert!(plans(0, 16).contains(&alone(0)));
    }

    #[test]
    fn every_plan_computes_every_element() {
        let n = (1 << 20) + 77;
        let problem = Rc::new(NestedSine::new(n as u64));
        for plan in plans(n, 3) {
            for isa in Isa::available() {
                let mut routine = Cpu {
                    problem: problem.clone(),
                    y: vec![POISON; n],
                    threads: Threads::up_to(3),
                    plan,
                    compute: move |x: &[f32], y: &mut [f32], stores| {
                        isa.nested_sine_stored(x, y, stores)
                    },
                    tolerance: Tolerance::UlpPerPass(SIMD_ULP),
                    note: String::new(),
                };
                routine.run().unwrap();
                let verified = routine.check().unwrap();
                assert!(verified.passed(), "{plan}, {}: {verified:?}", isa.name());
            }
        }
    }
}
