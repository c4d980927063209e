//! The traits of an operation and of its implementations.

use std::collections::BTreeMap;

use crate::device::kernel::Source;
use crate::model::Verified;
use crate::timing::DeviceMemory;
use crate::workload::number::Number;

/// What the code of an operation may fail with: a CUDA error, an allocation, a missing library. Its
/// text should name the call and the remedy. An [`Absence`](crate::device::Absence) makes a skip of
/// the benchmark, any other error a failure.
pub type RoutineError = crate::timing::BoxError;

/// A routine that is set up, or why there is none.
pub(crate) type Made = Result<Box<dyn Routine>, RoutineError>;

/// That something was prepared, or why not.
pub(crate) type Done = Result<(), RoutineError>;

/// Routines that do the same in different ways, each with its name.
pub(crate) type Ways = Result<Vec<(String, Box<dyn Routine>)>, RoutineError>;

/// An operation at one size: the inputs that all its implementations share.
pub trait Workload: Sized + 'static {
    /// Makes the inputs of a size, with a fixed seed, so that every run computes the same.
    fn new(size: u64) -> Self;
    /// Host memory that the inputs and one implementation take at a size, in bytes. Where there is
    /// less, the size is skipped.
    fn host_bytes(size: u64) -> u64;
    /// Device memory that the inputs and one implementation take at a size, in bytes.
    fn device_bytes(size: u64) -> u64;
    /// The kernel sources of its GPU implementations. The tests compile them for every architecture
    /// from their oldest on.
    fn kernels() -> &'static [&'static Source] {
        &[]
    }
    /// Inputs that an implementation is likely to get wrong and that users hardly have. Every
    /// implementation is verified on them in a run of its own; they are never timed. `None` where
    /// the timed inputs suffice.
    fn edge_cases() -> Option<Self> {
        None
    }
    /// Calls `visit` with the bytes of the inputs, in pieces, so that a digest can tell whether two
    /// versions compute the same. By default it is not called.
    fn visit_inputs(&self, _visit: &mut dyn FnMut(&[u8])) {}
}

/// One implementation at one size, set up and ready to be verified and timed.
///
/// The suite calls [`restore`](Routine::restore), [`poison`](Routine::poison),
/// [`run`](Routine::run) and [`check`](Routine::check) in this order before the first sample and
/// again after the last, so what is verified is the very routine that is timed. Of the processes
/// that `crossover ab` starts of one executable only the first verifies: in the others the suite
/// restores, poisons and runs once before the first sample, and never checks.
///
/// Most routines read a fixed source and write elsewhere: running them twice gives the same
/// output. One that changes its own state, as a training step does its parameters, says how to
/// [`restore`](Routine::restore) it. The suite does so before each sample, outside the timed
/// window; the iterations of a sample go on from where the one before them ended.
pub trait Routine {
    /// Overwrites the output with NaN (or another value that the result cannot have), so that an
    /// element that is never written shows.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn poison(&mut self) -> Result<(), RoutineError>;

    /// Puts back the state that [`run`](Routine::run) changes, so that the next run is the one
    /// that [`check`](Routine::check) knows the result of. A GPU routine enqueues this on the
    /// clock's stream, behind the runs before it. The default is for routines without such a
    /// state.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn restore(&mut self) -> Result<(), RoutineError> {
        Ok(())
    }

    /// One iteration, as it is timed. A GPU routine on an event clock only enqueues work on the
    /// clock's stream, and must neither allocate nor synchronise.
    ///
    /// # Errors
    /// An error fails the benchmark; after one that poisons the CUDA context the remaining GPU
    /// benchmarks are skipped.
    fn run(&mut self) -> Result<(), RoutineError>;

    /// Makes each [`run`](Routine::run) wait until the GPU's stream is idle.
    ///
    /// # Errors
    /// The default: a routine of one's own has to wait itself.
    fn wait_for_each(&mut self) -> Result<(), RoutineError> {
        Err("the routine cannot be made to wait: implement Routine::wait_for_each".into())
    }

    /// Waits until the threads that this routine keeps awake between two runs are asleep, so that
    /// none spins beside what is timed next. The suite calls this where something else is timed
    /// while the routine exists. The default is for routines without such threads.
    fn park(&mut self) {}

    /// Compares the output with the float64 reference. Called when the device is idle.
    ///
    /// # Errors
    /// An output that cannot be read. A wrong one is no error: [`Verified::passed`] says so.
    fn check(&mut self) -> Result<Verified, RoutineError>;

    /// Times `iterations` by itself and returns their total time in nanoseconds: for what happens
    /// only once in a process and is measured in child processes. `None`, the default, leaves the
    /// timing to the clock.
    fn time(&mut self, _iterations: u64) -> Option<Result<f64, RoutineError>> {
        None
    }

    /// Device memory that [`run`](Routine::run) reads and leaves as it is. The suite looks whether it
    /// is the same after the samples.
    fn inputs(&self) -> Vec<DeviceMemory> {
        Vec::new()
    }

    /// Device memory that [`run`](Routine::run) writes. The suite looks whether it still changes when
    /// the clock has stopped.
    fn outputs(&self) -> Vec<DeviceMemory> {
        Vec::new()
    }

    /// How many kernel (or graph) launches one [`run`](Routine::run) enqueues, 0 for CPU code. The
    /// gate needs it, since only about a thousand fit in a stream's queue.
    fn launches(&self) -> u32 {
        1
    }

    /// Figures beside the time, measured outside the samples and stored with the result
    /// ([`Sidecar::extra`](crate::model::record::Sidecar::extra) lists the keys). Called once, after
    /// the last check.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        Ok(BTreeMap::new())
    }

    /// Remarks stored with the result, such as the number of threads chosen.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Calls `visit` with values as little-endian bytes, for [`Workload::visit_inputs`].
pub fn visit_f32(values: &[f32], visit: &mut dyn FnMut(&[u8])) {
    visit_numbers(values, visit);
}

/// The same of either format.
pub(crate) fn visit_numbers<T: Number>(values: &[T], visit: &mut dyn FnMut(&[u8])) {
    let mut bytes = Vec::new();
    for values in values.chunks(1 << 14) {
        bytes.clear();
        T::append(values, &mut bytes);
        visit(&bytes);
    }
}
