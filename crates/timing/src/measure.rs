//! Samples on each clock, without Criterion.

use std::hint::black_box;
use std::time::Instant;

use crate::capture::Enqueued;
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Iteration, Routine, Sample, Window};
use crate::error::{BoxError, TimingError};
use crate::prepared_launch::bind;
use crate::sequence;
use crossover_words::Clock;

/// Launches after which the `submit` clock drains the queue, outside its window. With the
/// queue full the host would wait for the device and measure it after all.
const LAUNCHES_PER_DRAIN: u32 = 256;

/// Assumed launches of an iteration that cannot be captured.
pub(crate) const UNCAPTURED: u32 = 4;

impl CudaTime {
    /// Counts the launches of one iteration by capturing it: a call of a library may launch several. `None` where it
    /// cannot be captured or allocates, and without a device. At most two iterations run.
    ///
    /// # Errors
    /// The driver's.
    #[doc(hidden)]
    pub fn count_launches<E: Into<BoxError>>(
        &self,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<Option<Enqueued>, TimingError> {
        let Some(device) = self.device() else {
            return Ok(None);
        };
        bind(&device.context)?;
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        device.count(&mut routine, false)
    }

    /// Whether kernels of several iterations overlap by programmatic dependent launch. Two of them run.
    ///
    /// # Errors
    /// It cannot be captured; the driver's errors.
    #[doc(hidden)]
    pub fn overlaps<E: Into<BoxError>>(
        &self,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<bool, TimingError> {
        let Some(device) = self.device() else {
            return Ok(false);
        };
        bind(&device.context)?;
        device.overlaps(&mut || routine().map_err(|e| TimingError::from(e.into())))
    }

    /// Runs `routine` `iterations` times, and returns the time of all of them together on
    /// `clock`, in nanoseconds.
    ///
    /// Beforehand the routine runs once, which loads every kernel, and once more captured in a CUDA graph, to
    /// count its launches: the gated clock and `submit` size their batches by the count. If it cannot be captured,
    /// four launches are assumed; [`measure_launches`](Self::measure_launches) is given the number. A routine that
    /// allocates memory is not captured on `wall` and `events`, and has to be on the other clocks. On
    /// [`Clock::Wall`] each iteration is awaited; for a routine that waits itself there is
    /// [`measure_awaited`](Self::measure_awaited).
    ///
    /// A time below the clock's step, which is measured when the device is opened, is reported as the step:
    /// Criterion drops a benchmark with a zero.
    ///
    /// ```no_run
    /// use crossover_timing::{Clock, CudaTime};
    ///
    /// // SAFETY: it is the only stream of the program.
    /// let time = unsafe { CudaTime::new(0) }?;
    /// let empty = time.empty_kernel().expect("opened on a device");
    /// let stream = time.stream().expect("opened on a device");
    /// // SAFETY: the kernel takes no arguments.
    /// let mut launch = || unsafe { empty.launch(stream) };
    /// // The first call, of one iteration, loads the kernel.
    /// time.measure(Clock::EventsGated, 1, &mut launch)?;
    /// let ns = time.measure(Clock::EventsGated, 1000, &mut launch)? / 1000.0;
    /// println!("{ns:.1} ns");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If cudarc orders several streams of the context by events, nothing can be captured. The routine then
    /// runs once while each call on the timed stream fails, to see whether it makes one, and on the gated and cold
    /// clocks ten times behind a gate.
    ///
    /// # Errors
    /// A call of CUDA or the routine failed, it enqueued nothing, the clock needs a device and there is
    /// none, the gate opened by itself, one iteration makes too many launches for it, or a device worked
    /// on after the timed window: see [`TimingError`]. After an error the device is idle again.
    pub fn measure<E: Into<BoxError>>(
        &self,
        clock: Clock,
        iterations: u64,
        routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        self.measure_as(clock, iterations, Iteration::Uncounted, routine)
    }

    /// [`measure`](Self::measure) of a routine whose iteration makes `launches` launches, copies and
    /// memory sets. Nothing is captured.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_launches<E: Into<BoxError>>(
        &self,
        clock: Clock,
        iterations: u64,
        launches: u32,
        routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        self.measure_as(clock, iterations, Iteration::Launches(launches), routine)
    }

    /// [`measure`](Self::measure) on [`Clock::Wall`] of a routine that waits for its work in each
    /// iteration. It is not awaited a second time.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn measure_awaited<E: Into<BoxError>>(
        &self,
        iterations: u64,
        routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        self.measure_as(Clock::Wall, iterations, Iteration::Awaited, routine)
    }

