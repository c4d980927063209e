//! The one reader of results: Criterion's files of one baseline, and our sidecar beside them.
//!
//! Criterion's files are no declared interface: unknown fields are ignored, ids come from
//! `benchmark.json` and never from folder names (which Criterion shortens), and times come from the
//! samples alone (Criterion's estimates are for its own comparisons). Unreadable files are named, and
//! the rest is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::Deserialize;
use serde::de::IgnoredAny;
use walkdir::{DirEntry, WalkDir};

use crate::model::record::{RunRecord, Sidecar};
use crate::statistics::positive;
use crate::store::folder::read_sidecar;
use crate::store::layout::{BENCHMARK, ESTIMATES, SAMPLE, SIDECAR, earlier, keeps};
use crate::store::runs;
use crate::store::source::Source;
use crate::store::unreadable::Unreadable;
use crate::store::whole_file::{is_temporary, read_json_as_it_stands};
use crossover_words::Clock;
use crossover_words::clock_file::stored_clock;
use crossover_words::text::{is_plain, visible};

/// `<group>/<function>/<value>/<baseline>` lies at depth 4; a little more for odd names.
const MAX_DEPTH: usize = 8;

/// One benchmark of a baseline.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// Time of an iteration, nanoseconds, one per sample in the order in which they were taken.
    pub ns: Vec<f64>,
    /// Its sidecar; `None` if it is missing or belongs to other samples.
    pub sidecar: Option<Sidecar>,
    /// The clock, if a file beside it names it.
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
    /// Files that could not be read.
    pub problems: Vec<Unreadable>,
    /// The problem of each folder (under the root, without the baseline's name) without a sound result.
    broken: BTreeMap<PathBuf, Unreadable>,
    /// The folder of each id, also where its samples could not be read.
    folders: BTreeMap<String, PathBuf>,
}

impl Baseline {
    /// Reads all benchmarks of a baseline, and the records of the runs that they come from.
    pub fn read(source: &Source) -> Self {
        let mut this = Self::without_runs(&source.root, &source.baseline);
        this.label.clone_from(&source.label);
        let sidecars = this.results.values().filter_map(|r| r.sidecar.as_ref());
        let mut names: BTreeSet<String> = sidecars.map(|sidecar| sidecar.run.clone()).collect();
        let (runs, problems) = runs::read_all(&source.root);
        this.problems.extend(problems);
        let named = runs.into_iter().filter(|run| names.remove(&run.run));
        this.runs = named.map(|run| (run.run.clone(), run)).collect();
        this.problems.extend(names.iter().map(|name| {
            let what = format!("run {name}");
            Unreadable::new(
                what,
                "it left no record that can be read: its machine is unknown",
            )
        }));
        this
    }

    /// Reads the results of `baseline` under `root`. A root that is not there holds none.
    pub(super) fn without_runs(root: &Path, baseline: &str) -> Self {
        let mut this = Self::default();
        let dirs = this.dirs(root, baseline);
        let ids: Vec<_> = dirs.par_iter().map(|dir| id_of(dir)).collect();
        for (dir, id) in dirs.iter().zip(ids) {
            let folder = dir.parent().unwrap_or(dir);
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            let added = id.and_then(|id| this.add(root, &folder, dir, id));
            if let Err(problem) = added {
                this.problems.push(problem.clone());
                this.broken.insert(folder, problem);
            }
        }
        this
    }

    /// The folders that hold results, in order of their paths.
    fn dirs(&mut self, root: &Path, baseline: &str) -> Vec<PathBuf> {
        let mut dirs = Vec::new();
        for entry in walk(root) {
            let entry = match entry {
                Ok(entry) => entry,
                // A circular link leads only to folders that are read anyway.
                Err(error) if error.loop_ancestor().is_some() => continue,
                Err(error) => {
                    if root.exists() {
                        let path = error.path().unwrap_or(root).display();
                        let reason =
                            "cannot be read; check its permissions, and the target if it is a link";
                        self.problems.push(Unreadable::new(path, reason));
                    }
                    continue;
                }
            };
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
            let counts = match keeps(&name) == Some(baseline) {
                true => !is_whole(&path.with_file_name(baseline)),
                false => {
                    let is_one = name == baseline && is_result(&entry);
                    is_one && (!earlier(path).is_dir() || is_whole(path))
                }
            };
            if counts {
                dirs.push(path.to_owned());
            }
        }
        dirs
    }

