//! Detects work on other streams and devices, which no clock notices, after each sample and outside the
//! timed window.

use std::ptr;
use std::time::{Duration, Instant};

use cudarc::driver::{DriverError, result, sys};

use crate::cuda_error::{Called, CudaError};
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Routine};
use crate::error::TimingError;
use crate::gate::EmptyTimes;
use crate::panic::catch_panic;
use crate::prepared_launch::{bind, synchronize_context};
use crate::sequence;
use crossover_words::units::time;

/// The device may stay busy after a sample for this share of the sample,
const SHARE: f64 = 0.02;
/// or for this many nanoseconds, whichever is longer.
const LEAST_NS: f64 = 20_000.0;
/// How many samples in a row the device must stay busy for longer. A host that is taken off its core
/// for a moment waits long only once.
const TIMES: u32 = 3;
/// Empty kernels of a trial, and how often each trial is made.
const TRIED: u64 = 4;
const TRIALS: usize = 5;
/// How much longer, ns, than the window of held work one may take that is held no longer than it is queued.
const UNHELD_NS: f64 = 1_000.0;
/// With the longest of how many waits for idle devices a long wait is compared: a busy host is slow in these
/// too.
const IDLE_WAITS: usize = 8;

impl CudaTime {
    /// Ignores work on other streams than [`stream`](Self::stream), or (`false`, as at the start)
    /// looks for it: after each sample, outside of the timed window, the time until the device and all
    /// others with an active primary context are idle is compared with the sample. If one works on
    /// for longer than 20 µs and 2 % of the sample, the sample is repeated, and the third time is a
    /// [`TimingError::WorkElsewhere`].
    ///
    /// This wait does not detect work that ends before the sample does (with 2 µs on another stream in each
    /// iteration, the launches take longer), work in contexts that are not primary (`cuCtxCreate`), or work of
    /// other processes. Under `--test` with the feature `profiler`, CUPTI's records of an iteration show the
    /// first two.
    ///
    /// Ignore other streams if other threads of the process use a device on purpose, or if another
    /// library works in the background beside a stream of
    /// [`on_raw_stream`](Self::on_raw_stream).
    pub fn ignore_other_streams(&self, ignore: bool) {
        self.inner.others_ignored.set(ignore);
    }

    /// Waits until the device and all others with an active primary context are idle, and returns how
    /// long that took: hardly any time after a timed window in which all the work was.
    ///
    /// # Errors
    /// The driver's.
    #[doc(hidden)]
    pub fn settle(&self) -> Result<Duration, CudaError> {
        Ok(self.waits()?.iter().sum())
    }

    /// As [`settle`](Self::settle), for each device.
    fn waits(&self) -> Result<Vec<Duration>, CudaError> {
        let Some(device) = self.device() else {
            return Ok(Vec::new());
        };
        let mut begun = Instant::now();
        let mut waits = Vec::with_capacity(1 + device.others.len());
        let mut waited = || {
            let ended = Instant::now();
            waits.push(ended - begun);
            begun = ended;
        };
        synchronize_context(&device.context)?;
        waited();
        if !device.others.is_empty() {
            let each = device
                .others
                .iter()
                .try_for_each(|other| wait_for(*other).map(|()| waited()));
            each.and(bind(&device.context))?;
        }
        Ok(waits)
    }

    /// Takes a sample, and repeats it while the device stays busy after it.
    pub(crate) fn alone(
        &self,
        mut sample: impl FnMut() -> Result<f64, TimingError>,
    ) -> Result<f64, TimingError> {
        let mut times = 0;
        loop {
            let window_ns = sample()?;
            let Some(error) = self.work_elsewhere(window_ns)? else {
                return Ok(window_ns);
            };
            times += 1;
            if times == TIMES {
                return Err(error);
            }
        }
    }

    /// Detects work on other streams after a sample that cannot be repeated.
    #[cfg(feature = "criterion")]
    pub(crate) fn require_alone(
        &self,
        device: &ClockedDevice,
        window_ns: f64,
    ) -> Result<(), TimingError> {
        let Some(error) = self.work_elsewhere(window_ns)? else {
            device.late.set(0);
            return Ok(());
        };
        device.late.set(device.late.get() + 1);
        if device.late.get() >= TIMES {
            return Err(error);
        }
        Ok(())
    }

