//! The report on results of a committed record: what it reads, computes, says, writes and shows.

// Tests in a browser need a Unix: it is a process group, and its pages are linked to.
#[cfg(unix)]
mod browser;
#[cfg(unix)]
mod cdp;
#[cfg(unix)]
mod chart;
pub(crate) mod committed;
mod page;
mod reading;
#[cfg(unix)]
mod screens;
mod texts;
mod thresholds;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crossover_results::export::BESIDE_THE_PAGE;
use crossover_results::store::stored_results::StoredResults;

use crate::report::{self, Options, Report};
use crate::write::{Written, write};

/// The folder of a report.
fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

/// Fails where one of these is not in the text.
fn holds(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "{words:?} is not in: {text}");
    }
}

/// The report on these results in the folder `out`.
fn report(results: StoredResults, out: &Path) -> Report {
    report::of_results(results, &out.join("criterion"), out, &Options::default()).unwrap()
}

/// Writes the report on these results to `out`.
fn written(results: StoredResults, out: &Path) -> Written {
    write(&report(results, out), &out.join("criterion"), out).unwrap()
}

/// The JSON of the record beside the page in `out`.
fn record(out: &Path) -> Value {
    let packed = std::fs::read(out.join(BESIDE_THE_PAGE)).unwrap();
    serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap()
}

/// The pages of the report in `out`, the first one before those that it leads to, each with its text.
fn pages(out: &Path) -> Vec<(PathBuf, String)> {
    let groups = out.join("groups").read_dir().expect("groups have pages");
    let groups = groups.map(|entry| entry.expect("readable").path());
    let first = ["index.html", "limits.html", "claims.html"].map(|name| out.join(name));
    let read = |page| {
        let text = std::fs::read_to_string(&page).expect("a page");
        (page, text)
    };
    first.into_iter().chain(groups).map(read).collect()
}

impl Written {
    /// The first page, and behind it those that it leads to.
    fn pages(&self) -> String {
        let pages = pages(self.page.parent().expect("a page is in a folder"));
        pages.into_iter().map(|(_, text)| text).collect()
    }

    /// The plot files.
    fn plots(&self) -> Vec<PathBuf> {
        let folder = self.page.with_file_name("plots");
        let entries = folder.read_dir().expect("plots were drawn");
        entries
            .map(|entry| entry.expect("readable").path())
            .collect()
    }
}
