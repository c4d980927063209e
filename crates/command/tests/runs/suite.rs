//! The suite as a user meets it. Each run is a process of its own with a results folder of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crossover_suite::model::Sidecar;
use crossover_suite::timing::Clock;
use serde_json::Value;

use crate::faults::files::records_in;
use crate::faults::run::{bench, crossover, files, plotted, read};
use crate::groups::Moody;
use crate::printed::{ended, expect, holds};
use crate::test::tests;

tests! {
    Beside criterion_prints_what_is_asked_for: criterion_prints_what_is_asked_for,
    Beside a_run_leaves_its_files: a_run_leaves_its_files,
    Alone state_is_restored_before_each_sample_and_not_inside: state_is_restored_before_each_sample_and_not_inside,
    Alone an_unsteady_benchmark_is_measured_again: an_unsteady_benchmark_is_measured_again,
    Beside failures_are_named_and_the_rest_goes_on: failures_are_named_and_the_rest_goes_on,
    Beside a_left_out_benchmark_takes_no_time: a_left_out_benchmark_takes_no_time,
    Beside test_mode_verifies_and_writes_nothing: test_mode_verifies_and_writes_nothing,
    Beside help_has_the_settings: help_has_the_settings,
    Beside a_run_without_a_result_reports_nothing: a_run_without_a_result_reports_nothing,
    Beside inputs_that_are_not_timed_are_verified: inputs_that_are_not_timed_are_verified,
    Beside profiling_says_what_it_cannot_see_and_keeps_no_result: profiling_says_what_it_cannot_see_and_keeps_no_result,
    Beside a_saved_baseline_compares_with_a_later_one: a_saved_baseline_compares_with_a_later_one,
}

/// The sidecar of a result, which must be that of the samples beside it.
fn sidecar(folder: &Path) -> Sidecar {
    let read = crossover_results::store::sampled::Sampled::whole(folder);
    read.expect("a whole result").sidecar.expect("a sidecar")
}

fn lacks(said: &str, all: &[&str]) {
    for words in all {
        assert!(!said.contains(words), "{words} in {said}");
    }
}

fn criterion_prints_what_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let asked = ["--bench", "--verbose", "sound/cpu/fill/32"];
    let said = expect(&mut bench(dir.path(), &asked), 0, "time:   [");
    holds(&said, "Benchmarking sound/cpu/fill/32");
    holds(&said, "med. abs. dev.");
    let quiet = ["--bench", "-q", "sound/cpu/fill/32"];
    let said = expect(&mut bench(dir.path(), &quiet), 0, "sound/cpu/fill/32: ");
    lacks(
        &said,
        &["measuring the", "confirming", "[1/", "Benchmarking"],
    );
}

/// It prints a line for each benchmark, in place of Criterion's, which begin with an id and its place.
fn a_run_leaves_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let options = ["--bench", "sound/cpu/fill/(8|16|32)$"];
    let output = plotted(root, &options).output().unwrap();
    let said = ended(&output, 0, "] sound/cpu/fill/32: ");
    lacks(&said, &["Benchmarking", "time:   [", "ns/iter"]);
    holds(&said, "made inputs of 8");
    lacks(&said, &["made inputs of 16"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = printed.trim_end().lines().next_back().unwrap();
    assert!(last.starts_with("report: "), "{last}");
    for file in [
        "sound/cpu_fill/32/new/benchmark.json",
        "sound/cpu_fill/32/new/estimates.json",
        "sound/cpu_fill/32/new/tukey.json",
        // Criterion's page, what plotters drew, and the report.
        "report/index.html",
        "sound/report/lines.svg",
        "index.html",
    ] {
        assert!(root.join(file).is_file(), "no {file}");
    }
    let sidecar = sidecar(&root.join("sound/cpu_fill/32/new"));
    assert_eq!(sidecar.id, "sound/cpu/fill/32");
    assert_eq!(sidecar.clock, Clock::Wall);
    assert_eq!(sidecar.cost.flop, Some(32.0));
    assert!(sidecar.verified.expect("verified").passed());
    let [record] = &records_in(root)[..] else {
        panic!("one record");
    };
    assert!(root.join(format!("runs/{}.json", sidecar.run)).is_file());
    assert_eq!(record.run, sidecar.run);
    assert_eq!(record.arguments, options);
    assert_eq!(record.size_set, "quick");
    assert!(record.finished.is_some() && record.failed.is_empty());
    for ceiling in ["cpu_fma_1", "cpu_fma_all"] {
        assert!(record.ceilings[ceiling].value > 1e8, "{ceiling}");
    }
    for curve in ["cpu_read", "cpu_copy"] {
        let points = &record.curves[curve].points;
        assert!(points.iter().all(|point| point.rate > 1e8), "{curve}");
    }
}

fn state_is_restored_before_each_sample_and_not_inside() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--bench", "stateful", "--sample-size", "10"];
    expect(&mut bench(dir.path(), &options), 0, "");
    let folder = dir.path().join("stateful/cpu_steps/4/new");
    let samples = read(&folder.join("sample.json"));
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
    let warm_up = &before[1..before.len() - iterations.len()];
    let doubled = (0..warm_up.len()).map(|at| (1 << at).to_string());
    let is_taken_once = doubled.eq(warm_up.iter().cloned());
    // An unsteady series before the one that counts.
    let mut earlier = warm_up.windows(iterations.len());
    let is_taken_again = earlier.any(|series| series == iterations);
    assert!(is_taken_once || is_taken_again, "{runs:?}");
    assert!(
        iterations.iter().any(|count| count != "1"),
        "one iteration a sample shows nothing: {iterations:?}"
    );
}

