//! The clock `activity`: how long devices work, whichever library launches the work.

use std::rc::Rc;
use std::time::Instant;

use cudarc::driver::result;

use super::on_device::OnDevice;
use super::recorder::{Stop, activity, check};
use super::records::{KINDS, WORK};
use crate::absence::Absence;
use crate::cuda_error::Called;
use crate::cuda_time::CudaTime;
use crate::device::{Routine, Sample};
use crate::error::{BoxError, TimingError};
use crate::gate::GateMode;
use crate::probe::own_stream;
use crossover_profile::Activity;
use crossover_words::Clock;

/// The note if the iterations of a sample differ.
const CHANGING: &str = "the kernels of an iteration do not become constant: a library may still tune itself (warm up for \
    longer), or another thread works meanwhile";

impl CudaTime {
    /// A clock for work on streams that libraries hide, which [`measure_activity`](Self::measure_activity) times on all
    /// devices of the process. Its other clocks time work on a [`stream`](Self::stream) of its own, on device
    /// `ordinal`, without a gate.
    ///
    /// # Errors
    /// The [`Absence`] that keeps the device from being used.
    pub fn of_process(ordinal: usize) -> Result<Self, Absence> {
        Ok(Self::on_stream(&own_stream(ordinal)?, GateMode::Off)?)
    }

    /// Has [`measure_activity`](Self::measure_activity), profiles and `--test` wait by `wait` for the work of a library
    /// that launches it from a thread of its own. It must return only when all that was asked for is done on the
    /// devices, and must not keep a clone of this clock, which would then never end.
    ///
    /// Without this, they wait for the primary contexts of all devices, and for the context that is current on their
    /// thread.
    pub fn wait_by<E: Into<BoxError>>(&self, wait: impl Fn() -> Result<(), E> + 'static) {
        let wait = move || wait().map_err(|e| TimingError::from(e.into()));
        *self.inner.own_wait.borrow_mut() = Some(Rc::new(wait));
    }

    /// Runs `routine` `iterations` times back to back, and returns how long devices worked meanwhile, by the records
    /// that NVIDIA's CUPTI makes of each kernel, copy and memory set of the process. The routine may use any stream,
    /// device and library. The work of other threads counts too, whatever it is for.
    ///
    /// Beforehand the routine runs until two iterations in a row have as many kernels, since libraries tune themselves:
    /// at most 50 times, each awaited.
    ///
    /// [`Activity::busy_ns`] leaves out launches and the gaps between kernels, so compare it with itself alone.
    /// [`Activity::span_ns`] has both; recording makes launches and the nodes of graphs longer, on an H200 by 0.3 µs each.
    ///
    /// # Errors
    /// CUPTI cannot record, it lost records, there were fewer kernels than iterations, there is no device, or the
    /// routine failed.
    pub fn measure_activity<E: Into<BoxError>>(
        &self,
        iterations: u64,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<Activity, TimingError> {
        self.activity(iterations, &mut || {
            routine().map_err(|e| TimingError::from(e.into()))
        })
    }

    /// [`measure_activity`](Self::measure_activity) without type parameters.
    pub(crate) fn activity(
        &self,
        iterations: u64,
        routine: Routine<'_>,
    ) -> Result<Activity, TimingError> {
        let clock = Clock::Activity;
        self.inner.criterion.measures_on(clock);
        if iterations == 0 {
            return Err(TimingError::NoIterations);
        }
        let device = self.device().ok_or(TimingError::NoDevice { clock })?;
        self.announce(iterations)?;
        let bench = OnDevice::new(self, WORK, clock, routine).map_err(Stop::from);
        let recorded = bench.and_then(|mut bench| activity(&mut bench, iterations));
        device.last_use.set(Some(Instant::now()));
        let recorded = recorded.map_err(|stop| match stop {
            Stop::Benchmark(error) => error,
            Stop::Recording(reason) => TimingError::NotRecorded {
                reason: reason.to_string(),
            },
        })?;
        let benchmarks = &self.inner.criterion.benchmarks;
        if !recorded.is_steady {
            benchmarks.say(CHANGING.to_owned());
        }
        benchmarks.activity.set(Some(recorded.figures()));
        Ok(recorded)
    }

    /// Requires that one iteration by itself has no work outside of its timed window, where CUPTI can tell.
    pub(crate) fn require_work_within(
        &self,
        sample: Sample,
        routine: Routine<'_>,
    ) -> Result<(), TimingError> {
        let Some(device) = self.device().filter(|_| self.works_alone()) else {
            return Ok(());
        };
        let launches = sample.iteration.launches();
        let clock = match sample.clock {
            // More launches than fit behind the gate are timed without it.
            Clock::EventsCold
                if self.gate_off_reason().is_none()
                    && device.gate.borrow_mut().batch(launches)? == 0 =>
            {
                Clock::Events
            }
            clock => clock,
        };
        let Ok(mut bench) = OnDevice::new(self, &KINDS, clock, routine) else {
            return Ok(());
        };
        match check(&mut bench) {
            Err(Stop::Benchmark(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Waits as [`wait_by`](Self::wait_by) has it, or for the devices with an active primary context and for the
    /// context of this thread, which stays current.
    pub(super) fn wait_for_work(&self) -> Result<(), TimingError> {
        let own_wait = self.inner.own_wait.borrow().clone();
        if let Some(wait) = own_wait {
            return wait();
        }
        let current = result::ctx::get_current().called("cuCtxGetCurrent")?;
        let settled = self.settle();
        if let Some(current) = current {
            // SAFETY: it was current on this thread, so nobody may have destroyed it.
            unsafe { result::ctx::set_current(current) }.called("cuCtxSetCurrent")?;
            result::ctx::synchronize().called("cuCtxSynchronize")?;
        }
        settled?;
        Ok(())
    }
}
