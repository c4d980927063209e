//! One side of a comparison as a user names it, a baseline or a folder of results, and the reading of all its
//! results. Unreadable files are named, and the rest is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crossover_words::text::visible;

use crate::model::record::RunRecord;
use crate::store::layout::{NEW, baselines, earlier, is_result, keeps, walk};
use crate::store::runs;
use crate::store::sampled::{Sampled, id_of};
use crate::store::whole_file::Unreadable;

/// One baseline, read.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// How the user named it.
    pub label: String,
    /// The benchmarks by full id.
    pub results: BTreeMap<String, Sampled>,
    /// The runs that its sidecars name; without a name that of the results without a sidecar.
    pub runs: BTreeMap<String, RunRecord>,
    /// Files that could not be read.
    pub problems: Vec<Unreadable>,
    /// The problem of each folder (under the root, without the baseline's name) without a sound result.
    broken: BTreeMap<PathBuf, Unreadable>,
    /// The folder of each id, also where its samples could not be read.
    folders: BTreeMap<String, PathBuf>,
}

/// A value or the reason for its absence, and further problems.
type WithProblems<T> = (Result<T, Unreadable>, Vec<Unreadable>);

impl Baseline {
    /// Reads all benchmarks of a baseline under `root`, and the records of the runs that they come from.
    pub fn read(root: &Path, baseline: &str) -> Self {
        let mut this = Self::without_runs(root, baseline);
        let sidecars = this.results.values().filter_map(|r| r.sidecar.as_ref());
        let mut names: BTreeSet<String> = sidecars.map(|sidecar| sidecar.run.clone()).collect();
        let (runs, problems) = runs::read_all(root);
        this.problems.extend(problems);
        let named = runs.into_iter().filter(|run| names.remove(&run.run));
        this.runs = named.map(|run| (run.run.clone(), run)).collect();
        if this.results.values().any(|result| result.sidecar.is_none()) {
            match runs::of_baseline(root, baseline) {
                Ok(run) => this.runs.extend(run.map(|run| (String::new(), run))),
                Err(error) => this.problems.push(error.into()),
            }
        }
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
        let read: Vec<_> = dirs.par_iter().map(|dir| Self::result(dir)).collect();
        for (dir, read) in dirs.iter().zip(read) {
            let folder = dir.parent().unwrap_or(dir);
            let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
            let added = read.and_then(|(id, sampled)| this.add(root, &folder, id, sampled));
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
            let counts = if keeps(&name) == Some(baseline) {
                Sampled::whole(&path.with_file_name(baseline)).is_none()
            } else {
                let is_one = name == baseline && is_result(&entry);
                is_one && (!earlier(path).is_dir() || Sampled::whole(path).is_some())
            };
            if counts {
                dirs.push(path.to_owned());
            }
        }
        dirs
    }

    /// The id of the result in a folder, and its samples with what is wrong beside them.
    fn result(dir: &Path) -> Result<(String, WithProblems<Sampled>), Unreadable> {
        let id = id_of(dir)?;
        let mut problems = Vec::new();
        let sampled = Sampled::read(dir, &id, &mut problems);
        Ok((id, (sampled, problems)))
    }

    fn add(
        &mut self,
        root: &Path,
        folder: &Path,
        id: String,
        (sampled, problems): WithProblems<Sampled>,
    ) -> Result<(), Unreadable> {
        if let Some(first) = self.folders.get(&id) {
            let reason = format!(
                "has the same id, {id}, as {}, which is used; delete one of the two",
                root.join(first).display()
            );
            return Err(Unreadable::new(root.join(folder).display(), reason));
        }
        self.folders.insert(id.clone(), folder.to_owned());
        self.problems.extend(problems);
        self.results.insert(id, sampled?);
        Ok(())
    }

    /// The folder of a benchmark's results, under the root.
    pub(super) fn folder(&self, id: &str) -> Option<&Path> {
        self.folders.get(id).map(PathBuf::as_path)
    }

    /// The benchmark whose results lie in that folder under the root.
    fn held_in(&self, folder: &Path) -> Option<&str> {
        let mut folders = self.folders.iter();
        folders.find_map(|(id, held)| (held == folder).then_some(id.as_str()))
    }

    /// Why the result of a benchmark cannot be read, if its folder is here; `other` knows the folder of an id that
    /// this side may have lost.
    pub fn unreadable(&self, id: &str, other: &Baseline) -> Option<&Unreadable> {
        // Asked of each pair of runs.
        if self.broken.is_empty() {
            return None;
        }
        let lost = || (other.folder(id)).filter(|folder| self.held_in(folder).is_none());
        self.broken.get(self.folder(id).or_else(lost)?)
    }

    /// How a benchmark failed in a run.
    pub fn failure(&self, id: &str) -> Option<String> {
        let mut failed = self.runs.values().flat_map(|run| &run.failed);
        let failure = failed.find(|failure| failure.id == id)?;
        Some(format!("failed: {}", failure.error))
    }

