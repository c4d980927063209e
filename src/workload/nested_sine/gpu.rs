//! Nested sine on data in device memory: one kernel per pass, the passes fused, the passes as a
//! graph.

use std::rc::Rc;

use crate::device::Gpu;
use crate::workload::nested_sine::format::{POISON_BYTE, Sine};
use crate::workload::nested_sine::kernel::{Kernel, NESTED_SINE};
use crate::workload::nested_sine::problem::{NestedSine, PASSES};
use crate::workload::nested_sine::verify::Tolerance;
use crate::workload::prepare::{Device, Prepared};
use crate::workload::routine::{Done, Made, RoutineError};

pub use crate::workload::nested_sine::end_to_end::{from_host, from_host_ways};

const PASS: Kernel = Kernel {
    source: &NESTED_SINE,
    name: "sine_pass",
    vectors: 1,
};
/// As [`PASS`], from the last element to the first.
const PASS_BACKWARDS: Kernel = Kernel {
    name: "sine_pass_backwards",
    ..PASS
};
const FUSED_SINF: Kernel = Kernel {
    name: "sine_fused_sinf",
    ..PASS
};
const FUSED_FAST: Kernel = Kernel {
    name: "sine_fused_fast",
    vectors: 2,
    ..PASS
};

/// Accuracy of every pass of `sine_pass`, `sine_fused` and `sine_fused_f64`, as tested, and of CUDA's `sinf` and
/// `sin`:
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#mathematical-functions-appendix>
const ACCURATE: Tolerance = Tolerance::UlpPerPass(2.0);
/// Accuracy of `__sinf` on [-π, π], 2^-21.41, from the same page.
const FAST: Tolerance = Tolerance::AbsolutePerPass(3.6e-7);

/// Four launches of one sine each, through memory, alternately forwards and backwards.
pub fn per_kernel(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    Ok(Box::new(passes(gpu, problem)?))
}

/// One kernel: polynomials, with a range reduction in the first pass only.
pub fn fused<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>) -> Made {
    one_kernel(gpu, problem, T::FUSED, ACCURATE)
}

/// One kernel: CUDA's `sinf` four times.
pub fn fused_sinf(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED_SINF, ACCURATE)
}

/// One kernel: the `__sinf` of the special-function units four times, with an absolute error
/// only, and on [-π, π] only.
pub fn fused_fast(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED_FAST, FAST)
}

/// The four launches of [`per_kernel`], captured and replayed.
pub fn graph(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    let mut work = passes(gpu, problem)?;
    work.steps.replay()?;
    Ok(Box::new(work))
}

fn one_kernel<T: Sine>(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine<T>>,
    kernel: Kernel,
    tolerance: Tolerance,
) -> Made {
    Ok(Box::new(resident(gpu, problem, &[kernel], tolerance)?))
}

/// One launch per pass. Every other one goes backwards, and so begins with what the one before it has
/// just left in the L2 cache.
fn passes(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Prepared, RoutineError> {
    resident(gpu, problem, &KERNELS, ACCURATE)
}

/// The launches of [`per_kernel`].
pub(super) const KERNELS: [Kernel; PASSES as usize] = [PASS, PASS_BACKWARDS, PASS, PASS_BACKWARDS];

/// Kernels on data that stays in device memory.
fn resident<T: Sine>(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine<T>>,
    kernels: &[Kernel],
    tolerance: Tolerance,
) -> Result<Prepared, RoutineError> {
    let mut work = Prepared::new(gpu)?;
    let x = work.upload(problem.input())?;
    let y = work.alloc::<T>(problem.len())?;
    work.poison_by(y, POISON_BYTE);
    enqueue(&mut work, x, y, problem.len(), kernels)?;
    let problem = problem.clone();
    work.check_by(move |memory| {
        problem.compare(tolerance, |window| Ok(memory.read_part(y, window)?))
    });
    Ok(work)
}

/// Kernels from x to y, n elements each; those after the first in place, so that x stays as it is.
pub(super) fn enqueue<T: Sine>(
    work: &mut Prepared,
    x: Device<T>,
    y: Device<T>,
    n: usize,
    kernels: &[Kernel],
) -> Done {
    for (pass, &kernel) in kernels.iter().enumerate() {
        let from = if pass == 0 { x.address } else { y.address };
        let kernel = kernel.launch::<T>(work.memory.gpu(), from, y.address, n as u64)?;
        // SAFETY: the arguments are those of the kernels, and x and y hold n elements each.
        unsafe { work.steps.kernel(kernel) };
    }
    Ok(())
}
