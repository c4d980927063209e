//! The measurement, for Criterion and for programs without it.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_void;
use std::fmt;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;

use crate::absence::Absence;
use crate::cuda_error::CudaError;
use crate::device::{Device, Iteration, Routine, Sample, Window};
use crate::error::{BoxError, TimingError};
use crate::gate::{Gate, GateMode};
#[cfg(feature = "criterion")]
use crate::on_criterion::OnCriterion;
use crate::other_streams::devices_beside;
use crate::prepared_launch::{Launch, bind};
use crate::probe::{borrow, open_alone};
#[cfg(feature = "profiler")]
use crate::profiler::session::Slot;
use crate::sequence;
use crossover_words::Clock;

/// Launches after which the `submit` clock drains the queue, outside its window. With the
/// queue full the host would wait for the device and measure it after all.
const LAUNCHES_PER_DRAIN: u32 = 256;

/// Assumed launches of an iteration that cannot be captured.
pub(crate) const UNCAPTURED: u32 = 4;

/// The clocks of one device. With the feature `criterion` it is Criterion's `Measurement`, on CUDA
/// events. Its values are nanoseconds.
///
/// Criterion's own `b.iter` measures on [`Clock::Events`] (on the host clock without a GPU);
/// the methods of [`CudaBencherExt`](crate::CudaBencherExt) take the other clocks. Work to be
/// timed must be enqueued on [`stream`](CudaTime::stream).
///
/// Cloning is cheap and shares everything: keep one clone for the benchmarks, since
/// Criterion does not hand its measurement out. It stays on the thread that made it.
#[derive(Clone)]
pub struct CudaTime {
    inner: Rc<Inner>,
}

struct Inner {
    device: OnceCell<Device>,
    others_ignored: Cell<bool>,
    /// See [`copies_in_turn`](CudaTime::copies_in_turn).
    copies_in_turn: Rc<Cell<usize>>,
    #[cfg(feature = "criterion")]
    criterion: OnCriterion,
    /// The profile that is being made.
    #[cfg(feature = "profiler")]
    session: Slot,
}

impl fmt::Debug for CudaTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.inner.device.get();
        f.debug_struct("CudaTime")
            .field("device", &device.map(|d| d.context.ordinal()))
            .field("gate_off_reason", &self.gate_off_reason())
            .finish_non_exhaustive()
    }
}

impl CudaTime {
    /// Opens device `ordinal`, and times on the stream that this creates.
    ///
    /// cudarc's event tracking is on in the context of this [`stream`](Self::stream), and does nothing
    /// while it is the only stream. If [`CudaContext::new_stream`](cudarc::driver::CudaContext::new_stream)
    /// makes another one, cudarc orders the two: each launch with slices then carries events, which
    /// are part of its time, and a graph of it cannot be captured. For several streams without these
    /// events, [`open`](crate::open) the device yourself. cudarc does not track its default streams
    /// beside this stream.
    ///
    /// # Errors
    /// The [`Absence`] that keeps the device from being used, in a sentence with its remedy.
    pub fn new(ordinal: usize) -> Result<Self, Absence> {
        Ok(Self::on_stream(&open_alone(ordinal)?, GateMode::Auto)?)
    }

    /// Times on a stream that exists already. The gate is tried once, unless `gate` is
    /// [`GateMode::Off`].
    ///
    /// If cudarc tracks events in the stream's context, those that each launch carries are part of its
    /// time: [`open`](crate::open) a stream without them.
    ///
    /// # Errors
    /// The first call that failed, from binding the context to the trial of the gate.
    pub fn on_stream(stream: &Arc<CudaStream>, gate: GateMode) -> Result<Self, CudaError> {
        bind(stream.context())?;
        let time = Self::host_only();
        time.attach(stream, gate)?;
        Ok(time)
    }

