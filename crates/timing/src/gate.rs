//! The gate: a kernel of one thread that holds a stream until the host opens it, so that a whole batch
//! is queued before its first kernel runs.
//!
//! The pattern is nvbench's blocking kernel. Its caveats:
//! - A stream's queue holds about a thousand launches (H200, driver 580), and four times as many with
//!   `CUDA_SCALE_LAUNCH_QUEUES=4x`. One more and the host blocks inside the launch while the gate waits
//!   for the host. So [`LAUNCHES_PER_GATE`] is tried at the start, and more when an iteration makes
//!   more.
//! - A routine that synchronises while the gate is closed waits for itself. The gate
//!   therefore times the wait on the device and opens by itself, and the measurement is an
//!   error.
//! - Under `CUDA_LAUNCH_BLOCKING=1`, a profiler that serialises kernels, or a sanitizer,
//!   launches wait for those before, the gate included. [`Gate::new`] tries the gate once with
//!   a whole batch and switches it off where that happens.
//! - Loading a kernel lazily may wait for the device: load everything first.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaFunction, CudaStream, result, sys};
use cudarc::nvrtc::Ptx;

use crate::cuda_error::{Called, CudaError};
use crate::error::TimingError;
use crate::prepared_launch::{GATE_TIMEOUT, LAUNCHES_PER_GATE, Launch, synchronize};
use crossover_words::Clock;

/// How long the trial at the start waits.
const TRIAL: Duration = Duration::from_millis(200);

/// Whether the gate, which holds the stream until a batch is queued, is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateMode {
    /// Used where it works: it is tried once when the measurement is made.
    #[default]
    Auto,
    /// Never used: [`CudaTime::effective_clock`](crate::CudaTime::effective_clock) says which
    /// clock takes its place.
    Off,
    /// Used, and where it does not work, a clock that needs it is an error
    /// ([`TimingError::GateOff`](crate::TimingError::GateOff)): no result is ever of another clock.
    Required,
}

/// Times behind a gate, ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmptyTimes {
    /// The time of a window without work.
    pub(super) window: f64,
    /// By how much an empty kernel makes it longer.
    pub(super) kernel: f64,
}

impl EmptyTimes {
    /// Whether iterations took less than half as long as that many empty kernels.
    pub(super) fn is_less(self, ns: f64, windows: u64, iterations: u64) -> bool {
        ns - windows as f64 * self.window < 0.5 * iterations as f64 * self.kernel
    }
}

pub(super) struct Gate {
    stream: Arc<CudaStream>,
    /// Two words of mapped host memory: open, and timed out.
    words: *mut u32,
    gate: Launch,
    trial: Launch,
    spin: CudaFunction,
    empty: CudaFunction,
    small: CudaFunction,
    /// Whether no other clock may take its place.
    required: bool,
    /// So many launches fit behind it,
    fits: u32,
    /// and so many do not.
    overflows: u32,
    /// Why the gate is off.
    off: Option<String>,
}

impl Gate {
    pub(super) fn new(stream: &Arc<CudaStream>, mode: GateMode) -> Result<Self, CudaError> {
        let context = stream.context();
        let module = context
            .load_module(Ptx::from_src(include_str!("gate.ptx")))
            .called("cuModuleLoadData")?;
        let function = |name| module.load_function(name).called("cuModuleGetFunction");
        let (gate, spin) = (function("crossover_gate")?, function("crossover_spin")?);
        // SAFETY: the flag asks for memory that the device can address; freed in `drop`.
        let words = unsafe { result::malloc_host(8, sys::CU_MEMHOSTALLOC_DEVICEMAP) }
            .called("cuMemHostAlloc")?
            .cast::<u32>();
        let mut address = 0;
        // SAFETY: `words` is mapped host memory, allocated just above.
        CudaError::check("cuMemHostGetDevicePointer", unsafe {
            sys::cuMemHostGetDevicePointer_v2(&mut address, words.cast(), 0)
        })?;
        let launch = |timeout: Duration| {
            Launch::new(gate.clone(), (1, 1, 1), (1, 1, 1))
                .arg::<u64>(address)
                .arg(timeout.as_nanos() as u64)
        };
        let mut this = Self {
            stream: stream.clone(),
            words,
            trial: launch(TRIAL),
            gate: launch(GATE_TIMEOUT),
            spin,
            empty: function("crossover_empty")?,
            small: function("crossover_small")?,
            required: mode == GateMode::Required,
            fits: 0,
            overflows: u32::MAX,
            off: None,
        };
        // The words are not initialised, and each wait reads the second one, also where the gate is off.
        this.write(1, 0);
        this.off = this.reason_to_stay_off(mode)?;
        Ok(this)
    }

    /// Why the gate is off, `None` where it works.
    pub(super) fn off(&self) -> Option<&str> {
        self.off.as_deref()
    }

