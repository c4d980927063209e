//! Folders and files that are not as they should be.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crossover_suite::model::RunRecord;
use crossover_system::{OnCores, usable_cores};
use serde_json::json;

use crate::faults::run::{SOUND, bench, crossover, files, limited, measured, read, shown};
use crate::full_disk;
use crate::printed::{ended, expect};

pub(crate) fn unwritable_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    for root in [file.clone(), file.join("below")] {
        let words = "set CRITERION_HOME to a folder where they can";
        let said = expect(&mut bench(&root, &["--bench", "sound"]), 2, words);
        assert!(!said.contains("sound/cpu/"), "nothing was measured: {said}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

/// The results are whole, but the page is larger than a file may be.
pub(crate) fn too_large_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let run = bench(dir.path(), &["--bench", "--quick", "sound"]);
    let words = "error: no report was written: ";
    let said = expect(&mut limited(&run, "-f 60"), 1, words);
    assert!(said.contains("raise the limit (`ulimit -f`)"), "{said}");
    assert_eq!(shown(dir.path()), SOUND);
}

pub(crate) fn name_that_is_no_text() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join(OsStr::from_bytes(b"results-\xff"));
    expect(&mut bench(&root, &["--bench", "--quick", "sound"]), 0, "");
    assert_eq!(shown(&root), SOUND);
    let made = fs::read_dir(dir.path()).unwrap();
    let made = made.map(|entry| entry.unwrap().path());
    assert_eq!(Vec::from_iter(made), [root]);
}

pub(crate) fn two_runs() {
    let (_dir, root) = measured();
    let before = files(&root);
    let lock = File::options()
        .write(true)
        .open(root.join("crossover.lock"))
        .unwrap();
    lock.lock().unwrap();
    let run = || bench(&root, &["--bench", "--quick", "sound"]);
    expect(&mut run(), 2, "another run is writing to");
    assert_eq!(files(&root), before);
    // Looking is no writing.
    expect(&mut bench(&root, &["--list"]), 0, "sound/cpu/fill/4");
    lock.unlock().unwrap();
    expect(&mut run(), 0, "");
}

pub(crate) fn no_locks() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = bench(dir.path(), &["--bench", "--quick", "sound"]);
    run.env("LD_PRELOAD", full_disk::library())
        .env("NO_LOCKS", "1");
    let said = expect(&mut run, 0, "cannot be locked (No locks available");
    assert_eq!(said.matches("cannot be locked").count(), 1, "{said}");
}

/// Whatever the disk that the log goes to, what was measured is kept.
pub(crate) fn unwritable_output() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut run = bench(dir.path(), &["--bench", "--quick", "sound"]);
    let output = run.stdout(full).output().unwrap();
    let words = "error: failed printing to stdout: No space left";
    ended(&output, 1, words);
    assert_eq!(shown(dir.path()), SOUND);
    // Nothing can be printed of a lost standard error.
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let run = bench(dir.path(), &["--bench", "--quick", "sound"])
        .stderr(full())
        .status();
    assert_eq!(run.unwrap().code(), Some(1));
    let mut report = crossover(dir.path(), &["report", "--no-reference"]);
    expect(report.stdout(full()), 2, words);
}

/// Other work beside a run. Two processes for each processor, since the run has a share too.
struct Busy(Vec<Child>);