    fn measure_as<E: Into<BoxError>>(
        &self,
        clock: Clock,
        iterations: u64,
        iteration: Iteration,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        let sample = Sample {
            clock,
            iterations,
            iteration,
        };
        if iterations > 0 && iteration != Iteration::Awaited {
            self.try_out(clock, &mut routine)?;
        }
        self.measure_erased(sample, &mut routine)
    }

    /// [`measure`](Self::measure) without type parameters, so that it is compiled once.
    pub(crate) fn measure_erased(
        &self,
        sample: Sample,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        #[cfg(feature = "criterion")]
        self.inner.criterion.measures_on(sample.clock);
        #[cfg(feature = "profiler")]
        if self.inner.session.is_taken() {
            let plainly = |routine: Routine<'_>| self.measure_plainly(sample, routine);
            return self.measure_in_session(sample, routine, plainly);
        }
        #[cfg(feature = "profiler")]
        let is_tested = self.inner.criterion.benchmarks.is_tested.take();
        let measured = self.measure_plainly(sample, &mut *routine);
        // Records name work that the wait behind a sample found, too.
        #[cfg(feature = "profiler")]
        if is_tested && matches!(measured, Ok(_) | Err(TimingError::WorkElsewhere { .. })) {
            self.require_work_within(sample, routine)?;
        }
        measured
    }

    /// Runs code on the CPU `iterations` times, and returns the time of all of them together on the
    /// host's clock, in nanoseconds. Nothing waits for the device. The return value is kept from being
    /// optimised away, and dropped within the time.
    ///
    /// ```
    /// let time = crossover_timing::CudaTime::host_only();
    /// let ns = time.measure_cpu(1000, || (0..1000u64).sum::<u64>()) / 1000.0;
    /// assert!(ns > 0.0);
    /// ```
    pub fn measure_cpu<T>(&self, iterations: u64, routine: impl FnMut() -> T) -> f64 {
        let nanoseconds = cpu(iterations, routine);
        #[cfg(feature = "profiler")]
        self.inner.session.nothing_on_device();
        nanoseconds
    }

    /// [`measure`](Self::measure) when no profile is recorded.
    pub(crate) fn measure_plainly(
        &self,
        mut sample: Sample,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        let clock = sample.clock;
        if sample.iterations == 0 {
            return Err(TimingError::NoIterations);
        }
        if clock == Clock::Activity {
            #[cfg(feature = "profiler")]
            return finite(
                self.activity(sample.iterations, routine)?.busy_ns as f64,
                clock.resolution_ns(),
            );
            #[cfg(not(feature = "profiler"))]
            return Err(TimingError::NotRecorded {
                reason:
                    "crossover-timing was built without its feature profiler; add it in Cargo.toml"
                        .to_owned(),
            });
        }
        let Some(device) = self.device() else {
            return match clock {
                Clock::Wall => finite(on_host(sample.iterations, routine)?, clock.resolution_ns()),
                _ => Err(TimingError::NoDevice { clock }),
            };
        };
        device.gate.borrow().check(clock)?;
        let is_counted = sample.iteration == Iteration::Uncounted && !self.is_profiling();
        let is_gated = self.effective_clock(clock) == Clock::EventsGated;
        if sample.iterations == 1 && is_gated && !is_counted {
            sequence::load(&mut device.window(&mut *routine)?)?;
        }
        sample.iteration = self.counted(clock, sample.iteration, &mut *routine)?;
        let mut window = device.window(routine)?;
        let nanoseconds = self.alone(|| self.sample(device, &mut window, sample))?;
        device.last_use.set(Some(Instant::now()));
        finite(nanoseconds, device.resolution_ns(clock))
    }

