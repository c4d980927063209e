//! `crossover compare` on generated baselines: verdicts, messages and exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crossover_results::model::record::Failure;
use crossover_suite::model::Skip;
use serde_json::{Value, json};

use crate::baselines::{Result, folder, record, suite, write};
use crate::command;
use crate::printed::{ended, expect, holds, text};

fn crossover(root: &Path, arguments: &str) -> Command {
    let mut command = command::crossover(&["compare"]);
    command
        .args(arguments.split_whitespace())
        .env("CRITERION_HOME", root);
    command
}

/// The comparison in JSON that a process printed before it ended with this code.
pub(crate) fn compared(output: &Output, code: i32) -> Value {
    let printed = ended(output, code, "");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

fn comparison(root: &Path, arguments: &str, code: i32) -> Value {
    let mut command = crossover(root, &format!("{arguments} --json"));
    compared(&command.output().unwrap(), code)
}

pub(crate) fn row<'a>(json: &'a Value, id: &str) -> &'a Value {
    let mut rows = json["benchmarks"].as_array().unwrap().iter();
    rows.find(|row| row["id"] == id)
        .unwrap_or_else(|| panic!("{id} is not in {json:#}"))
}

pub(crate) fn verdict(json: &Value, id: &str) -> String {
    row(json, id)["verdict"].as_str().unwrap().to_owned()
}

/// Baselines `main` and `mine`; the times of the second are so many times those of the first.
fn main_and_mine(ratio: impl Fn(&str) -> f64) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    suite(root.path(), "main", 1, |_| 1.0);
    suite(root.path(), "mine", 2, ratio);
    root
}

pub(crate) fn a_table_is_as_wide_and_as_coloured_as_it_is_asked_to_be() {
    let root = main_and_mine(|_| 1.0);
    // A long remark stands in its row.
    let throttled = Result {
        throttled: true,
        ..Result::new("matmul/gpu/naive/64", 1.1e5, 5)
    };
    write(root.path(), "mine", &throttled);
    let shown = |options: &str, name: &str, value: &str| {
        let mut command = crossover(root.path(), &format!("main mine {options}"));
        text(&command.env(name, value).output().unwrap().stdout)
    };
    let widest = |columns: &str| {
        let text = shown("--all", "COLUMNS", columns);
        let (_, table) = text.split_once('─').unwrap();
        let (table, _) = table.rsplit_once('─').unwrap();
        table.lines().map(|line| line.chars().count()).max()
    };
    assert!(widest("90") <= Some(90));
    let usual = widest("0");
    assert!(usual > Some(90) && usual <= Some(120), "{usual:?}");
    let is_coloured = |forced| shown("", "CLICOLOR_FORCE", forced).contains("\u{1b}[");
    assert!(is_coloured("1") && !is_coloured("0"));
    // In a narrow terminal a block for each benchmark.
    let blocks = shown("", "COLUMNS", "60");
    assert!(!blocks.contains('─'), "{blocks}");
    holds(&blocks, "matmul/gpu/naive/64\n  clock: events-gated\n");
    holds(&blocks, "  verdict: slower");
    // A line for each benchmark, whose id stays whole, and sentences that end with the terminal.
    let narrow = shown("--all", "COLUMNS", "80");
    for line in narrow.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let rows = narrow.lines().filter(|line| line.starts_with(" matmul/"));
    let ids = rows.map(|line| line.split_whitespace().next().unwrap());
    let ids = Vec::from_iter(ids);
    assert_eq!(ids.len(), 20, "{narrow}");
    assert!(ids.contains(&"matmul/gpu/cublas/1024"), "{ids:?}");
    holds(
        &narrow,
        "  matmul/gpu/naive/64: slower; new throttled (sw_thermal_slowdown)",
    );
}

