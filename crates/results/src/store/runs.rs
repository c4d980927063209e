//! The records of runs: `<root>/runs/<run>.json`.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::model::record::{RunRecord, SCHEMA};
use crate::store::layout::{RUNS, paths_in};
use crate::store::whole_file::{FileError, Unreadable, read_json, write_json};
use crossover_words::sidecar::digest;

/// Name of a run of this process that starts at this moment, such as `20260102T030405Z-417`.
pub fn name(started: SystemTime) -> String {
    let time = moment(started).replace(['-', ':'], "");
    format!("{time}-{}", std::process::id())
}

/// The end of the year 9999, in seconds since 1970: later moments have no such form.
const LATEST: Duration = Duration::from_secs(253_402_300_799);

/// A moment as records hold it, such as `2026-01-02T03:04:05Z`. A clock that is set before 1970 gives 1970.
pub fn moment(time: SystemTime) -> String {
    let time = time.clamp(UNIX_EPOCH, UNIX_EPOCH + LATEST);
    humantime::format_rfc3339_seconds(time).to_string()
}

/// Where the record of a run lies.
pub fn path(root: &Path, run: &str) -> PathBuf {
    root.join(RUNS).join(format!("{run}.json"))
}

/// Writes the record with its digest under the results root, replacing an earlier state of the same run.
pub fn write(record: &RunRecord, root: &Path) -> Result<(), FileError> {
    let record = RunRecord {
        digest: digest_of(record),
        ..record.clone()
    };
    write_json(&path(root, &record.run), &record)
}

/// The digest of what decides answers.
fn digest_of(run: &RunRecord) -> String {
    let decides = serde_json::to_vec(&(&run.confirmations, &run.limits, &run.curves));
    decides.map_or_else(|_| String::new(), |text| digest(&text))
}

/// Drops confirmations and limits that are not as they were written. Returns whether they are as written.
fn check(run: &mut RunRecord) -> bool {
    let is_sound = run.digest.is_empty() || run.digest == digest_of(run);
    if !is_sound {
        run.confirmations.clear();
        run.limits.clear();
        run.curves.clear();
    }
    is_sound
}

/// The name of the record of a baseline whose results have no sidecar.
pub fn name_of_baseline(baseline: &str) -> String {
    format!("baselines/{baseline}")
}

/// The record that `crossover env --save` wrote beside a baseline.
pub(super) fn of_baseline(root: &Path, baseline: &str) -> Result<Option<RunRecord>, FileError> {
    let path = path(root, &name_of_baseline(baseline));
    path.exists().then(|| read_json(&path, SCHEMA)).transpose()
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
            Ok(mut run) => {
                if !check(&mut run) {
                    let reason = "its confirmations and limits were changed after they were written, so \
                                  nothing uses them; run the benchmarks again";
                    problems.push(Unreadable::new(path.display(), reason));
                }
                runs.push(run);
            }
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
    fn a_clock_that_is_far_off_names_its_run() {
        let century = Duration::from_secs(100 * 365 * 86_400);
        assert_eq!(moment(UNIX_EPOCH - century), "1970-01-01T00:00:00Z");
        assert_eq!(moment(UNIX_EPOCH + 200 * century), "9999-12-31T23:59:59Z");
        assert!(name(UNIX_EPOCH - century).starts_with("19700101T000000Z-"));
    }

    /// Each digit of the confirmations and the limits is flipped once.
    #[test]
    fn damaged_confirmations_and_limits_decide_nothing() {
        let root = tempfile::tempdir().unwrap();
        let json = serde_json::json!({
            "schema": SCHEMA, "run": "a", "started": "2025-01-01T00:00:00Z", "profile": "default",
            "arguments": [], "environment": crate::model::environment::Environment::default(), "groups": [],
            "confirmations": [{
                "group": "sum", "question": "queued", "gpu": "one", "clock": "events", "range": [64, 128],
                "processes": [[{"size": 64, "cpu": "best", "cpu_ns": 12.1, "gpu_ns": 3.000_000_7}]],
            }],
            "ceilings": {"gpu_fma": {"value": 6.7e13, "unit": "FLOP/s", "method": "multiply-adds"}},
            "curves": {"gpu_read": {"points": [{"bytes": 4096, "rate": 1.1e11}], "method": "read"}},
            "skipped": [], "failed": [],
        });
        let run: RunRecord = serde_json::from_value(json).unwrap();
        write(&run, root.path()).unwrap();
        let path = path(root.path(), "a");
        let text = std::fs::read_to_string(&path).unwrap();
        let (runs, problems) = read_all(root.path());
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(runs[0].confirmations, run.confirmations);
        let decides = text.find("\"ceilings\"").unwrap()..text.find("\"skipped\"").unwrap();
        let digits = text
            .char_indices()
            .filter(|(at, c)| c.is_ascii_digit() && decides.contains(at));
        let digits = Vec::from_iter(digits);
        assert!(digits.len() > 20, "{text}");
        for (at, digit) in digits {
            let other = if digit == '1' { "2" } else { "1" };
            let damaged = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            std::fs::write(&path, damaged).unwrap();
            let (runs, problems) = read_all(root.path());
            let [problem] = &problems[..] else {
                panic!("{at}: {problems:?}")
            };
            assert!(problem.what.ends_with("a.json"), "{problem:?}");
            let decides = |run: &RunRecord| !run.confirmations.is_empty() || !run.limits.is_empty();
            assert!(!runs.iter().any(decides), "{at}");
        }
    }

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
