//! The folder of a benchmark with Criterion's files and the suite's.
//!
//! An attempt at a benchmark writes several files, and may be cut short between any two of them:
//! a kill, a full disk. Until it has left a whole result, the one that it replaces lies beside
//! it in `.earlier-<baseline>/`, an empty folder where there was none.
//!
//! While that folder exists, `<baseline>/` counts only if it is whole; otherwise the kept result
//! counts. So a reader never sees half an attempt, and a failed attempt never removes a result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;

use crate::model::id::Id;
use crate::model::record::Sidecar;
use crate::store::curves::Benchmark;
use crate::store::layout::{BENCHMARK, ESTIMATES, NEW, SAMPLE, SIDECAR, TEMPORARY, TUKEY, earlier};
use crate::store::profiles;
use crate::store::sampled::{Sampled, write_sidecar};
use crate::store::whole_file::{FileError, copy, try_to_write, write_json};

/// The folder of one benchmark under the results root.
pub struct BenchmarkFolder {
    path: PathBuf,
    id: Id,
    has_throughput: bool,
}

impl BenchmarkFolder {
    /// The folder of a benchmark below `root`, as Criterion names it.
    pub fn new(root: &Path, id: Id, has_throughput: bool) -> Self {
        Self {
            path: root.join(id.directory()),
            id,
            has_throughput,
        }
    }

    fn new_dir(&self) -> PathBuf {
        self.path.join(NEW)
    }

    /// When the samples of this benchmark were last written.
    pub fn sampled_at(&self) -> Option<SystemTime> {
        written_at(&self.new_dir().join(SAMPLE))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// When a profile of this benchmark was last written.
    pub fn profiled_at(&self) -> Option<SystemTime> {
        written_at(&profiles::path(&self.path))
    }

    /// Whether a baseline has a result of this benchmark.
    pub fn has(&self, baseline: &str) -> bool {
        self.path.join(baseline).join(SAMPLE).is_file()
    }

    /// Sets aside what the benchmark is about to replace, in `new` and in the baseline.
    pub fn begin(&self, baseline: Option<&str>) -> Result<Attempt, FileError> {
        Attempt::begin(&self.path, NEW, baseline)
    }

    /// Criterion saves samples and estimates, then compares and draws, and only then writes
    /// `benchmark.json`. It panics in between when both sides of a comparison have no spread at
    /// all (its p value is NaN). The measurement is sound: this writes what is missing.
    pub fn rescue(&self) -> Result<(), FileError> {
        let id = &self.id;
        write_json(
            &self.new_dir().join(BENCHMARK),
            &json!({
                "group_id": id.group,
                "function_id": id.function,
                "value_str": id.size.to_string(),
                "throughput": self.has_throughput.then(|| json!({ "Elements": id.size })),
                "full_id": id.to_string(),
                "directory_name": id.directory().display().to_string(),
                "title": id.to_string(),
            }),
        )
    }

    /// Writes the sidecar beside the new result, and the whole result to the baseline. Criterion goes on after
    /// an error of its own when it writes, so this reads what it left.
    pub fn finish(
        &self,
        mut sidecar: Sidecar,
        baseline: Option<&str>,
    ) -> Result<Benchmark, FileError> {
        let new = self.new_dir();
        write_sidecar(&mut sidecar, &new)?;
        let Some(sampled) = Sampled::whole(&new) else {
            // On a full disk this fails as well, with the reason.
            try_to_write(&new).map_err(|e| FileError::io(&new, e))?;
            let torn = "Criterion could not write its files here";
            return Err(FileError::other(&new, torn));
        };
        if let Some(baseline) = baseline {
            let to = self.path.join(baseline);
            for file in [ESTIMATES, SAMPLE, TUKEY, BENCHMARK, SIDECAR] {
                copy(&new.join(file), &to.join(file))?;
            }
        }
        let benchmark = Benchmark::of(&self.id.to_string(), self.path.clone(), &sampled);
        benchmark.map_err(|problem| FileError::other(&new, problem.reason))
    }
}

fn written_at(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|m| m.modified()).ok()
}

/// An attempt under way, by the folders that it may write to.
#[must_use]
pub struct Attempt(Vec<PathBuf>);