    /// Times on a stream that cudarc did not make: a `CUstream` or `cudaStream_t` of another binding
    /// or of C, of device `ordinal`.
    ///
    /// # Errors
    /// The [`Absence`] that keeps the device from being used, or [`Absence::OtherContext`].
    ///
    /// # Safety
    /// `stream` must be a stream that is alive, and stay so until this measurement and all its
    /// clones are dropped.
    ///
    /// ```no_run
    /// use std::ffi::c_void;
    ///
    /// use crossover_timing::{Clock, CudaTime, GateMode};
    ///
    /// # struct Mine;
    /// # impl Mine { fn as_raw(&self) -> *mut c_void { unimplemented!() } }
    /// # fn my_stream() -> Mine { Mine }
    /// # fn my_launch(_: &Mine) -> Result<(), std::io::Error> { Ok(()) }
    /// let stream = my_stream();
    /// // SAFETY: the stream outlives the measurement.
    /// let time = unsafe { CudaTime::on_raw_stream(0, stream.as_raw(), GateMode::Auto) }?;
    /// let ns = time.measure(Clock::EventsGated, 100, || my_launch(&stream))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn on_raw_stream(
        ordinal: usize,
        stream: *mut c_void,
        gate: GateMode,
    ) -> Result<Self, Absence> {
        // SAFETY: the caller keeps the stream alive as long as this measurement, which alone keeps what is returned.
        let stream = unsafe { borrow(ordinal, stream) }?;
        Ok(Self::on_stream(&stream, gate)?)
    }

    /// Gives a host-only clock, and all its clones, a device to time: a suite makes its
    /// measurement before it knows whether any benchmark needs the GPU. Does nothing where
    /// there is a device already.
    ///
    /// # Errors
    /// As [`on_stream`](Self::on_stream).
    #[doc(hidden)]
    pub fn attach(&self, stream: &Arc<CudaStream>, gate: GateMode) -> Result<(), CudaError> {
        if self.inner.device.get().is_some() {
            return Ok(());
        }
        bind(stream.context())?;
        let gate = RefCell::new(Gate::new(stream, gate)?);
        let others = devices_beside(stream.context())?;
        self.inner.device.get_or_init(|| Device {
            context: stream.context().clone(),
            gate,
            stream: stream.clone(),
            events: RefCell::default(),
            flush: RefCell::default(),
            others,
            last_use: Cell::new(None),
            #[cfg(feature = "criterion")]
            late: Cell::new(0),
        });
        Ok(())
    }

    /// A measurement without a GPU: `b.iter` and [`Clock::Wall`] work and read the host's clock,
    /// so that CPU and GPU benchmarks share a Criterion group on every machine. The other clocks
    /// return [`TimingError::NoDevice`].
    pub fn host_only() -> Self {
        Self {
            inner: Rc::new(Inner {
                device: OnceCell::new(),
                others_ignored: Cell::new(false),
                copies_in_turn: Rc::default(),
                #[cfg(feature = "criterion")]
                criterion: OnCriterion::default(),
                #[cfg(feature = "profiler")]
                session: Slot::default(),
            }),
        }
    }

    /// [`new`](Self::new) where the device can be used, else [`host_only`](Self::host_only) with
    /// the reason.
    pub fn new_or_host_only(ordinal: usize) -> (Self, Option<Absence>) {
        match Self::new(ordinal) {
            Ok(time) => (time, None),
            Err(absence) => (Self::host_only(), Some(absence)),
        }
    }

    /// The stream whose work is timed; `None` without a GPU.
    pub fn stream(&self) -> Option<&Arc<CudaStream>> {
        self.inner.device.get().map(|d| &d.stream)
    }

    /// Why the gate is off, `None` where it works (and without a GPU).
    pub fn gate_off_reason(&self) -> Option<String> {
        let device = self.inner.device.get()?;
        if self.is_profiling() {
            return Some("a profile is being recorded".to_owned());
        }
        device.gate.borrow().off().map(str::to_owned)
    }

    /// The clock that a measurement on `clock` really uses: if the gate is off, [`Clock::EventsGated`]
    /// becomes [`Clock::Events`]. Other clocks stay.
    pub fn effective_clock(&self, clock: Clock) -> Clock {
        match clock {
            Clock::EventsGated if self.gate_off_reason().is_some() => Clock::Events,
            other => other,
        }
    }

    /// A kernel of one thread that does nothing, ready to be launched on
    /// [`stream`](Self::stream), to measure the clock's own overhead with. `None` without a GPU.
    pub fn empty_kernel(&self) -> Option<Launch> {
        Some(self.inner.device.get()?.gate.borrow().empty())
    }

    /// Keeps the device busy for 150 ms if it has been idle for two seconds, so that its clock
    /// has come up before the first sample. Does nothing without a GPU.
    ///
    /// # Errors
    /// The launch or the wait that failed.
    pub fn wake(&self) -> Result<(), CudaError> {
        /// An H200 reaches its full SM clock within this time.
        const BUSY: Duration = Duration::from_millis(150);
        /// After a shorter pause the clock rate is assumed to be still up: on an H200 with an open
        /// context a product took as long after pauses of up to four seconds as without one.
        const IDLE: Duration = Duration::from_secs(2);
        let Some(device) = self.inner.device.get() else {
            return Ok(());
        };
        if device.last_use.get().is_some_and(|t| t.elapsed() < IDLE) {
            return Ok(());
        }
        bind(&device.context)?;
        device.gate.borrow().spin(BUSY)?;
        device.synchronize()?;
        device.last_use.set(Some(Instant::now()));
        Ok(())
    }

    /// Runs `routine` `iterations` times, and returns the time of all of them together on
    /// `clock`, in nanoseconds.
    ///
    /// One more iteration is captured in a CUDA graph beforehand, to count its launches, and replayed:
    /// the gated clock and `submit` size their batches by the count. If it cannot be captured, four
    /// launches are assumed; [`measure_launches`](Self::measure_launches) is given the number. On
    /// [`Clock::Wall`] each iteration is awaited; for a routine that waits itself there is
    /// [`measure_awaited`](Self::measure_awaited).
    ///
    /// A time below the clock's [resolution](Clock::resolution_ns) is reported as the resolution:
    /// Criterion drops a benchmark with a zero.
    ///
    /// ```no_run
    /// use crossover_timing::{Clock, CudaTime};
    ///
    /// let time = CudaTime::new(0)?;
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
    /// A call with one iteration runs the routine once more before that: every kernel is loaded by it
    /// before the capture, or before a gate closes. Criterion's warm-up starts with such a call.
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
    /// memory sets. Nothing is captured or checked.
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
        self.measure_erased(sample, &mut routine)
    }

    /// [`measure`](Self::measure) without type parameters, so that it is compiled once.
    pub(crate) fn measure_erased(
        &self,
        sample: Sample,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        #[cfg(feature = "criterion")]
        self.criterion().measures_on(sample.clock);
        #[cfg(feature = "profiler")]
        if self.inner.session.is_taken() {
            return self.inner.session.measure(self, sample, routine);
        }
        self.measure_plainly(sample, routine)
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
        let Some(device) = self.inner.device.get() else {
            return match clock {
                Clock::Wall => finite(on_host(sample.iterations, routine)?, clock),
                _ => Err(TimingError::NoDevice { clock }),
            };
        };
        device.gate.borrow().check(clock)?;
        let is_counted = sample.iteration == Iteration::Uncounted && !self.is_profiling();
        let is_gated = self.effective_clock(clock) == Clock::EventsGated;
        if sample.iterations == 1 && (is_counted || is_gated) {
            sequence::load(&mut device.window(&mut *routine)?)?;
        }
        sample.iteration = self.counted(sample.iteration, &mut *routine)?;
        let mut window = device.window(routine)?;
        let nanoseconds = self.alone(|| self.sample(device, &mut window, sample))?;
        device.last_use.set(Some(Instant::now()));
        finite(nanoseconds, clock)
    }

    /// Counts the launches of an iteration, unless that is needless or impossible.
    pub(crate) fn counted(
        &self,
        iteration: Iteration,
        routine: Routine<'_>,
    ) -> Result<Iteration, TimingError> {
        let is_counted = iteration == Iteration::Uncounted && !self.is_profiling();
        let Some(device) = self.device().filter(|_| is_counted) else {
            return Ok(iteration);
        };
        bind(&device.context)?;
        match device.count(routine)? {
            Some(0) => Err(TimingError::NothingEnqueued),
            count => Ok(Iteration::Launches(count.unwrap_or(UNCAPTURED))),
        }
    }

    /// Takes one sample on its clock.
    pub(crate) fn sample(
        &self,
        device: &Device,
        window: &mut Window<'_>,
        sample: Sample,
    ) -> Result<f64, TimingError> {
        let Sample {
            clock,
            iterations,
            iteration,
        } = sample;
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
                batch => sequence::gated(window, iterations, u64::from(batch)),
            },
            Clock::EventsCold => {
                device.prepare_flush()?;
                let gate = self.gate_off_reason().is_none() && batch()? > 0;
                sequence::cold(window, iterations, gate)
            }
            other => unreachable!("{other} has no sequence"),
        }
    }

    pub(crate) fn device(&self) -> Option<&Device> {
        self.inner.device.get()
    }

    pub(crate) fn others_ignored(&self) -> &Cell<bool> {
        &self.inner.others_ignored
    }

    /// The most copies of [rotating](crate::Rotating) inputs from which a routine has taken one since
    /// this was last set.
    pub(crate) fn copies_in_turn(&self) -> &Rc<Cell<usize>> {
        &self.inner.copies_in_turn
    }

    /// Whether a profile is being recorded, for which the gate is off.
    pub(crate) fn is_profiling(&self) -> bool {
        #[cfg(feature = "profiler")]
        return self.inner.session.is_taken();
        #[cfg(not(feature = "profiler"))]
        false
    }

    #[cfg(feature = "criterion")]
    pub(crate) fn criterion(&self) -> &OnCriterion {
        &self.inner.criterion
    }

    #[cfg(feature = "profiler")]
    pub(crate) fn session(&self) -> &Slot {
        &self.inner.session
    }
}

