//! The traits of an operation and of its implementations, and the number formats of operations.

use std::any::Any;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::device::kernel::{CompileError, Source};
use crate::device::{Absence, Value};
use crate::model::{Cost, LinkBytes, Verified};
use crate::timing::{Announce, CudaError, DeviceMemory, TimingError};

/// The error of an operation's code: a CUDA error, an allocation, a missing library. Its text should
/// name the call and the remedy. An [`Absence`](crate::device::Absence) skips the benchmark, any other
/// error fails it.
pub type RoutineError = crate::timing::BoxError;

/// Whether the operation needs what is not here.
pub(crate) fn is_absent(error: &RoutineError) -> bool {
    let of_compiler = matches!(
        error.downcast_ref(),
        Some(CompileError::Absent(_) | CompileError::TooOld { .. })
    );
    of_compiler || error.is::<Absence>() || error.is::<crate::timing::Absence>()
}

/// Whether only a new process can use the GPU again.
pub(crate) fn loses_context(error: &RoutineError) -> bool {
    let of_clock = error.downcast_ref().is_some_and(TimingError::is_sticky);
    of_clock
        || error
            .downcast_ref()
            .is_some_and(|error: &CudaError| error.sticky)
}

/// A result of an operation's code.
pub type Result<T, E = RoutineError> = std::result::Result<T, E>;

/// Routines that compute the same in different ways, each with its name.
pub(crate) type Candidates = Vec<(String, Box<dyn Routine>)>;

/// An operation at one size: the inputs that all its implementations share.
pub trait Workload: Sized + 'static {
    /// Makes the inputs of a size, with values from a [`seed`](crate::workload::seed), so that every run
    /// computes the same.
    fn new(size: u64) -> Self;
    /// Host memory that the inputs and one implementation take at a size, in bytes. The size is skipped
    /// if there is less.
    fn host_bytes(size: u64) -> u64;
    /// Device memory that the inputs and one implementation take at a size, in bytes.
    fn device_bytes(size: u64) -> u64;
    /// The kernel sources of its GPU implementations. Tests compile them for every architecture from
    /// the oldest supported on.
    fn kernels() -> &'static [&'static Source] {
        &[]
    }
    /// Inputs that an implementation is likely to get wrong and that users rarely have. Every
    /// implementation is verified on them in a run of its own; they are never timed. `None` if the
    /// timed inputs suffice.
    fn edge_cases() -> Option<Self> {
        None
    }
    /// Calls `visit` with the bytes of the inputs, in pieces, so that a digest can tell whether two
    /// versions compute the same. Only a group that declares
    /// [`no_inputs`](crate::suite::Group::no_inputs) may leave it out.
    fn visit_inputs(&self, _visit: &mut dyn FnMut(&[u8])) {}
}

/// One implementation at one size, set up and ready to be verified and timed.
///
/// The suite calls [`restore`](Routine::restore), [`poison`](Routine::poison), [`run`](Routine::run)
/// and [`check`](Routine::check) in this order before the first sample and again after the last, so the
/// verified routine is the one that is timed. Of the processes that `crossover ab` starts of one
/// executable, only the first verifies; in the others the suite restores, poisons and runs once before
/// the first sample.
///
/// Most routines read a fixed source and write elsewhere: running them twice gives the same output. A
/// routine that changes its own state, such as a training step its parameters, implements
/// [`restore`](Routine::restore). The suite calls it before each sample, outside the timed window; each
/// iteration of a sample continues from the previous one.
pub trait Routine {
    /// Overwrites the output with NaN (or another value that the result cannot have), so that an
    /// element that is never written shows.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn poison(&mut self) -> Result<()>;

