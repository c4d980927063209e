//! The report on planted results: what it reads, computes, says, writes and shows.

mod answers;
mod browser;
mod cdp;
mod findings;
mod fixture;
mod lessons;
mod limits;
mod page;
mod precision;
mod reading;
mod summary;
mod sustained;
mod telemetry;
mod unsteady;

use std::path::PathBuf;

use crate::report::write::Written;

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
