//! The report on planted results: what it reads, computes, says, writes and shows.

mod answers;
mod browser;
mod cdp;
mod chart;
mod findings;
mod fixture;
mod headline;
mod lessons;
mod limits;
mod page;
mod precision;
mod profiles;
mod reading;
mod screens;
mod summary;
mod sustained;
mod tables;
mod telemetry;
mod thresholds;
mod unsteady;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::assemble::Options;
use crate::write::{self, Written};

/// Writes the report of `root` to `out` and reads it back: the page, the table, the summary.
fn refreshed(root: &Path, out: &Path) -> (String, String, Value) {
    let written = write::refresh(root, out, &Options::default()).unwrap();
    let page = std::fs::read_to_string(&written.page).unwrap();
    let summary = std::fs::read_to_string(written.summary()).unwrap();
    (page, written.table, serde_json::from_str(&summary).unwrap())
}

impl Written {
    fn summary(&self) -> PathBuf {
        self.page.with_file_name("summary.json")
    }

    fn plots(&self) -> Vec<PathBuf> {
        let folder = self.page.with_file_name("plots");
        let entries = folder.read_dir().expect("plots were drawn");
        entries
            .map(|entry| entry.expect("readable").path())
            .collect()
    }
}