    fn add(
        &mut self,
        root: &Path,
        folder: &Path,
        dir: &Path,
        id: String,
    ) -> Result<(), Unreadable> {
        if let Some(first) = self.folders.get(&id) {
            let reason = format!(
                "has the same id, {id}, as {}, which is used; delete one of the two",
                root.join(first).display()
            );
            return Err(Unreadable::new(root.join(folder).display(), reason));
        }
        self.folders.insert(id.clone(), folder.to_owned());
        let sampled = sampled(dir, &id, &mut self.problems)?;
        self.results.insert(id, sampled);
        Ok(())
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

    /// Why a benchmark has no result: its files cannot be read, or a run failed or skipped it. `other`
    /// knows the folder of an id that this side may have lost.
    pub fn why_absent(&self, id: &str, other: &Baseline) -> Option<String> {
        let lost = || (other.folder(id)).filter(|folder| self.held_in(folder).is_none());
        let folder = self.folder(id).or_else(lost);
        if let Some(problem) = folder.and_then(|folder| self.broken.get(folder)) {
            return Some(format!("its result cannot be read: {problem}"));
        }
        self.runs.values().find_map(|run| {
            let failed = run.failed.iter().find(|failure| failure.id == id);
            let skipped = run.skipped.iter().find(|skip| skip.covers(id));
            failed
                .map(|failure| format!("failed: {}", failure.error))
                .or_else(|| Some(format!("skipped: {}", skipped?.reason)))
        })
    }
}

/// The id of the result in the folder of a baseline, `<group>/<function>/<value>`: the parts that there are.
fn id_of(dir: &Path) -> Result<String, Unreadable> {
    if is_empty(dir) {
        let reason = match is_kept(dir) {
            true => "a run was cut short here before it left a result; run the benchmark again",
            false => "the folder is empty, as some caches restore it; run the benchmark again",
        };
        return Err(Unreadable::new(dir.display(), reason));
    }
    let file: BenchmarkFile = read_json_as_it_stands(&dir.join(BENCHMARK))?;
    let parts = [Some(file.group_id), file.function_id, file.value_str];
    let id = Vec::from_iter(parts.into_iter().flatten()).join("/");
    // Ids are compared, filtered and printed unchanged, so ids that would act on a terminal are
    // refused.
    if !is_plain(&id) {
        let reason = format!(
            "its id, {}, holds a character that cannot be shown; rename the benchmark and run it again",
            visible(&id)
        );
        return Err(Unreadable::new(dir.join(BENCHMARK).display(), reason));
    }
    Ok(id)
}

/// The samples with their sidecar. A sidecar that cannot be read is named in `problems`.
fn sampled(dir: &Path, id: &str, problems: &mut Vec<Unreadable>) -> Result<Sampled, Unreadable> {
    let ns = samples(&dir.join(SAMPLE))?;
    let sidecar = sidecar(dir, id).unwrap_or_else(|mut problem| {
        problem.reason += ": its clock is unknown";
        problems.push(problem);
        None
    });
    let clock = match &sidecar {
        Some(sidecar) => Some(sidecar.clock),
        // A result of another Criterion project, with its clock.
        None => stored_clock(dir),
    };
    Ok(Sampled { ns, sidecar, clock })
}

fn sidecar(dir: &Path, id: &str) -> Result<Option<Sidecar>, Unreadable> {
    let sidecar = read_sidecar(dir)?;
    if let Some(other) = sidecar.as_ref().filter(|sidecar| sidecar.id != id) {
        let reason = format!("describes {}, not {id}", other.id);
        return Err(Unreadable::new(dir.join(SIDECAR).display(), reason));
    }
    Ok(sidecar)
}

/// Whether a folder holds a result with every file that the suite writes, each sound.
pub(super) fn is_whole(dir: &Path) -> bool {
    let sampled = id_of(dir).and_then(|id| sampled(dir, &id, &mut Vec::new()));
    // The estimates are of no use here, but Criterion compares the next result with them.
    sampled.is_ok_and(|sampled| sampled.sidecar.is_some())
        && read_json_as_it_stands::<IgnoredAny>(&dir.join(ESTIMATES)).is_ok()
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a folder keeps the result before an attempt; it is empty if there was none.
fn is_kept(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    keeps(&name).is_some()
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

pub(super) fn samples(path: &Path) -> Result<Vec<f64>, Unreadable> {
    let file: SampleFile = read_json_as_it_stands(path)?;
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
        .map(|(time, iterations)| positive((*time)? / iterations))
        .collect();
    ns.ok_or_else(|| bad("a time is not a positive number; run the benchmark again"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::planted::plant;

    /// A result of another Criterion project has no sidecar, but the file of its clock.
    #[test]
    fn the_clock_of_a_result_without_a_sidecar_is_the_one_beside_its_samples() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("saxpy/gated/1/new");
        let read = |times: [f64; 2]| {
            plant(&dir, "saxpy/gated/1", &[1.0, 1.0], &times, None);
            let read = Baseline::without_runs(root.path(), "new");
            read.results["saxpy/gated/1"].clock
        };
        assert_eq!(read([5.0, 6.0]), None);
        let clock = r#"{"clock":"events","samples":"3ffa76fc7a652221","schema":1}"#;
        fs::write(dir.join("crossover-clock.json"), clock).unwrap();
        assert_eq!(read([5.0, 6.0]), Some(Clock::Events));
        assert_eq!(read([5.0, 7.0]), None, "the clock of other samples");
    }

    #[test]
    fn a_folder_of_a_known_id_holds_no_other_one() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let read = |root: &tempfile::TempDir, id, time| {
            plant(
                &root.path().join("a/cpu_b/1/new"),
                id,
                &[1.0],
                &[time],
                None,
            );
            Baseline::without_runs(root.path(), "new")
        };
        let (here, there) = (
            read(&here, "a/cpu/b/1", -1.0),
            read(&there, "a/cpu/c/1", 1.0),
        );
        assert_eq!((here.problems.len(), there.problems.len()), (1, 0));
        let why = here.why_absent("a/cpu/b/1", &there).unwrap();
        assert!(why.contains("a time is not a positive number"), "{why}");
        assert_eq!(here.why_absent("a/cpu/c/1", &there), None);
    }
}