/// Samples in two modes are taken again before Criterion gets them, so files and reports are those of one
/// measurement.
fn an_unsteady_benchmark_is_measured_again() {
    let moody = |filter: &'static str| [&["--bench", filter][..], &Moody::OPTIONS].concat();
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let said = expect(&mut plotted(root, &moody("moody")), 0, "");
    for size in [4, 8] {
        let settled = root.join(format!("moody/cpu_settles/{size}"));
        let never = root.join(format!("moody/cpu_never/{size}"));
        for folder in [&settled, &never] {
            let entries = fs::read_dir(folder).expect("a folder");
            let mut names: Vec<_> = entries
                .map(|entry| entry.expect("readable").file_name())
                .collect();
            names.sort();
            assert_eq!(names, ["base", "new", "report"], "{}", folder.display());
            for name in ["benchmark", "estimates", "sample", "tukey"] {
                let file = |side: &str| read(&folder.join(side).join(name).with_extension("json"));
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
        let samples = read(&settled.join("new/sample.json"));
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
        assert!(!said.contains(&why), "the record has the reason: {said}");
    }
    // On a busy host the others are unsteady, too.
    let unsteady = said.matches(", unsteady").count();
    let line = format!("{unsteady} benchmarks unsteady, so no answer uses them");
    assert_eq!(said.matches("so no answer uses").count(), 1, "{said}");
    holds(&said, &line);
    assert!(!root.join("moody/cpu_settles_2").exists());
    let report = fs::read_to_string(root.join("moody/report/index.html")).expect("a page");
    for part in ["settles/4", "settles/8", "never/4", "never/8"] {
        holds(&report, &format!("/moody/cpu_{part}/report/"));
    }
    // The change is that from the earlier result to the one that was kept.
    expect(&mut bench(root, &moody("moody/cpu/never/4")), 0, "");
    let folder = root.join("moody/cpu_never/4");
    assert!(folder.join("change/estimates.json").is_file());
    assert_eq!(sidecar(&folder.join("new")), sidecar(&folder.join("base")));

    let tried = expect(&mut bench(root, &["--test", "moody/cpu/never/4"]), 0, "");
    lacks(&tried, &["measured again"]);
}

fn failures_are_named_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let options = ["--bench", "faulty/cpu/.*/(4|16)$"];
    let said = expect(&mut bench(root, &options), 1, "");
    let result = |id: &str| {
        let folder = root.join(id.replacen("cpu/", "cpu_", 1));
        folder.join("new/crossover.json").exists()
    };
    let failed = records_in(root).remove(0).failed;
    for (id, text) in [
        ("faulty/cpu/wrong/4", "wrong result"),
        ("faulty/cpu/unwritten/16", "wrong result"),
        ("faulty/cpu/panics/4", "ran out of luck"),
        ("faulty/cpu/decays/16", "wrong result"),
        ("faulty/cpu/errs/4", "no such thing"),
    ] {
        let named = failed.iter().find(|failure| failure.id == id);
        holds(&named.expect(id).error, text);
        holds(&said, &format!("FAILED {id}"));
        assert!(!result(id), "{id}");
    }
    assert!(!root.join("faulty/cpu_wrong").exists(), "it was timed");
    assert!(result("faulty/cpu/last/16"));
}

fn a_left_out_benchmark_takes_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let mut list = bench(root, &["--bench", "--list"]);
    let words = "sound/cpu/fill/16: benchmark";
    let said = expect(list.env("CROSSOVER_SIZES", "default"), 0, words);
    lacks(&said, &["made inputs", "sound/cpu/fill/32"]);
    assert_eq!(fs::read_dir(root).unwrap().count(), 0);
    let options = ["--bench", "sound/cpu/fill/4$"];
    let said = expect(&mut bench(root, &options), 0, "made inputs of 4");
    lacks(&said, &["made inputs of 8"]);
    assert!(!root.join("sound/cpu_fill/8").exists());
}

