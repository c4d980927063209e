//! Exports results without Criterion's pages and history: small enough to keep in git, and all that
//! a report needs to draw another machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::store::criterion_files::Contents;
use crate::store::layout::{BENCHMARK, ESTIMATES, NEW, SAMPLE, SIDECAR};
use crate::store::profiles;
use crate::store::runs;
use crate::store::unreadable::Unreadable;
use crate::store::whole_file::{self, FileError};

/// The files that a reader of results needs.
const FILES: [&str; 4] = [BENCHMARK, ESTIMATES, SAMPLE, SIDECAR];

/// What was exported and what was not.
#[derive(Debug, Default)]
pub struct Exported {
    /// Number of benchmarks copied.
    pub benchmarks: usize,
    /// Number of runs that they come from.
    pub runs: usize,
    /// Results that were left out, each with its reason.
    pub left_out: Vec<String>,
}

impl Exported {
    fn leave_out(&mut self, problem: &Unreadable) {
        self.left_out
            .push(format!("{}: {}", problem.what, problem.reason));
    }
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The folder to write to has something in it.
    #[error("{} is not empty; name a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// There is nothing to export.
    #[error("no results under {}: run `cargo bench` first", .0.display())]
    NoResults(PathBuf),
    /// Every result was left out, for reasons of which this is the first.
    #[error("none of the results under {} can be exported; the first of them: {reason}", root.display())]
    AllLeftOut {
        /// The results root.
        root: PathBuf,
        /// What was left out first, and why.
        reason: String,
    },
    /// Results of a device that executed nothing are nobody's reference.
    #[error(
        "run {0} was recorded, not measured: a driver that executes nothing stood in for the GPU's; remove its results and run `cargo bench` on a GPU"
    )]
    Recorded(String),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Copies the newest result of each benchmark under `root`, its sidecar, its profile and the record
/// of its run, and the records of other runs that answered, to `destination/criterion`. Results
/// without a sidecar that matches their samples are left out and named.
///
/// # Errors
/// A destination that is not empty, no results, or a file that cannot be read or written.
pub fn export(root: &Path, destination: &Path) -> Result<Exported, ExportError> {
    if fs::read_dir(destination).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ExportError::NotEmpty(destination.into()));
    }
    let (recorded, _) = runs::read_all(root);
    if let Some(run) = recorded.into_iter().find(|run| run.environment.recorded()) {
        return Err(ExportError::Recorded(run.run));
    }
    let to = destination.join("criterion");
    let mut exported = Exported::default();
    let mut names = BTreeSet::new();
    let contents = Contents::read(root, NEW);
    let unread = contents.nameless.into_iter().map(|(_, problem)| problem);
    for problem in contents.problems.into_iter().chain(unread) {
        exported.leave_out(&problem);
    }
    for stored in contents.results {
        let dir = stored.dir;
        match stored.sidecar {
            Ok(Some(sidecar)) if !runs::is_there(root, &sidecar.run) => {
                let reason = format!(
                    "the record of its run, runs/{}.json, is missing; run it again",
                    sidecar.run.escape_debug()
                );
                exported.leave_out(&Unreadable::new(dir.display(), reason));
            }
            Ok(Some(sidecar)) => {
                let place = to.join(relative(root, &stored.folder)).join(NEW);
                for file in FILES {
                    whole_file::copy(&dir.join(file), &place.join(file))?;
                }
                // The trace beside it is large, and no report reads it.
                let profile = profiles::path(&stored.folder);
                if profile.is_file() {
                    copy(root, &to, &profile)?;
                }
                names.insert(sidecar.run);
                exported.benchmarks += 1;
            }
            Ok(None) => {
                exported.leave_out(&Unreadable::new(dir.display(), format!("has no {SIDECAR}")))
            }
            Err(problem) => exported.leave_out(&problem),
        }
    }
    if exported.benchmarks == 0 {
        let root = root.into();
        return Err(match exported.left_out.into_iter().next() {
            Some(reason) => ExportError::AllLeftOut { root, reason },
            None => ExportError::NoResults(root),
        });
    }
    exported.runs = names.len();
    // What other runs answered stands beside the answers of the newest. A damaged record may have
    // another name in it than that of its file.
    let answered = (runs::read_all(root).0.into_iter())
        .filter(|run| !run.confirmations.is_empty() && runs::is_there(root, &run.run));
    names.extend(answered.map(|run| run.run));
    for run in &names {
        copy(root, &to, &runs::path(root, run))?;
    }
    Ok(exported)
}

/// Copies a file under `root` to the same place under `to`.
fn copy(root: &Path, to: &Path, path: &Path) -> Result<(), FileError> {
    whole_file::copy(path, &to.join(relative(root, path)))
}

fn relative<'a>(root: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}
