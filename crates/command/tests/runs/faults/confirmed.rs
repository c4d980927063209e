//! Answers that are confirmed in processes of their own, on a machine without a GPU: its CPU
//! against the results of another machine's GPU.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crossover_suite::model::record::Activity;
use crossover_suite::model::{GpuInfo, RunRecord};
use flate2::read::GzDecoder;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::faults::habits::{self, CONFIRMS_AND_IS_KILLED, HABITS, hang_later};
use crate::faults::run::{Suite, files};
use crate::faults::signals::interrupted_at;
use crate::printed::{expect, holds, lacks};

/// The results in `from` as those of other benchmarks or another machine, in `to`: texts are replaced in files
/// and in their paths.
fn copy_as(from: &Path, to: &Path, replaced: &[[&str; 2]]) {
    for (path, bytes) in files(from) {
        let path = path.strip_prefix(from).unwrap().to_str().unwrap();
        let texts = [path.to_owned(), String::from_utf8(bytes).unwrap()];
        let [path, text] = texts.map(|text| {
            let replace = |text: String, [old, new]: &[&str; 2]| text.replace(old, new);
            replaced.iter().fold(text, replace)
        });
        let path = to.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The record of these results as a GPU's, in `machines` beside them.
fn add_reference(suite: &Suite) {
    let results = Suite::new();
    let gpu = json!(GpuInfo {
        name: "Example GPU".into(),
        ..GpuInfo::default()
    });
    let as_gpu = [
        ["cpu_fill", "gpu_none"],
        ["cpu/fill", "gpu/none"],
        [r#""clock": "wall""#, r#""clock": "events""#],
        [r#""data": "ordinary""#, r#""data": "queued""#],
        [r#""threads": "all""#, r#""launches": "one-by-one""#],
        [r#""gpu": null"#, &format!(r#""gpu": {gpu}"#)],
    ];
    copy_as(&suite.root, &results.root, &as_gpu);
    expect(&mut results.crossover("report"), 0, "");
    let mut export = results.crossover("export");
    expect(export.arg(suite.path("machines")), 0, "of 1 run in ");
}

/// A run with the reference beside it, whose line is the number of processes and a filter.
fn run(line: &str, change: impl FnOnce(&mut Command)) -> (Suite, RunRecord, String) {
    static WITH_REFERENCE: OnceLock<Suite> = OnceLock::new();
    let with_reference = WITH_REFERENCE.get_or_init(|| {
        let suite = Suite::measured();
        add_reference(&suite);
        suite
    });
    let suite = with_reference.copy();
    fs::remove_dir_all(&suite.root).unwrap();
    let mut command = suite.bench(&format!("--bench --quick CROSSOVER_PROCESSES={line}"));
    change(&mut command);
    let shown = expect(&mut command, 0, "");
    let run = suite.records().pop().unwrap();
    (suite, run, shown)
}

pub(crate) fn answers_of_several_processes() {
    let (suite, run, said) = run("3 sound", |_| ());
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
    for pairs in &asked.processes {
        assert_eq!(pairs.last().unwrap().size, 32);
        assert!(pairs.is_sorted_by(|a, b| a.size < b.size));
        let mut pairs = pairs.iter();
        assert!(pairs.all(|pair| pair.cpu == "fill" && pair.cpu_ns > 0.0));
    }
    assert!(run.finished.is_some());
    for activity in [Activity::SetUp, Activity::Samples, Activity::Confirming] {
        assert!(run.activities[&activity] > 0.0, "{:?}", run.activities);
    }
    let packed = fs::File::open(suite.path("record.json.gz")).unwrap();
    let record: Value = serde_json::from_reader(GzDecoder::new(packed)).unwrap();
    let answer = &record["answers"][0];
    assert_eq!(answer["processes"], processes, "{answer}");
    assert!(answer["speedup_low"].as_f64() < answer["speedup_high"].as_f64());
}

/// One answer is confirmed by processes with all habits.
pub(crate) fn a_main_and_a_library_that_print_and_leave_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let (_suite, run, said) = run("1 sound", |command| {
        habits::all(command, folder.path());
    });
    lacks(&said, &["did not answer"]);
    let [confirmation] = &run.confirmations[..] else {
        panic!("{said}")
    };
    assert!(!confirmation.processes.is_empty(), "{said}");
    habits::nothing_is_left(folder.path());
}

/// As on a host that runs out of memory. The run says so, and shows its own results.
pub(crate) fn processes_that_are_killed() {
    let (_suite, run, said) = run("3 sound", |command| {
        command.env(HABITS, CONFIRMS_AND_IS_KILLED);
    });
    let killed = "note: child process 1 did not answer: it ended with signal: 9 (SIGKILL)";
    holds(&said, killed);
    holds(&said, "1 answer: 0 firm, 0 uncertain, 1 of one process");
    assert_eq!(run.confirmations, []);
}

/// What was not measured in this run is not confirmed, and with 0 processes nothing is.
pub(crate) fn what_is_not_asked() {
    for line in ["0 sound", "2 choice/cpu"] {
        let (_suite, run, said) = run(line, |_| ());
        lacks(&said, &["confirming"]);
        assert_eq!(run.confirmations, []);
    }
}

/// A run without a filter asks about its own results, also where an earlier one measured more sizes. A
/// signal while the processes run: what was measured is kept.
pub(crate) fn a_signal_while_processes_answer() {
    let suite = Suite::measured();
    let larger = [
        ["/32", "/64"],
        [r#""value_str":"32""#, r#""value_str":"64""#],
    ];
    let of_size = |size: &str| suite.root.join("sound/cpu_fill").join(size);
    copy_as(&of_size("32"), &of_size("64"), &larger);
    assert!(suite.shown().contains(&"sound/cpu/fill/64".to_owned()));
    add_reference(&suite);
    let mut run = suite.bench("CROSSOVER_PROCESSES=99 --bench --quick");
    let _first = hang_later(&mut run);
    let words = "confirming 1 answer in child process 2";
    let (code, said) = interrupted_at(&mut run, words, Signal::SIGTERM, ());
    assert_eq!(code, Some(143), "{said}");
    let run = suite.records().pop().unwrap();
    let [asked] = &run.confirmations[..] else {
        panic!("{:?}", run.confirmations)
    };
    assert_eq!((&*asked.group, asked.range), ("sound", (4, 32)));
    assert_eq!(run.finished, None);
    assert_eq!(asked.processes.len(), 1);
}
