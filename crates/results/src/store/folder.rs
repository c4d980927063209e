//! The folder of a benchmark with Criterion's files and the suite's.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;

use crate::model::id::Id;
use crate::model::record::Sidecar;
use crate::store::attempt::Attempt;
use crate::store::curves::Benchmark;
use crate::store::layout::{BENCHMARK, ESTIMATES, NEW, SAMPLE, SIDECAR, TUKEY};
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
}
