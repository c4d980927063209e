//! The suite as a user meets it: this executable is both the test and, when it is started
//! with Criterion's options, a bench executable with the groups of `groups`. Each run is a process
//! of its own with a results folder of its own.

pub(crate) mod groups;
pub(crate) mod run;

use std::path::Path;
use std::process::Command;

use crossover::timing::Clock;
use serde_json::Value;

use crate::printed::holds;
use crate::suite::groups::Moody;
use crate::suite::run::{QUICK, Run, read, sidecar};
use crate::test::tests;

tests! {
    Beside a_quiet_run_says_results_and_problems: a_quiet_run_says_results_and_problems,
    Beside criterion_prints_what_is_asked_for: criterion_prints_what_is_asked_for,
    Beside a_run_leaves_its_files: a_run_leaves_its_files,
    Alone state_is_restored_before_each_sample_and_not_inside: state_is_restored_before_each_sample_and_not_inside,
    Alone an_unsteady_benchmark_is_measured_again: an_unsteady_benchmark_is_measured_again,
    Beside failures_are_named_and_the_rest_goes_on: failures_are_named_and_the_rest_goes_on,
    Beside a_left_out_benchmark_takes_no_time: a_left_out_benchmark_takes_no_time,
    Beside test_mode_verifies_and_writes_nothing: test_mode_verifies_and_writes_nothing,
    Beside profiling_says_what_it_cannot_see_and_keeps_no_result: profiling_says_what_it_cannot_see_and_keeps_no_result,
    Beside a_saved_baseline_compares_with_a_later_one: a_saved_baseline_compares_with_a_later_one,
}

fn a_quiet_run_says_results_and_problems() {
    for quiet in ["--quiet", "-q"] {
        let run = Run::new(&["--bench", "--noplot", quiet, "sound"], &[QUICK]);
        let said = run.said();
        assert_eq!(run.code(), 0, "{said}");
        assert!(said.contains("sound/cpu/double/16: "), "{said}");
        for words in ["measuring the", "confirming", "[1/", "Benchmarking"] {
            assert!(!said.contains(words), "{words} in {said}");
        }
    }
}

/// A line for each benchmark, in place of Criterion's; these are printed where somebody asks for them.
fn criterion_prints_what_is_asked_for() {
    let own = Run::new(&["--bench", "sound"], &[QUICK]);
    let said = own.said();
    assert!(said.contains("] sound/cpu/double/16: "), "{said}");
    // Those of Criterion begin with an id and its place.
    for words in ["Benchmarking", "time:   [", "ns/iter"] {
        assert!(!said.contains(words), "{words} in {said}");
    }
    assert_eq!(own.record().arguments, ["--bench", "sound"]);
    let asked = Run::new(&["--bench", "--verbose", "sound"], &[QUICK]);
    let said = asked.said();
    for words in [
        "Benchmarking sound/cpu/double/16",
        "time:   [",
        "med. abs. dev.",
    ] {
        assert!(said.contains(words), "no {words} in {said}");
    }
    // What matters most comes last.
    let last = |run: &Run| {
        let said = String::from_utf8_lossy(&run.output.stdout).into_owned();
        said.trim_end().lines().next_back().map(str::to_owned)
    };
    for run in [own, asked] {
        assert!(
            last(&run).is_some_and(|line| line.starts_with("report: ")),
            "{:?}",
            last(&run)
        );
    }
}

