//! The Criterion side: the measurement, the bencher's methods, and our files beside Criterion's.

mod bencher;
mod benchmark;
pub(crate) mod benchmarks;
mod clock_file;
mod measurement;
mod rate;

use std::fs;
use std::path::{Path, PathBuf};

pub use bencher::CudaBencherExt;
pub use measurement::Started;
pub use rate::Rate;

use rate::Unit;

use crate::cuda_time::CudaTime;
use crate::error::TimingError;
use crossover_words::files::replace;

/// Writes a file in `folder`, and creates the folder if need be.
///
/// # Errors
/// A sentence that names the path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| replace(&path, text.as_bytes()))
        .map_err(|e| format!("{} could not be written: {e}", path.display()))
}

/// A [`Rate`] that is [set](CudaTime::set_rate). When this is dropped, the earlier one is back.
#[derive(Debug)]
#[must_use = "the rate ends when this is dropped"]
pub struct RateSet {
    time: CudaTime,
    earlier: Rate,
}

impl Drop for RateSet {
    fn drop(&mut self) {
        let earlier = self.earlier.clone();
        self.time.inner.criterion.formatter.set(earlier);
    }
}

impl Rate {
    /// Prints the throughput of benchmarks on the device's clocks also as a share of the device's peak at the highest
    /// clock rates: bytes of its memory's rate, FLOP of its f32 rate without tensor cores. Prints
    /// none if the peak is not known, or without a GPU.
    pub fn on(mut self, time: &CudaTime) -> Self {
        self.peak = time.device().and_then(|device| match self.unit {
            Unit::Bytes => device.memory_bytes_per_s(),
            Unit::Flop => device.f32_flop_per_s(),
            Unit::Elements | Unit::Inputs => None,
        });
        self
    }
}

impl CudaTime {
    /// Sets the unit of the throughput that Criterion prints, for this measurement and all its clones, until
    /// the returned value is dropped. The default is [elements](Rate::elements).
    pub fn set_rate(&self, rate: Rate) -> RateSet {
        RateSet {
            earlier: self.inner.criterion.formatter.set(rate),
            time: self.clone(),
        }
    }

    /// Sets the folder that the program gave to `Criterion::output_directory`. When this measurement
    /// and all its clones are dropped, the clock of each result is written beside it, in
    /// `crossover.json`. A later run prints a note if a result has another clock than the one
    /// before, and `crossover compare` does not compare two clocks.
    pub fn set_output_directory(&self, root: impl Into<PathBuf>) {
        self.inner.criterion.benchmarks.ledger.set_root(root.into());
    }

    /// Ends a benchmark. Criterion takes no error, so the only way is a panic with the error's text.
    pub(crate) fn fail(&self, error: impl Into<TimingError>) -> ! {
        panic!("{}", error.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_ends_with_its_group() {
        let time = CudaTime::host_only();
        let unit = || time.inner.criterion.formatter.rate.borrow().unit();
        let outer = time.set_rate(Rate::bytes(|n| n));
        {
            let _inner = time.set_rate(Rate::flop(|n| n));
            assert_eq!(unit(), "FLOP");
        }
        assert_eq!(unit(), "B");
        drop(outer);
        assert_eq!(unit(), "elem");
    }
}