fn test_mode_verifies_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (filter, code, words) in [("sound", 0, "Success"), ("faulty/cpu/wrong", 1, "")] {
        expect(&mut bench(dir.path(), &["--test", filter]), code, words);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

fn inputs_that_are_not_timed_are_verified() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let tail = "FAILED own/cpu/tail/4: at size 9: wrong result";
    let element = "the first wrong one, [8], is NaN, and the reference is ";
    let cached = "FAILED own/cpu/cached/4: at size 9 with other values: wrong result";
    let loose = "FAILED own/cpu/loose/4: the bound is too wide";
    for options in [&["--test", "own"][..], &["--bench", "--quick", "own"]] {
        let said = expect(&mut bench(root, options), 1, tail);
        for words in [element, cached, loose] {
            assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
        }
        lacks(&said, &["FAILED own/cpu/right", "no report was written"]);
    }
    assert!(root.join("own/cpu_right/4/new").exists());
    for row in ["tail", "cached", "loose"] {
        assert!(
            !root.join(format!("own/cpu_{row}")).exists(),
            "{row} was timed"
        );
    }
    let same = "fixed has the same inputs with another seed";
    expect(
        &mut bench(root, &["--test", "fixed"]),
        1,
        &format!("FAILED fixed: {same}"),
    );
    let quick = ["--bench", "--quick", "fixed"];
    expect(&mut bench(root, &quick), 0, &format!("note: {same}"));
}

fn help_has_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let said = expect(
        &mut bench(dir.path(), &["--bench", "--help"]),
        0,
        "--save-baseline",
    );
    for setting in ["SIZES", "DEVICE", "GATE", "MONITOR", "PROCESSES"] {
        holds(&said, &format!("  CROSSOVER_{setting} "));
    }
    holds(&said, "  CRITERION_HOME ");
}

fn a_run_without_a_result_reports_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--bench", "faulty/cpu/(wrong|errs)/4$"];
    let failed = "2 failed, see above: faulty/cpu/wrong/4, faulty/cpu/errs/4";
    let said = expect(&mut bench(dir.path(), &options), 1, failed);
    lacks(&said, &["no report was written", "`cargo bench` first"]);
}

fn profiling_says_what_it_cannot_see_and_keeps_no_result() {
    let dir = tempfile::tempdir().unwrap();
    for (filter, seconds, code, words) in [
        ("sound/cpu/fill/32$", "1", 0, "nothing ran on a GPU"),
        // A benchmark that is profiled is verified first, too.
        ("faulty/cpu/wrong/16$", "1", 1, "wrong result"),
        ("sound", "0.5", 2, "give 1 second or more"),
    ] {
        let arguments = ["--bench", "--profile-time", seconds, filter];
        expect(&mut bench(dir.path(), &arguments), code, words);
        assert_eq!(files(dir.path()).into_keys().next(), None);
    }
}

fn a_saved_baseline_compares_with_a_later_one() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    for name in ["before", "after"] {
        let options = ["--bench", "sound/cpu/fill/(4|8)$", "--save-baseline", name];
        expect(&mut bench(&root, &options), 0, "");
    }
    let options = ["compare", "before", "after", "--json", "--fail-on", "none"];
    let output = crossover(&root, &options).output().unwrap();
    ended(&output, 0, "");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["problems"], serde_json::json!([]), "{json:#}");
    let rows = json["benchmarks"].as_array().expect("a list");
    let ids: Vec<&str> = rows.iter().filter_map(|r| r["id"].as_str()).collect();
    assert_eq!(ids.len(), 2, "{json:#}");
    for row in rows {
        assert_eq!(row["clock"], "wall", "{row}");
        assert!(row["ratio"].is_f64(), "{row}");
        // Two benchmarks over one pair of runs tell nothing of how two runs differ, nor do those of a busy machine.
        let reason = row["reason"].as_str().unwrap_or_default();
        let reasons = ["fewer than four benchmarks", "its samples are unsteady"];
        assert!(reasons.iter().any(|of| reason.contains(of)), "{row}");
    }
    critcmp(dir.path(), &ids);
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