    /// The error if the device stays busy for long after the timed stream is done.
    fn work_elsewhere(&self, window_ns: f64) -> Result<Option<TimingError>, CudaError> {
        let allowed_ns = LEAST_NS.max(SHARE * window_ns);
        if !self.works_alone() {
            return Ok(None);
        }
        let waits = self.waits()?;
        let mut after_ns = waits.iter().sum::<Duration>().as_nanos() as f64;
        let mut idle = Vec::new();
        while after_ns > allowed_ns && idle.len() < IDLE_WAITS {
            idle.push(self.waits()?);
            after_ns = longest_beyond(&waits, &idle);
        }
        if after_ns <= allowed_ns {
            return Ok(None);
        }
        let window = match window_ns {
            0.0 => "the capture, in which nothing runs on the timed stream".to_owned(),
            _ => format!("the timed window of {}", time(window_ns)),
        };
        let work = format!("a device worked for {} after {window}", time(after_ns));
        Ok(Some(TimingError::WorkElsewhere { work }))
    }

    /// Whether work elsewhere is an error. Devices of other processes that take part may work on, and this one then
    /// waits for them.
    pub(crate) fn works_alone(&self) -> bool {
        !self.inner.others_ignored.get() && !self.is_announced()
    }
}

impl ClockedDevice {
    /// Whether cudarc orders the streams of this context by events, which no capture may wait for.
    pub(crate) fn is_tracked(&self) -> bool {
        self.context.is_managing_stream_synchronization()
    }

    /// Tries a routine that cannot be captured. It must use the timed stream; if a gate is to hold the work
    /// (`is_held`), none may run before the gate opens. A routine that waits for its work is not judged by that.
    ///
    /// # Errors
    /// [`TimingError::NothingEnqueued`], [`TimingError::DefaultStream`] or [`TimingError::NotHeld`], and those of
    /// the routine.
    pub(crate) fn try_out(&self, routine: Routine<'_>, is_held: bool) -> Result<(), TimingError> {
        let begun = Instant::now();
        sequence::load(&mut self.window(&mut *routine)?)?;
        // Work that is not held is done by then.
        let pause = 2 * begun.elapsed() + Duration::from_micros(50);
        if !self.uses_timed_stream(&mut *routine)? {
            return Err(TimingError::NothingEnqueued);
        }
        if !is_held || self.gate.borrow().off().is_some() {
            return Ok(());
        }
        let empty = self.empty_times()?;
        let mut middle = |pause| -> Result<Option<f64>, TimingError> {
            let mut samples = [0.0; TRIALS];
            for sample in &mut samples {
                let mut window = self.window(&mut *routine)?;
                window.is_trial = true;
                window.pause = pause;
                match sequence::gated(&mut window, 1, 1) {
                    Err(TimingError::GateTimeout) => return Ok(None),
                    ns => *sample = ns?,
                }
                // What is not held must not run into the next trial.
                synchronize_context(&self.context)?;
            }
            samples.sort_unstable_by(f64::total_cmp);
            Ok(Some(samples[TRIALS / 2]))
        };
        if let Some(at_once) = middle(Duration::ZERO)?
            && let Some(held) = middle(pause)?
            && at_once - empty.window > 2.0 * (held - empty.window).max(0.0) + UNHELD_NS
        {
            return Err(TimingError::NotHeld);
        }
        Ok(())
    }

