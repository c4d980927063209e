//! `crossover compare` on generated baselines: verdicts, messages and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crossover::model::Skip;
use crossover::timing::Clock;
use serde_json::Value;

use crate::baselines::{Result, folder, record, suite, write};
use crate::printed::{ended, printed, text};

fn crossover(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crossover"))
        .arg("compare")
        .args(args)
        .env("CRITERION_HOME", root)
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap()
}

fn out(output: &Output) -> String {
    text(&output.stdout)
}

fn err(output: &Output) -> String {
    text(&output.stderr)
}

/// The comparison as JSON with its exit code.
fn json(root: &Path, args: &[&str]) -> (Value, i32) {
    let output = crossover(root, &[args, &["--json"]].concat());
    let value =
        serde_json::from_str(&out(&output)).unwrap_or_else(|e| panic!("{e}: {}", printed(&output)));
    (value, output.status.code().unwrap())
}

/// Fails where these arguments do not end with exit code 2 and such an error.
fn refused(root: &Path, args: &[&str], words: &str) {
    ended(&crossover(root, args), 2, words);
}

fn row<'a>(json: &'a Value, id: &str) -> &'a Value {
    json["benchmarks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|b| b["id"] == id)
        .unwrap_or_else(|| panic!("{id} is not in {json:#}"))
}

fn root() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Baselines `main` and `mine`; the times of the second are so many times those of the first.
fn main_and_mine(ratio: impl Fn(&str) -> f64) -> tempfile::TempDir {
    let root = root();
    suite(root.path(), "main", 1, |_| 1.0);
    suite(root.path(), "mine", 2, ratio);
    root
}

#[test]
fn a_table_is_as_wide_and_as_coloured_as_it_is_asked_to_be() {
    let root = main_and_mine(|id| if id.contains("naive/64") { 1.1 } else { 1.0 });
    let table = |name: &str, value: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
            .args(["compare", "main", "mine", "--all"])
            .env("CRITERION_HOME", root.path())
            .env(name, value)
            .output()
            .unwrap();
        let text = out(&output);
        let rules = text.split_once('─').unwrap().1.rsplit_once('─').unwrap();
        rules.0.to_owned()
    };
    let widest = |table: &str| table.lines().map(|line| line.chars().count()).max();
    assert!(
        widest(&table("COLUMNS", "90")) <= Some(90),
        "{}",
        table("COLUMNS", "90")
    );
    let usual = widest(&table("COLUMNS", "0"));
    assert!(usual > Some(90) && usual <= Some(120), "{usual:?}");
    assert!(table("CLICOLOR_FORCE", "1").contains("\u{1b}["));
    assert!(!table("CLICOLOR_FORCE", "0").contains("\u{1b}["));
}