    /// The benchmarks that have a folder here, also where their samples could not be read.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.folders.keys()
    }

    /// Why a benchmark has no result: its files cannot be read, a run failed or skipped it, or another one
    /// replaced it. `other` knows the folder of an id that this side may have lost.
    pub fn why_absent(&self, id: &str, other: &Baseline) -> Option<String> {
        if let Some(problem) = self.unreadable(id, other) {
            return Some(format!("its result cannot be read: {problem}"));
        }
        let skipped = self.runs.values().find_map(|run| {
            let skipped = run.skipped.iter().find(|skip| skip.covers(id));
            Some(format!("skipped: {}", skipped?.reason))
        });
        (self.failure(id).or(skipped)).or_else(|| self.shares_a_folder(id, other))
    }

    /// Why a benchmark of `other` may have no result here: Criterion makes folders of ids, and replaces
    /// characters that a file system may refuse.
    fn shares_a_folder(&self, id: &str, other: &Baseline) -> Option<String> {
        let folder = other.folder(id)?;
        let held = self.held_in(folder)?;
        Some(format!(
            "Criterion stores {id} and {held} in one folder, {}, where the later one replaces the other: rename one",
            folder.display()
        ))
    }
}

/// One baseline in one results folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineSource {
    /// Folder of the results.
    pub root: PathBuf,
    /// Name of the baseline in it.
    pub baseline: String,
    /// How the user named it, fit to be shown.
    pub label: String,
}

/// Why there is nothing to read, with the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceError(String);

/// Names in a sentence, where another one was looked for: of many the nearest.
pub fn near(wanted: &str, names: BTreeSet<String>) -> String {
    const MANY: usize = 12;
    const NEAREST: usize = 3;
    let count = names.len();
    let mut shown = Vec::from_iter(names);
    if count > MANY {
        shown.sort_by_cached_key(|name| strsim::damerau_levenshtein(wanted, name));
        shown.truncate(NEAREST);
    }
    let left_out = count - shown.len();
    let shown: Vec<String> = shown.iter().map(|name| format!("`{name}`")).collect();
    match (count, left_out) {
        (0, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {left_out} others", shown.join(", ")),
    }
}

impl BaselineSource {
    /// Resolves what a user wrote, in this order: `DIR:NAME` is baseline NAME of folder DIR;
    /// a plain name is a baseline under the first of `roots` that has it; an existing folder stands
    /// for its `new`. A folder may hold the results themselves, or hold them where Criterion or the
    /// suite writes them. Write `./name` for a folder with the name of a baseline.
    ///
    /// # Errors
    /// There are no results, or no such baseline; the error lists the folders and their baselines.
    pub fn resolve(text: &str, roots: &[PathBuf]) -> Result<Self, SourceError> {
        if let Some((dir, name)) = text.rsplit_once(':')
            && Path::new(dir).is_dir()
            && !name.is_empty()
        {
            return Self::there(text, &results_in(Path::new(dir)), name);
        }
        let path = Path::new(text);
        let is_name = path.components().count() == 1 && !text.contains(['/', '\\', '.']);
        let is_baseline = || roots.iter().any(|root| baselines(root).contains(text));
        if path.is_dir() && !(is_name && is_baseline()) {
            return Self::there(text, &results_in(path), NEW);
        }
        if text.contains('/') {
            return Err(SourceError(format!(
                "{}: no such folder of results; the record of a machine has no samples to compare",
                visible(text)
            )));
        }
        Self::there(text, roots, text)
    }

    fn there(label: &str, roots: &[PathBuf], baseline: &str) -> Result<Self, SourceError> {
        let label = visible(label);
        let mut names = BTreeSet::new();
        for root in roots {
            let there = baselines(root);
            if there.contains(baseline) {
                return Ok(Self {
                    root: root.clone(),
                    baseline: baseline.to_owned(),
                    label,
                });
            }
            names.extend(there);
        }
        let folders: Vec<String> = (roots.iter())
            .map(|root| root.display().to_string())
            .collect();
        let folders = folders.join(", nor in ");
        Err(SourceError(if names.is_empty() {
            format!(
                "{label}: no results in {folders}; run `cargo bench --bench TARGET -- --save-baseline NAME` first, \
                 or name their folder with --results or CRITERION_HOME"
            )
        } else {
            format!(
                "{label}: no baseline `{baseline}` in {folders}; there are: {}",
                near(baseline, names)
            )
        }))
    }
}

/// The folders of results in the folder of a package, or the folder itself.
fn results_in(dir: &Path) -> Vec<PathBuf> {
    let there = ["target-reports/criterion", "target/criterion", "criterion"]
        .map(|inner| dir.join(inner))
        .into_iter()
        .filter(|inner| inner.is_dir());
    let there = Vec::from_iter(there);
    if there.is_empty() {
        vec![dir.to_owned()]
    } else {
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::planted::plant;

    #[test]
    fn a_folder_of_a_known_id_holds_no_other_one() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let read = |root: &tempfile::TempDir, id, time| {
            let folder = root.path().join("a/cpu_b/1/new");
            plant(&folder, id, &[1.0], &[time], None);
            Baseline::without_runs(root.path(), "new")
        };
        let here = read(&here, "a/cpu/b/1", -1.0);
        let there = read(&there, "a/cpu/c/1", 1.0);
        assert_eq!((here.problems.len(), there.problems.len()), (1, 0));
        let why = here.why_absent("a/cpu/b/1", &there).unwrap();
        assert!(why.contains("a time is not a positive number"), "{why}");
        let why = here.why_absent("a/cpu/c/1", &there).unwrap();
        assert!(why.contains("a/cpu/c/1 and a/cpu/b/1 in one"), "{why}");
    }

    #[test]
    fn of_many_names_the_nearest_are_shown() {
        let names = |n: u32| (0..n).map(|i| format!("v{i}")).collect();
        assert_eq!(near("v9", names(2)), "`v0`, `v1`");
        let of_many = "`v123`, `v1230`, `v1231` and 9997 others";
        assert_eq!(near("v123x", names(10_000)), of_many);
    }
}