impl Attempt {
    /// Sets the result in `folder` under `new` aside, and keeps a copy of `copied`, a baseline that
    /// Criterion reads before it replaces it. An attempt that was cut short is undone first.
    ///
    /// # Errors
    /// The file that the system refuses to move; then everything is as it was.
    pub(crate) fn begin(folder: &Path, new: &str, copied: Option<&str>) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(|e| FileError::io(folder, e))?;
        let mut this = Self(Vec::new());
        let copied = copied.map(|name| (name, true));
        for (name, stays) in [(new, false)].into_iter().chain(copied) {
            let dir = folder.join(name);
            settle(&dir);
            if let Err(error) = keep(&dir, stays) {
                this.undo();
                return Err(FileError::io(&dir, error));
            }
            this.0.push(dir);
        }
        Ok(this)
    }

    /// Commits the attempt and removes the replaced result.
    pub fn done(self) {
        for dir in &self.0 {
            // If this fails, the next attempt removes it.
            let _ = fs::remove_dir_all(earlier(dir));
        }
    }

    /// Undoes a failed attempt and restores the replaced result.
    pub fn undo(self) {
        self.0.iter().for_each(|dir| restore(dir));
    }
}

/// Ends an attempt that was cut short.
fn settle(dir: &Path) {
    let earlier = earlier(dir);
    if earlier.exists() {
        match Sampled::whole(dir) {
            Some(_) => drop(fs::remove_dir_all(&earlier)),
            None => restore(dir),
        }
    }
}

/// Whatever fails here leaves a state that readers understand and the next attempt settles.
fn restore(dir: &Path) {
    let earlier = earlier(dir);
    let _ = fs::remove_dir_all(dir);
    // An empty folder means that there was no result.
    if fs::remove_dir(&earlier).is_err() {
        let _ = fs::rename(&earlier, dir);
    }
}

fn keep(dir: &Path, stays: bool) -> io::Result<()> {
    if !dir.is_dir() {
        return fs::create_dir(earlier(dir));
    }
    if !stays {
        return fs::rename(dir, earlier(dir));
    }
    let making = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempdir_in(dir.parent().unwrap_or(Path::new(".")))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &making.path().join(entry.file_name()))
                .map_err(FileError::into_io)?;
        }
    }
    // Whole from the moment it has the name.
    fs::rename(making.path(), earlier(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Criterion 0.8.2 writes it.
    const BENCHMARK: &str = r#"{"group_id":"sound","function_id":"cpu/double","value_str":"4","throughput":{"Elements":4},"full_id":"sound/cpu/double/4","directory_name":"sound/cpu_double/4","title":"sound/cpu/double/4"}"#;

    #[test]
    fn a_rescued_result_is_as_criterion_would_have_left_it() {
        let root = tempfile::tempdir().unwrap();
        let new = root.path().join("sound/cpu_double/4/new");
        fs::create_dir_all(&new).unwrap();
        fs::write(new.join(SAMPLE), "{}").unwrap();
        let folder = BenchmarkFolder::new(root.path(), Id::new("sound", "cpu/double", 4), true);
        assert!(folder.sampled_at().is_some());
        folder.rescue().unwrap();
        let text = fs::read(new.join("benchmark.json")).unwrap();
        let ours: serde_json::Value = serde_json::from_slice(&text).unwrap();
        let theirs: serde_json::Value = serde_json::from_str(BENCHMARK).unwrap();
        assert_eq!(ours, theirs);
    }

    fn write(dir: &Path, text: &str) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(SAMPLE), text).unwrap();
    }

    fn sample(dir: &Path) -> String {
        fs::read_to_string(dir.join(SAMPLE)).unwrap()
    }

    #[test]
    fn a_failed_attempt_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join(NEW), "earlier");
        write(&folder.join("main"), "earlier");
        let attempt = Attempt::begin(folder, NEW, Some("main")).unwrap();
        // Criterion reads it.
        assert_eq!(sample(&folder.join("main")), "earlier");
        write(&folder.join(NEW), "torn");
        write(&folder.join("main"), "torn");
        attempt.undo();
        for name in [NEW, "main"] {
            assert_eq!(sample(&folder.join(name)), "earlier");
        }
        let whole = Attempt::begin(folder, NEW, None).unwrap();
        write(&folder.join(NEW), "whole");
        whole.done();
        let first = Attempt::begin(folder, "first", None).unwrap();
        write(&folder.join("first"), "torn");
        first.undo();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    }

    #[test]
    fn one_that_was_cut_short_is_undone_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join(NEW), "earlier");
        let _killed = Attempt::begin(folder, NEW, None).unwrap();
        write(&folder.join(NEW), "torn");
        let next = Attempt::begin(folder, NEW, None).unwrap();
        assert_eq!(sample(&earlier(&folder.join(NEW))), "earlier");
        next.undo();
        assert_eq!(sample(&folder.join(NEW)), "earlier");
    }
}
