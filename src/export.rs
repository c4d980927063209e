//! Results without Criterion's pages and history: small enough to keep in git, and what a
//! report needs to draw another machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::record::{RUNS, RecordError, SIDECAR, Sidecar, write_atomic};
use crate::report::crossover::CROSSINGS;

/// Criterion's files that a reader of results needs.
const FILES: [&str; 3] = ["benchmark.json", "estimates.json", "sample.json"];

/// What was exported and what was not.
#[derive(Debug, Default)]
pub struct Exported {
    /// Benchmarks copied.
    pub benchmarks: usize,
    /// Runs they come from.
    pub runs: usize,
    /// Results that were left out, each with its reason.
    pub left_out: Vec<String>,
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
    /// A file could not be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// Copies the newest result of each benchmark under `root`, its sidecar and the record of its
/// run, to `destination/criterion`. Results without a sidecar that matches their samples are
/// left out and named.
///
/// # Errors
/// A destination that is not empty, no results, or a file that cannot be read or written.
pub fn export(root: &Path, destination: &Path) -> Result<Exported, ExportError> {
    if fs::read_dir(destination).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ExportError::NotEmpty(destination.into()));
    }
    let to = destination.join("criterion");
    let mut exported = Exported::default();
    let mut runs = BTreeSet::new();
    let news = WalkDir::new(root)
        .sort_by_file_name()
        .into_iter()
        .flatten()
        .filter(|e| e.file_type().is_dir() && e.file_name() == "new");
    for entry in news {
        let dir = entry.path();
        let sidecar = match Sidecar::read(dir) {
            Ok(Some(sidecar)) => sidecar,
            Ok(None) => {
                let reason = format!("{}: has no {SIDECAR}", dir.display());
                exported.left_out.push(reason);
                continue;
            }
            Err(error) => {
                exported.left_out.push(error.to_string());
                continue;
            }
        };
        for file in FILES.into_iter().chain([SIDECAR]) {
            copy(root, &to, &dir.join(file))?;
        }
        runs.insert(sidecar.run);
        exported.benchmarks += 1;
    }
    if exported.benchmarks == 0 {
        return Err(ExportError::NoResults(root.into()));
    }
    for run in &runs {
        copy(root, &to, &root.join(RUNS).join(format!("{run}.json")))?;
    }
    exported.runs = runs.len();
    let crossings = root.join(CROSSINGS);
    if crossings.exists() {
        copy(root, &to, &crossings)?;
    }
    Ok(exported)
}

/// Copies a file under `root` to the same place under `to`.
fn copy(root: &Path, to: &Path, path: &Path) -> Result<(), RecordError> {
    let bytes = fs::read(path).map_err(|source| RecordError::Io {
        path: path.into(),
        source,
    })?;
    let inner = path.strip_prefix(root).unwrap_or(path);
    write_atomic(&to.join(inner), &bytes)
}
