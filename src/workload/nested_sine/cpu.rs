//! On the CPU: the standard library's sine, and vectors.

use std::rc::Rc;

use rayon::prelude::*;

use crate::model::verified::Verified;
use crate::workload::calibrate;
use crate::workload::nested_sine::isa::Isa;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::nested_sine::verify::{POISON, Tolerance};
use crate::workload::routine::{Made, Routine, RoutineError};

/// Accuracy taken for granted of a C library's `sinf`: glibc documents 1 ulp, others do not
/// do worse than that.
/// <https://www.gnu.org/software/libc/manual/html_node/Errors-in-Math-Functions.html>
const SINF_ULP: f64 = 1.0;
/// Every pass of the vectorised sine, as tested.
const SIMD_ULP: f64 = 2.0;

/// Four calls of [`f32::sin`] an element, on all cores: what one line of Rust and rayon
/// give.
pub fn std(problem: &Rc<NestedSine>) -> Made {
    // Some 15 µs of work, well above what handing it to another thread costs.
    const GRAIN: usize = 1 << 10;
    let compute = |x: &[f32], y: &mut [f32]| {
        for (x, y) in x.iter().zip(y) {
            *y = x.sin().sin().sin().sin();
        }
    };
    Ok(Box::new(Cpu {
        problem: problem.clone(),
        y: vec![0.0; problem.len()],
        grain: GRAIN,
        compute,
        tolerance: Tolerance::UlpPerPass(SINF_ULP),
        note: "f32::sin".to_owned(),
    }))
}

/// Polynomials in the widest vectors that the CPU has, on one core or on all, whichever a
/// short calibration finds faster. The four sines stay in registers, so memory is read and
/// written once.
pub fn simd(problem: &Rc<NestedSine>) -> Made {
    // Some 5 µs of work, and input and output fit in a level-2 cache.
    const GRAIN: usize = 1 << 14;
    /// From here on the work is many times what waking the other threads costs.
    const SHARED: usize = 1 << 20;
    let isa = Isa::best();
    let mut routine = Cpu {
        problem: problem.clone(),
        y: vec![0.0; problem.len()],
        grain: GRAIN,
        compute: move |x: &[f32], y: &mut [f32]| isa.nested_sine(x, y),
        tolerance: Tolerance::UlpPerPass(SIMD_ULP),
        note: isa.name().to_owned(),
    };
    if (GRAIN..SHARED).contains(&problem.len()) {
        let choice = format!(
            "elements of a task of the nested sine of {} on the CPU, {} threads at most",
            problem.len(),
            rayon::current_num_threads()
        );
        let grains = [problem.len(), GRAIN];
        routine.grain = calibrate::fastest(&choice, &grains, |grain, times| {
            routine.grain = grain;
            for _ in 0..times {
                routine.compute();
            }
        });
    }
    Ok(Box::new(routine))
}

struct Cpu<F> {
    problem: Rc<NestedSine>,
    y: Vec<f32>,
    /// Elements of a task. A problem no larger stays on the calling thread.
    grain: usize,
    compute: F,
    tolerance: Tolerance,
    note: String,
}

impl<F: Fn(&[f32], &mut [f32]) + Sync> Cpu<F> {
    fn compute(&mut self) {
        let x = self.problem.input();
        if x.len() <= self.grain {
            (self.compute)(x, &mut self.y);
        } else {
            x.par_chunks(self.grain)
                .zip(self.y.par_chunks_mut(self.grain))
                .for_each(|(x, y)| (self.compute)(x, y));
        }
    }
}

impl<F: Fn(&[f32], &mut [f32]) + Sync> Routine for Cpu<F> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.y.par_iter_mut().for_each(|y| *y = POISON);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.compute();
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.problem
            .compare(self.tolerance, |window| Ok(self.y[window].to_vec()))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        let threads = if self.problem.len() <= self.grain {
            1
        } else {
            rayon::current_num_threads().min(self.problem.len().div_ceil(self.grain))
        };
        let plural = if threads == 1 { "" } else { "s" };
        vec![format!("{}, {threads} thread{plural}", self.note)]
    }
}