    /// Restores the state that [`run`](Routine::run) changes, so that [`check`](Routine::check) knows
    /// the result of the next run. A GPU routine enqueues this on the clock's stream, behind earlier
    /// runs. The default is for routines without such a state.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn restore(&mut self) -> Result<()> {
        Ok(())
    }

    /// One iteration, as it is timed. A GPU routine on an event clock only enqueues work on the
    /// clock's stream, and must neither allocate nor synchronise.
    ///
    /// # Errors
    /// An error fails the benchmark; after one that poisons the CUDA context the remaining GPU
    /// benchmarks are skipped.
    fn run(&mut self) -> Result<()>;

    /// Makes each [`run`](Routine::run) wait until the GPU's stream is idle.
    ///
    /// # Errors
    /// The default: such a routine has to wait itself.
    fn wait_for_each(&mut self) -> Result<()> {
        Err("the routine cannot be made to wait: implement Routine::wait_for_each".into())
    }

    /// Waits until the threads that this routine keeps awake between two runs are asleep, so that none
    /// spins beside the next benchmark. The suite calls this if something else is timed while the
    /// routine exists. The default is for routines without such threads.
    fn park(&mut self) {}

    /// Compares the output with the float64 reference. Called when the device is idle.
    ///
    /// # Errors
    /// An output that cannot be read. A wrong one is no error: [`Verified::passed`] says so.
    fn check(&mut self) -> Result<Verified>;

    /// Tells other processes how many runs follow, before a clock times them. A run that was not announced asks
    /// for one itself. The default is for routines of this process alone.
    fn announcer(&self) -> Option<Announce> {
        None
    }

    /// As [`check`](Routine::check), on a copy of the output that is wrong, so that tests see whether the
    /// bound rejects it. `None`, the default, if there is no such copy.
    ///
    /// # Errors
    /// As [`check`](Routine::check).
    fn check_altered(&mut self, _by: Alteration) -> Result<Option<Verified>> {
        Ok(None)
    }

    /// Times `iterations` itself and returns their total time in nanoseconds: for events that happen
    /// once per process and are measured in child processes. `None`, the default, leaves the timing to
    /// the clock.
    fn time(&mut self, _iterations: u64) -> Option<Result<f64>> {
        None
    }

    /// Device memory that [`run`](Routine::run) reads and does not change. The suite checks after the
    /// samples that it is the same.
    fn inputs(&self) -> Vec<DeviceMemory<'_>> {
        Vec::new()
    }

    /// Device memory that [`run`](Routine::run) writes. The suite checks that it no longer changes when
    /// the clock has stopped.
    fn outputs(&self) -> Vec<DeviceMemory<'_>> {
        Vec::new()
    }

    /// How many kernel (or graph) launches one [`run`](Routine::run) enqueues, 0 for CPU code. The
    /// gate needs it: what it holds has to fit in the stream's queue.
    fn launches(&self) -> u32 {
        1
    }

    /// Figures besides the time, measured outside the samples and stored with the result
    /// ([`Sidecar::extra`](crate::model::record::Sidecar::extra) lists the keys). Called once, after
    /// the last check.
    ///
    /// # Errors
    /// As [`run`](Routine::run).
    fn extra(&mut self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    /// Remarks stored with the result, such as the number of threads chosen.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A way to make an output wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Alteration {
    /// Each value in the next coarser format: f32 with the 11 bits of f16, f64 with those of f32.
    Coarser,
    /// Each value in the place of the next one.
    Shifted,
    /// Zeros.
    Zeroed,
}

impl Alteration {
    /// An altered copy of values of f32 or f64. `None` for other types, and where it is the same.
    pub fn of<T: Copy + 'static>(self, values: &[T]) -> Option<Vec<T>> {
        let mut altered = values.to_vec();
        match self {
            Self::Coarser => (altered.iter_mut()).for_each(|it| keep(it, !0 << 13, !0 << 29)),
            Self::Zeroed => altered.iter_mut().for_each(|it| keep(it, 0, 0)),
            Self::Shifted if altered.is_empty() => {}
            Self::Shifted => altered.rotate_right(1),
        }
        let differs = altered.iter().zip(values).any(|(a, b)| bits(a) != bits(b));
        differs.then_some(altered)
    }
}

