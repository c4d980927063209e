//! The Criterion side: the measurement, the bencher's methods, and our files beside Criterion's.

mod bencher;
mod benchmark;
mod benchmarks;
mod clock_file;
mod measurement;
mod rate;

use std::fs;
use std::path::{Path, PathBuf};

pub use bencher::CudaBencherExt;
pub use measurement::Started;
pub use rate::{Rate, RateSet};

use self::benchmarks::Benchmarks;
use self::rate::Formatter;
use crate::cuda_time::CudaTime;
use crate::error::TimingError;
use crossover_words::{Clock, files::replace};

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

/// The state of a clock between Criterion's calls.
#[derive(Default)]
pub(crate) struct OnCriterion {
    formatter: Formatter,
    benchmarks: Benchmarks,
}

impl OnCriterion {
    /// Tells the formatter, which Criterion asks after a benchmark.
    pub(crate) fn measures_on(&self, clock: Clock) {
        self.formatter.no_rate.set(clock == Clock::Submit);
    }
}

impl CudaTime {
    /// Sets the unit of the throughput that Criterion prints, for this measurement and all its clones, until
    /// the returned value is dropped. The default is [elements](Rate::elements).
    pub fn set_rate(&self, rate: Rate) -> RateSet {
        RateSet {
            earlier: self.criterion().formatter.set(rate),
            time: self.clone(),
        }
    }

    /// Sets the folder that the program gave to `Criterion::output_directory`. When this measurement
    /// and all its clones are dropped, the clock of each result is written beside it, in
    /// `crossover.json`. A later run prints a note if a result has another clock than the one
    /// before, and `crossover compare` does not compare two clocks.
    pub fn set_output_directory(&self, root: impl Into<PathBuf>) {
        self.criterion().benchmarks.ledger.set_root(root.into());
    }

    /// Ends a benchmark. Criterion takes no error, so the only way is a panic with the error's text.
    pub(crate) fn fail(&self, error: impl Into<TimingError>) -> ! {
        panic!("{}", error.into());
    }
}
