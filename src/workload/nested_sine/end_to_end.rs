//! Nested sine from and to host memory, and how it is cut.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::nested_sine::format::Sine;
use crate::workload::nested_sine::gpu::fused_launch;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::number::in_format;
use crate::workload::prepare::pieces::{InPieces, Stages, cut, piece};
use crate::workload::prepare::{HostMemory, Places, Stage, Steps, end_to_end};
use crate::workload::routine::{Done, Made, RoutineError, Ways};

/// Upload, the fused kernel and download, one after the other, from and to host memory of one
/// kind. It synchronises: time it on the wall clock.
pub fn transfer<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>, memory: HostMemory) -> Made {
    end_to_end::transfer(gpu, problem, memory)
}

/// From pinned memory to pinned memory by the fused kernel, in the way that is fastest in a trial:
/// a copy, the kernel and a copy; the kernel on the host's memory in place; or pieces whose copies
/// both ways overlap with each other and with kernels. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_pinned<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>) -> Made {
    end_to_end::pinned(gpu, problem)
}

/// A routine for every way that [`transfer_pinned`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_pinned`].
pub fn transfer_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    end_to_end::pinned_ways(gpu, problem)
}

/// From ordinary memory to ordinary memory by the fused kernel: through a copy in pinned memory, or
/// in pieces by several threads through pinned buffers. A trial chooses between these and the
/// number of threads. It synchronises: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn transfer_staged<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>) -> Made {
    end_to_end::staged(gpu, problem)
}

/// A routine for every way that [`transfer_staged`] chooses from, with its name. For tests.
///
/// # Errors
/// As [`transfer_staged`].
pub fn transfer_staged_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    end_to_end::staged_ways(gpu, problem)
}

// SAFETY: a piece is a part of both arrays.
unsafe impl<T: Sine> InPieces for NestedSine<T> {
    type Value = T;

    const POISON: T = T::POISON;

    fn words(&self) -> String {
        format!("nested sine of {} values{}", self.len(), in_format::<T>())
    }

    fn operand(&self) -> &[T] {
        self.input()
    }

    fn result(&self) -> usize {
        self.len()
    }

    fn check(&self, result: &[T]) -> Result<Verified, RoutineError> {
        self.check_output(result)
    }

    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done {
        let kernel = fused_launch::<T>(gpu, at[0], at[1], self.len() as u64)?;
        // SAFETY: input and output have as many values, and live in the routine.
        unsafe { steps.kernel(kernel) };
        Ok(())
    }

    fn stages(&self, gpu: &Rc<Gpu>, places: &Places<T>, pieces: usize) -> Stages {
        let stage = |(first, len): (usize, usize)| -> Result<Stage, RoutineError> {
            let [from, to] = [0, 1].map(|at| piece(places, at, first, len));
            let kernel = fused_launch::<T>(gpu, from.device, to.device, len as u64)?;
            Ok(Stage {
                uploads: vec![from],
                // SAFETY: the piece lies within both, which whoever runs the stages vouches for.
                compute: Some(Box::new(move |stream| unsafe { kernel.launch(stream) })),
                downloads: vec![to],
            })
        };
        cut(self.len(), pieces).map(stage).collect()
    }
}
