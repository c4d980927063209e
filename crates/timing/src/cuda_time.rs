//! The measurement, for Criterion and for programs without it.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::c_void;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cudarc::driver::CudaStream;

use crate::absence::Absence;
use crate::cuda_error::CudaError;
#[cfg(feature = "profiler")]
use crate::device::Wait;
use crate::device::{ClockedDevice, Iteration, Sample, devices_beside};
use crate::error::{BoxError, TimingError};
use crate::events::measure_step_ns;
use crate::gate::{Gate, GateMode};
use crate::launch_state::{LaunchProbe, LaunchState, RECOVERY, REPLAYS, SAMPLES, is_longer};
#[cfg(feature = "criterion")]
use crate::on_criterion::benchmarks::OnCriterion;
use crate::prepared_launch::{Launch, bind};
use crate::probe::{borrow, open};
#[cfg(feature = "profiler")]
use crate::profiler::session::Slot;
use crossover_words::Clock;

/// Gets the number of iterations that a clock is about to time.
pub type Announce = Rc<dyn Fn(u64) -> Result<(), BoxError>>;

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
    pub(crate) inner: Rc<Inner>,
}

/// The state that the clones of a clock share.
#[derive(Default)]
pub(crate) struct Inner {
    device: OnceCell<ClockedDevice>,
    pub(crate) others_ignored: Cell<bool>,
    /// Called before each sample.
    announce: RefCell<Option<Announce>>,
    /// The most copies of [rotating](crate::Rotating) inputs from which a routine has taken one since
    /// this was last set.
    pub(crate) copies_in_turn: Rc<Cell<usize>>,
    #[cfg(feature = "criterion")]
    pub(crate) criterion: OnCriterion,
    /// The profile that is being made.
    #[cfg(feature = "profiler")]
    pub(crate) session: Slot,
    /// See [`wait_by`](CudaTime::wait_by).
    #[cfg(feature = "profiler")]
    pub(crate) own_wait: RefCell<Option<Wait>>,
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
    /// [Opens](crate::open) device `ordinal`, and times on the stream that this creates.
    ///
    /// # Safety
    /// As [`open`](crate::open): a program that uses this [`stream`](Self::stream) alone, and waits for it
    /// before it accesses or frees pinned memory, keeps the contract.
    ///
    /// ```compile_fail,E0133
    /// let time = crossover_timing::CudaTime::new(0)?;
    /// # Ok::<(), crossover_timing::Absence>(())
    /// ```
    ///
    /// # Errors
    /// The [`Absence`] that keeps the device from being used, in a sentence with its remedy.
    pub unsafe fn new(ordinal: usize) -> Result<Self, Absence> {
        // SAFETY: the caller orders the streams.
        let (_, stream) = unsafe { open(ordinal) }?;
        Ok(Self::on_stream(&stream, GateMode::Auto)?)
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
    /// clones are dropped, and all clones of [`stream`](Self::stream) with all that was made with them, such
    /// as slices and graphs.
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
        // SAFETY: the caller keeps the stream alive as long as this measurement, the clones of what is returned, which
        // `stream` lends, and all that is made with them.
        let stream = unsafe { borrow(ordinal, stream) }?;
        Ok(Self::on_stream(&stream, gate)?)
    }

    /// Calls `announce` before each sample, outside of the timed window, until `body` returns. Single runs that
    /// load code are not announced.
    #[doc(hidden)]
    pub fn announcing<T>(&self, announce: Option<Announce>, body: impl FnOnce() -> T) -> T {
        let before = self.inner.announce.replace(announce);
        let returned = body();
        self.inner.announce.replace(before);
        returned
    }

    /// Whether other processes take part in what is measured.
    pub(crate) fn is_announced(&self) -> bool {
        self.inner.announce.borrow().is_some()
    }

    pub(crate) fn announce(&self, iterations: u64) -> Result<(), TimingError> {
        let announce = self.inner.announce.borrow().clone();
        Ok(announce.map_or(Ok(()), |announce| announce(iterations))?)
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
        let gate = Gate::new(stream, gate)?;
        let event_step_ns = measure_step_ns(stream, &gate.empty())?;
        let others = devices_beside(stream.context())?;
        self.inner.device.get_or_init(|| ClockedDevice {
            context: stream.context().clone(),
            gate: RefCell::new(gate),
            stream: stream.clone(),
            events: RefCell::default(),
            flush: RefCell::default(),
            launch_probe: RefCell::default(),
            usual_persisting: Cell::new(None),
            launch_levels: RefCell::default(),
            others,
            event_step_ns,
            last_use: Cell::new(None),
            empty_times: Cell::new(None),
            #[cfg(feature = "criterion")]
            late: Cell::new(0),
        });
        Ok(())
    }

    /// A measurement without a GPU: `b.iter` and [`Clock::Wall`] work and read the host's clock,
    /// so that CPU and GPU benchmarks share a Criterion group on every machine. The other clocks
    /// return [`TimingError::NoDevice`](crate::TimingError::NoDevice).
    pub fn host_only() -> Self {
        Self {
            inner: Rc::default(),
        }
    }

