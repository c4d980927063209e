//! Detects work on other streams and devices, which no clock notices, after each sample and outside the
//! timed window.

use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};

use crate::cuda_error::{Called, CudaError};
use crate::cuda_time::CudaTime;
#[cfg(feature = "criterion")]
use crate::device::ClockedDevice;
use crate::error::TimingError;
use crate::prepared_launch::bind;

/// The device may stay busy after a sample for this share of the sample,
const SHARE: f64 = 0.02;
/// or for this many nanoseconds, whichever is longer.
const LEAST_NS: f64 = 20_000.0;
/// How many samples in a row the device must stay busy for longer. A host that is taken off its core
/// for a moment waits long only once.
const TIMES: u32 = 3;
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
    /// Work that ends before the sample does is not detected: with 2 µs on another stream in each
    /// iteration, the launches take longer. Nor is work in contexts that are not primary
    /// (`cuCtxCreate`), or of other processes.
    ///
    /// Ignore other streams if other threads of the process use a device on purpose, or if another
    /// library works in the background beside a stream of
    /// [`on_raw_stream`](Self::on_raw_stream).
    pub fn ignore_other_streams(&self, ignore: bool) {
        self.others_ignored().set(ignore);
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
        (device.context.synchronize()).called("cuCtxSynchronize")?;
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
        if self.others_ignored().get() {
            return Ok(None);
        }
        let waits = self.waits()?;
        let mut after_ns = waits.iter().sum::<Duration>().as_nanos() as f64;
        let mut idle = Vec::new();
        while after_ns > allowed_ns && idle.len() < IDLE_WAITS {
            idle.push(self.waits()?);
            after_ns = longest_beyond(&waits, &idle);
        }
        Ok(
            (after_ns > allowed_ns).then_some(TimingError::WorkElsewhere {
                after_ns,
                window_ns,
            }),
        )
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
