//! Routines from closures, for operations that write one array of f32: what a group of your
//! own needs and nothing more. `examples/your_operation.rs` uses them.

use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, sys::CUdeviceptr};

use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::Launch;
use crate::workload::routine::{Routine, RoutineError};

/// Compares every element with a float64 reference: the largest error relative to the
/// reference, or to `floor` where the reference is smaller. A NaN that the reference does not
/// have never passes.
pub fn compare(
    output: &[f32],
    reference: impl IntoIterator<Item = f64>,
    floor: f64,
    bound: f64,
) -> Verified {
    let mut errors = output
        .iter()
        .zip(reference)
        .map(|(y, r)| (f64::from(*y) - r).abs() / r.abs().max(floor))
        .collect::<Vec<_>>();
    // A reference that is too short, like a NaN, says nothing about the rest.
    if errors.len() != output.len() || errors.iter().any(|e| e.is_nan()) {
        errors.push(f64::INFINITY);
    }
    let error = errors.into_iter().fold(0.0, f64::max);
    Verified {
        error,
        bound,
        method: "largest relative error, every element".to_owned(),
    }
}

/// A CPU routine: `compute` writes `len` values, `check` judges them.
pub fn on_cpu(
    len: usize,
    compute: impl FnMut(&mut [f32]) + 'static,
    check: impl Fn(&[f32]) -> Verified + 'static,
) -> Box<dyn Routine> {
    Box::new(OnCpu {
        output: vec![f32::NAN; len],
        compute,
        check,
    })
}

/// A GPU routine: `inputs` are uploaded, `launch` is given their device addresses and that of
/// `len` values of output and prepares the kernel, `check` judges the output.
///
/// # Safety
/// The launch's arguments must be those that its kernel declares, and the kernel must stay
/// within the inputs and the `len` values of output.
///
/// # Errors
/// Errors of CUDA, and those of `launch`.
pub unsafe fn on_gpu(
    gpu: &Rc<Gpu>,
    inputs: &[&[f32]],
    len: usize,
    launch: impl FnOnce(&[CUdeviceptr], CUdeviceptr) -> Result<Launch, RoutineError>,
    check: impl Fn(&[f32]) -> Verified + 'static,
) -> Result<Box<dyn Routine>, RoutineError> {
    gpu.bind()?;
    let inputs = inputs
        .iter()
        .map(|values| gpu.upload(values))
        .collect::<Result<Vec<_>, _>>()?;
    let output = gpu.alloc(len)?;
    let address = |slice: &CudaSlice<f32>| slice.device_ptr(gpu.stream()).0;
    let addresses: Vec<CUdeviceptr> = inputs.iter().map(address).collect();
    Ok(Box::new(OnGpu {
        launch: launch(&addresses, address(&output))?,
        gpu: gpu.clone(),
        _inputs: inputs,
        output,
        check,
    }))
}

struct OnCpu<F, C> {
    output: Vec<f32>,
    compute: F,
    check: C,
}

impl<F: FnMut(&mut [f32]), C: Fn(&[f32]) -> Verified> Routine for OnCpu<F, C> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output.fill(f32::NAN);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        (self.compute)(&mut self.output);
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok((self.check)(&self.output))
    }
}

struct OnGpu<C> {
    gpu: Rc<Gpu>,
    launch: Launch,
    // Holds the memory that `launch` has the addresses of, as `output` does.
    _inputs: Vec<CudaSlice<f32>>,
    output: CudaSlice<f32>,
    check: C,
}

impl<C: Fn(&[f32]) -> Verified> Routine for OnGpu<C> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.gpu.poison(&mut self.output)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: promised to `on_gpu`; the memory lives in `self`.
        unsafe { self.launch.launch(self.gpu.stream()) }?;
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok((self.check)(&self.gpu.download(&self.output)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_error_counts_and_nan_never_passes() {
        let reference = [1.0, 2.0, 0.0];
        let error = |y: [f32; 3]| compare(&y, reference, 1.0, 1e-3).error;
        assert_eq!(error([1.0, 2.0, 0.0]), 0.0);
        assert_eq!(error([1.5, 2.0, 0.0]), 0.5);
        assert_eq!(error([1.0, 2.0, 0.25]), 0.25);
        assert!(!compare(&[1.0, f32::NAN, 0.0], reference, 1.0, 1e9).passed());
        assert!(!compare(&[f32::NAN, 2.0, 0.0], reference, 1.0, 1e9).passed());
        assert!(!compare(&[1.0, 2.0, 0.0, 0.0], reference, 1.0, 1e9).passed());
    }

    #[test]
    fn a_cpu_routine_computes_and_is_judged() {
        let mut routine = on_cpu(
            3,
            |y| y.copy_from_slice(&[1.0, 2.0, 3.0]),
            |y| compare(y, [1.0, 2.0, 3.0], 1.0, 0.0),
        );
        routine.poison().unwrap();
        assert!(!routine.check().unwrap().passed());
        routine.run().unwrap();
        assert!(routine.check().unwrap().passed());
    }
}
