//! Faults on purpose: what a user does wrong, and what goes wrong beside the measurement, each by
//! its command, exit code and sentence, with the earlier results unharmed. This executable is
//! both the test and a bench executable.
#![cfg_attr(not(unix), allow(unused))]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::rc::Rc;

use crossover::model::{Cost, RunRecord};
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::workload::Workload;
use crossover::workload::simple::{compare, on_cpu};
use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};

/// Says that this process is a run of the suite and not the test.
const RUN: &str = "CROSSOVER_TEST_SUITE";

struct Ones(usize);

impl Workload for Ones {
    fn new(size: u64) -> Self {
        Self(size as usize)
    }
    fn host_bytes(size: u64) -> u64 {
        4 * size
    }
    fn device_bytes(size: u64) -> u64 {
        4 * size
    }
}

fn groups() -> Vec<AnyGroup> {
    let sizes = || Sizes::new([4, 8, 16, 32], [4], [4]);
    let fill = |problem: &Rc<Ones>| {
        let n = problem.0;
        let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
        Ok(on_cpu(n, |y| y.fill(1.0), check))
    };
    let sound = Group::new("sound", sizes(), None, |_| Cost::default())
        .with(Implementation::cpu("fill", fill))
        .with(Implementation::gpu(
            "none",
            crossover::timing::Clock::Events,
            |_, _| Err("never made".into()),
        ));
    let faulty = Group::new("faulty", sizes(), None, |_| Cost::default())
        .with(Implementation::cpu("set-up", |_: &Rc<Ones>| {
            panic!("no set-up")
        }))
        .with(Implementation::cpu("check", |problem: &Rc<Ones>| {
            let check = |_: &[f32]| panic!("no check");
            Ok(on_cpu(problem.0, |y| y.fill(1.0), check))
        }))
        .with(Implementation::cpu("last", fill));
    vec![sound.into(), faulty.into()]
}

