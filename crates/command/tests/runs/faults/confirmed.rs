//! Answers that are confirmed in processes of their own, on a machine without a GPU: its CPU
//! against the results of another machine's GPU.

use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_suite::model::record::Activity;
use crossover_suite::model::{GpuInfo, RunRecord};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::faults::habits::{CONFIRMS_AND_IS_KILLED, HABITS, hang_later};
use crate::faults::run::{bench, crossover, files, measured, read, record, shown};
use crate::faults::signals::interrupted_at;
use crate::printed::{expect, holds};

/// The record of the results of `root` as a GPU's, in `machines` beside it.
fn reference(root: &Path) {
    let results = tempfile::tempdir().unwrap();
    let to = results.path();
    for (path, mut bytes) in files(root) {
        let mut copy = to.join(path.strip_prefix(root).unwrap());
        if copy.parent().unwrap().ends_with("runs") {
            let mut run = read(&path);
            run["environment"]["gpu"] = json!(GpuInfo {
                name: "Example GPU".into(),
                ..GpuInfo::default()
            });
            bytes = run.to_string().into();
        } else {
            let text = String::from_utf8_lossy(&bytes).replace("cpu/fill", "gpu/none");
            bytes = text.into();
            copy = copy
                .to_str()
                .unwrap()
                .replace("cpu_fill", "gpu_none")
                .into();
        }
        if copy.ends_with("crossover.json") {
            let mut sidecar: Value = serde_json::from_slice(&bytes).unwrap();
            sidecar["clock"] = "events".into();
            let role = sidecar["role"].as_object_mut().unwrap();
            role.remove("threads");
            for (name, value) in [("data", "queued"), ("launches", "one-by-one")] {
                role.insert(name.to_owned(), value.into());
            }
            bytes = sidecar.to_string().into();
        }
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
    let machines = root.with_file_name("machines");
    expect(&mut crossover(to, &["report"]), 0, "");
    let mut export = crossover(to, &["export", machines.to_str().unwrap()]);
    expect(&mut export, 0, "of 1 run in ");
}

fn newest_run(root: &Path) -> RunRecord {
    let runs = fs::read_dir(root.join("runs")).unwrap();
    let newest = runs.map(|run| run.unwrap().path()).max().unwrap();
    serde_json::from_value(read(&newest)).unwrap()
}

/// A run in a folder of its own, with the reference beside it.
pub(crate) fn run(
    processes: &str,
    filter: &str,
    change: impl FnOnce(&mut Command),
) -> (tempfile::TempDir, RunRecord, String) {
    let (dir, root) = measured();
    reference(&root);
    fs::remove_dir_all(&root).unwrap();
    let mut command = bench(&root, &["--bench", "--quick", filter]);
    change(command.env("CROSSOVER_PROCESSES", processes));
    let said = expect(&mut command, 0, "");
    let run = newest_run(&root);
    (dir, run, said)
}

pub(crate) fn answered() {
    let (dir, run, said) = run("3", "sound", |_| ());
    holds(&said, "confirming 1 answer in child process 3");
    let [asked] = &run.confirmations[..] else {
        panic!("{:?}", run.confirmations)
    };
    assert_eq!((&*asked.group, &*asked.gpu), ("sound", "none"));
    assert_eq!(asked.gpu_machine.as_deref(), Some("Example GPU"));
    assert_eq!(asked.range, (4, 32));
    // More than three processes where these leave the answer open.
    let processes = asked.processes.len();
    assert!((3..=25).contains(&processes), "{processes}");
    for paired_times in &asked.processes {
        assert_eq!(paired_times.last().unwrap().size, 32);
        assert!(
            paired_times
                .windows(2)
                .all(|pair| pair[0].size < pair[1].size)
        );
        assert!(
            paired_times
                .iter()
                .all(|pair| pair.cpu == "fill" && pair.cpu_ns > 0.0)
        );
    }
    assert!(run.finished.is_some());
    for activity in [
        Activity::SetUp,
        Activity::Samples,
        Activity::Analysis,
        Activity::Confirming,
        Activity::Ceilings,
    ] {
        assert!(run.activities[&activity] > 0.0, "{:?}", run.activities);
    }
    assert!(said.contains("set-up and verification"), "{said}");
    let record = record(dir.path());
    let answer = &record["answers"][0];
    assert_eq!(answer["processes"], processes, "{answer}");
    assert!(answer["speedup_low"].as_f64() < answer["speedup_high"].as_f64());
}

/// As on a host that runs out of memory. The run says so, and shows its own results.
pub(crate) fn killed() {
    for habit in CONFIRMS_AND_IS_KILLED {
        let (_dir, run, said) = run("3", "sound", |command| {
            command.env(HABITS, habit);
        });
        holds(
            &said,
            "note: child process 1 did not answer: it ended with signal: 9 (SIGKILL)",
        );
        holds(&said, "1 answer: 0 firm, 0 uncertain, 1 of one process");
        assert_eq!(run.confirmations, []);
    }
}

/// What was not measured in this run is not confirmed, and with 0 processes nothing is.
pub(crate) fn not_asked() {
    for (processes, filter) in [("0", "sound"), ("2", "choice/cpu")] {
        let (_dir, run, said) = run(processes, filter, |_| ());
        assert!(!said.contains("confirming"), "{said}");
        assert_eq!(run.confirmations, []);
    }
}

/// A run without a filter asks about its own results, also where an earlier one measured more sizes. A
/// signal while the processes run: what was measured is kept.
pub(crate) fn after_another() {
    let (_dir, root) = measured();
    for (path, bytes) in files(&root.join("sound/cpu_fill/32")) {
        let larger = |text: &str| text.replace("/32", "/64");
        let text = larger(&String::from_utf8(bytes).unwrap());
        let text = text.replace(r#""value_str":"32""#, r#""value_str":"64""#);
        let path = larger(path.to_str().unwrap());
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    assert!(shown(&root).contains(&"sound/cpu/fill/64".to_owned()));
    reference(&root);
    let mut run = bench(&root, &["--bench", "--quick"]);
    let _first = hang_later(run.env("CROSSOVER_PROCESSES", "99"));
    let words = "confirming 1 answer in child process 2";
    let (code, said) = interrupted_at(&mut run, words, Signal::SIGTERM, ());
    assert_eq!(code, Some(143), "{said}");
    let run = newest_run(&root);
    let [asked] = &run.confirmations[..] else {
        panic!("{:?}", run.confirmations)
    };
    assert_eq!((&*asked.group, asked.range), ("sound", (4, 32)));
    assert_eq!(run.finished, None);
    let processes = asked.processes.len();
    assert_eq!(processes, 1);
}