pub(crate) fn a_slower_kernel_is_found_and_nothing_else() {
    let root = main_and_mine(|id| if id.contains("tiled") { 1.03 } else { 1.0 });
    let root = root.path();
    let found = comparison(root, "main mine", 1);
    assert_eq!(
        (&found["schema"], &found["warnings"]),
        (&json!(1), &json!([]))
    );
    assert_eq!(found["counts"]["slower"], 5, "{found:#}");
    assert_eq!(found["counts"]["faster"], 0);
    let tiled = row(&found, "matmul/gpu/tiled/512");
    assert_eq!(tiled["verdict"], "slower");
    let [low, high] = ["low", "high"].map(|end| tiled[end].as_f64().unwrap());
    assert!(low < 1.03 && 1.03 < high && low > 1.0, "{tiled}");
    assert_eq!(tiled["clock"], "events-gated");
    assert_eq!(tiled["base_samples"], json!([30]));
    // The other way round it is faster, which fails nothing unless asked.
    assert_eq!(comparison(root, "mine main", 0)["counts"]["faster"], 5);
    comparison(root, "mine main --fail-on any", 1);
    comparison(root, "main mine --fail-on none", 0);
    // A change below the threshold is none.
    comparison(root, "main mine --threshold 5", 0);
    // A filter hides the rest.
    let found = comparison(root, "main mine --filter cublas", 0);
    assert_eq!(found["benchmarks"].as_array().unwrap().len(), 5);
    // Runs are compared pair by pair.
    suite(root, "main-2", 3, |_| 1.0);
    suite(root, "mine-2", 4, |id| {
        if id.contains("tiled") { 1.03 } else { 1.0 }
    });
    let found = comparison(root, "main,main-2 mine,mine-2", 1);
    assert_eq!(found["counts"]["slower"], 5, "{found:#}");
    assert_eq!(found["classes"][0]["pairs"], 2);
}

pub(crate) fn sides_are_baselines_and_folders_or_have_a_remedy() {
    let (here, there) = (main_and_mine(|_| 1.0), tempfile::tempdir().unwrap());
    let here = here.path();
    suite(here, "other", 3, |_| 1.0);
    let inner = there.path().join("target-reports/criterion");
    suite(&inner, "new", 4, |_| 1.0);
    suite(&inner, "old", 5, |_| 1.0);
    let folder = there.path().display();
    comparison(here, &format!("main {folder}"), 0);
    comparison(here, &format!("{folder}:old {folder}"), 0);
    for (arguments, remedy) in [
        ("main nine", "no baseline `nine`"),
        ("main nine", "`main`, `mine`, `other`"),
        (&*format!("{folder}:none main"), "`new`, `old`"),
        ("main no/where", "no/where: no such folder"),
        ("main main", "are the same run: name each run once"),
        ("main,mine other", "as many on one side as on the other"),
        ("main mine --threshold 0", "--threshold"),
        ("main mine --threshold nan", "--threshold"),
        ("main mine --threshold 100", "--threshold"),
    ] {
        expect(&mut crossover(here, arguments), 2, remedy);
    }
    // A folder with the name of a baseline.
    suite(&there.path().join("main"), "new", 6, |_| 1.0);
    let mut named = crossover(here, "main ./main --json");
    let found = compared(&named.current_dir(there.path()).output().unwrap(), 0);
    assert_eq!(
        (&found["base"][0], &found["new"][0]),
        (&json!("main"), &json!("./main"))
    );
    let empty = tempfile::tempdir().unwrap();
    let output = crossover(empty.path(), "main mine").output().unwrap();
    ended(&output, 2, "--save-baseline");
}

/// How a comparison with these variables ends in a folder.
fn in_folder(folder: &Path, variables: &[(&str, &str)], code: i32) -> String {
    let mut command = command::crossover(&["compare", "main", "mine"]);
    command.envs(variables.iter().copied()).current_dir(folder);
    ended(&command.output().unwrap(), code, "")
}

