//! The suite as a user meets it. Each run is a process of its own with a results folder of its own.

use std::path::Path;
use std::process::Command;

use crossover_suite::timing::Clock;
use serde_json::Value;

use crate::faults::run::{Suite, files, read};
use crate::groups::Moody;
use crate::printed::{ended, holds, lacks, table, text};

/// One without a result neither reports nor misses one, and inputs are made for what is asked for alone.
pub(crate) fn a_run_prints_what_is_asked_for_and_writes_no_more() {
    for [line, code, words, absent, leaves] in table(
        r#"
        --bench --verbose sound/cpu/fill/32  | 0 | time:   [ … med. abs. dev. … Benchmarking sound/cpu/fill/32 | - | sound
        --bench -q sound/cpu/fill/32         | 0 | sound/cpu/fill/32:  | measuring the, confirming, [1/, Benchmarking | sound
        --bench sound/cpu/fill/4$            | 0 | made inputs of 4    | made inputs of 8, made inputs of 16 | sound
        --bench faulty/cpu/(wrong|errs)/4$   | 1 | 2 failed, see above: faulty/cpu/wrong/4, faulty/cpu/errs/4 | no report was, `cargo bench` first | runs
        CROSSOVER_SIZES=default --bench --list | 0 | sound/cpu/fill/16: benchmark | made inputs, sound/cpu/fill/32 | -
        --bench --help | 0 | CROSSOVER_SIZES … CROSSOVER_DEVICE … CROSSOVER_GATE … CROSSOVER_MONITOR … CROSSOVER_PROCESSES … CRITERION_HOME … --save-baseline | - | -
        --test sound                         | 0 | Success | - | -
        --test faulty/cpu/wrong              | 1 | wrong result | - | -
        --bench --profile-time 1 sound/cpu/fill/32$    | 0 | nothing ran on a GPU | - | -
        --bench --profile-time 1 faulty/cpu/wrong/16$  | 1 | wrong result | - | -
        "#,
    ) {
        let suite = Suite::new();
        let output = suite.run(line, code.parse().unwrap(), words);
        let absent = absent.split(", ").filter(|words| *words != "-");
        lacks(&output, &Vec::from_iter(absent));
        match leaves {
            "-" if line.contains("--list") || line.starts_with("--test") => {
                assert!(!suite.root.exists(), "{line}");
            }
            "-" => assert_eq!(files(suite.dir.path()).into_keys().next(), None, "{line}"),
            _ => assert!(suite.root.join(leaves).exists(), "{line}"),
        }
    }
}

/// It prints a line for each benchmark, in place of Criterion's, which begin with an id and its place.
pub(crate) fn a_run_leaves_its_files() {
    let suite = Suite::new();
    let line = "--bench sound/cpu/fill/(8|16|32)$";
    let output = suite.plotted(line).output().unwrap();
    let both_streams = ended(&output, 0, "] sound/cpu/fill/32: … made inputs of 8");
    let foreign = ["Benchmarking", "time:   [", "ns/iter", "made inputs of 16"];
    lacks(&both_streams, &foreign);
    let printed = text(&output.stdout);
    let last = printed.trim_end().lines().next_back().unwrap();
    assert!(last.starts_with("report: "), "{last}");
    for file in [
        "criterion/sound/cpu_fill/32/new/estimates.json",
        // Criterion's page, what plotters drew, and the report.
        "criterion/report/index.html",
        "criterion/sound/report/lines.svg",
        "index.html",
    ] {
        assert!(suite.path(file).is_file(), "no {file}");
    }
    let sidecar = suite.sidecar("sound/cpu_fill/32/new");
    assert_eq!(sidecar.id, "sound/cpu/fill/32");
    assert_eq!(sidecar.clock, Clock::Wall);
    assert_eq!(sidecar.cost.flop, Some(32.0));
    assert!(sidecar.verified.expect("verified").passed());
    let [record] = &suite.records()[..] else {
        panic!("one record");
    };
    let run = format!("runs/{}.json", sidecar.run);
    assert!(suite.root.join(run).is_file());
    assert_eq!(record.run, sidecar.run);
    assert_eq!(record.arguments.join(" "), line);
    assert_eq!(record.size_set, "quick");
    assert!(record.finished.is_some() && record.failed.is_empty());
    assert!(record.limits["cpu_fma_all"].value > 1e8);
    for curve in ["cpu_read", "cpu_write", "cpu_copy"] {
        let points = &record.curves[curve].points;
        let is_plausible = points.iter().all(|point| point.rate > 1e8);
        assert!(points.len() > 5 && is_plausible, "{curve}: {points:?}");
    }
}

pub(crate) fn state_is_restored_before_each_sample_and_not_inside() {
    let suite = Suite::new();
    let options = "--sample-size 10 --measurement-time 0.3";
    suite.run(&format!("--bench stateful {options}"), 0, "");
    let samples = read(&suite.root.join("stateful/cpu_steps/4/new/sample.json"));
    let iterations = samples["iters"].as_array().expect("a list").iter();
    let iterations = iterations.map(|count| count.as_f64().expect("a number").to_string());
    let iterations = Vec::from_iter(iterations);
    let runs = suite.sidecar("stateful/cpu_steps/4/new").notes;
    // First the run that is verified, then a warm one, by which the samples are planned.
    assert_eq!(runs.first().map(String::as_str), Some("2"), "{runs:?}");
    let (last, before) = runs.split_last().expect("several");
    assert_eq!(last, "1", "verified again: {runs:?}");
    assert!(before.ends_with(&iterations), "{runs:?}, {iterations:?}");
    // One iteration a sample would show nothing.
    let are_several = iterations.iter().any(|count| count != "1");
    assert!(are_several, "{iterations:?}");
}

/// Samples in two modes are taken again before Criterion gets them.
pub(crate) fn an_unsteady_benchmark_is_measured_again() {
    let suite = Suite::new();
    let moody = format!("--bench moody {}", Moody::OPTIONS);
    let output = suite.run(&moody, 0, "");
    for size in [4, 8] {
        let [settled, never] =
            ["settles", "never"].map(|row| format!("moody/cpu_{row}/{size}/new"));
        for result in [&settled, &never] {
            let runs = suite.sidecar(result).notes.into_iter();
            let runs = runs.map(|runs| runs.parse::<u32>().unwrap());
            // One run more verifies the first result, and one the second.
            assert_eq!(runs.sum::<u32>(), Moody::OF_BOTH + 2, "{output}");
            let base = suite.sidecar(&result.replace("/new", "/base"));
            assert_eq!(base, suite.sidecar(result));
        }
        let samples = read(&suite.root.join(settled).join("sample.json"));
        let times = samples["times"].as_array().expect("a list");
        let long = |time: &Value| time.as_f64() >= Some(Moody::LONG.as_nanos() as f64);
        assert_eq!(times.len(), 10);
        assert!(times.iter().all(long), "of the first: {times:?}");
        let why = suite.sidecar(&never).unsteady.expect("it never settles");
        let is_known = why.starts_with("two modes, ") || why.contains("interval");
        assert!(is_known, "{why}");
        // The record has the reason.
        lacks(&output, &[&why]);
    }
    // On a busy host the others are unsteady, too.
    let unsteady = output.matches(", unsteady").count();
    holds(
        &output,
        &format!("{unsteady} benchmarks unsteady, so no answer uses them"),
    );
    let tried = suite.run("--test moody/cpu/never/4", 0, "");
    lacks(&tried, &["measured again"]);
}

/// Failures of one cause, and rows that no GPU can run, have a line together.
pub(crate) fn failures_are_named_and_the_rest_goes_on() {
    let suite = Suite::new();
    let shown = suite.run("--bench --quick sound|faulty|choice", 1, "");
    let result = |id: &str| {
        let folder = suite.root.join(id.replacen("cpu/", "cpu_", 1));
        folder.join("new/crossover.json").exists()
    };
    let failed = suite.records().remove(0).failed;
    for (id, text) in [
        ("faulty/cpu/set-up/4", "no set-up"),
        ("faulty/cpu/check/4", "no check"),
        ("faulty/cpu/wrong/4", "wrong result"),
        ("faulty/cpu/unwritten/16", "wrong result"),
        ("faulty/cpu/panics/4", "ran out of luck"),
        ("faulty/cpu/decays/16", "wrong result"),
        ("faulty/cpu/errs/4", "no such thing"),
    ] {
        let named = failed.iter().find(|failure| failure.id == id);
        holds(&named.expect(id).error, text);
        holds(&shown, &format!("FAILED {id}"));
        assert!(!result(id), "{id}");
    }
    assert!(
        !suite.root.join("faulty/cpu_wrong").exists(),
        "it was timed"
    );
    for size in [4, 16] {
        assert!(result(&format!("faulty/cpu/last/{size}")));
    }
    holds(
        &shown,
        "FAILED faulty/cpu/set-up/16: as faulty/cpu/set-up/4",
    );
    assert_eq!(shown.matches("no set-up").count(), 1, "{shown}");
    holds(
        &shown,
        "left out sound/gpu/none, sound/gpu/neither, choice/gpu/none: ",
    );
    let reason = "the GPU is switched off by CROSSOVER_DEVICE=none";
    assert_eq!(shown.matches(reason).count(), 2, "{shown}");
}

pub(crate) fn inputs_that_are_not_timed_are_verified() {
    let suite = Suite::new();
    let failure = "FAILED own/cpu/cached/4: at size 9 with other values: wrong result";
    let same = "fixed has the same inputs with another seed";
    for (line, of_fixed, code) in [
        ("--test", format!("FAILED fixed: {same}"), 1),
        ("--bench --quick", format!("note: {same}"), 0),
    ] {
        let output = suite.run(&format!("{line} own"), 1, "");
        assert_eq!(output.matches(failure).count(), 1, "{output}");
        lacks(&output, &["FAILED own/cpu/right", "no report was written"]);
        suite.run(&format!("{line} fixed"), code, &of_fixed);
    }
    assert!(suite.root.join("own/cpu_right/4/new").exists());
    assert!(!suite.root.join("own/cpu_cached").exists(), "it was timed");
}

pub(crate) fn a_saved_baseline_compares_with_a_later_one() {
    let suite = Suite::new();
    for name in ["before", "after"] {
        let line = format!("--bench sound/cpu/fill/(4|8)$ --save-baseline {name}");
        suite.run(&line, 0, "");
        let sidecar = format!("sound/cpu_fill/4/{name}/crossover.json");
        assert!(suite.root.join(sidecar).exists());
    }
    let mut compare = suite.crossover("compare before after --json --fail-on none");
    let output = compare.output().unwrap();
    ended(&output, 0, "");
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["problems"], serde_json::json!([]), "{json:#}");
    let rows = json["benchmarks"].as_array().expect("a list");
    let ids = Vec::from_iter(rows.iter().filter_map(|row| row["id"].as_str()));
    assert_eq!(ids.len(), 2, "{json:#}");
    assert!(rows.iter().all(|row| row["ratio"].is_f64()), "{json:#}");
    critcmp(suite.dir.path(), &ids);
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
        assert!(!required, "CROSSOVER_REQUIRE_CRITCMP=1 without critcmp");
        println!("(without critcmp, which `cargo install critcmp` brings)");
        return;
    };
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}");
    for id in ids {
        let mut rows = table.lines();
        let row = rows.find(|line| line.starts_with(&format!("{id} ")));
        let times = row.map_or(0, |row| row.matches("ns").count());
        assert!(times >= 2, "{id} has not both sides in\n{table}");
    }
}