    /// Whether `routine` makes a call on the timed stream. The stream is in an invalidated capture, in which every
    /// call on it fails and does nothing, until the capture is ended: the routine fails, or cudarc keeps the error.
    /// So the routine has to work otherwise. What it frees on the stream in this call is leaked.
    fn uses_timed_stream(&self, routine: Routine<'_>) -> Result<bool, TimingError> {
        let stream = self.stream.cu_stream();
        // Other streams are not captured, and may do what a capture of this thread would forbid.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        match self.stream.begin_capture(mode) {
            Err(DriverError(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)) => {
                return Err(TimingError::DefaultStream);
            }
            begun => begun.called("cuStreamBeginCapture")?,
        }
        // SAFETY: the stream is alive. The host may not wait for a captured stream: this invalidates the capture.
        let waited = unsafe { result::stream::synchronize(stream) };
        let ran = catch_panic(&mut *routine);
        let mut graph = ptr::null_mut();
        // SAFETY: the stream is alive, and the pointer valid for the write. An invalidated capture leaves no graph.
        let ended = unsafe { sys::cuStreamEndCapture(stream, &mut graph) };
        let kept = self.context.check_err();
        synchronize_context(&self.context)?;
        if waited.is_ok() || ended == sys::CUresult::CUDA_SUCCESS {
            let message = "the driver did not report that the capture had been invalidated";
            return Err(CudaError::with_message("cuStreamEndCapture", message).into());
        }
        Ok(kept.is_err() || !matches!(ran, Ok(Ok(()))))
    }

    /// Requires that a sample behind a gate took longer than nothing, where no capture has shown the work.
    pub(crate) fn require_time(
        &self,
        ns: f64,
        windows: u64,
        iterations: u64,
    ) -> Result<(), TimingError> {
        let is_nothing = self.is_tracked() && self.empty_times()?.is_less(ns, windows, iterations);
        if is_nothing {
            Err(TimingError::NothingEnqueued)
        } else {
            Ok(())
        }
    }

    /// The times of nothing behind a gate, measured once.
    fn empty_times(&self) -> Result<EmptyTimes, TimingError> {
        if let Some(times) = self.empty_times.get() {
            return Ok(times);
        }
        let empty = self.gate.borrow().empty();
        let shortest = |launches: u64| -> Result<f64, TimingError> {
            // SAFETY: the kernel takes no arguments.
            let launch = |_| unsafe { empty.launch(&self.stream) };
            let mut launches = || Ok((0..launches).try_for_each(launch)?);
            let mut window = self.window(&mut launches)?;
            let mut windows = (0..TRIALS).map(|_| sequence::gated(&mut window, 1, 1));
            windows.try_fold(f64::INFINITY, |least, ns| Ok(least.min(ns?)))
        };
        shortest(1)?;
        let window = shortest(0)?;
        let kernel = (shortest(TRIED)? - window) / TRIED as f64;
        let times = EmptyTimes { window, kernel };
        self.empty_times.set(Some(times));
        Ok(times)
    }
}

/// By how many nanoseconds the longest of these waits exceeds each of those for the same device once it is
/// idle. Not their sum: after a sample, the call takes some microseconds longer for each device that took
/// part.
fn longest_beyond(waits: &[Duration], idle: &[Vec<Duration>]) -> f64 {
    let beyond = (0..waits.len()).filter_map(|at| {
        let each = idle.iter().map(|idle| waits[at].saturating_sub(idle[at]));
        each.min()
    });
    beyond.max().unwrap_or_default().as_nanos() as f64
}

/// Waits for a device if its primary context is active. The context is then current.
fn wait_for(device: sys::CUdevice) -> Result<(), CudaError> {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: both pointers are valid for the call.
    let status = unsafe { sys::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    CudaError::check("cuDevicePrimaryCtxGetState", status)?;
    if active == 0 {
        return Ok(());
    }
    // SAFETY: the driver is initialised, since the timed device is open; released below.
    let context = unsafe { result::primary_ctx::retain(device) };
    let context = context.called("cuDevicePrimaryCtxRetain")?;
    // SAFETY: the context is retained.
    let current = unsafe { result::ctx::set_current(context) }.called("cuCtxSetCurrent");
    let waited = current.and_then(|()| result::ctx::synchronize().called("cuCtxSynchronize"));
    // SAFETY: retained above, and released once.
    let released = unsafe { result::primary_ctx::release(device) };
    waited.and(released.called("cuDevicePrimaryCtxRelease"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_counts_and_not_the_calls_for_many_devices() {
        let micros = |times: [u64; 4]| times.map(Duration::from_micros);
        let idle = vec![micros([2, 3, 3, 3]).to_vec()];
        assert_eq!(
            longest_beyond(&micros([9, 10, 11, 9]), &idle),
            8_000.0,
            "together 28 µs"
        );
        assert_eq!(longest_beyond(&micros([2, 3, 63, 3]), &idle), 60_000.0);
        let late = vec![micros([9, 9, 9, 9]).to_vec()];
        assert_eq!(longest_beyond(&idle[0], &late), 0.0);
        let is_late_again = [&idle[..], &late].concat();
        assert_eq!(
            longest_beyond(&micros([2, 3, 63, 3]), &is_late_again),
            54_000.0
        );
    }
}
