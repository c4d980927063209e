//! The record of a run, and why a benchmark has no result: skipped, or failed.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;

use crossover_machine::libraries::Absence;
use crossover_protocol::settings::Settings;
use crossover_results::analysis::limits;
use crossover_results::store::curves::{Benchmark, Series};
use crossover_results::store::machine_results::Limits;
use crossover_results::store::runs;
use crossover_results::store::stored_results::StoredResults;
use crossover_results::store::whole_file::FileError;
use crossover_system::interrupt;
use crossover_words::text::{visible_lines, with_causes};
use crossover_words::units;

use crate::model::record::{Confirmation, Failure, RunRecord, SCHEMA, Skip};
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::criterion_instance;
use crate::suite::progress::Spent;
use crate::timing::{CudaError, TimingError, catch_panic};
use crate::workload::routine::{RoutineError, is_absent, loses_context};

/// The events of a run so far.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) record: RunRecord,
    results: PathBuf,
    /// The results of earlier runs, as they were when this run began.
    pub(super) earlier: StoredResults,
    /// The results of this run, by id, for its questions and its report.
    pub(super) own: BTreeMap<String, Benchmark>,
    mode: Mode,
    pub(super) spent: Spent,
    /// Whether the record is on disk, since something was measured.
    pub(super) begun: bool,
    /// Whether the filter selected a benchmark that can run here.
    pub(super) selected: bool,
    /// Number of implementations of which the size set leaves out sizes.
    by_size_set: usize,
    /// The implementations, benchmarks and kernels that cannot run here, by the reason.
    skipped: BTreeMap<String, Vec<String>>,
    /// How many benchmarks were not run because nothing can be written any more; `None` while it
    /// can.
    pub(super) no_room: Option<usize>,
    /// Whether GPU benchmarks were selected, and the device that was asked for does not work.
    pub(super) device_failed: bool,
}

impl Journal {
    pub(super) fn new(settings: &Settings, arguments: &Arguments) -> Self {
        let started = SystemTime::now();
        Self {
            record: RunRecord {
                schema: SCHEMA,
                run: runs::name(started),
                started: runs::moment(started),
                size_set: settings.size_set.name().to_owned(),
                arguments: criterion_instance::given(),
                ..RunRecord::default()
            },
            results: settings.results.clone(),
            mode: arguments.mode,
            ..Self::default()
        }
    }

    /// Records a size that the size set leaves out. These would be too many lines to print: they are in
    /// the record, and the end of the run prints their number.
    pub(super) fn leave_out(&mut self, id: String, reason: String) {
        self.by_size_set += 1;
        self.record.skipped.push(Skip { id, reason });
    }

    /// Records a benchmark that cannot run here. The first of each reason is printed at once, the
    /// others are counted at the end of the run.
    pub(super) fn skip(&mut self, id: String, reason: String) {
        let with_reason = self.skipped.entry(reason.clone()).or_default();
        with_reason.push(id.clone());
        if self.mode != Mode::List && with_reason.len() == 1 {
            eprintln!("skipped {id}: {reason}");
        }
        self.record.skipped.push(Skip { id, reason });
        self.keep();
    }

    /// Writes what was left out, in case the run does not reach its end.
    pub(super) fn keep(&self) {
        if self.begun {
            let _ = self.write();
        }
    }

    /// Whether this was skipped with this reason before.
    pub(super) fn is_skipped(&self, id: &str, reason: &str) -> bool {
        let mut skipped = self.record.skipped.iter();
        skipped.any(|skip| skip.id == id && skip.reason == reason)
    }

    pub(super) fn fail(&mut self, id: &str, error: String) {
        let earlier = self.record.failed.iter().find(|it| it.error == error);
        match earlier {
            Some(earlier) => eprintln!("FAILED {id}: as {}", earlier.id),
            None => eprintln!("FAILED {id}: {error}"),
        }
        self.record.failed.push(Failure {
            id: id.to_owned(),
            error,
        });
        self.keep();
    }

    /// Checks a result against the limits.
    ///
    /// # Errors
    /// It is faster than the device can be.
    pub(super) fn check_limits(&self, result: &Benchmark) -> Result<(), Missing> {
        let (series, limits) = (Series::of(vec![result.clone()]), Limits::of(&self.record));
        limits::impossible(&series, &limits).map_or(Ok(()), |sentence| Err(sentence.into()))
    }

    /// All results so far, of this run and of earlier ones.
    pub(super) fn results(&self) -> StoredResults {
        self.earlier.with_run(&self.record, &self.own)
    }

    /// The results that exceed a limit as it was measured at last, one sentence for each limit.
    pub(super) fn named_above_limits(&self) -> Vec<String> {
        let limits = Limits::of(&self.record);
        let mut above: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (id, result) in &self.own {
            if let Some(share) = limits::exceeded(&Series::of(vec![result.clone()]), &limits) {
                above.entry(share.words()).or_default().push(id);
            }
        }
        let sentence = |(words, ids): (&String, &Vec<&str>)| above_a_limit(ids, words);
        above.iter().map(sentence).collect()
    }