    /// An error if the gate is off and no other clock may take its place.
    pub(super) fn check(&self, clock: Clock) -> Result<(), TimingError> {
        let needed = matches!(clock, Clock::EventsGated | Clock::EventsCold) && self.required;
        match &self.off {
            Some(reason) if needed => Err(TimingError::GateOff {
                clock,
                reason: reason.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn reason_to_stay_off(&mut self, mode: GateMode) -> Result<Option<String>, CudaError> {
        if mode == GateMode::Off {
            return Ok(Some("switched off".to_owned()));
        }
        if std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|v| v != "0") {
            return Ok(Some(
                "CUDA_LAUNCH_BLOCKING makes each launch wait for its kernel; unset it".to_owned(),
            ));
        }
        // Both kernels are loaded by this first, ungated use.
        self.spin(Duration::ZERO)?;
        self.launch(false)?;
        synchronize(&self.stream)?;
        // CUDA_SCALE_LAUNCH_QUEUES can make the queue shorter. Under compute-sanitizer it holds a few
        // launches, but no batch.
        for batch in [LAUNCHES_PER_GATE, LAUNCHES_PER_GATE / 4] {
            if self.holds(batch)? {
                self.fits = batch;
                return Ok(None);
            }
        }
        Ok(Some(
            "launches wait for the kernels before them here (a profiler or a sanitizer is attached)"
                .to_owned(),
        ))
    }

    /// How many iterations of so many launches are queued behind one gate; 0 if not even one fits.
    pub(super) fn batch(&mut self, launches: u32) -> Result<u32, CudaError> {
        if launches <= self.fits {
            return Ok((LAUNCHES_PER_GATE.min(self.fits) / launches).max(1));
        }
        // Libraries and the driver may enqueue more than was counted.
        if launches < self.overflows && self.holds(launches.saturating_add(launches / 8))? {
            self.fits = launches;
            return Ok(1);
        }
        self.overflows = self.overflows.min(launches);
        Ok(0)
    }

    /// Whether the host can queue so many launches behind the closed gate.
    fn holds(&mut self, launches: u32) -> Result<bool, CudaError> {
        let empty = self.empty();
        self.write(0, 0);
        self.launch(true)?;
        // SAFETY: the kernel takes no arguments.
        let queued = (0..launches).try_for_each(|_| unsafe { empty.launch(&self.stream) });
        self.open();
        synchronize(&self.stream)?;
        queued?;
        Ok(!self.take_timed_out())
    }

    /// Enqueues the gate, or one that opens itself after a short time.
    pub(super) fn close(&mut self, is_trial: bool) -> Result<(), CudaError> {
        self.write(0, 0);
        self.launch(is_trial)
    }

    /// Lets the stream continue.
    pub(super) fn open(&mut self) {
        // SAFETY: the first word, which `drop` frees; the device polls it with system scope.
        unsafe { ptr::write_volatile(self.words, 1) };
    }

    /// Whether the gate opened by itself since the last call. Valid once the gate has run.
    pub(super) fn take_timed_out(&mut self) -> bool {
        let word = self.timed_out();
        // SAFETY: a word that `drop` frees. A gate that has run writes no more.
        let timed_out = unsafe { ptr::read_volatile(word) } != 0;
        // SAFETY: as for the read.
        unsafe { ptr::write_volatile(word, 0) };
        timed_out
    }

    /// A kernel of one thread that ends at once.
    pub(super) fn empty(&self) -> Launch {
        Launch::new(self.empty.clone(), (1, 1, 1), (1, 1, 1))
    }

    /// A kernel each of whose threads reads and writes a number.
    pub(super) fn small(&self) -> CudaFunction {
        self.small.clone()
    }

    /// Enqueues a kernel of one thread that runs for `time`.
    pub(super) fn spin(&self, time: Duration) -> Result<(), CudaError> {
        let spin = Launch::new(self.spin.clone(), (1, 1, 1), (1, 1, 1)).arg(time.as_nanos() as u64);
        // SAFETY: the kernel takes one 64-bit number; the driver copies it at the launch.
        unsafe { spin.launch(&self.stream) }
    }

    fn launch(&self, trial: bool) -> Result<(), CudaError> {
        let launch = if trial { &self.trial } else { &self.gate };
        // SAFETY: the kernel takes the address of `words`, which live as long as `self`, and
        // `drop` synchronises before freeing them.
        unsafe { launch.launch(&self.stream) }
    }

    fn write(&mut self, open: u32, timed_out: u32) {
        // SAFETY: a word that `drop` frees. Each gate is waited for, so none is in flight.
        unsafe { ptr::write_volatile(self.timed_out(), timed_out) };
        // SAFETY: as for the other word.
        unsafe { ptr::write_volatile(self.words, open) };
    }

    /// The second of the two words.
    fn timed_out(&self) -> *mut u32 {
        self.words.wrapping_add(1)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
        // A gate in flight must have read the word before its memory goes. After a lost
        // context both calls fail, and there is nothing left to release.
        let _ = synchronize(&self.stream);
        // SAFETY: allocated by `malloc_host` in `new`, freed once.
        let _ = unsafe { result::free_host(self.words.cast()) };
    }
}