/// Baselines in a folder.
fn plant(folder: &Path) {
    for (seed, baseline) in [(1, "main"), (2, "mine")] {
        suite(folder, baseline, seed, |_| 1.0);
    }
}

/// Where `cargo bench -- --save-baseline NAME` leaves them, in a package, a workspace, or neither.
pub(crate) fn baselines_are_found_where_criterion_puts_them() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let unset = &[("CRITERION_HOME", "")];
    let nowhere = in_folder(&top, unset, 2).replace('\\', "/");
    let folders = "no results in target-reports/criterion, nor in target/criterion;";
    holds(&nowhere, folders);
    plant(&top.join("target/criterion"));
    in_folder(&top, unset, 0);
    let elsewhere = &[("CARGO_TARGET_DIR", "elsewhere")];
    holds(&in_folder(&top, elsewhere, 2), "elsewhere");
    plant(&top.join("elsewhere/criterion"));
    in_folder(&top, elsewhere, 0);
    // Both sides come from one folder, and another one that has both is named.
    suite(&top.join("target-reports/criterion"), "main", 3, |_| 1.0);
    let one = in_folder(&top, unset, 0);
    assert!(!one.contains("note: "), "{one}");
    suite(&top.join("target-reports/criterion"), "mine", 4, |_| 1.0);
    holds(&in_folder(&top, unset, 0), "are also in target");
}

/// As cargo describes a workspace. There is no cargo where tests run under Wine.
#[cfg(unix)]
pub(crate) fn baselines_of_a_workspace_are_found_from_each_of_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    for (file, text) in [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n",
        ),
        ("one/Cargo.toml", "[package]\nname = \"one\"\n"),
        ("one/src/lib.rs", ""),
        (".cargo/config.toml", "[build]\ntarget-dir = \"built\"\n"),
    ] {
        fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        fs::write(top.join(file), text).unwrap();
    }
    for (folder, home) in [("built/criterion", ""), ("one/home", "home")] {
        for place in ["", "one"] {
            let compared =
                |code: i32| in_folder(&top.join(place), &[("CRITERION_HOME", home)], code);
            holds(&compared(2), "--save-baseline NAME");
            plant(&top.join(folder));
            compared(0);
            fs::remove_dir_all(top.join(folder)).unwrap();
        }
    }
}

/// A backtrace is for those who mend the command.
pub(crate) fn an_error_has_no_backtrace() {
    let empty = tempfile::tempdir().unwrap();
    let mut command = crossover(empty.path(), "no/where main");
    let said = expect(command.env("RUST_BACKTRACE", "1"), 2, "no/where");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
}

pub(crate) fn broken_files_are_named_and_the_rest_compared() {
    let root = main_and_mine(|_| 1.0);
    let dir = |id: &str| folder(root.path(), "mine", id);
    let ids = [
        "tiled/64",
        "tiled/128",
        "tiled/256",
        "tiled/512",
        "naive/64",
    ];
    let [a, b, c, d, stale] = ids.map(|id| format!("matmul/gpu/{id}"));
    fs::write(dir(&a).join("benchmark.json"), "{\"full").unwrap();
    fs::write(dir(&b).join("sample.json"), "{}").unwrap();
    fs::remove_file(dir(&c).join("sample.json")).unwrap();
    let zero = r#"{"iters":[1,1,1,1,1],"times":[1,1,1,0,1]}"#;
    fs::write(dir(&d).join("sample.json"), zero).unwrap();
    // As caches restore a folder.
    let empty = "matmul/gpu/naive/128";
    fs::remove_dir_all(dir(empty)).unwrap();
    fs::create_dir(dir(empty)).unwrap();
    // A sidecar of other samples does not say which clock it was.
    let sample = dir(&stale).join("sample.json");
    let text = fs::read_to_string(&sample).unwrap();
    fs::write(&sample, text + "\n").unwrap();
    let found = comparison(root.path(), "main mine", 1);
    let reason = row(&found, &stale)["reason"].to_string();
    holds(&reason, "timed on an unknown clock and events-gated");
    // Each has the reason, and is named with its path. A gate fails, also where the base is broken.
    assert_eq!(found["counts"]["unreadable"], 5, "{found:#}");
    assert_eq!(found["benchmarks"].as_array().unwrap().len(), 20);
    for (id, reason) in [
        (empty, "the folder is empty"),
        (&a, "EOF while parsing"),
        (&c, "(os error 2)"),
    ] {
        let row = row(&found, id);
        assert_eq!(row["verdict"], "unreadable");
        holds(&row["reason"].to_string(), reason);
    }
    let reversed = comparison(root.path(), "mine main", 1);
    assert_eq!(reversed["counts"]["unreadable"], 5);
    holds(&row(&reversed, &a)["reason"].to_string(), "EOF");
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 6, "{problems:#?}");
    for id in [a, b, c, d, stale, empty.to_owned()] {
        let path = dir(&id).display().to_string();
        let names = |problem: &Value| problem.as_str().unwrap().contains(&path);
        assert!(problems.iter().any(names), "{path} in {problems:#?}");
    }
}