    /// Writes the record.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn write(&self) -> Result<(), FileError> {
        runs::write(&self.record, &self.results)
    }

    /// Ends the record.
    pub(super) fn complete(&mut self) {
        let reached_end = interrupt::signal().is_none();
        self.record.activities = self.spent.seconds();
        // A run that a signal ended has no end in its record, as one that was killed.
        self.record.finished = reached_end.then(|| runs::moment(SystemTime::now()));
        if reached_end && self.no_room.is_none() {
            self.record.planned.clear();
        }
        let written = self.write();
        if let Err(error) = written
            && self.no_room.is_none()
        {
            self.fail("the run's record", error.to_string());
        }
    }

    /// Records the answers of child processes so far.
    pub(super) fn confirm(&mut self, answers: Vec<Confirmation>) {
        self.record.confirmations = answers;
        if let Err(error) = self.write() {
            eprintln!("note: the times of the child processes could not be stored: {error}");
        }
    }

    /// Prints skips and failures, and for a filter without a match a similar id. Returns the exit code.
    pub(super) fn close(&self, filter: Option<&str>, meant: Option<String>) -> ExitCode {
        if self.mode != Mode::List {
            for (reason, ids) in self.skipped.iter().filter(|(_, ids)| ids.len() > 1) {
                eprintln!("left out {}: {reason}", some(ids));
            }
            let nothing = !self.selected && self.record.skipped.is_empty();
            if nothing && interrupt::signal().is_none() {
                let filter = filter.map_or(String::new(), |f| format!(" {}", visible_lines(f)));
                let meant = meant.map_or(String::new(), |id| format!("is {id} meant? "));
                eprintln!(
                    "error: no benchmark was selected: no id matches{filter}; \
                     {meant}--list shows the ids"
                );
                return ExitCode::from(2);
            }
        }
        if matches!(self.mode, Mode::Bench | Mode::Profile) && self.by_size_set > 0 {
            eprintln!(
                "left out sizes of {}: they are not in the set {}; CROSSOVER_SIZES=full runs them",
                units::counted(self.by_size_set, "implementation"),
                self.record.size_set
            );
        }
        let unsteady = self.own.values().filter(|result| result.unsteady.is_some());
        if let unsteady @ 1.. = unsteady.count() {
            eprintln!(
                "{} unsteady, so no answer uses them; the page gives the reasons",
                units::counted(unsteady, "benchmark")
            );
        }
        if let Some(signal) = interrupt::signal() {
            if self.own.is_empty() {
                eprintln!("interrupted: this run has no results yet");
            } else {
                eprintln!(
                    "interrupted: the results so far are kept in {}; `crossover report` shows them",
                    self.results.display()
                );
            }
            return ExitCode::from(128 + signal as u8);
        }
        if self.record.failed.is_empty() && self.device_failed {
            eprintln!("error: the selected GPU could not be used; see the lines above");
            return ExitCode::FAILURE;
        }
        if let Some(not_run) = self.no_room {
            eprintln!(
                "error: no more results can be written to {}, and {} were not run. Free space there, or \
                 raise the limit named above, and run again; the results so far are kept",
                self.results.display(),
                units::counted(not_run, "benchmark")
            );
        }
        if self.record.failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        let failed = self.record.failed.iter().map(|failure| &*failure.id);
        let failed: Vec<&str> = failed.collect();
        eprintln!("\n{} failed, see above: {}", failed.len(), some(&failed));
        ExitCode::FAILURE
    }
}

/// Says that these results exceed a limit.
fn above_a_limit(ids: &[impl Borrow<str>], words: &str) -> String {
    let is = if ids.len() == 1 { "is" } else { "are" };
    format!(
        "{} {is} {words}: either the limit is higher than measured, or the work is less than declared",
        some(ids)
    )
}

/// Ids that a line shows.
const SHOWN: usize = 8;

/// The first few ids, and the number of the others.
fn some(ids: &[impl Borrow<str>]) -> String {
    match ids.split_at_checked(SHOWN) {
        Some((shown, [_, ..])) => format!("{} and {} more", shown.join(", "), ids.len() - SHOWN),
        _ => ids.join(", "),
    }
}

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
        let needs = "new.cu needs compute capability 9.0 and the device has 8.6";
        assert!(reason.to_string().starts_with(needs), "{reason}");
    }

    #[test]
    fn only_a_full_disk_of_the_suite_ends_the_run() {
        let full = || FileError::io(Path::new("file"), ErrorKind::StorageFull);
        assert!(matches!(full().into(), Missing::NoSpace(_)));
        let of_a_routine: RoutineError = full().into();
        assert!(matches!(of_a_routine.into(), Missing::Failed { .. }));
    }
}
