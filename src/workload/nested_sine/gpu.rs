//! Nested sine on data in device memory: one kernel per pass, the passes fused, the passes as a
//! graph.

use std::rc::Rc;

use crate::device::Gpu;
use crate::workload::nested_sine::format::{POISON_BYTE, Sine};
use crate::workload::nested_sine::kernel::{Kernel, NESTED_SINE};
use crate::workload::nested_sine::problem::{NestedSine, PASSES};
use crate::workload::nested_sine::verify::ACCURATE;
use crate::workload::prepare::{Device, Prepared};
use crate::workload::routine::{Done, Made, RoutineError};

pub use crate::workload::nested_sine::end_to_end::{from_host, from_pinned_ways};

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

/// Four launches of one sine each, through memory, alternately forwards and backwards.
pub fn per_kernel(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    Ok(Box::new(passes(gpu, problem)?))
}

/// One kernel: polynomials, with a range reduction in the first pass only.
pub fn fused<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>) -> Made {
    one_kernel(gpu, problem, T::FUSED)
}

/// One kernel: CUDA's `sinf` four times.
pub fn fused_sinf(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    one_kernel(gpu, problem, FUSED_SINF)
}

/// The four launches of [`per_kernel`], captured and replayed.
pub fn graph(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Made {
    let mut work = passes(gpu, problem)?;
    work.steps.replay()?;
    Ok(Box::new(work))
}

fn one_kernel<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>, kernel: Kernel) -> Made {
    Ok(Box::new(resident(gpu, problem, &[kernel])?))
}

/// One launch per pass. Every other one goes backwards, and so begins with what the one before it has
/// just left in the L2 cache.
fn passes(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Result<Prepared, RoutineError> {
    resident(gpu, problem, &KERNELS)
}

/// The launches of [`per_kernel`].
pub(super) const KERNELS: [Kernel; PASSES as usize] = [PASS, PASS_BACKWARDS, PASS, PASS_BACKWARDS];

/// Kernels on data that stays in device memory.
fn resident<T: Sine>(
    gpu: &Rc<Gpu>,
    problem: &Rc<NestedSine<T>>,
    kernels: &[Kernel],
) -> Result<Prepared, RoutineError> {
    let mut work = Prepared::new(gpu)?;
    let x = work.upload(problem.input())?;
    let y = work.alloc::<T>(problem.len())?;
    work.poison_by(y, POISON_BYTE);
    enqueue(&mut work, x, y, problem.len(), kernels)?;
    let problem = problem.clone();
    work.check_by(move |memory| {
        problem.compare(ACCURATE, |window| Ok(memory.read_part(y, window)?))
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
