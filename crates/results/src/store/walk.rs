//! The folders of a results root that may hold a result.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::store::layout::{BENCHMARK, SAMPLE, keeps};
use crate::store::whole_file::is_temporary;

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
