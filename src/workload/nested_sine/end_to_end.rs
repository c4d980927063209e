//! Nested sine from and to host memory, and how it is cut.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::workload::nested_sine::format::Sine;
use crate::workload::nested_sine::problem::NestedSine;
use crate::workload::number::in_format;
use crate::workload::prepare::pieces::cut;
use crate::workload::prepare::{EndToEnd, HostMemory, Places, Stage, Stages, Steps, end_to_end};
use crate::workload::routine::{Done, Made, RoutineError, Ways};

/// From host memory to host memory by the fused kernel. It synchronises: time it on the wall clock.
///
/// From pinned memory in the fastest way, that is a copy, the kernel and a copy; the kernel on the
/// host's memory in place; or pieces whose copies both ways overlap with each other and with kernels.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn from_host<T: Sine>(gpu: &Rc<Gpu>, problem: &Rc<NestedSine<T>>, memory: HostMemory) -> Made {
    end_to_end::from_host(gpu, problem, memory)
}

/// A routine for every way that [`from_host`] chooses from in pinned memory, with its name. For tests.
///
/// # Errors
/// As [`from_host`].
pub fn from_pinned_ways(gpu: &Rc<Gpu>, problem: &Rc<NestedSine>) -> Ways {
    end_to_end::ways(gpu, problem)
}

// SAFETY: a piece is a part of both arrays.
unsafe impl<T: Sine> EndToEnd for NestedSine<T> {
    type Value = T;

    const POISON: T = T::POISON;

    fn words(&self) -> String {
        format!("nested sine of {} values{}", self.len(), in_format::<T>())
    }

    fn operands(&self) -> Vec<&[T]> {
        vec![self.input()]
    }

    fn result(&self) -> usize {
        self.len()
    }

    fn check(&self, result: &[T]) -> Result<Verified, RoutineError> {
        self.check_output(result)
    }

    fn compute(&self, gpu: &Rc<Gpu>, steps: &mut Steps, at: &[CUdeviceptr]) -> Done {
        let kernel = T::FUSED.launch::<T>(gpu, at[0], at[1], self.len() as u64)?;
        // SAFETY: input and output have as many values, and live in the routine.
        unsafe { steps.kernel(kernel) };
        Ok(())
    }

    fn stages(&self, gpu: &Rc<Gpu>, places: &Places<T>, pieces: usize) -> Stages {
        let stage = |(first, len): (usize, usize)| -> Result<Stage, RoutineError> {
            let [from, to] = [0, 1].map(|at| places.piece(at, first, len));
            let kernel = T::FUSED.launch::<T>(gpu, from.device, to.device, len as u64)?;
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
