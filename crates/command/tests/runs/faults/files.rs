//! Folders and files that are not as they should be, and a busy host.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};

use crossover_suite::model::RunRecord;
use crossover_system::{OnCores, usable_cores};
use serde_json::json;

use crate::faults::run::{SOUND, Suite, files, limited, read};
use crate::full_disk;
use crate::printed::{expect, holds, lacks};

const QUICK: &str = "--bench --quick sound";

pub(crate) fn a_folder_that_cannot_be_written_to() {
    let mut suite = Suite::new();
    let file = suite.path("file");
    fs::write(&file, "mine").unwrap();
    for root in [file.clone(), file.join("below")] {
        suite.root = root;
        let words = "set CRITERION_HOME to a folder where they can";
        // Nothing was measured.
        lacks(&suite.run("--bench sound", 2, words), &["sound/cpu/"]);
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

/// The results are whole, but the page is larger than a file may be.
pub(crate) fn a_page_that_is_larger_than_a_file_may_be() {
    let suite = Suite::new();
    let words = "error: no report was written: … raise the limit (`ulimit -f`)";
    expect(&mut limited(&suite.bench(QUICK), "-f 60"), 1, words);
    assert_eq!(suite.shown(), SOUND);
}

pub(crate) fn a_folder_whose_name_is_no_text() {
    let mut suite = Suite::new();
    suite.root = suite.path(OsStr::from_bytes(b"results-\xff"));
    suite.run(QUICK, 0, "");
    assert_eq!(suite.shown(), SOUND);
    let made = fs::read_dir(suite.dir.path()).unwrap();
    let made = made.map(|entry| entry.unwrap().path());
    assert_eq!(Vec::from_iter(made), [suite.root]);
}

/// A second run is refused, where the file system has locks.
pub(crate) fn two_runs_in_one_folder() {
    let suite = Suite::measured();
    let before = suite.files();
    let mut lock = File::options();
    let lock = lock.write(true).open(suite.root.join("crossover.lock"));
    let lock = lock.unwrap();
    lock.lock().unwrap();
    suite.run(QUICK, 2, "another run is writing to");
    assert_eq!(suite.files(), before);
    // A list writes nothing.
    suite.run("--bench --list", 0, "sound/cpu/fill/4");
    lock.unlock().unwrap();
    suite.run(QUICK, 0, "");

    let mut run = suite.bench(&format!("NO_LOCKS=1 {QUICK}"));
    run.env("LD_PRELOAD", full_disk::library());
    let printed = expect(&mut run, 0, "cannot be locked (No locks available");
    assert_eq!(printed.matches("cannot be locked").count(), 1, "{printed}");
}

/// Whatever the disk that the log goes to, what was measured is kept.
pub(crate) fn output_that_cannot_be_written() {
    let suite = Suite::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let words = "error: failed printing to stdout: No space left";
    expect(suite.bench(QUICK).stdout(full()), 1, words);
    assert_eq!(suite.shown(), SOUND);
    // Nothing can be printed of a lost standard error.
    let run = suite.bench(QUICK).stderr(full()).status();
    assert_eq!(run.unwrap().code(), Some(1));
}

/// Other work beside a run. Two processes for each processor, since the run has a share too.
struct Busy(Vec<Child>);

impl Busy {
    fn new(processors: usize) -> Self {
        let spin = || {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).spawn().unwrap()
        };
        Self((0..2 * processors).map(|_| spin()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

/// It is no disturbance to be busy oneself; that test would need a quiet machine.
pub(crate) fn a_busy_host() {
    let suite = Suite::new();
    // A quota may allow fewer cores than the system lists. What is started here inherits these.
    let processors = std::thread::available_parallelism().unwrap().get();
    let _kept = OnCores::new(&usable_cores()[..processors]);
    let busy = Busy::new(processors);
    let line = "--bench --sample-size 10 (sound/cpu/fill|choice/cpu/best)/4$";
    let printed = suite.run(line, 0, "note: background load: ");
    drop(busy);
    let [record] = &suite.records()[..] else {
        panic!("{printed}")
    };
    let found = record.environment.disturbances.iter();
    let found = found.filter(|it| it.starts_with("background load"));
    assert_eq!(found.count(), 1, "{record:?}");
    let sidecar = read(&suite.root.join("choice/cpu_best/4/new/crossover.json"));
    let load = &sidecar["extra"]["processors_busy_with_other_work"];
    assert!(load.as_f64() >= Some(0.2), "{load}");
    let marked = "calibrated under background load, so another process calibrates again: ";
    holds(&sidecar["notes"].to_string(), marked);
}

/// An earlier run of the same machine met limits ten times as high.
pub(crate) fn limits_below_those_of_an_earlier_run() {
    let suite = Suite::measured();
    let mut earlier = suite.records().remove(0);
    earlier.run = "20260102T030405Z-1".to_owned();
    earlier.started = "2026-01-02T03:04:05Z".to_owned();
    earlier.limits.get_mut("cpu_fma_all").unwrap().value *= 10.0;
    // A record without a digest counts as it is.
    earlier.digest.clear();
    let path = suite.root.join("runs/20260102T030405Z-1.json");
    fs::write(path, json!(earlier).to_string()).unwrap();
    let words = "again, since an earlier run exceeds them … note: cpu_fma_all is ";
    suite.run("--bench --quick sound/cpu/fill/8", 0, words);
    let marked = |run: &RunRecord| {
        let mut found = run.environment.disturbances.iter();
        found.any(|it| it.contains("in the run 20260102T030405Z-1"))
    };
    assert_eq!(suite.records().iter().filter(|run| marked(run)).count(), 1);
}

pub(crate) fn records_that_are_missing_or_lead_elsewhere() {
    let suite = Suite::measured();
    let destination = suite.path("shared");
    let export = |code: i32, words: &str| {
        expect(suite.crossover("export").arg(&destination), code, words);
    };
    let record = suite.records().remove(0).run;
    let record = suite.root.join(format!("runs/{record}.json"));
    let kept = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    fs::remove_file(suite.path("record.json.gz")).unwrap();
    // Nothing belongs to a run that is known.
    expect(&mut suite.crossover("report"), 0, "");
    export(2, "there is no ");
    assert!(!destination.exists(), "nothing half-way");
    fs::write(&record, kept).unwrap();
    // One sidecar names a record outside.
    let sidecar = suite.root.join("sound/cpu_fill/4/new/crossover.json");
    let mut value = read(&sidecar);
    value["run"] = "../../outside".into();
    fs::write(&sidecar, value.to_string()).unwrap();
    fs::write(suite.path("outside.json"), "{}").unwrap();
    expect(&mut suite.crossover("report"), 0, "");
    export(0, "2 benchmarks of 1 run … left out");
    let once = Vec::from_iter(files(&destination).into_keys());
    let outside = files(suite.dir.path()).into_keys();
    assert_eq!(outside.filter(|it| it.ends_with("outside.json")).count(), 1);
    // The same run again replaces its record.
    export(0, "2 benchmarks of 1 run");
    assert!(files(&destination).into_keys().eq(once));
}