fn a_run_leaves_its_files() {
    let run = Run::new(&["--bench", "sound"], &[QUICK]);
    assert_eq!(run.code(), 0, "{}", run.said());
    let folder = run.root().join("sound/cpu_double/16/new");
    for file in [
        "benchmark.json",
        "estimates.json",
        "sample.json",
        "tukey.json",
    ] {
        assert!(folder.join(file).is_file(), "no {file}");
    }
    let sidecar = sidecar(&folder);
    assert_eq!(sidecar.id, "sound/cpu/double/16");
    assert_eq!(sidecar.clock, Clock::Wall);
    assert_eq!(sidecar.cost.flop, Some(16.0));
    assert!(sidecar.verified.expect("verified").passed());
    let record = run.record();
    assert_eq!(record.run, sidecar.run);
    assert_eq!(record.profile, "quick");
    assert!(record.finished.is_some() && record.failed.is_empty());
    for ceiling in ["cpu_fma_1", "cpu_fma_all"] {
        assert!(record.ceilings[ceiling].value > 1e8, "{ceiling}");
    }
    for curve in ["cpu_read", "cpu_copy"] {
        let points = &record.curves[curve].points;
        assert!(points.iter().all(|point| point.rate > 1e8), "{curve}");
    }
    assert!(
        record.skipped.iter().any(|s| s.id == "sound/cpu/double"
            && s.reason.contains("64, 256")
            && s.reason.contains("CROSSOVER_PROFILE=full")),
        "{:?}",
        record.skipped
    );
    assert!(
        run.root().join("report/index.html").is_file(),
        "Criterion's page"
    );
    assert!(
        run.root().join("sound/report/lines.svg").is_file(),
        "drawn by plotters"
    );
    assert!(run.root().join("index.html").is_file(), "the report");
}

fn state_is_restored_before_each_sample_and_not_inside() {
    let options = ["--bench", "--noplot", "stateful", "--sample-size", "10"];
    let run = Run::new(&options, &[QUICK]);
    assert_eq!(run.code(), 0, "{}", run.said());
    let folder = run.root().join("stateful/cpu_steps/4/new");
    let samples: Value = read(&folder.join("sample.json"));
    let iterations = samples["iters"].as_array().expect("a list").iter();
    let iterations: Vec<String> = iterations
        .map(|count| format!("{}", count.as_f64().expect("a number")))
        .collect();
    let runs = sidecar(&folder).notes;
    // First the run that is verified, then a warm one, by which the samples are planned.
    assert_eq!(runs.first().map(String::as_str), Some("2"), "{runs:?}");
    let (last, before) = runs.split_last().expect("several");
    assert_eq!(last, "1", "verified again: {runs:?}");
    assert!(before.ends_with(&iterations), "{runs:?}, {iterations:?}");
    assert!(
        iterations.iter().any(|count| count != "1"),
        "one iteration a sample shows nothing: {iterations:?}"
    );
}

