//! The report on planted results: what it reads, computes, says, writes and shows.

mod browser;
mod cdp;
mod chart;
pub(crate) mod fixture;
mod machines;
mod page;
mod profiles;
mod reading;
mod records;
mod screens;
mod tables;
mod tasks;
mod telemetry;
mod texts;
mod thresholds;

use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;
use serde_json::Value;
use tempfile::TempDir;

use crossover_results::export::BESIDE_THE_PAGE;

use crate::report::Options;
use crate::write::{self, Written};

/// A folder for planted results, which are thousands of small files: in memory where there is room for
/// those of all tests, since most file systems take ten times longer to create them.
pub(crate) fn folder() -> TempDir {
    const ROOM: u64 = 1 << 30;
    let memory = Path::new("/dev/shm");
    let has_room =
        statvfs(memory).is_ok_and(|it| it.blocks_available() * it.fragment_size() >= ROOM);
    let in_memory = has_room
        .then(|| tempfile::tempdir_in(memory).ok())
        .flatten();
    in_memory.unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder can be made"))
}

/// The folder of a report, and in it that of the results.
pub(crate) fn folders() -> (TempDir, PathBuf) {
    let dir = folder();
    let root = dir.path().join("criterion");
    (dir, root)
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
