//! Why a benchmark has no result: skipped, or failed.

use crate::timing::{CudaError, TimingError, catch_panic};
use crate::workload::routine::{RoutineError, is_absent, loses_context};
use crossover_machine::absence::Absence;
use crossover_results::store::whole_file::FileError;
use crossover_words::text::with_causes;

/// Why a benchmark has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Missing {
    /// It cannot or need not run here.
    #[error(transparent)]
    Absent(RoutineError),
    #[error(transparent)]
    Failed(RoutineError),
    /// Only a new process can use the GPU again.
    #[error(transparent)]
    ContextLost(RoutineError),
    /// Nothing can be written any more, so no result can be kept.
    #[error(transparent)]
    NoSpace(FileError),
}

impl From<RoutineError> for Missing {
    fn from(error: RoutineError) -> Self {
        if is_absent(&error) {
            Self::Absent(error)
        } else if loses_context(&error) {
            Self::ContextLost(error)
        } else {
            Self::Failed(error)
        }
    }
}

impl From<FileError> for Missing {
    /// A file of the suite. One of a routine, whose error is boxed, may lie on another disk.
    fn from(error: FileError) -> Self {
        if error.is_no_room() {
            Self::NoSpace(error)
        } else {
            Self::Failed(error.into())
        }
    }
}

/// Errors that are converted as those of a routine are.
macro_rules! boxed {
    ($($error:ty),*) => {
        $(impl From<$error> for Missing {
            fn from(error: $error) -> Self {
                RoutineError::from(error).into()
            }
        })*
    };
}

boxed!(Absence, CudaError, TimingError, String, &str);

impl Missing {
    /// The failure of code on inputs that are not timed, which `place` names.
    pub(super) fn at(self, place: &str) -> Self {
        let named = |error: RoutineError| -> RoutineError {
            format!("{place}: {}; it is not timed", with_causes(&*error)).into()
        };
        match self {
            Self::Failed(error) => Self::Failed(named(error)),
            Self::ContextLost(error) => Self::ContextLost(named(error)),
            other => other,
        }
    }
}

/// Runs the work of one benchmark: a panic fails the benchmark, not the run.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, Missing>) -> Result<T, Missing> {
    catch_panic(work)?
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;

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
        let Missing::Absent(reason) = error.into() else {
            panic!("an older device is no failure");
        };
        assert_eq!(
            reason.to_string(),
            "new.cu needs compute capability 9.0 and the device has 8.6: a newer one runs it"
        );
    }

    #[test]
    fn only_a_full_disk_of_the_suite_ends_the_run() {
        let full = || FileError::io(Path::new("file"), ErrorKind::StorageFull);
        assert!(matches!(full().into(), Missing::NoSpace(_)));
        let of_a_routine: RoutineError = full().into();
        assert!(matches!(of_a_routine.into(), Missing::Failed { .. }));
    }
}
