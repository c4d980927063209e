//! The records of runs: `<root>/runs/<run>.json`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::model::record::{RunRecord, SCHEMA};
use crate::store::layout::RUNS;
use crate::store::unreadable::Unreadable;
use crate::store::walk::paths_in;
use crate::store::whole_file::{FileError, read_json, write_json};

/// Name of a run of this process that starts at this moment, such as `20260102T030405Z-417`.
pub fn name(started: SystemTime) -> String {
    let time = moment(started).replace(['-', ':'], "");
    format!("{time}-{}", std::process::id())
}

/// A moment as records hold it, such as `2026-01-02T03:04:05Z`.
pub fn moment(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Where the record of a run lies.
pub fn path(root: &Path, run: &str) -> PathBuf {
    root.join(RUNS).join(format!("{run}.json"))
}

/// Writes the record under the results root, replacing an earlier state of the same run.
pub fn write(record: &RunRecord, root: &Path) -> Result<(), FileError> {
    write_json(&path(root, &record.run), record)
}

/// Every record, oldest first, and what could not be read. Those dated in the future come before all
/// others.
pub fn read_all(root: &Path) -> (Vec<RunRecord>, Vec<Unreadable>) {
    let (mut runs, mut problems) = (Vec::new(), Vec::new());
    for path in paths_in(&root.join(RUNS)) {
        // A benchmark group may be called `runs` as well: its entries are folders.
        if path.extension().is_none_or(|e| e != "json") || path.is_dir() {
            continue;
        }
        match read_json::<RunRecord>(&path, SCHEMA) {
            Ok(run) => runs.push(run),
            Err(error) => problems.push(error.into()),
        }
    }
    // A clock that was ahead must not make its run the newest forever.
    let now = moment(SystemTime::now());
    let age = |run: &RunRecord| (run.started <= now, run.started.clone(), run.run.clone());
    runs.sort_by_cached_key(age);
    (runs, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_the_future_is_not_the_newest() {
        let root = tempfile::tempdir().unwrap();
        for started in ["2999-01-01T00:00:00Z", "2025-01-01T00:00:00Z"] {
            let run = RunRecord {
                run: started[..4].to_owned(),
                started: started.to_owned(),
                ..RunRecord::default()
            };
            write(&run, root.path()).unwrap();
        }
        std::fs::write(root.path().join(RUNS).join("notes.txt"), "").unwrap();
        let (runs, problems) = read_all(root.path());
        assert_eq!(runs[1].run, "2025");
        assert!(problems.is_empty());
    }
}
