//! Two processes that take turns, and what goes wrong with one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};

use crate::faults::habits;
use crate::faults::run::{RUN, SOUND, crossover, read, shown};
use crate::printed::{comes_true, ended, printed, script};

/// Two bundles of this executable in `dir`, the second started as `second` says once it has said what
/// it can.
fn bundles(dir: &Path, second: &str) {
    let this = std::env::current_exe().unwrap();
    let bench = format!("env {RUN}=1 {} --bench \"$@\"", this.display());
    for (name, how) in [("a", "exec"), ("b", second)] {
        let text = how.replace("exec", &format!("exec {bench}"));
        let text = text.replace("start", &bench);
        let lists = format!("case \"$*\" in *--list*) exec {bench};; esac");
        let text = format!("#!/bin/sh\nshift\n{lists}\n{text}\n");
        script(&dir.join(name).join("run"), &text);
    }
}

fn ab(dir: &Path, options: &[&str]) -> Command {
    ab_of(dir, options, "sound")
}

fn ab_of(dir: &Path, options: &[&str], filter: &str) -> Command {
    let mut command = crossover(dir, &["ab", "a", "b"]);
    command
        .args(options)
        .args(["--", filter])
        .current_dir(dir)
        .env("TMPDIR", dir)
        .env("CROSSOVER_SIZES", "quick")
        .env("CROSSOVER_DEVICE", "none")
        .stdin(Stdio::null());
    command
}

/// The folder of the last comparison.
fn results(dir: &Path) -> PathBuf {
    let runs = fs::read_dir(dir.join("target-reports/ab")).unwrap();
    let folders = runs.map(|run| run.unwrap().path());
    folders.filter(|path| path.is_dir()).max().unwrap()
}

fn samples(root: &Path, id: &str) -> usize {
    let sample = read(&root.join(id).join("new/sample.json"));
    sample["times"].as_array().unwrap().len()
}

/// Fails if a process that was started for a comparison in `dir` goes on.
fn nothing_goes_on(dir: &Path) {
    let dir = dir.display().to_string();
    let is_of_it = |process: fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let environment = String::from_utf8_lossy(&environment);
        environment.contains(&dir) && environment.contains("CROSSOVER_TURNS")
    };
    let is_left = || fs::read_dir("/proc").unwrap().flatten().any(is_of_it);
    assert!(comes_true(|| !is_left()), "a process of {dir} was left");
}

/// Later processes do not verify, and do not time what failed in the first one.
pub(crate) fn in_turns() {
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), "exec");
    let mut ab = ab_of(dir.path(), &["--budget", "0"], "sound|faulty");
    let ab = habits::all(&mut ab, dir.path());
    let said = ended(&ab.output().unwrap(), 1, "");
    assert!(!said.contains("one after the other"), "{said}");
    let last = ["16", "32", "4", "8"].map(|size| format!("faulty/cpu/last/{size}"));
    let sound = last.iter().map(String::as_str).chain(SOUND);
    let sound = Vec::from_iter(sound);
    for run in ["a1", "b1", "a2", "b2"] {
        let root = results(dir.path()).join(run);
        assert_eq!(shown(&root), sound, "{run}: {said}");
        // Twenty, or ten if the process was held up in its warm-up.
        let samples = samples(&root, "sound/cpu_fill/32");
        assert!(samples >= 10, "{run}: {samples}");
    }
    habits::nothing_is_left(dir.path());
    nothing_goes_on(dir.path());
}

/// Benchmarks that the first pairs leave undecided are run again, alone and in new processes,
/// without being verified again; what was measured of the machine is kept.
pub(crate) fn confirmed() {
    // The least that a machine with other work needs for a third pair.
    let enough = ["0.2", "1", "4"].into_iter().any(run_again_within);
    assert!(enough, "no third pair within four minutes");
}

/// Whether there is a third pair within this budget in minutes.
fn run_again_within(budget: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), "exec");
    // A threshold so small that no two results can be shown to be the same.
    let options = ["--budget", budget, "--threshold", "0.0001", "--json"];
    let output = ab(dir.path(), &options).output().unwrap();
    let said = printed(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let root = results(dir.path());
    let verified = |run: &str| -> bool {
        let sidecar = root.join(run).join("sound/cpu_fill/32/new/crossover.json");
        !read(&sidecar)["verified"].is_null()
    };
    assert!(
        verified("a1") && verified("b1") && !verified("a2"),
        "{said}"
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["screened"], 2);
    assert_eq!(json["failures"], serde_json::json!([]));
    nothing_goes_on(dir.path());
    root.join("a3").is_dir() && root.join("b3").is_dir()
}

/// Where one side dies or hangs, all results of the other are there.
pub(crate) fn one_side_fails() {
    let with = |habit: &str| format!("{}={habit} start; exit $?", habits::HABITS);
    for (second, words) in [
        (with(habits::IS_KILLED), "failed (exit status: 137)"),
        (with(habits::IS_STOPPED), "hung and was ended"),
        ("exit 3".to_owned(), "failed (exit status: 3)"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        bundles(dir.path(), &second);
        let output = ab(dir.path(), &["--turn-limit", "10"]).output().unwrap();
        let said = printed(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
        assert!(said.contains(words), "{words:?} is not in {said}");
        assert_eq!(shown(&results(dir.path()).join("a1")), SOUND);
        nothing_goes_on(dir.path());
    }
}

pub(crate) fn interrupted() {
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), "exec");
    let start = Instant::now();
    ab(dir.path(), &["--budget", "0"]).output().unwrap();
    let whole = start.elapsed().as_secs_f64();
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(14);
    for _ in 0..crate::faults::cut_short::rounds() {
        let child = ab(dir.path(), &["--budget", "0.05"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs_f64(whole * random.random::<f64>()));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = printed(&output);
        use std::os::unix::process::ExitStatusExt;
        let early = output.status.signal() == Some(2);
        assert!(
            early || matches!(output.status.code(), Some(130 | 0 | 1)),
            "{said}"
        );
        nothing_goes_on(dir.path());
        for entry in walkdir::WalkDir::new(dir.path().join("target-reports")) {
            let entry = entry.unwrap();
            let is_file = entry.file_type().is_file();
            let lock = entry.file_name() == "crossover.lock";
            let empty = is_file && !lock && entry.metadata().unwrap().len() == 0;
            assert!(!empty, "{} is empty", entry.path().display());
        }
    }
}