#[test]
fn a_narrow_terminal_has_a_block_for_each_benchmark() {
    let root = main_and_mine(|id| if id.contains("naive/64") { 1.1 } else { 1.0 });
    let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
        .args(["compare", "main", "mine"])
        .env("CRITERION_HOME", root.path())
        .env("COLUMNS", "60")
        .output()
        .unwrap();
    let text = out(&output);
    assert!(!text.contains('─'), "{text}");
    for part in [
        "matmul/gpu/naive/64\n  clock: events-gated\n",
        "  verdict: slower",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn results_of_two_machines_get_no_verdict() {
    let root = main_and_mine(|id| if id.contains("tiled") { 1.5 } else { 1.0 });
    record(root.path(), "run-mine", |r| {
        r.environment.gpu.as_mut().unwrap().name = "Another".to_owned();
    });
    let (found, code) = json(root.path(), &["main", "mine"]);
    assert_eq!((code, &found["counts"]["unsure"]), (2, &20.into()));
    let reason = found["benchmarks"][0]["reason"].to_string();
    assert!(
        reason.contains("the sides ran on different machines: GPU "),
        "{reason}"
    );
}

#[test]
fn an_error_is_said_once() {
    let root = main_and_mine(|_| 1.0);
    let html = root.path().join("matmul").display().to_string();
    let said = err(&crossover(root.path(), &["main", "mine", "--html", &html]));
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn a_slower_kernel_is_found_and_nothing_else() {
    let root = main_and_mine(|id| if id.contains("tiled") { 1.03 } else { 1.0 });
    let (found, code) = json(root.path(), &["main", "mine"]);
    assert_eq!(code, 1);
    assert_eq!(found["counts"]["slower"], 5, "{found:#}");
    assert_eq!(
        (&found["schema"], &found["counts"]["faster"]),
        (&1.into(), &0.into())
    );
    assert_eq!(found["warnings"], serde_json::json!([]));
    let tiled = row(&found, "matmul/gpu/tiled/512");
    assert_eq!(tiled["verdict"], "slower");
    let (low, high) = (
        tiled["low"].as_f64().unwrap(),
        tiled["high"].as_f64().unwrap(),
    );
    assert!(low < 1.03 && 1.03 < high && low > 1.0, "{tiled}");
    assert_eq!(tiled["clock"], "events-gated");
    assert_eq!(tiled["base_samples"], serde_json::json!([30]));

    // The other way round it is faster, which fails nothing unless asked.
    let (found, code) = json(root.path(), &["mine", "main"]);
    assert_eq!((code, &found["counts"]["faster"]), (0, &5.into()));
    assert_eq!(
        json(root.path(), &["mine", "main", "--fail-on", "any"]).1,
        1
    );
    assert_eq!(
        json(root.path(), &["main", "mine", "--fail-on", "none"]).1,
        0
    );
    // A change below the threshold is none.
    assert_eq!(
        json(root.path(), &["main", "mine", "--threshold", "5"]).1,
        0
    );
    // A filter hides the rest.
    let (found, code) = json(root.path(), &["main", "mine", "--filter", "cublas"]);
    assert_eq!(code, 0);
    assert_eq!(found["benchmarks"].as_array().unwrap().len(), 5);
}

#[test]
fn pairs_of_runs_are_compared_pair_by_pair() {
    let root = root();
    for (seed, name) in ["a1", "a2"].into_iter().enumerate() {
        suite(root.path(), name, seed as u64, |_| 1.0);
    }
    for (seed, name) in ["b1", "b2"].into_iter().enumerate() {
        suite(root.path(), name, 10 + seed as u64, |_| 1.02);
    }
    let (found, code) = json(root.path(), &["a1,a2", "b1,b2"]);
    assert_eq!(
        (code, &found["counts"]["slower"]),
        (1, &20.into()),
        "{found:#}"
    );
    assert_eq!(found["classes"][0]["pairs"], 2);
    refused(
        root.path(),
        &["a1,a2", "b1"],
        "as many on one side as on the other",
    );
}

#[test]
fn a_missing_baseline_lists_those_there_are() {
    let root = root();
    suite(root.path(), "main", 1, |_| 1.0);
    suite(root.path(), "other", 1, |_| 1.0);
    let sides = ["main", "mine"];
    refused(root.path(), &sides, "no baseline `mine`");
    refused(root.path(), &sides, "`main`, `other`");
    refused(self::root().path(), &sides, "--save-baseline");
    let nowhere = ["main", "no/where"];
    refused(root.path(), &nowhere, "no/where: no such folder");
}

#[test]
fn folders_and_baselines_of_folders_are_sides() {
    let (here, there) = (root(), root());
    let inner = there.path().join("target-reports/criterion");
    suite(here.path(), "main", 1, |_| 1.0);
    suite(&inner, "new", 2, |_| 1.0);
    suite(&inner, "old", 3, |_| 1.0);
    let folder = there.path().to_str().unwrap();
    assert_eq!(json(here.path(), &["main", folder]).1, 0);
    let named = format!("{folder}:old");
    assert_eq!(json(here.path(), &[&named, folder]).1, 0);
    let missing = format!("{folder}:none");
    let output = crossover(here.path(), &[&missing, folder]);
    assert!(err(&output).contains("`new`, `old`"), "{}", err(&output));
}

#[test]
fn broken_files_are_named_and_the_rest_compared() {
    let root = main_and_mine(|_| 1.0);
    let dir = |id: &str| folder(root.path(), "mine", id);
    let [a, b, c, d] =
        ["tiled/64", "tiled/128", "tiled/256", "tiled/512"].map(|id| format!("matmul/gpu/{id}"));
    fs::write(dir(&a).join("benchmark.json"), "{\"full").unwrap();
    fs::write(dir(&b).join("sample.json"), "{}").unwrap();
    fs::remove_file(dir(&c).join("sample.json")).unwrap();
    fs::write(
        dir(&d).join("sample.json"),
        r#"{"iters":[1,1,1,1,1],"times":[1,1,1,0,1]}"#,
    )
    .unwrap();
    let (found, code) = json(root.path(), &["main", "mine"]);
    assert_eq!(code, 0);
    // Neither gone nor compared, each named with its path.
    assert_eq!(found["counts"]["gone"], 0, "{found:#}");
    assert_eq!(found["benchmarks"].as_array().unwrap().len(), 16);
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 4, "{problems:#?}");
    for id in [a, b, c, d] {
        let path = dir(&id).display().to_string();
        assert!(
            problems.iter().any(|p| p.as_str().unwrap().contains(&path)),
            "{path} in {problems:#?}"
        );
    }
}

#[test]
fn a_renamed_benchmark_is_gone_and_new_and_a_skip_says_why() {
    let root = main_and_mine(|_| 1.0);
    let [before, after] =
        ["before", "after"].map(|name| Result::new(&format!("g/gpu/{name}/8"), 1e6, 1));
    write(root.path(), "main", &before);
    write(root.path(), "mine", &after);
    record(root.path(), "run-mine", |r| {
        r.skipped.push(Skip {
            id: "g/gpu/before".to_owned(),
            reason: "too little memory".to_owned(),
        });
    });
    let (found, code) = json(root.path(), &["main", "mine"]);
    assert_eq!(code, 0);
    let gone = row(&found, "g/gpu/before/8");
    assert_eq!(gone["verdict"], "gone");
    assert_eq!(gone["reason"], "skipped: too little memory");
    assert_eq!(row(&found, "g/gpu/after/8")["verdict"], "new");
    assert_eq!(
        json(root.path(), &["main", "mine", "--fail-on", "any"]).1,
        1
    );
    // Nothing in common is no clean comparison.
    let nothing = ["main", "mine", "--filter", "^g/"];
    refused(root.path(), &nothing, "nothing could be compared");
}

#[test]
fn different_clocks_get_no_verdict() {
    let root = main_and_mine(|_| 1.0);
    let id = "matmul/gpu/tiled/64";
    let on_events = Result {
        clock: Some(Clock::Events),
        ..Result::new(id, 2e5, 5)
    };
    write(root.path(), "mine", &on_events);
    let (found, code) = json(root.path(), &["main", "mine"]);
    let unsure = row(&found, id);
    assert_eq!((code, &unsure["verdict"]), (0, &"unsure".into()));
    let reason = unsure["reason"].as_str().unwrap();
    assert!(reason.contains("events and events-gated"), "{reason}");

    // A sidecar of other samples does not say which clock it was.
    let stale = "matmul/gpu/tiled/128";
    let sample = folder(root.path(), "mine", stale).join("sample.json");
    let text = fs::read_to_string(&sample).unwrap();
    fs::write(&sample, text + "\n").unwrap();
    let (found, _) = json(root.path(), &["main", "mine"]);
    assert!(
        row(&found, stale)["reason"]
            .as_str()
            .unwrap()
            .contains("unknown clock"),
        "{found:#}"
    );
    let problem = found["problems"][0].as_str().unwrap();
    assert!(problem.contains("crossover.json") && problem.contains("clock is unknown"));
}

#[test]
fn one_measurement_saved_twice_proves_nothing() {
    let root = root();
    suite(root.path(), "main", 1, |_| 1.0);
    suite(root.path(), "new", 1, |_| 1.0);
    let output = crossover(root.path(), &["main", "new"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(out(&output).contains("saved twice"));
}

/// Criterion replaces some characters of an id by others in the name of its folder.
// Windows takes no such names of files.
#[cfg(unix)]
#[test]
fn benchmarks_that_share_a_folder_are_named() {
    let root = main_and_mine(|_| 1.0);
    for (baseline, id) in [("main", "g/gpu/a:b/1"), ("mine", "g/gpu/a?b/1")] {
        let result = Result::new(id, 1e6, 1);
        let stored = folder(root.path(), baseline, id);
        write(root.path(), baseline, &result);
        let shared = folder(root.path(), baseline, "g/gpu/a_b/1");
        fs::create_dir_all(shared.parent().unwrap()).unwrap();
        fs::rename(stored, shared).unwrap();
    }
    let (found, _) = json(root.path(), &["main", "mine"]);
    for id in ["g/gpu/a:b/1", "g/gpu/a?b/1"] {
        let reason = row(&found, id)["reason"].to_string();
        for part in ["g/gpu/a:b/1", "g/gpu/a?b/1", "in one folder, g/gpu_a_b/1"] {
            assert!(reason.contains(part), "{reason}");
        }
    }
}

#[test]
fn throttling_and_unlike_machines_are_named() {
    let root = main_and_mine(|_| 1.0);
    let id = "matmul/gpu/tiled/64";
    let throttled = Result {
        throttled: true,
        ..Result::new(id, 1.5e5, 5)
    };
    write(root.path(), "mine", &throttled);
    record(root.path(), "run-mine", |r| {
        r.environment.dirty = Some(true);
        r.environment.cpu.usable_cores += 1;
        r.environment.cpu.governor = Some("powersave".to_owned());
        let gpu = r.environment.gpu.as_mut().unwrap();
        gpu.driver = Some("590.2".to_owned());
        gpu.max_sm_clock_mhz = Some(1980);
        gpu.max_memory_clock_mhz = Some(2619);
        gpu.power_limit_w = Some(600.0);
        gpu.mig = Some(true);
    });
    let (found, code) = json(root.path(), &["main", "mine"]);
    assert_eq!(code, 1);
    let slower = row(&found, id);
    assert_eq!(slower["verdict"], "slower");
    assert_eq!(slower["marks"][0], "new throttled (sw_thermal_slowdown)");
    assert_eq!(slower["marks"][1], "SM clock 1980 → 1200 MHz");
    let warnings = [
        "CPU governor differs: base unknown, new powersave",
        "GPU driver differs: base 580.1, new 590.2",
        "MIG mode differs: base unknown, new true",
        "highest SM clock differs: base unknown, new 1980 MHz",
        "highest memory clock differs: base unknown, new 2619 MHz",
        "power limit differs: base unknown, new 600 W",
        "usable cores differs: base 0, new 1",
    ];
    assert_eq!(found["warnings"], serde_json::json!(warnings));
    assert_eq!(
        found["notes"][1],
        "new: commit 0123456789ab with uncommitted changes"
    );
    // The mark stands wherever the verdict does.
    let mark = "slower; new throttled";
    let table = out(&crossover(root.path(), &["main", "mine"]));
    assert!(table.contains("throttled"), "{table}");
    let markdown = out(&crossover(root.path(), &["main", "mine", "--markdown"]));
    assert!(markdown.contains(mark), "{markdown}");
    let page = root.path().join("page.html");
    crossover(
        root.path(),
        &["main", "mine", "--html", page.to_str().unwrap()],
    );
    assert!(fs::read_to_string(page).unwrap().contains(mark));
}

#[test]
fn the_page_stands_alone_with_both_plots_of_each_curve() {
    let root = main_and_mine(|_| 1.05);
    let page = root.path().join("out/page.html");
    crossover(
        root.path(),
        &["main", "mine", "--html", page.to_str().unwrap()],
    );
    let html = fs::read_to_string(page).unwrap();
    let plots = html.matches("<figure><svg").count();
    assert_eq!(plots, 8, "two plots for four kernels");
    assert!(!html.contains("no size was measured on both sides"));
    assert!(html.contains("default-src 'none'"), "nothing is fetched");
    for outside in ["<link", "<script", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn results_without_our_sidecar_compare_too() {
    let root = root();
    for (baseline, seed) in [("main", 1), ("mine", 2)] {
        for i in 0..10 {
            let result = Result {
                clock: None,
                ..Result::new(&format!("g/cpu/f/{}", i + 1), 1e6, seed * 100 + i)
            };
            write(root.path(), baseline, &result);
        }
    }
    let output = crossover(root.path(), &["main", "mine"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).starts_with("the machine of base is unknown"));
    assert!(out(&output).contains("`crossover ab` decides about less"));
    let (json, _) = json(root.path(), &["main", "mine"]);
    let rows = json["benchmarks"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row["ratio"].is_number()), "{json:#}");
}

#[test]
fn a_bad_threshold_is_refused() {
    let root = root();
    suite(root.path(), "main", 1, |_| 1.0);
    for bad in ["0", "nan", "100"] {
        let arguments = ["main", "main", "--threshold", bad];
        refused(root.path(), &arguments, "--threshold");
    }
}