fn main() -> ExitCode {
    if std::env::var_os(RUN).is_some() {
        return crossover::command::bench(groups);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let tests: &[(&str, fn())] = &[
        ("bad_options_end_the_run_before_it_starts", bad_options),
        ("a_folder_that_cannot_be_written_to", unwritable_folder),
        ("two_runs_in_one_folder", two_runs),
        ("a_panic_in_set_up_or_check_is_one_failure", panics),
        ("a_filter_that_selects_nothing", selects_nothing),
        ("a_device_that_was_asked_for", device_asked_for),
        ("a_later_failure_hides_nothing", later_failure),
        ("a_run_that_is_compared_with_itself", repeated_run),
        ("records_that_are_missing_or_lead_elsewhere", records),
        ("the_page_of_results_elsewhere", page_elsewhere),
        #[cfg(unix)]
        ("a_closed_pipe", closed_pipe),
        #[cfg(unix)]
        ("signals_end_a_run_in_order", signals),
        #[cfg(unix)]
        ("devices_links_and_pipes_as_files", special_files),
    ];
    let trials = tests.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

// ---- helpers ----

/// A run of the groups above, with results in `root`.
fn bench(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(arguments)
        .env(RUN, "1")
        .env("CRITERION_HOME", root)
        .env("CROSSOVER_PROFILE", "quick")
        .env("CROSSOVER_DEVICE", "none");
    command
}

fn crossover(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crossover"));
    command.args(arguments).env("CRITERION_HOME", root);
    command
}

fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Runs it and holds the exit code and words against what it should be.
fn expect(command: &mut Command, code: i32, words: &str) -> String {
    let output = command.output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "{words:?} is not in:\n{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Results of one sound run in a folder.
fn measured() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    expect(&mut bench(&root, &["--bench", "--quick", "sound"]), 0, "");
    (dir, root)
}

/// Every file of a folder but the lock, with its bytes.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    walkdir::WalkDir::new(root)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file() && entry.file_name() != "crossover.lock")
        .map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// The ids that a report shows.
fn shown(root: &Path) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    let to = out.path().to_str().unwrap();
    expect(
        &mut crossover(root, &["report", "--no-reference", "--out", to]),
        0,
        "",
    );
    let summary = fs::read(out.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let rows = summary["benchmarks"].as_array().unwrap();
    let mut ids: Vec<String> = rows
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

const SOUND: [&str; 4] = [
    "sound/cpu/fill/16",
    "sound/cpu/fill/32",
    "sound/cpu/fill/4",
    "sound/cpu/fill/8",
];

// ---- the faults ----

fn bad_options() {
    let (_dir, root) = measured();
    let before = files(&root);
    for (arguments, words) in [
        (&["sound/("][..], "it is no regular expression"),
        (&["--sample-size", "5"], "--sample-size 5: give 10 or more"),
        (&["--measurement-time", "0"], "give seconds above 0"),
        (&["--save-baseline", "new"], "choose a name"),
        (&["--save-baseline", "../../x"], "choose a name"),
        (&["--save-baseline", "a/b"], "choose a name"),
        (&["--save-baseline", ""], "choose a name"),
        (&["--save-baseline", "report"], "choose a name"),
        (&["--baseline", "nosuch"], "no such baseline"),
    ] {
        let arguments = [&["--bench"], arguments].concat();
        expect(&mut bench(&root, &arguments), 2, words);
    }
    let mut slip = bench(&root, &["--bench", "--list"]);
    expect(
        slip.env("CROSSOVER_PROFIL", "full"),
        0,
        "is CROSSOVER_PROFILE meant?",
    );
    assert_eq!(files(&root), before);
    assert_eq!(shown(&root), SOUND);
}

fn unwritable_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "mine").unwrap();
    for root in [file.clone(), file.join("below")] {
        let words = "set CRITERION_HOME to a folder where they can";
        let said = expect(&mut bench(&root, &["--bench", "sound"]), 2, words);
        assert!(
            !said.contains("Benchmarking"),
            "nothing was measured: {said}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
}

fn two_runs() {
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

fn panics() {
    let dir = tempfile::tempdir().unwrap();
    let output = bench(dir.path(), &["--bench", "--quick", "faulty"])
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("FAILED faulty/cpu/set-up/4: no set-up"),
        "{said}"
    );
    assert!(
        said.contains("FAILED faulty/cpu/check/4: no check"),
        "{said}"
    );
    let last = ["16", "32", "4", "8"].map(|size| format!("faulty/cpu/last/{size}"));
    assert_eq!(shown(dir.path()), last);
}

fn selects_nothing() {
    let (_dir, root) = measured();
    let words = "no benchmark was selected";
    expect(&mut bench(&root, &["--bench", "sonud"]), 2, words);
    assert_eq!(shown(&root), SOUND);
}

fn device_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let run = |filter: &str, device: Option<&str>| {
        let mut command = bench(dir.path(), &["--bench", "--quick", filter]);
        match device {
            Some(device) => command.env("CROSSOVER_DEVICE", device),
            None => command.env_remove("CROSSOVER_DEVICE"),
        };
        command
    };
    let words = "the GPU that was asked for could not be used";
    expect(&mut run("sound", Some("99")), 1, words);
    // Nobody asks for it where no GPU benchmark was selected.
    expect(&mut run("sound/cpu", Some("99")), 0, "");
    if crossover::timing::probe(0).is_err() {
        expect(&mut run("sound", None), 0, "skipped sound/gpu/none");
    }
}

fn later_failure() {
    let (_dir, root) = measured();
    let runs = root.join("runs");
    let first = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let mut later: RunRecord = serde_json::from_slice(&fs::read(first).unwrap()).unwrap();
    later.run = "29991231T235959Z-1".to_owned();
    later.started = "2999-12-31T23:59:59Z".to_owned();
    later.failed = vec![crossover::model::Failure {
        id: SOUND[0].to_owned(),
        error: "a full disk".to_owned(),
    }];
    let path = runs.join(format!("{}.json", later.run));
    fs::write(path, json!(later).to_string()).unwrap();
    assert_eq!(shown(&root), SOUND);
}

fn repeated_run() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    for name in ["main", "mine"] {
        let arguments = [
            "--bench",
            "--sample-size",
            "10",
            "--measurement-time",
            "0.01",
        ];
        let arguments = [
            &arguments[..],
            &["--warm-up-time", "0.01", "--save-baseline", name, "sound"],
        ];
        expect(&mut bench(&root, &arguments.concat()), 0, "");
    }
    let words = "are one run, which says nothing about a change";
    expect(
        &mut crossover(&root, &["compare", "main,main", "mine,mine"]),
        2,
        words,
    );
    expect(
        &mut crossover(&root, &["compare", "main", "main"]),
        2,
        words,
    );
}

fn records() {
    let (dir, root) = measured();
    let destination = dir.path().join("shared");
    let to = destination.to_str().unwrap();
    let runs = root.join("runs");
    let record = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    expect(
        &mut crossover(&root, &["export", to]),
        2,
        "no results under",
    );
    assert!(!destination.exists(), "nothing half-way");
    fs::write(&record, kept).unwrap();
    // One sidecar names a record outside.
    let sidecar = root.join("sound/cpu_fill/4/new/crossover.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&sidecar).unwrap()).unwrap();
    value["run"] = "../../outside".into();
    fs::write(&sidecar, value.to_string()).unwrap();
    fs::write(dir.path().join("outside.json"), "{}").unwrap();
    let said = expect(
        &mut crossover(&root, &["export", to]),
        0,
        "3 benchmarks of 1 run",
    );
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
}

fn page_elsewhere() {
    let (dir, root) = measured();
    let here = tempfile::tempdir().unwrap();
    let mine = here.path().join("target-reports/index.html");
    fs::create_dir_all(mine.parent().unwrap()).unwrap();
    fs::write(&mine, "mine").unwrap();
    let mut report = crossover(&root, &["report"]);
    expect(report.current_dir(here.path()), 0, "report:");
    assert_eq!(fs::read(&mine).unwrap(), b"mine");
    assert!(
        dir.path().join("index.html").is_file(),
        "beside the results"
    );
}

#[cfg(unix)]
fn closed_pipe() {
    use std::os::unix::process::ExitStatusExt;
    let (dir, root) = measured();
    let commands = [
        crossover(&root, &["env"]),
        crossover(&root, &["report", "--no-reference"]),
        crossover(&root, &["export", dir.path().join("x").to_str().unwrap()]),
        bench(&root, &["--bench", "--quick", "sound"]),
        bench(&root, &["--list"]),
    ];
    for mut command in commands {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = said(&output);
        assert!(!said.contains("panicked"), "{command:?}: {said}");
        let signal = output.status.signal();
        let ended = output.status.code() == Some(0) || signal == Some(13);
        assert!(ended, "{command:?}: {:?} {said}", output.status);
    }
    assert_eq!(shown(&root), SOUND);
}

/// Waits until a benchmark is being measured, sends the signal, and gives exit code and words.
#[cfg(unix)]
fn interrupted(root: &Path, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
    let arguments = [
        "--bench",
        "--warm-up-time",
        "0.2",
        "--measurement-time",
        "1",
    ];
    let mut child = bench(root, &[&arguments[..], &["sound"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    // The first is finished when the second begins.
    let mut said = String::new();
    while !said.contains("Benchmarking sound/cpu/fill/8") {
        assert!(
            errors.read_line(&mut said).unwrap() > 0,
            "it never began: {said}"
        );
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, signal).unwrap();
    errors.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    said += &printed.join().unwrap().unwrap();
    (status.code(), said)
}

#[cfg(unix)]
fn signals() {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM};
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] {
        let dir = tempfile::tempdir().unwrap();
        let (ended, said) = interrupted(dir.path(), signal);
        assert_eq!(ended, Some(code), "{said}");
        assert!(
            said.contains("interrupted: what was measured until then is kept"),
            "{said}"
        );
        assert!(!said.contains("FAILED"), "{said}");
        let ids = shown(dir.path());
        assert!(ids.contains(&"sound/cpu/fill/4".to_owned()), "{ids:?}");
        assert!(!ids.contains(&"sound/cpu/fill/32".to_owned()), "{ids:?}");
        for (path, bytes) in files(dir.path()) {
            assert!(!bytes.is_empty(), "{} is empty", path.display());
        }
        expect(
            &mut bench(dir.path(), &["--bench", "--quick", "sound"]),
            0,
            "",
        );
        assert_eq!(shown(dir.path()), SOUND);
    }
}

#[cfg(unix)]
fn special_files() {
    let (dir, root) = measured();
    // A comparison with itself is refused, so the page is that of a second run.
    let again = [
        "--bench",
        "--sample-size",
        "10",
        "--measurement-time",
        "0.01",
    ];
    let again = [
        &again[..],
        &["--warm-up-time", "0.01", "--save-baseline", "main", "sound"],
    ]
    .concat();
    expect(&mut bench(&root, &again), 0, "");
    let compare = |html: &str| {
        crossover(
            &root,
            &["compare", "main", root.to_str().unwrap(), "--html", html],
        )
    };
    let target = dir.path().join("target.html");
    let link = dir.path().join("link.html");
    fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let _ = compare(link.to_str().unwrap()).output().unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("<html"));
    let output = compare("/dev/stdout")
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("<html"));

    // A pipe where a file should be has no writer: to open it would wait for ever.
    let sidecar = root.join("sound/cpu_fill/4/new/crossover.json");
    fs::remove_file(&sidecar).unwrap();
    let made = Command::new("mkfifo").arg(&sidecar).status().unwrap();
    assert!(made.success());
    let ids = shown(&root);
    assert!(ids.contains(&SOUND[1].to_owned()), "{ids:?}");
}