pub(crate) fn a_renamed_benchmark_is_gone_and_new_and_a_skip_says_why() {
    let root = main_and_mine(|_| 1.0);
    let root = root.path();
    let id = |name: &str| format!("g/gpu/{name}/8");
    write(root, "main", &Result::new(&id("before"), 1e6, 1));
    write(root, "mine", &Result::new(&id("after"), 1e6, 1));
    write(root, "main", &Result::new(&id("wrong"), 1e6, 1));
    record(root, "run-mine", |run| {
        run.failed.push(Failure {
            id: id("wrong"),
            error: "wrong result".to_owned(),
        });
        run.skipped.push(Skip {
            id: "g/gpu/before".to_owned(),
            reason: "too little memory".to_owned(),
        });
    });
    // A result that was wrong on the new side is no clean comparison.
    let found = comparison(root, "main mine", 1);
    let gone = row(&found, &id("before"));
    assert_eq!(gone["verdict"], "gone");
    assert_eq!(gone["reason"], "skipped: too little memory");
    let wrong = row(&found, &id("wrong"));
    assert_eq!(
        (&wrong["verdict"], &wrong["reason"]),
        (&json!("failed"), &json!("failed: wrong result"))
    );
    assert_eq!(verdict(&found, &id("after")), "new");
    comparison(root, "main mine --fail-on any", 1);
    // Nothing in common is no clean comparison.
    let output = crossover(root, "main mine --filter (before|after)/")
        .output()
        .unwrap();
    ended(&output, 2, "nothing could be compared");
}