/// A result in two modes is undone and measured again by another Criterion, which leaves the
/// files, and the group's report, as one measurement would have.
fn an_unsteady_benchmark_is_measured_again() {
    let bench = |filter: &'static str| [&["--bench", filter][..], &Moody::OPTIONS].concat();
    let run = Run::new(&bench("moody"), &[QUICK]);
    let said = run.said();
    assert_eq!(run.code(), 0, "{said}");
    let root = run.root();
    for size in [4, 8] {
        let settled = root.join(format!("moody/cpu_settles/{size}"));
        let never = root.join(format!("moody/cpu_never/{size}"));
        for folder in [&settled, &never] {
            let entries = std::fs::read_dir(folder).expect("a folder");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("readable").file_name())
                .collect();
            names.sort();
            assert_eq!(names, ["base", "new", "report"], "{}", folder.display());
            for name in ["benchmark", "estimates", "sample", "tukey"] {
                let file = |side: &str| {
                    read::<Value>(&folder.join(side).join(name).with_extension("json"))
                };
                assert_eq!(file("new"), file("base"), "{name}");
            }
            let both = sidecar(&folder.join("new"));
            assert_eq!(both, sidecar(&folder.join("base")));
            assert!(folder.join("report/index.html").is_file());
            // One run more verifies the first result, and one the second.
            assert_eq!(
                both.notes,
                [format!("{} runs", Moody::OF_BOTH + 2)],
                "{said}"
            );
        }
        let samples: Value = read(&settled.join("new/sample.json"));
        let times = samples["times"].as_array().expect("a list");
        let long = |time: &Value| time.as_f64() >= Some(Moody::LONG.as_nanos() as f64);
        assert!(
            times.len() == 10 && times.iter().all(long),
            "of the first: {times:?}"
        );
        let why = sidecar(&never.join("new"))
            .unsteady
            .expect("it never settles");
        assert!(
            why.starts_with("two modes, ") || why.contains("interval"),
            "{why}"
        );
        assert!(said.contains(&format!(
            "note: moody/cpu/never/{size} is unsteady and is measured again: "
        )));
        assert!(said.contains(&format!(
            "note: moody/cpu/never/{size} is still unsteady: {why}"
        )));
    }
    assert!(!root.join("moody/cpu_settles_2").exists());
    let report = std::fs::read_to_string(root.join("moody/report/index.html")).expect("a page");
    for part in ["settles/4", "settles/8", "never/4", "never/8"] {
        let link = format!("/moody/cpu_{part}/report/");
        assert!(
            report.contains(&link),
            "{part} is not in the group's report"
        );
    }
    // The change is that from the earlier result to the one that was kept: undoing a measurement
    // brings the earlier result back.
    let again = Run::into_folder(run.results, &bench("moody/cpu/never/4"), &[QUICK]);
    assert_eq!(again.code(), 0, "{}", again.said());
    let folder = again.root().join("moody/cpu_never/4");
    assert!(folder.join("change/estimates.json").is_file());
    assert_eq!(sidecar(&folder.join("new")), sidecar(&folder.join("base")));

    let tried = Run::new(&["--test", "moody/cpu/never/4"], &[QUICK]);
    assert!(!tried.said().contains("measured again"), "{}", tried.said());
}

fn failures_are_named_and_the_rest_goes_on() {
    let run = Run::new(&["--bench", "--noplot", "sound|faulty"], &[QUICK]);
    let said = run.said();
    assert_eq!(run.code(), 1, "{said}");
    let failed = run.record().failed;
    for (id, text) in [
        ("faulty/cpu/wrong/4", "wrong result"),
        ("faulty/cpu/unwritten/16", "wrong result"),
        ("faulty/cpu/panics/4", "ran out of luck"),
        ("faulty/cpu/decays/16", "wrong result"),
        ("faulty/cpu/errs/4", "no such thing"),
    ] {
        assert!(
            failed.iter().any(|f| f.id == id && f.error.contains(text)),
            "{id} is not named: {failed:?}\n{said}"
        );
        assert!(said.contains(&format!("FAILED {id}")), "{said}");
        let folder = id.replacen("cpu/", "cpu_", 1);
        assert!(!run.root().join(folder).join("new/crossover.json").exists());
    }
    assert!(
        !run.root().join("faulty/cpu_wrong").exists(),
        "a wrong one was timed"
    );
    assert!(
        run.root()
            .join("faulty/cpu_last/16/new/crossover.json")
            .exists()
    );
}

fn a_left_out_benchmark_takes_no_time() {
    let run = Run::new(&["--bench", "--noplot", "sound/cpu/double/4$"], &[QUICK]);
    assert_eq!(run.code(), 0, "{}", run.said());
    assert!(run.said().contains("made inputs of 4") && !run.said().contains("made inputs of 16"));
    assert!(!run.root().join("sound/cpu_double/16").exists());

    let list = Run::new(&["--bench", "--list"], &[]);
    assert_eq!(list.code(), 0);
    let said = list.said();
    assert!(said.contains("sound/cpu/double/64: benchmark"), "{said}");
    assert!(!said.contains("made inputs"), "{said}");
    assert!(!said.contains("256"), "outside the profile: {said}");
    assert_eq!(std::fs::read_dir(list.root()).expect("a folder").count(), 0);
}

