//! One side of a comparison: every benchmark of a baseline with its samples.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::model::record::{RunRecord, Sidecar};
use crate::store::criterion_files::Contents;
use crate::store::runs;
use crate::store::source::Source;
use crate::store::unreadable::Unreadable;
use crossover_words::Clock;
use crossover_words::clock_file::stored_clock;

/// One benchmark of a baseline.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Time of an iteration, nanoseconds, one per sample in the order in which they were taken.
    pub ns: Vec<f64>,
    /// What lies beside it; `None` if it is missing or belongs to other samples.
    pub sidecar: Option<Sidecar>,
    /// The clock, where a file beside it says so.
    pub clock: Option<Clock>,
}

/// One baseline, read.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// How the user named it.
    pub label: String,
    /// The benchmarks by full id.
    pub results: BTreeMap<String, Sampled>,
    /// The runs that its sidecars name.
    pub runs: BTreeMap<String, RunRecord>,
    /// What could not be read and what that means, each a sentence with the path.
    pub problems: Vec<String>,
    /// Ids of results that exist and could not be read.
    broken_ids: BTreeSet<String>,
    /// Folders (under the root, without the baseline's name) whose id is unknown.
    broken_folders: BTreeSet<PathBuf>,
    folders: BTreeMap<String, PathBuf>,
}

impl Baseline {
    /// Reads all benchmarks of a baseline.
    pub fn read(source: &Source) -> Self {
        let contents = Contents::read(&source.root, &source.baseline);
        let relative = |folder: PathBuf| match folder.strip_prefix(&source.root) {
            Ok(inner) => inner.to_owned(),
            Err(_) => folder,
        };
        let mut this = Self {
            label: source.label.clone(),
            ..Self::default()
        };
        let problem = |p: &Unreadable, so: &str| format!("{}: {}{so}", p.what, p.reason);
        for p in contents.problems {
            this.problems.push(problem(&p, ""));
        }
        for (folder, p) in contents.nameless {
            this.problems.push(problem(&p, ": left out"));
            this.broken_folders.insert(relative(folder));
        }
        for stored in contents.results {
            let folder = relative(stored.folder.clone());
            if let Some(first) = this.folders.get(&stored.id) {
                let p = stored.duplicate_of(&source.root.join(first));
                this.problems.push(problem(&p, ": left out"));
                continue;
            }
            this.folders.insert(stored.id.clone(), folder);
            let ns = match stored.samples {
                Ok(ns) => ns,
                Err(p) => {
                    let so = format!(": {} is left out", stored.id);
                    this.problems.push(problem(&p, &so));
                    this.broken_ids.insert(stored.id);
                    continue;
                }
            };
            let sidecar = stored.sidecar.unwrap_or_else(|p| {
                this.problems.push(problem(&p, ": its clock is unknown"));
                None
            });
            let clock = match &sidecar {
                Some(sidecar) => Some(sidecar.clock),
                // Another Criterion project's, on this clock.
                None => stored_clock(&stored.dir),
            };
            let sampled = Sampled { ns, sidecar, clock };
            this.results.insert(stored.id, sampled);
        }
        let names: BTreeSet<String> = this
            .results
            .values()
            .filter_map(|r| Some(r.sidecar.as_ref()?.run.clone()))
            .collect();
        for name in names {
            match runs::read(&source.root, &name) {
                Ok(run) => {
                    this.runs.insert(name, run);
                }
                Err(e) => {
                    let p = Unreadable::of_file(&runs::path(&source.root, &name), &e);
                    let so = format!(": the machine of run {name} is unknown");
                    this.problems.push(problem(&p, &so));
                }
            }
        }
        this
    }

    /// The folder of a benchmark's results, under the root.
    pub fn folder(&self, id: &str) -> Option<&Path> {
        self.folders.get(id).map(PathBuf::as_path)
    }

    /// The benchmark whose results lie in that folder under the root.
    pub fn held_in(&self, folder: &Path) -> Option<&str> {
        let mut folders = self.folders.iter();
        folders.find_map(|(id, held)| (held == folder).then_some(id.as_str()))
    }

    /// Whether the benchmark is there but could not be read, so that it is neither new nor
    /// gone. `other` knows the folder of an id that this side may have lost.
    pub fn is_broken(&self, id: &str, other: &Baseline) -> bool {
        self.broken_ids.contains(id)
            || other
                .folders
                .get(id)
                .is_some_and(|folder| self.broken_folders.contains(folder))
    }

    /// Why a benchmark has no result, if a run says so.
    pub fn why_absent(&self, id: &str) -> Option<String> {
        self.runs.values().find_map(|run| {
            let failed = run.failed.iter().find(|f| f.id == id);
            if let Some(failure) = failed {
                return Some(format!("failed: {}", failure.error));
            }
            run.skipped
                .iter()
                .find(|skip| skip.covers(id))
                .map(|s| format!("skipped: {}", s.reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Of another Criterion project's result there is no sidecar, and the file that its clock left.
    #[test]
    fn the_clock_of_a_result_without_a_sidecar_is_the_one_beside_its_samples() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("saxpy/gated/new");
        fs::create_dir_all(&dir).unwrap();
        let id = r#"{"group_id":"saxpy","function_id":"gated","value_str":null}"#;
        fs::write(dir.join("benchmark.json"), id).unwrap();
        let samples = r#"{"sampling_mode":"Flat","iters":[1.0,1.0],"times":[5.0,6.0]}"#;
        fs::write(dir.join("sample.json"), samples).unwrap();
        let clock = r#"{"clock":"events","samples":"039916beedb50fab","schema":1}"#;
        let read = || {
            let source = Source {
                label: "new".to_owned(),
                root: root.path().to_owned(),
                baseline: "new".to_owned(),
            };
            Baseline::read(&source).results["saxpy/gated"].clock
        };
        assert_eq!(read(), None);
        fs::write(dir.join("crossover-clock.json"), clock).unwrap();
        assert_eq!(read(), Some(Clock::Events));
        fs::write(dir.join("sample.json"), samples.replace("6.0", "7.0")).unwrap();
        assert_eq!(read(), None, "the clock of other samples");
    }
}
