//! The one reader of results: Criterion's files, and our sidecar beside them.
//!
//! Criterion's files are not a declared interface: unknown fields are ignored, ids come from
//! `benchmark.json` and never from folder names (which Criterion shortens), times come from the
//! samples alone (what Criterion estimated from them is for Criterion's own comparisons), and what
//! cannot be read is named while the rest is read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use walkdir::{DirEntry, WalkDir};

use crate::model::record::Sidecar;
use crate::store::layout::{BENCHMARK, ESTIMATES, SAMPLE, SIDECAR, earlier, keeps};
use crate::store::sidecar;
use crate::store::unreadable::Unreadable;
use crate::store::whole_file::{is_temporary, read_json_as_it_stands};
use crossover_words::text::{is_plain, visible};

/// `<group>/<function>/<value>/<baseline>` lies at depth 4; a little more for odd names.
const MAX_DEPTH: usize = 8;

/// One result of Criterion, with what our sidecar knows about it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// `<group>/<function>/<value>`, the parts that there are.
    pub id: String,
    /// The first part.
    pub group: String,
    /// The parts between, such as `gpu/cublas`.
    pub function: Option<String>,
    /// The last part.
    pub value: Option<String>,
    /// Its folder, the parent of the baseline's.
    pub folder: PathBuf,
    /// Where its files are: the baseline's folder, or what an unfinished attempt put aside.
    pub dir: PathBuf,
    /// Times of an iteration, ns, one per sample in the order they were taken.
    pub samples: Result<Vec<f64>, Unreadable>,
    /// What lies beside it; `None` without the file, a problem where it describes something
    /// else.
    pub sidecar: Result<Option<Sidecar>, Unreadable>,
}

impl Stored {
    /// Why it is not read: the folder `first` has the same id.
    pub(crate) fn duplicate_of(&self, first: &Path) -> Unreadable {
        let reason = format!(
            "has the id {} of {}, which is read; delete one of the two",
            self.id,
            first.display()
        );
        Unreadable::new(self.folder.display(), reason)
    }
}

/// All results of one baseline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Contents {
    /// In order of their folders. Two folders may have one id.
    pub results: Vec<Stored>,
    /// Folders of results whose id could not be read, and why.
    pub(crate) nameless: Vec<(PathBuf, Unreadable)>,
    /// Folders that could not be read.
    pub problems: Vec<Unreadable>,
}

impl Contents {
    /// Reads the results of `baseline` under `root`. A root that is not there holds none.
    pub(crate) fn read(root: &Path, baseline: &str) -> Self {
        let mut this = Self::default();
        let mut folders: Vec<PathBuf> = Vec::new();
        for entry in walk(root) {
            let entry = match entry {
                Ok(entry) => entry,
                // A circular link leads only to what is read anyway.
                Err(error) if error.loop_ancestor().is_some() => continue,
                Err(error) => {
                    if root.exists() {
                        let path = error.path().unwrap_or(root).display();
                        let reason =
                            "cannot be read; check its permissions, and the target if it is a link";
                        this.problems.push(Unreadable::new(path, reason));
                    }
                    continue;
                }
            };
            let name = entry.file_name().to_string_lossy();
            let kept = keeps(&name) == Some(baseline);
            if !(kept || name == baseline && is_result(&entry)) {
                continue;
            }
            let path = entry.path();
            if kept {
                if is_whole(&path.with_file_name(baseline)) {
                    continue;
                }
            } else if earlier(path).is_dir() && !is_whole(path) {
                continue;
            }
            folders.push(path.to_owned());
        }
        let read: Vec<_> = folders.par_iter().map(|path| result(path)).collect();
        for one in read {
            match one {
                Ok(stored) => this.results.push(stored),
                Err((folder, problem)) => this.nameless.push((folder, problem)),
            }
        }
        this
    }
}

/// Whether a folder is empty: it then says that there was no result before an attempt.
fn is_nothing(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let empty = || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
    keeps(&name).is_some() && empty()
}

/// Whether a folder holds a result with every file that the suite writes, each sound.
pub(super) fn is_whole(dir: &Path) -> bool {
    result(dir).is_ok_and(|stored| {
        let described = matches!(stored.sidecar, Ok(Some(_)));
        // Of no use here, but Criterion compares the next result with it.
        let estimated = json::<IgnoredAny>(&dir.join(ESTIMATES)).is_ok();
        described && estimated && stored.samples.is_ok()
    })
}