/// Clears the bits of a float that are not in the mask of its format.
fn keep(value: &mut dyn Any, of_f32: u32, of_f64: u64) {
    if let Some(value) = value.downcast_mut::<f32>() {
        *value = f32::from_bits(value.to_bits() & of_f32);
    } else if let Some(value) = value.downcast_mut::<f64>() {
        *value = f64::from_bits(value.to_bits() & of_f64);
    }
}

/// `None` for a type that is not altered.
fn bits(value: &dyn Any) -> Option<u64> {
    let single = value
        .downcast_ref::<f32>()
        .map(|value| u64::from(value.to_bits()));
    single.or_else(|| value.downcast_ref::<f64>().map(|value| value.to_bits()))
}

/// The verdict of `check` on values, or on an altered copy of them if there is one.
pub(crate) fn judged<T: Copy + 'static, V>(
    values: &[T],
    altered: Option<Alteration>,
    check: impl Fn(&[T]) -> V,
) -> Option<V> {
    match altered {
        None => Some(check(values)),
        Some(by) => by.of(values).map(|altered| check(&altered)),
    }
}

/// Calls `visit` with values as little-endian bytes, for [`Workload::visit_inputs`].
pub fn visit_f32(values: &[f32], visit: &mut dyn FnMut(&[u8])) {
    visit_numbers(values, visit);
}

/// As [`visit_f32`], for either format.
pub(crate) fn visit_numbers<T: Number>(values: &[T], visit: &mut dyn FnMut(&[u8])) {
    let mut bytes = Vec::new();
    for values in values.chunks(1 << 14) {
        bytes.clear();
        T::append(values, &mut bytes);
        visit(&bytes);
    }
}

pub use crossover_arithmetic::{DoubleDouble, Wide};

/// f32 or f64.
pub trait Number: Value + crossover_arithmetic::Number {}

impl<T: Value + crossover_arithmetic::Number> Number for T {}

/// The format's words in the names of choices.
pub(crate) fn in_format<T: Number>() -> &'static str {
    match size_of::<T>() {
        4 => "",
        _ => " in f64",
    }
}

/// The cost in f64: twice the bytes.
pub(crate) fn in_f64(cost: Cost) -> Cost {
    let link = |bytes: LinkBytes| LinkBytes::new(2.0 * bytes.to_device, 2.0 * bytes.to_host);
    Cost {
        bytes: cost.bytes.map(|bytes| 2.0 * bytes),
        written: cost.written.map(|bytes| 2.0 * bytes),
        link_bytes: cost.link_bytes.map(link),
        ..cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alterations_change_values_of_floats_alone() {
        let third = [1.0f32 / 3.0; 2];
        let coarse = Alteration::Coarser.of(&third).unwrap();
        assert!((1e-5..1e-3).contains(&(third[0] - coarse[0])), "{coarse:?}");
        // They have few bits.
        assert_eq!(Alteration::Coarser.of(&[1.5f32, 2.0]), None);
        assert_eq!(Alteration::Shifted.of(&third), None);
        assert_eq!(Alteration::Shifted.of(&[1.0, 2.0]).unwrap(), [2.0, 1.0]);
        assert_eq!(Alteration::Shifted.of(&[1u32, 2]), None);
        assert_eq!(Alteration::Shifted.of::<f32>(&[]), None);
        let coarse = Alteration::Coarser.of(&[0.1f64]).unwrap();
        assert!((1e-9..1e-7).contains(&(0.1 - coarse[0])), "{coarse:?}");
        assert_eq!(Alteration::Zeroed.of(&[0.1f64, 2.0]).unwrap(), [0.0, 0.0]);
        assert_eq!(Alteration::Zeroed.of(&third).unwrap(), [0.0, 0.0]);
        assert_eq!(Alteration::Zeroed.of(&[0.0f32]), None);
    }
}
