//! Why a benchmark has no result: skipped, or failed.

use crate::device::kernel::CompileError;
use crate::timing::{CudaError, TimingError, catch_panic};
use crate::workload::routine::RoutineError;
use crossover_machine::absence::Absence;
use crossover_results::store::whole_file::FileError;
use crossover_words::text::with_causes;

/// Why a benchmark has no result.
pub(super) enum Missing {
    Skipped(String),
    Failed {
        text: String,
        context_lost: bool,
    },
    /// Nothing can be written any more, so no result can be kept.
    NoRoom(String),
}

impl Missing {
    /// The reason.
    pub(super) fn text(self) -> String {
        match self {
            Missing::Skipped(text) | Missing::Failed { text, .. } | Missing::NoRoom(text) => text,
        }
    }
}

impl From<FileError> for Missing {
    fn from(error: FileError) -> Self {
        match error.is_no_room() {
            true => Missing::NoRoom(error.to_string()),
            false => failed(error.to_string()),
        }
    }
}

impl From<RoutineError> for Missing {
    fn from(error: RoutineError) -> Self {
        let absent = error.is::<Absence>()
            || error.is::<crate::timing::Absence>()
            || matches!(
                error.downcast_ref(),
                Some(CompileError::Absent(_) | CompileError::TooOld { .. })
            );
        if absent {
            return Missing::Skipped(error.to_string());
        }
        Missing::Failed {
            text: with_causes(&*error),
            context_lost: error.downcast_ref::<CudaError>().is_some_and(|e| e.sticky),
        }
    }
}

impl From<TimingError> for Missing {
    fn from(error: TimingError) -> Self {
        Missing::Failed {
            context_lost: error.is_sticky(),
            text: with_causes(&error),
        }
    }
}

pub(super) fn skipped(absence: Absence) -> Missing {
    Missing::Skipped(absence.to_string())
}

pub(super) fn failed(text: String) -> Missing {
    Missing::Failed {
        text,
        context_lost: false,
    }
}

/// Runs what belongs to one benchmark: a panic is that benchmark's failure and not the run's end.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Missing>) -> Result<T, Missing> {
    catch_panic(work).map_err(failed)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::kernel::Source;

    #[test]
    fn a_source_that_the_device_is_too_old_for_is_skipped() {
        let source = Source {
            name: "new.cu",
            text: "",
            options: &[],
            oldest: (9, 0),
        };
        let error: RoutineError = source.compile((8, 6)).unwrap_err().into();
        let Missing::Skipped(reason) = error.into() else {
            panic!("an older device is no failure");
        };
        assert_eq!(
            reason,
            "new.cu needs compute capability 9.0 and the device has 8.6: a newer one runs it"
        );
    }
}
