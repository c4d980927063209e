//! Why a benchmark has no result: skipped, or failed.

use std::any::Any;

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

/// Why a benchmark cannot or need not run here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct LeftOut(pub(super) String);

impl<E: Into<RoutineError> + 'static> From<E> for Missing {
    fn from(error: E) -> Self {
        // A file of the suite. One of a routine, whose error is boxed, may lie on another disk.
        let file: Option<&FileError> = (&error as &dyn Any).downcast_ref();
        if let Some(file) = file.filter(|file| file.is_no_room()) {
            return Missing::NoRoom(file.to_string());
        }
        let error = error.into();
        let absent = error.is::<LeftOut>()
            || error.is::<Absence>()
            || error.is::<crate::timing::Absence>()
            || matches!(
                error.downcast_ref(),
                Some(CompileError::Absent(_) | CompileError::TooOld { .. })
            );
        if absent {
            return Missing::Skipped(error.to_string());
        }
        let of_clock = error.downcast_ref().is_some_and(TimingError::is_sticky);
        Missing::Failed {
            text: with_causes(&*error),
            context_lost: of_clock || error.downcast_ref().is_some_and(|e: &CudaError| e.sticky),
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
        let Missing::Skipped(reason) = error.into() else {
            panic!("an older device is no failure");
        };
        assert_eq!(
            reason,
            "new.cu needs compute capability 9.0 and the device has 8.6: a newer one runs it"
        );
    }

    #[test]
    fn only_a_full_disk_of_the_suite_ends_the_run() {
        let full = || FileError::io(Path::new("file"), ErrorKind::StorageFull);
        assert!(matches!(full().into(), Missing::NoRoom(_)));
        let of_a_routine: RoutineError = full().into();
        assert!(matches!(of_a_routine.into(), Missing::Failed { .. }));
    }
}
