//! The layout of a results root, and the folders in it that may hold a result.
//!
//! ```text
//! <group>/<function>/<size>/new/         Criterion's files of the newest result
//! <group>/<function>/<size>/<baseline>/  those of a saved baseline
//!     crossover.json                     our sidecar, in each of them
//! <group>/<function>/<size>/profile/     where its time goes: profile.json, and trace.json
//! <group>/<function>/<size>/.earlier-<baseline>/
//!                                        what an attempt is about to replace
//! runs/<run>.json                        the record of a run
//! crossover.lock                         held by the run that is writing
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

/// The baseline that Criterion writes in every run.
pub const NEW: &str = "new";

/// Prefix of the folders that keep replaced results.
const EARLIER: &str = ".earlier-";

/// Prefix of temporary files.
pub(crate) use crossover_words::files::TEMPORARY;

/// Whether this is the name of a file that is being written.
pub(super) fn is_temporary(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

/// Criterion's folder beside the baselines: how the newest result differs from the one before.
pub const CHANGE: &str = "change";
/// Criterion's folder beside the baselines: pages.
pub const REPORT: &str = "report";

/// Criterion's folder beside the baselines: where it has a profiler put its files.
pub const PROFILE: &str = "profile";

/// Criterion's file with the parts of the id.
pub const BENCHMARK: &str = "benchmark.json";
/// Criterion's file with median, mean and their intervals.
pub const ESTIMATES: &str = "estimates.json";
/// Criterion's file with iterations and time of each sample.
pub const SAMPLE: &str = crossover_words::sidecar::SAMPLES;
/// Criterion's file with the bounds beyond which a sample is an outlier.
pub(crate) const TUKEY: &str = "tukey.json";

/// The [`Sidecar`](crate::model::Sidecar) beside them.
pub const SIDECAR: &str = crossover_words::sidecar::FILE;

/// The [`Profile`](crossover_profile::Profile) in [`PROFILE`].
pub const PROFILE_FILE: &str = "profile.json";
/// The trace beside it, for Perfetto.
pub(crate) const TRACE: &str = "trace.json";

/// Held by the run that is writing.
pub const LOCK: &str = "crossover.lock";

/// Folder of the [`RunRecord`](crate::model::RunRecord)s.
pub const RUNS: &str = "runs";

/// Where the result of `dir`, a baseline's folder, is kept during an attempt.
pub(super) fn earlier(dir: &Path) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    dir.with_file_name(format!("{EARLIER}{name}"))
}

/// The name of the baseline that a folder keeps a result of; `None` for other folders.
pub(super) fn keeps(name: &str) -> Option<&str> {
    name.strip_prefix(EARLIER)
}

/// `<group>/<function>/<value>/<baseline>` lies at depth 4; a little more for odd names.
const MAX_DEPTH: usize = 8;

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

/// The entries of a folder, by name; none where it cannot be read.
pub(super) fn paths_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A half-written result may lack either file.
fn has_files(dir: &Path) -> bool {
    dir.join(BENCHMARK).is_file() || dir.join(SAMPLE).is_file()
}

/// Whether a folder with the name of a baseline is one, and not a benchmark or group of that
/// name, which has folders.
pub(super) fn is_result(entry: &DirEntry) -> bool {
    let has_folders = || {
        let entries = fs::read_dir(entry.path());
        entries.is_ok_and(|entries| entries.flatten().any(|e| e.path().is_dir()))
    };
    has_files(entry.path()) || !has_folders()
}