/// Criterion drops a benchmark with a zero and panics at a NaN: neither may reach it.
pub(crate) fn finite(nanoseconds: f64, clock: Clock) -> Result<f64, TimingError> {
    if !nanoseconds.is_finite() {
        return Err(TimingError::NotANumber);
    }
    Ok(nanoseconds.max(clock.resolution_ns()))
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

    type Never = std::convert::Infallible;

    #[test]
    fn host_only_measures_the_wall_clock_and_refuses_the_others() {
        let time = CudaTime::host_only();
        let (mut runs, mut slept) = (0, 0.0);
        let ns = time
            .measure(Clock::Wall, 5, || {
                runs += 1;
                let before = Instant::now();
                std::thread::sleep(Duration::from_millis(1));
                slept += before.elapsed().as_nanos() as f64;
                Ok::<(), Never>(())
            })
            .unwrap();
        assert_eq!(runs, 5);
        assert!(ns >= slept, "{ns} ns for {slept} ns");
        for clock in [
            Clock::Events,
            Clock::EventsGated,
            Clock::EventsCold,
            Clock::Submit,
        ] {
            let error = time.measure(clock, 1, || Ok::<(), Never>(())).unwrap_err();
            assert!(error.to_string().contains("needs a GPU"), "{error}");
        }
        let error = time.measure(Clock::Wall, 0, || Ok::<(), Never>(()));
        assert!(matches!(error, Err(TimingError::NoIterations)));
    }

    #[test]
    fn neither_zero_nor_nan_reaches_criterion() {
        assert_eq!(finite(0.0, Clock::Events).unwrap(), 500.0);
        assert_eq!(finite(1234.5, Clock::Events).unwrap(), 1234.5);
        assert!(matches!(
            finite(f64::NAN, Clock::Wall),
            Err(TimingError::NotANumber)
        ));
        assert!(matches!(
            finite(f64::INFINITY, Clock::Wall),
            Err(TimingError::NotANumber)
        ));
    }
}