    /// [`new`](Self::new) where the device can be used, else [`host_only`](Self::host_only) with
    /// the reason.
    ///
    /// # Safety
    /// As [`new`](Self::new).
    pub unsafe fn new_or_host_only(ordinal: usize) -> (Self, Option<Absence>) {
        // SAFETY: the caller orders the streams.
        match unsafe { Self::new(ordinal) } {
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

    /// The step of the clock of CUDA events, which was measured when the device was opened, ns. `None` on other
    /// clocks, if all measured times were equal, and without a GPU.
    #[doc(hidden)]
    pub fn event_step_ns(&self, clock: Clock) -> Option<f64> {
        (self.device()?.event_step_ns).filter(|_| clock.is_of_events())
    }

    /// A kernel of one thread that does nothing, ready to be launched on
    /// [`stream`](Self::stream), to measure the clock's own overhead with. `None` without a GPU.
    pub fn empty_kernel(&self) -> Option<Launch> {
        Some(self.inner.device.get()?.gate.borrow().empty())
    }

    /// The constant of a launch: the time of the [empty kernel](Self::empty_kernel) on `clock`, ns, the
    /// median of samples that take 5 ms together on an H100. `None` on clocks without a gate, where the
    /// gate is off, and without a GPU.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    #[doc(hidden)]
    pub fn launch_constant(&self, clock: Clock) -> Result<Option<f64>, TimingError> {
        const SAMPLES: usize = 5;
        let iterations = match clock {
            Clock::EventsGated => 200,
            Clock::EventsCold => 10,
            _ => return Ok(None),
        };
        let works = self.gate_off_reason().is_none();
        let Some((empty, stream)) = self.empty_kernel().zip(self.stream()).filter(|_| works) else {
            return Ok(None);
        };
        // At the low clock of an idle device it takes 120 to 220 ns longer.
        self.wake()?;
        // SAFETY: the kernel takes no arguments.
        let launch = || unsafe { empty.launch(stream) };
        let mut samples = (0..SAMPLES)
            .map(|_| self.measure_launches(clock, iterations, 1, launch))
            .collect::<Result<Vec<_>, _>>()?;
        samples.sort_unstable_by(f64::total_cmp);
        Ok(Some(samples[SAMPLES / 2] / iterations as f64))
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

    pub(crate) fn device(&self) -> Option<&ClockedDevice> {
        self.inner.device.get()
    }

    /// Whether a profile is being recorded, for which the gate is off.
    pub(crate) fn is_profiling(&self) -> bool {
        #[cfg(feature = "profiler")]
        return self.inner.session.is_taken();
        #[cfg(not(feature = "profiler"))]
        false
    }
}

impl CudaTime {
    /// Times a graph of 32 small kernels behind the gate, which takes half a millisecond, and compares it with the
    /// shortest such time so far. `None` without a GPU, where the gate is off, and on a legacy default stream.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn launch_state(&self) -> Result<Option<LaunchState>, TimingError> {
        self.probe_launches(false)
    }

    /// [`launch_state`](Self::launch_state), with a [restoration](Self::restore_launches) before it if the launches are
    /// long, and before the first probe of this clock. After two restorations in a row without effect it tries none.
    ///
    /// # Errors
    /// As [`measure`](Self::measure), and of the restoration.
    pub fn shorten_launches(&self) -> Result<Option<LaunchState>, TimingError> {
        let Some(device) = self.probed_device() else {
            return Ok(None);
        };
        let restore = || {
            let restored = self.restore_launches();
            // Without room for a second context, the next benchmark need not try forever.
            device.launch_levels.borrow_mut().fruitless += u32::from(restored.is_err());
            restored
        };
        let begins = device.launch_levels.borrow().begins();
        if begins {
            restore()?;
        }
        let state = self.probe_launches(begins)?;
        let wants = |state: &LaunchState| device.launch_levels.borrow().wants(*state);
        if !state.as_ref().is_some_and(wants) {
            return Ok(state);
        }
        restore()?;
        self.probe_launches(true)
    }

    /// Makes launches as short as in a new process, whatever streams have run kernels before: creates a second context
    /// of the device, destroys it, and makes the first one current again. It takes 0.15 to 0.21 s on an H200. Does
    /// nothing without a GPU.
    ///
    /// # Errors
    /// The driver's, out of memory included: a context takes some 0.5 GB of the device's memory.
    pub fn restore_launches(&self) -> Result<(), CudaError> {
        let Some(device) = self.device() else {
            return Ok(());
        };
        device.replace_second_context()
    }

    fn probe_launches(&self, is_restored: bool) -> Result<Option<LaunchState>, TimingError> {
        let Some(device) = self.probed_device() else {
            return Ok(None);
        };
        // At the low clock of an idle device everything takes longer.
        self.wake()?;
        bind(&device.context)?;
        let mut probe = device.launch_probe.borrow_mut();
        if probe.is_none() {
            *probe = Some(LaunchProbe::new(
                &device.stream,
                device.gate.borrow().small(),
            )?);
        }
        let graph = &probe.as_ref().expect("it was made").graph;
        let sample = Sample {
            clock: Clock::EventsGated,
            iterations: REPLAYS,
            iteration: Iteration::Launches(1),
        };
        let median = || -> Result<f64, TimingError> {
            let mut samples = (0..SAMPLES)
                .map(|_| self.measure_plainly(sample, &mut || Ok(device.replay(graph)?)))
                .collect::<Result<Vec<_>, _>>()?;
            samples.sort_unstable_by(f64::total_cmp);
            Ok(samples[SAMPLES / 2] / REPLAYS as f64)
        };
        let mut levels = device.launch_levels.borrow_mut();
        let mut probe_ns = median()?;
        if levels
            .short_ns
            .is_some_and(|short_ns| is_longer(probe_ns, short_ns))
        {
            thread::sleep(RECOVERY);
            probe_ns = probe_ns.min(median()?);
        }
        Ok(Some(levels.judge(probe_ns, is_restored)))
    }

    /// The device, if its launches can be probed.
    fn probed_device(&self) -> Option<&ClockedDevice> {
        let device = self.device().filter(|_| self.gate_off_reason().is_none());
        device.filter(|device| !device.stream.cu_stream().is_null())
    }
}
