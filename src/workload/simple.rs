//! Routines made of closures, for operations that write one array of f32.
//! `examples/your_operation.rs` uses them.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::Launch;
use crate::workload::prepare::{HostMemory, Prepared, Threads, fill};
use crate::workload::routine::{Alteration, Routine, RoutineError, judged};

/// Compares every element with a float64 reference. The error is the largest one relative to the
/// reference, or to `floor` where the reference is smaller, and may be up to `bound`. A NaN never
/// passes, nor does an output that is longer than the reference. The method names the first wrong value.
pub fn compare(
    output: &[f32],
    reference: impl IntoIterator<Item = f64>,
    floor: f64,
    bound: f64,
) -> Verified {
    let mut method = "largest relative error, every element".to_owned();
    let mut reference = reference.into_iter();
    let (mut largest, mut is_wrong) = (0.0, false);
    for (at, y) in output.iter().enumerate() {
        let expected = reference.next();
        // NaN if a value is NaN or the reference is too short.
        let r = expected.unwrap_or(f64::NAN);
        let error = (f64::from(*y) - r).abs() / r.abs().max(floor);
        let error = if error.is_nan() { f64::INFINITY } else { error };
        if error > bound && !is_wrong {
            is_wrong = true;
            let right = expected.map_or("absent".to_owned(), |r| format!("{r:e}"));
            method +=
                &format!("; the first wrong one, [{at}], is {y:e}, and the reference is {right}");
        }
        largest = error.max(largest);
    }
    Verified {
        error: largest,
        bound,
        method,
    }
}

/// A CPU routine: `compute` writes `len` values, and `check` compares them with the reference.
pub fn on_cpu(
    len: usize,
    compute: impl FnMut(&mut [f32]) + 'static,
    check: impl Fn(&[f32]) -> Verified + 'static,
) -> Box<dyn Routine> {
    let mut compute = compute;
    Box::new(OnCpu {
        output: vec![f32::NAN; len],
        poison: f32::NAN,
        threads: Threads::Rayon,
        compute: move |_: &Threads, output: &mut [f32]| compute(output),
        check,
        notes: Vec::new(),
    })
}

/// A GPU routine on `inputs`. They are uploaded once, or, with a kind of host memory, in each run,
/// which then copies the inputs to the device, launches, copies the output to the host and waits (time
/// it on the wall clock, and declare where the data are with
/// [`Implementation::data`](crate::suite::Implementation::data)). `launch` gets the inputs' device
/// addresses and that of `len` values of output, and prepares the kernel. `check` compares the output
/// with the reference. For several kernels, or other memory, see [`Prepared`].
///
/// # Safety
/// The launch's arguments must be those that its kernel declares, and the kernel must stay within
/// the inputs and the `len` values of output.
///
/// # Errors
/// Errors of CUDA, and those of `launch`.
pub unsafe fn on_gpu(
    gpu: &Rc<Gpu>,
    memory: Option<HostMemory>,
    inputs: &[&[f32]],
    len: usize,
    launch: impl FnOnce(&[CUdeviceptr], CUdeviceptr) -> Result<Launch, RoutineError>,
    check: impl Fn(&[f32]) -> Verified + 'static,
) -> Result<Box<dyn Routine>, RoutineError> {
    let mut work = Prepared::new(gpu)?;
    let addresses = (inputs.iter())
        .map(|values| {
            let owner = Rc::new(values.to_vec());
            Ok(work.input(memory, &owner, |values| values)?.address)
        })
        .collect::<Result<Vec<_>, RoutineError>>()?;
    let output = work.output(len)?;
    // SAFETY: the caller promises the arguments and bounds; the routine owns the memory.
    unsafe { work.steps.kernel(launch(&addresses, output.address)?) };
    work.check_values(memory, output, f32::NAN, check)?;
    Ok(Box::new(work))
}

/// A routine on the CPU: `compute` writes the output, using the threads.
pub(crate) struct OnCpu<F, C, T = f32> {
    pub(crate) output: Vec<T>,
    /// The value of the output before a checked run.
    pub(crate) poison: T,
    pub(crate) threads: Threads,
    pub(crate) compute: F,
    pub(crate) check: C,
    pub(crate) notes: Vec<String>,
}

impl<F, C, T: Copy + Send + Sync + 'static> Routine for OnCpu<F, C, T>
where
    F: FnMut(&Threads, &mut [T]),
    C: Fn(&[T]) -> Verified,
{
    fn poison(&mut self) -> Result<(), RoutineError> {
        fill(&mut self.output, self.poison);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        (self.compute)(&self.threads, &mut self.output);
        Ok(())
    }

    fn park(&mut self) {
        self.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok((self.check)(&self.output))
    }

    fn check_altered(&mut self, by: Alteration) -> Result<Option<Verified>, RoutineError> {
        Ok(judged(&self.output, Some(by), &self.check))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
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
        assert_eq!(error([1.0, 2.5, 0.0]), 0.25, "relative to the value");
        assert!(!compare(&[1.0, f32::NAN, 0.0], reference, 1.0, 1e9).passed());
        assert!(!compare(&[f32::NAN, 2.0, 0.0], reference, 1.0, 1e9).passed());
        assert!(!compare(&[1.0, 2.0, 0.0, 0.0], reference, 1.0, 1e9).passed());
        let wrong = compare(&[1.0, 2.5, 0.5], reference, 1.0, 1e-3)
            .failure()
            .unwrap();
        let named = "the first wrong one, [1], is 2.5e0, and the reference is 2e0";
        assert!(wrong.contains(named) && !wrong.contains("[2]"), "{wrong}");
    }
}
