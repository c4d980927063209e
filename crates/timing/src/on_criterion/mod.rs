//! The Criterion side: the measurement, the bencher's methods, and our files beside Criterion's.

mod bencher;
mod benchmark;
mod benchmarks;
mod clock_file;
mod measurement;
mod rate;
pub(crate) mod state;
pub(crate) mod write;

use std::path::PathBuf;

pub use bencher::CudaBencherExt;
pub use measurement::Started;
pub use rate::Rate;

use crate::cuda_time::CudaTime;
use crate::error::TimingError;

impl CudaTime {
    /// Sets what the throughput counts that Criterion prints from here on, for this measurement
    /// and all its clones. Until it is set, that is [elements](Rate::elements).
    pub fn set_rate(&self, rate: Rate) {
        self.criterion().formatter.set(rate);
    }

    /// Where Criterion writes, if the program has set that with `Criterion::output_directory`: the
    /// clock of each result is written beside it when this measurement and all its clones are
    /// dropped, in `crossover-clock.json`. A later run says where a result is of another clock than
    /// the one before, and `crossover compare` does not compare two clocks.
    pub fn set_output_directory(&self, root: impl Into<PathBuf>) {
        self.criterion().benchmarks.ledger.set_root(root.into());
    }

    /// Ends a benchmark. Criterion takes no error, so a panic with the error's text is the only way out.
    pub(crate) fn fail(&self, error: impl Into<TimingError>) -> ! {
        panic!("{}", error.into());
    }
}