impl Busy {
    fn new() -> Self {
        let processors = std::thread::available_parallelism().unwrap().get();
        let spin = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        Self((0..2 * processors).map(|_| spin().unwrap()).collect())
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
pub(crate) fn busy_host() {
    let dir = tempfile::tempdir().unwrap();
    // A quota may allow fewer cores than the system lists. What is started here inherits these.
    let processors = std::thread::available_parallelism().unwrap().get();
    let _kept = OnCores::new(&usable_cores()[..processors]);
    let busy = Busy::new();
    let filter = "(sound/cpu/fill|choice/cpu/best)/4$";
    let mut run = bench(dir.path(), &["--bench", "--sample-size", "10", filter]);
    let said = expect(&mut run, 0, "note: background load: ");
    drop(busy);
    let [record] = &records_in(dir.path())[..] else {
        panic!("{said}")
    };
    let found = record.environment.disturbances.iter();
    let found: Vec<_> = found
        .filter(|it| it.starts_with("background load"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let sidecar = read(&dir.path().join("choice/cpu_best/4/new/crossover.json"));
    let others = &sidecar["extra"]["processors_busy_with_other_work"];
    assert!(others.as_f64() >= Some(0.2), "{others}");
    let notes = &sidecar["notes"];
    let marked = "calibrated under background load, so another process calibrates again: ";
    assert!(notes.to_string().contains(marked), "{notes}");
}

pub(crate) fn records_in(root: &Path) -> Vec<RunRecord> {
    let files = fs::read_dir(root.join("runs")).unwrap();
    let read = files.map(|file| read(&file.unwrap().path()));
    read.map(|value| serde_json::from_value(value).unwrap())
        .collect()
}

/// An earlier run of the same machine met ceilings ten times as high.
pub(crate) fn low_ceilings() {
    let (_dir, root) = measured();
    let mut earlier = records_in(&root).remove(0);
    earlier.run = "20260102T030405Z-1".to_owned();
    earlier.started = "2026-01-02T03:04:05Z".to_owned();
    earlier.ceilings.get_mut("cpu_fma_all").unwrap().value *= 10.0;
    // A record without a digest counts as it is.
    earlier.digest.clear();
    let path = root.join("runs/20260102T030405Z-1.json");
    fs::write(path, json!(earlier).to_string()).unwrap();
    let mut again = bench(&root, &["--bench", "--quick", "sound/cpu/fill/8"]);
    let said = expect(&mut again, 0, "again, since an earlier run exceeds them");
    assert!(said.contains("note: cpu_fma_all is "), "{said}");
    let marked = |run: &RunRecord| {
        let mut found = run.environment.disturbances.iter();
        found.any(|it| it.contains("in the run 20260102T030405Z-1"))
    };
    let records = records_in(&root);
    assert_eq!(records.iter().filter(|run| marked(run)).count(), 1);
}

pub(crate) fn records() {
    let (dir, root) = measured();
    let destination = dir.path().join("shared");
    let to = destination.to_str().unwrap();
    let runs = root.join("runs");
    let record = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    fs::remove_file(dir.path().join("record.json.gz")).unwrap();
    // Nothing belongs to a run that is known.
    expect(&mut crossover(&root, &["report"]), 0, "");
    let refused = "there is no ";
    expect(&mut crossover(&root, &["export", to]), 2, refused);
    assert!(!destination.exists(), "nothing half-way");
    fs::write(&record, kept).unwrap();
    // One sidecar names a record outside.
    let sidecar = root.join("sound/cpu_fill/4/new/crossover.json");
    let mut value = read(&sidecar);
    value["run"] = "../../outside".into();
    fs::write(&sidecar, value.to_string()).unwrap();
    fs::write(dir.path().join("outside.json"), "{}").unwrap();
    expect(&mut crossover(&root, &["report"]), 0, "");
    let exported = "2 benchmarks of 1 run";
    let said = expect(&mut crossover(&root, &["export", to]), 0, exported);
    assert!(said.contains("left out"), "{said}");
    let inside = |path: &PathBuf| path.starts_with(&destination);
    assert!(
        files(dir.path())
            .keys()
            .filter(|p| p.ends_with("outside.json"))
            .count()
            == 1
    );
    assert!(files(&destination).keys().all(inside));
    // The same run again replaces its record.
    let once = files(&destination);
    expect(&mut crossover(&root, &["export", to]), 0, exported);
    assert_eq!(files(&destination).len(), once.len());
}