/// Without an id there is only the folder, and why.
pub(super) fn result(dir: &Path) -> Result<Stored, (PathBuf, Unreadable)> {
    let folder = dir.parent().unwrap_or(dir).to_owned();
    if is_nothing(dir) {
        let reason = "a run was cut short here before it left a result; run the benchmark again";
        let problem = Unreadable::new(folder.display(), reason);
        return Err((folder, problem));
    }
    let file: BenchmarkFile = match json(&dir.join(BENCHMARK)) {
        Ok(file) => file,
        Err(problem) => return Err((folder, problem)),
    };
    let parts = [
        Some(&file.group_id),
        file.function_id.as_ref(),
        file.value_str.as_ref(),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    let id = parts.join("/");
    fit_to_show(dir, &id).map_err(|problem| (folder.clone(), problem))?;
    Ok(Stored {
        samples: samples(&dir.join(SAMPLE)),
        sidecar: sidecar(dir, &id),
        id,
        group: file.group_id,
        function: file.function_id,
        value: file.value_str,
        folder,
        dir: dir.to_owned(),
    })
}

/// Ids are compared, filtered by and printed as they stand, so none is taken that would act on
/// a terminal.
fn fit_to_show(dir: &Path, id: &str) -> Result<(), Unreadable> {
    if is_plain(id) {
        return Ok(());
    }
    let reason = format!(
        "its id, {}, holds a character that cannot be shown; rename the benchmark and run it again",
        visible(id)
    );
    Err(Unreadable::new(dir.join(BENCHMARK).display(), reason))
}

fn sidecar(dir: &Path, id: &str) -> Result<Option<Sidecar>, Unreadable> {
    let path = dir.join(SIDECAR);
    match sidecar::read(dir) {
        Ok(Some(sidecar)) if sidecar.id != id => {
            let reason = format!("describes {}, not {id}", sidecar.id);
            Err(Unreadable::new(path.display(), reason))
        }
        Ok(sidecar) => Ok(sidecar),
        Err(error) => Err(Unreadable::of_file(&path, &error)),
    }
}

/// Names of the baselines that have a result under `root`.
pub fn baselines(root: &Path) -> BTreeSet<String> {
    walk(root)
        .flatten()
        .filter(|entry| has_files(entry.path()))
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?;
            Some(keeps(name).unwrap_or(name).to_owned())
        })
        .collect()
}

/// Folders that may hold a result, in order of their paths.
pub(super) fn walk(root: &Path) -> impl Iterator<Item = walkdir::Result<DirEntry>> {
    WalkDir::new(root)
        .min_depth(2)
        .max_depth(MAX_DEPTH)
        // Groups may lie on another disk, behind a link.
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !is_temporary(entry.file_name()))
        .filter(|entry| entry.as_ref().map_or(true, |e| e.file_type().is_dir()))
}

/// A half-written result may lack either file.
fn has_files(dir: &Path) -> bool {
    dir.join(BENCHMARK).is_file() || dir.join(SAMPLE).is_file()
}

/// Whether a folder with the name of a baseline is one, and not a benchmark or group of that
/// name, which has folders.
fn is_result(entry: &DirEntry) -> bool {
    let has_folders = || {
        let entries = fs::read_dir(entry.path());
        entries.is_ok_and(|entries| entries.flatten().any(|e| e.path().is_dir()))
    };
    has_files(entry.path()) || !has_folders()
}

#[derive(Deserialize)]
struct BenchmarkFile {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
}

#[derive(Deserialize)]
struct SampleFile {
    iters: Vec<f64>,
    /// serde_json writes NaN as null.
    times: Vec<Option<f64>>,
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Unreadable> {
    read_json_as_it_stands(path).map_err(|error| Unreadable::of_file(path, &error))
}

pub(super) fn samples(path: &Path) -> Result<Vec<f64>, Unreadable> {
    let file: SampleFile = json(path)?;
    let bad = |reason: &str| Unreadable::new(path.display(), reason);
    if file.iters.len() != file.times.len() {
        return Err(bad(
            "its times and its iteration counts are not equally many; run the benchmark again",
        ));
    }
    if file.times.is_empty() {
        return Err(bad("no samples; run the benchmark again"));
    }
    let ns = file.times.iter().zip(&file.iters);
    let ns: Option<Vec<f64>> = ns
        .map(|(time, iterations)| {
            time.map(|time| time / iterations)
                .filter(|ns| ns.is_finite() && *ns > 0.0)
        })
        .collect();
    ns.ok_or_else(|| bad("a time is not a positive number; run the benchmark again"))
}
