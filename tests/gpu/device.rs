//! Helpers that the tests share.

use std::sync::{Arc, Mutex, MutexGuard};

use crossover_suite::device::Gpu;
use crossover_suite::workload::{Routine, RoutineError};
use cudarc::driver::CudaStream;

/// Held by a test for as long as it uses the device. A test of another thread that
/// synchronises or loads a module would wait behind this one's gate, and the gate for it.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static DEVICE: Mutex<()> = Mutex::new(());
    DEVICE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The stream of a device, the only one on which the tests use slices.
pub(crate) fn stream(gpu: &Gpu) -> &Arc<CudaStream> {
    // SAFETY: no slice is used on another stream.
    unsafe { gpu.timed_stream() }
}

/// The error of the last of so many runs. Before them the poisoned output must fail the check.
pub(crate) fn error_after(
    runs: usize,
    device: &Gpu,
    routine: &mut dyn Routine,
    what: &str,
) -> Result<f64, RoutineError> {
    routine.poison()?;
    device.synchronize()?;
    assert!(!routine.check()?.passed(), "{what}: poison passes");
    (0..runs).try_for_each(|_| routine.run())?;
    device.synchronize()?;
    let verified = routine.check()?;
    assert!(verified.passed(), "{what}: {verified:?}");
    Ok(verified.error)
}
