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

    /// Takes the error that ended a benchmark, if one did. A benchmark has no way to return an
    /// error to Criterion: the measurement keeps it here and panics with its text, so that
    /// whoever catches the panic can ask for it.
    pub fn take_failure(&self) -> Option<TimingError> {
        self.criterion().failure.borrow_mut().take()
    }

    /// Keeps the error for [`take_failure`](Self::take_failure) and panics with its text:
    /// the only way out of a benchmark.
    pub(crate) fn fail(&self, error: impl Into<TimingError>) -> ! {
        let error = error.into();
        let text = error.to_string();
        *self.criterion().failure.borrow_mut() = Some(error);
        panic!("{text}");
    }
}