    /// Tries a routine of a context in which none can be captured.
    pub(crate) fn try_out(&self, clock: Clock, routine: Routine<'_>) -> Result<(), TimingError> {
        let is_held = matches!(clock, Clock::EventsGated | Clock::EventsCold);
        match self.device().filter(|device| device.is_tracked()) {
            Some(device) if clock != Clock::Activity && !self.is_profiling() => {
                device.try_out(routine, is_held)
            }
            _ => Ok(()),
        }
    }

    /// Counts the launches of an iteration, unless that is needless or impossible.
    pub(crate) fn counted(
        &self,
        clock: Clock,
        iteration: Iteration,
        routine: Routine<'_>,
    ) -> Result<Iteration, TimingError> {
        let is_counted = iteration == Iteration::Uncounted && !self.is_profiling();
        let Some(device) = self.device().filter(|_| is_counted) else {
            return Ok(iteration);
        };
        bind(&device.context)?;
        match device
            .count(routine, needs_launches(clock))?
            .map(Enqueued::all)
        {
            Some(0) => Err(TimingError::NothingEnqueued),
            count => Ok(Iteration::Launches(count.unwrap_or(UNCAPTURED))),
        }
    }

    /// Takes one sample on its clock.
    pub(crate) fn sample(
        &self,
        device: &ClockedDevice,
        window: &mut Window<'_>,
        sample: Sample,
    ) -> Result<f64, TimingError> {
        let Sample {
            clock,
            iterations,
            iteration,
        } = sample;
        self.announce(iterations)?;
        let launches = iteration.launches();
        let batch = || device.gate.borrow_mut().batch(launches);
        match self.effective_clock(clock) {
            Clock::Wall => sequence::wall(window, iterations, iteration == Iteration::Awaited),
            Clock::Submit => {
                let batch = (LAUNCHES_PER_DRAIN / launches).max(1);
                sequence::submit(window, iterations, u64::from(batch))
            }
            Clock::Events => sequence::events(window, iterations),
            Clock::EventsGated => match batch()? {
                0 => Err(TimingError::TooManyLaunches { launches }),
                batch => {
                    let ns = sequence::gated(window, iterations, u64::from(batch))?;
                    let windows = iterations.div_ceil(u64::from(batch));
                    device.require_time(ns, windows, iterations)?;
                    Ok(ns)
                }
            },
            Clock::EventsCold => {
                device.prepare_flush()?;
                let gate = self.gate_off_reason().is_none() && batch()? > 0;
                let ns = sequence::cold(window, iterations, gate)?;
                if gate {
                    device.require_time(ns, iterations, iterations)?;
                }
                Ok(ns)
            }
            other => unreachable!("{other} has no sequence"),
        }
    }
}

/// Whether a clock needs the launches of an iteration, for the size of its batches or to know whether its gate holds
/// them.
pub(crate) fn needs_launches(clock: Clock) -> bool {
    !matches!(clock, Clock::Wall | Clock::Events)
}

/// Criterion drops a benchmark with a zero and panics at a NaN: neither may reach it.
pub(crate) fn finite(nanoseconds: f64, resolution_ns: f64) -> Result<f64, TimingError> {
    if !nanoseconds.is_finite() {
        return Err(TimingError::NotANumber);
    }
    Ok(nanoseconds.max(resolution_ns))
}

/// See [`CudaTime::measure_cpu`].
pub(crate) fn cpu<T>(iterations: u64, mut routine: impl FnMut() -> T) -> f64 {
    let start = Instant::now();
    for _ in 0..iterations {
        black_box(routine());
    }
    (start.elapsed().as_nanos() as f64).max(Clock::Wall.resolution_ns())
}

/// `iterations` runs on the host's clock, without a device.
fn on_host(iterations: u64, routine: Routine<'_>) -> Result<f64, TimingError> {
    let start = Instant::now();
    for _ in 0..iterations {
        routine()?;
    }
    Ok(start.elapsed().as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_zero_nor_nan_reaches_criterion() {
        assert_eq!(finite(0.0, 500.0).unwrap(), 500.0);
        assert_eq!(finite(1234.5, 500.0).unwrap(), 1234.5);
        assert!(matches!(
            finite(f64::NAN, 1.0),
            Err(TimingError::NotANumber)
        ));
        assert!(matches!(
            finite(f64::INFINITY, 1.0),
            Err(TimingError::NotANumber)
        ));
    }
}
