//! Stored baselines: Criterion's files and our sidecars, read leniently.
//!
//! Criterion's files are no declared interface: unknown fields are ignored, ids come from
//! `benchmark.json` and never from folder names, and what cannot be read is named and left
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use walkdir::WalkDir;

use crate::record::{RUNS, RunRecord, Sidecar, read_json};

const BENCHMARK: &str = "benchmark.json";
const SAMPLE: &str = "sample.json";
/// The baseline that Criterion writes in every run.
const NEW: &str = "new";

/// One baseline in one results folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Folder of the results.
    pub root: PathBuf,
    /// Name of the baseline in it.
    pub baseline: String,
    /// How the user named it.
    pub label: String,
}

/// Why there is nothing to read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No results at all.
    #[error(
        "{label}: no results in {root}; run `cargo bench -- --save-baseline NAME` first, or point \
         CRITERION_HOME at the results"
    )]
    NoResults {
        /// What was asked for.
        label: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// Results, but not that baseline.
    #[error("{label}: no baseline `{baseline}` in {root}; there are: {there}")]
    NoBaseline {
        /// What was asked for.
        label: String,
        /// The baseline.
        baseline: String,
        /// Where it was looked for.
        root: PathBuf,
        /// Those that are there.
        there: Names,
    },
}

/// Names in a sentence.
#[derive(Debug)]
pub struct Names(BTreeSet<String>);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            write!(f, "{}`{name}`", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Source {
    /// Resolves what a user wrote, in this order: `DIR:NAME` is baseline NAME of folder DIR;
    /// a plain name is a baseline under `root`, if there is one; an existing folder stands
    /// for its `new`. A folder may hold the results themselves or hold them under
    /// `target-reports/criterion` or `criterion`. Write `./name` for a folder with the name
    /// of a baseline.
    ///
    /// # Errors
    /// Where there are no results, or not that baseline; the baselines there are.
    pub fn resolve(text: &str, root: &Path) -> Result<Self, SourceError> {
        if let Some((dir, name)) = text.rsplit_once(':')
            && Path::new(dir).is_dir()
            && !name.is_empty()
        {
            return Self::there(text, &results_in(Path::new(dir)), name);
        }
        let path = Path::new(text);
        let is_name = path.components().count() == 1 && !text.contains(['/', '\\', '.']);
        if path.is_dir() && !(is_name && baselines(root).contains(text)) {
            return Self::there(text, &results_in(path), NEW);
        }
        Self::there(text, root, text)
    }

    fn there(label: &str, root: &Path, baseline: &str) -> Result<Self, SourceError> {
        let there = baselines(root);
        let label = label.to_owned();
        if there.contains(baseline) {
            Ok(Self {
                root: root.to_owned(),
                baseline: baseline.to_owned(),
                label,
            })
        } else if there.is_empty() {
            let root = root.to_owned();
            Err(SourceError::NoResults { label, root })
        } else {
            Err(SourceError::NoBaseline {
                label,
                baseline: baseline.to_owned(),
                root: root.to_owned(),
                there: Names(there),
            })
        }
    }
}

fn results_in(dir: &Path) -> PathBuf {
    ["target-reports/criterion", "criterion"]
        .iter()
        .map(|inner| dir.join(inner))
        .find(|inner| inner.is_dir())
        .unwrap_or_else(|| dir.to_owned())
}

/// Folders with a result, in order of their paths.
fn result_folders(root: &Path) -> impl Iterator<Item = PathBuf> {
    WalkDir::new(root)
        .min_depth(2)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|e| e.depth() != 1 || e.file_name() != RUNS)
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_dir())
        .map(walkdir::DirEntry::into_path)
        // A half-written result may lack either.
        .filter(|p| p.join(BENCHMARK).is_file() || p.join(SAMPLE).is_file())
}

fn baselines(root: &Path) -> BTreeSet<String> {
    result_folders(root)
        .filter_map(|p| Some(p.file_name()?.to_str()?.to_owned()))
        .collect()
}

/// One benchmark of a baseline.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Time of an iteration, nanoseconds, a sample each, in the order they were taken.
    pub ns: Vec<f64>,
    /// What lies beside it; `None` where it is missing or describes other samples.
    pub sidecar: Option<Sidecar>,
}

