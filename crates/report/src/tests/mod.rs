//! The report on planted results: what it reads, computes, says, writes and shows.

// Tests in a browser need a Unix: it is a process group, and its pages are linked to.
#[cfg(unix)]
mod browser;
#[cfg(unix)]
mod cdp;
#[cfg(unix)]
mod chart;
pub(crate) mod fixture;
mod machines;
mod page;
mod profiles;
mod reading;
mod records;
#[cfg(unix)]
mod screens;
#[cfg(unix)]
mod tables;
#[cfg(unix)]
mod tasks;
mod telemetry;
mod texts;
mod thresholds;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crossover_results::export::BESIDE_THE_PAGE;

use crate::report::Options;
use crate::write::{self, Written};

/// A folder for planted results, which are thousands of small files: in memory where there is room for
/// those of all tests, since most file systems take ten times longer to create them.
pub(crate) fn folder() -> TempDir {
    in_memory().unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder can be made"))
}

#[cfg(unix)]
fn in_memory() -> Option<TempDir> {
    const ROOM: u64 = 1 << 30;
    let memory = Path::new("/dev/shm");
    let free = nix::sys::statvfs::statvfs(memory).ok()?;
    let has_room = free.blocks_available() * free.fragment_size() >= ROOM;
    has_room
        .then(|| tempfile::tempdir_in(memory).ok())
        .flatten()
}

#[cfg(not(unix))]
fn in_memory() -> Option<TempDir> {
    None
}

/// The folder of a report, and in it that of the results.
pub(crate) fn folders() -> (TempDir, PathBuf) {
    let dir = folder();
    let root = dir.path().join("criterion");
    (dir, root)
}

/// Copies a folder with all that is in it.
#[cfg(unix)]
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        match from.is_dir() {
            true => copy_folder(&from, &to),
            false => _ = std::fs::copy(&from, &to).unwrap(),
        }
    }
}

/// Fails where one of these is not in the text.
fn holds(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

/// Writes the report of `root` to `out` and reads it back: the pages, the table, the record (null without
/// one).
fn refreshed(root: &Path, out: &Path) -> (String, String, Value) {
    let written = write::refresh(root, out, &Options::default()).unwrap();
    let page = written.pages();
    let record = out.join(BESIDE_THE_PAGE);
    let record = record.is_file().then(|| unpacked(&record));
    (page, written.table, record.unwrap_or_default())
}

/// The JSON of a record.
pub(crate) fn unpacked(record: &Path) -> Value {
    let packed = std::fs::read(record).unwrap();
    serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap()
}

impl Written {
    /// The first page, and behind it those that it leads to.
    fn pages(&self) -> String {
        let out = self.page.parent().expect("a page is in a folder");
        let groups = out.join("groups").read_dir().expect("groups have pages");
        let others = groups.map(|entry| entry.expect("readable").path());
        let all = [
            self.page.clone(),
            out.join("limits.html"),
            out.join("claims.html"),
        ];
        let read = |path| std::fs::read_to_string(path).expect("a page");
        all.into_iter().chain(others).map(read).collect()
    }

    fn plots(&self) -> Vec<PathBuf> {
        let folder = self.page.with_file_name("plots");
        let entries = folder.read_dir().expect("plots were drawn");
        entries
            .map(|entry| entry.expect("readable").path())
            .collect()
    }
}