pub(crate) fn throttling_and_unlike_machines_are_named() {
    let root = main_and_mine(|_| 1.0);
    let root = root.path();
    let id = "matmul/gpu/tiled/64";
    let throttled = Result {
        throttled: true,
        ..Result::new(id, 1.5e5, 5)
    };
    write(root, "mine", &throttled);
    record(root, "run-mine", |run| {
        run.environment.dirty = Some(true);
        run.environment.cpu.usable_cores += 1;
        run.environment.cpu.governor = Some("powersave".to_owned());
        let gpu = run.environment.gpu.as_mut().unwrap();
        gpu.driver = Some("590.2".to_owned());
        gpu.max_sm_clock_mhz = Some(1980);
        gpu.max_memory_clock_mhz = Some(2619);
        gpu.power_limit_w = Some(600.0);
        gpu.mig = Some(true);
    });
    let found = comparison(root, "main mine", 1);
    let slower = row(&found, id);
    assert_eq!(slower["verdict"], "slower");
    let marks = [
        "new throttled (sw_thermal_slowdown)",
        "SM clock 1980 → 1200 MHz",
    ];
    assert_eq!(slower["marks"], json!(marks));
    let warnings = [
        "CPU governor differs: base unknown, new powersave",
        "GPU driver differs: base 580.1, new 590.2",
        "MIG mode differs: base unknown, new true",
        "highest SM clock differs: base unknown, new 1980 MHz",
        "highest memory clock differs: base unknown, new 2619 MHz",
        "power limit differs: base unknown, new 600 W",
        "usable cores differs: base 0, new 1",
    ];
    assert_eq!(found["warnings"], json!(warnings));
    let commit = "new: commit 0123456789ab with uncommitted changes";
    assert_eq!(found["notes"][1], commit);
    // The mark stands wherever the verdict does, also on the page, which stands alone.
    let mark = "slower; new throttled";
    let page = root.join("out/page.html");
    let options = format!("main mine --markdown --html {}", page.display());
    let markdown = crossover(root, &options).output().unwrap();
    ended(&markdown, 1, mark);
    expect(&mut crossover(root, "main mine"), 1, "throttled");
    let page = fs::read_to_string(page).unwrap();
    holds(&page, mark);
    let plots = page.matches("<figure><svg").count();
    assert_eq!(plots, 8, "two plots for four kernels");
    assert!(!page.contains("no size was measured on both sides"));
    assert!(page.contains("default-src 'none'"), "nothing is fetched");
    for outside in ["<link", "<script", "src="] {
        assert!(!page.contains(outside), "{outside}");
    }
    // A page that cannot be written is one error.
    let folder = format!("main mine --html {}", root.join("matmul").display());
    let said = expect(&mut crossover(root, &folder), 2, "os error");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
    // Another machine decides nothing.
    record(root, "run-mine", |run| {
        run.environment.gpu.as_mut().unwrap().name = "Another".to_owned();
    });
    let found = comparison(root, "main mine", 2);
    assert_eq!(found["counts"]["unsure"], 20);
    let reason = found["benchmarks"][0]["reason"].to_string();
    holds(&reason, "the sides ran on different machines: GPU ");
}

pub(crate) fn results_without_our_sidecar_compare_too() {
    let root = tempfile::tempdir().unwrap();
    for (baseline, seed) in [("main", 1), ("mine", 2)] {
        for i in 0..10 {
            let result = Result {
                clock: None,
                ..Result::new(&format!("g/cpu/f/{}", i + 1), 1e6, seed * 100 + i)
            };
            write(root.path(), baseline, &result);
        }
    }
    let output = crossover(root.path(), "main mine").output().unwrap();
    let said = ended(&output, 0, "`crossover ab` shows smaller ones");
    assert!(said.starts_with("the machine of base is unknown"), "{said}");
    holds(&said, "so no error rate holds");
    let found = comparison(root.path(), "main mine", 0);
    let rows = found["benchmarks"].as_array().unwrap();
    assert_eq!(rows.len(), 10);
    assert!(rows.iter().all(|row| row["ratio"].is_number()), "{found:#}");
    // Until the machine is written beside each.
    let save = |baseline| {
        let mut command = command::crossover(&["env", "--save", baseline]);
        command.env("CRITERION_HOME", root.path());
        command
    };
    expect(&mut save("nine"), 2, "no results have a baseline `nine`");
    for baseline in ["main", "mine"] {
        ended(&save(baseline).output().unwrap(), 0, "CPU");
    }
    let output = crossover(root.path(), "main mine").output().unwrap();
    let said = ended(&output, 0, "");
    assert!(!said.contains("machine of"), "{said}");
    let mine = root.path().join("runs/baselines/mine.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&mine).unwrap()).unwrap();
    record["environment"]["cpu"]["model"] = json!("Another");
    fs::write(&mine, record.to_string()).unwrap();
    let found = comparison(root.path(), "main mine", 2);
    let reason = found["benchmarks"][0]["reason"].to_string();
    holds(&reason, "the sides ran on different machines: CPU ");
}