/// One baseline, read.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// How the user named it.
    pub label: String,
    /// The benchmarks by full id.
    pub results: BTreeMap<String, Stored>,
    /// The runs that its sidecars name.
    pub runs: BTreeMap<String, RunRecord>,
    /// What could not be read and what that means, a sentence each with the path.
    pub problems: Vec<String>,
    /// Ids that are there and could not be read.
    broken_ids: BTreeSet<String>,
    /// Folders (under the root, without the baseline's name) whose id is unknown.
    broken_folders: BTreeSet<PathBuf>,
    folders: BTreeMap<String, PathBuf>,
}

#[derive(Deserialize)]
struct BenchmarkFile {
    full_id: String,
}

#[derive(Deserialize)]
struct SampleFile {
    iters: Vec<f64>,
    times: Vec<f64>,
}

impl Baseline {
    /// Reads all benchmarks of a baseline.
    pub fn read(source: &Source) -> Self {
        let mut this = Self {
            label: source.label.clone(),
            ..Self::default()
        };
        for dir in result_folders(&source.root) {
            if dir.file_name().and_then(|n| n.to_str()) == Some(&source.baseline) {
                this.read_result(&dir, &source.root);
            }
        }
        let names: BTreeSet<String> = this
            .results
            .values()
            .filter_map(|r| Some(r.sidecar.as_ref()?.run.clone()))
            .collect();
        for name in names {
            match RunRecord::read(&source.root, &name) {
                Ok(run) => {
                    this.runs.insert(name, run);
                }
                Err(e) => this
                    .problems
                    .push(format!("{e}: the machine of run {name} is unknown")),
            }
        }
        this
    }

    fn read_result(&mut self, dir: &Path, root: &Path) {
        let folder = dir
            .strip_prefix(root)
            .unwrap_or(dir)
            .parent()
            .unwrap_or(Path::new(""))
            .to_owned();
        let id = match read_json::<BenchmarkFile>(&dir.join(BENCHMARK)) {
            Ok(file) => file.full_id,
            Err(e) => {
                self.problems.push(format!("{e}: left out"));
                self.broken_folders.insert(folder);
                return;
            }
        };
        if let Some(first) = self.folders.get(&id) {
            self.problems.push(format!(
                "{}: {id} is already read from {}: left out",
                dir.display(),
                first.display()
            ));
            return;
        }
        self.folders.insert(id.clone(), folder);
        let ns = match read_samples(&dir.join(SAMPLE)) {
            Ok(ns) => ns,
            Err(e) => {
                self.problems.push(format!("{e}: {id} is left out"));
                self.broken_ids.insert(id);
                return;
            }
        };
        let sidecar = match Sidecar::read(dir) {
            Ok(Some(sidecar)) if sidecar.id != id => {
                self.problems.push(format!(
                    "{}: describes {}, not {id}: its clock is unknown",
                    dir.join(crate::record::SIDECAR).display(),
                    sidecar.id
                ));
                None
            }
            Ok(sidecar) => sidecar,
            Err(e) => {
                self.problems.push(format!("{e}: its clock is unknown"));
                None
            }
        };
        self.results.insert(id, Stored { ns, sidecar });
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

    /// Why a benchmark is not there, if a run says so.
    pub fn why_absent(&self, id: &str) -> Option<String> {
        self.runs.values().find_map(|run| {
            let failed = run.failed.iter().find(|f| f.id == id);
            if let Some(failure) = failed {
                return Some(format!("failed: {}", failure.error));
            }
            run.skipped
                .iter()
                .find(|s| {
                    id.strip_prefix(&s.id)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
                .map(|s| format!("skipped: {}", s.reason))
        })
    }
}

fn read_samples(path: &Path) -> Result<Vec<f64>, String> {
    let file: SampleFile = read_json(path).map_err(|e| e.to_string())?;
    let bad = |what: &str| Err(format!("{}: {what}", path.display()));
    if file.iters.len() != file.times.len() {
        return bad("as many times as iteration counts are needed");
    }
    if file.times.is_empty() {
        return bad("no samples");
    }
    let ns: Vec<f64> = file
        .times
        .iter()
        .zip(&file.iters)
        .map(|(time, iters)| time / iters)
        .collect();
    if ns.iter().any(|t| !t.is_finite() || *t <= 0.0) {
        return bad("a time is not positive");
    }
    Ok(ns)
}