fn test_mode_verifies_and_writes_nothing() {
    let good = Run::new(&["--test", "sound"], &[QUICK]);
    assert_eq!(good.code(), 0, "{}", good.said());
    assert!(good.said().contains("Success"), "{}", good.said());
    assert_eq!(std::fs::read_dir(good.root()).expect("a folder").count(), 0);
    let bad = Run::new(&["--test", "faulty/cpu/wrong"], &[QUICK]);
    assert_eq!(bad.code(), 1, "{}", bad.said());
    assert_eq!(std::fs::read_dir(bad.root()).expect("a folder").count(), 0);
}

fn profiling_says_what_it_cannot_see_and_keeps_no_result() {
    let profiled = |filter: &str| {
        let arguments = ["--bench", "--profile-time", "1", filter];
        let run = Run::new(&arguments, &[QUICK]);
        let kept: Vec<String> = walkdir::WalkDir::new(run.root())
            .into_iter()
            .flatten()
            .filter(|entry| entry.file_type().is_file() && entry.file_name() != "crossover.lock")
            .map(|entry| entry.path().display().to_string())
            .collect();
        assert!(kept.is_empty(), "{kept:?}");
        (run.code(), run.said())
    };
    let (code, said) = profiled("sound/cpu/double/16$");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("nothing ran on a GPU"), "{said}");
    // A benchmark that is profiled is verified first, too.
    let (code, said) = profiled("faulty/cpu/wrong/16$");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("wrong result"), "{said}");
    let run = Run::new(&["--bench", "--profile-time", "0.5", "sound"], &[QUICK]);
    assert_eq!(run.code(), 2, "{}", run.said());
    holds(&run.said(), "give 1 second or more");
}

fn a_saved_baseline_compares_with_a_later_one() {
    let results = tempfile::tempdir().expect("a temporary folder can be made");
    let criterion = results.path().join("criterion");
    let home = criterion.display().to_string();
    let save = |results, name| {
        Run::into_folder(
            results,
            &["--bench", "--noplot", "sound", "--save-baseline", name],
            &[QUICK, ("CRITERION_HOME", &home)],
        )
    };
    let run = save(results, "before");
    assert_eq!(run.code(), 0, "{}", run.said());
    let run = save(run.results, "after");
    assert_eq!(run.code(), 0, "{}", run.said());
    let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
        .args(["compare", "before", "after", "--json", "--fail-on", "none"])
        .env("CRITERION_HOME", &criterion)
        .output()
        .expect("the command was built for this test");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(output.status.code(), Some(0), "{json:#}");
    assert_eq!(json["problems"], serde_json::json!([]), "{json:#}");
    let rows = json["benchmarks"].as_array().expect("a list");
    let ids: Vec<&str> = rows.iter().filter_map(|r| r["id"].as_str()).collect();
    assert_eq!(ids.len(), 2, "{json:#}");
    for row in rows {
        assert_eq!(row["clock"], "wall", "{row}");
        assert!(row["ratio"].is_f64(), "{row}");
        // Two benchmarks over one pair of runs tell nothing of how two runs differ.
        let reason = row["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("fewer than four benchmarks"), "{row}");
    }
    critcmp(run.root(), &ids);
}

/// critcmp, which knows Criterion's files alone, reads both baselines too. Without it the test
/// says so and passes, unless `CROSSOVER_REQUIRE_CRITCMP=1`.
fn critcmp(target: &Path, ids: &[&str]) {
    let program = std::env::var("CRITCMP").unwrap_or_else(|_| "critcmp".to_owned());
    let output = Command::new(program)
        .arg("--target-dir")
        .arg(target)
        .args(["before", "after"])
        .output();
    let Ok(output) = output else {
        let required = std::env::var("CROSSOVER_REQUIRE_CRITCMP").is_ok_and(|v| v == "1");
        assert!(
            !required,
            "CROSSOVER_REQUIRE_CRITCMP=1 and critcmp cannot be started"
        );
        println!("(without critcmp, which `cargo install critcmp` brings)");
        return;
    };
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}");
    for id in ids {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{id} ")));
        let times = row.map_or(0, |row| row.matches("ns").count());
        assert!(times >= 2, "{id} has not both sides in\n{table}");
    }
}
