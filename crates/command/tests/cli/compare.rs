//! `crossover compare` on generated baselines: verdicts, messages and exit codes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crossover_results::model::record::Failure;
use crossover_suite::model::Skip;
use serde_json::{Value, json};

use crate::baselines::{Result, folder, record, suite, write};
use crate::command;
use crate::printed::{ended, expect, holds, lacks, text};

/// The comparison in JSON that a process printed before it ended with this code.
pub(crate) fn compared(output: &Output, code: i32) -> Value {
    let printed = ended(output, code, "");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

pub(crate) fn row<'a>(json: &'a Value, id: &str) -> &'a Value {
    let mut rows = json["benchmarks"].as_array().unwrap().iter();
    let row = rows.find(|row| row["id"] == id);
    row.unwrap_or_else(|| panic!("{id} is not in {json:#}"))
}

pub(crate) fn verdict<'a>(json: &'a Value, id: &str) -> &'a str {
    row(json, id)["verdict"].as_str().unwrap()
}

/// Results with the baselines `main` and `mine`.
struct Baselines {
    dir: tempfile::TempDir,
    root: PathBuf,
}

impl Baselines {
    /// The times of `mine` are so many times those of `main`.
    fn new(ratio: impl Fn(&str) -> f64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        suite(&root, "main", 1, |_| 1.0);
        suite(&root, "mine", 2, ratio);
        Self { dir, root }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command::crossover(line);
        command.env("CRITERION_HOME", &self.root);
        command.current_dir(&self.dir);
        command
    }

    fn ends(&self, line: &str, code: i32, words: &str) -> String {
        expect(&mut self.command(&format!("compare {line}")), code, words)
    }

    fn json(&self, line: &str, code: i32) -> Value {
        let mut command = self.command(&format!("compare {line} --json"));
        compared(&command.output().unwrap(), code)
    }
}

pub(crate) fn a_table_is_as_wide_and_as_coloured_as_it_is_asked_to_be() {
    let all = Baselines::new(|_| 1.0);
    // A long remark stands in its row.
    let slow = Result::new("matmul/gpu/naive/64", 1.1e5, 5);
    write(&all.root, "mine", &slow.throttled());
    let shown = |line: &str| text(&all.command(line).output().unwrap().stdout);
    let longest = |text: &str| text.lines().map(|line| line.chars().count()).max();
    for (columns, widths) in [(90, 0..=90), (0, 91..=120)] {
        let text = shown(&format!("COLUMNS={columns} compare --all main mine"));
        let (_, table) = text.split_once('─').unwrap();
        let width = longest(table.rsplit_once('─').unwrap().0).unwrap();
        assert!(widths.contains(&width), "{width}: {text}");
    }
    for (forced, is_coloured) in [("1", true), ("0", false)] {
        let text = shown(&format!("CLICOLOR_FORCE={forced} compare main mine"));
        assert_eq!(text.contains("\u{1b}["), is_coloured, "{text}");
    }
    // In a narrow terminal a block for each benchmark.
    let blocks = shown("COLUMNS=60 compare main mine");
    lacks(&blocks, &["─"]);
    let block = "matmul/gpu/naive/64\n  clock: events-gated\n …   verdict: slower";
    holds(&blocks, block);
    // A line for each benchmark, whose id stays whole, and sentences that end with the terminal.
    let narrow = shown("COLUMNS=80 compare --all main mine");
    assert!(longest(&narrow) <= Some(80), "{narrow}");
    let remark = "  matmul/gpu/naive/64: slower; new throttled (sw_thermal_slowdown)";
    holds(&narrow, &format!(" matmul/gpu/cublas/1024 … {remark}"));
}

pub(crate) fn a_slower_kernel_is_found_and_nothing_else() {
    let tiled = |id: &str| if id.contains("tiled") { 1.03 } else { 1.0 };
    let baselines = Baselines::new(tiled);
    suite(&baselines.root, "main-2", 3, |_| 1.0);
    suite(&baselines.root, "mine-2", 4, tiled);
    for (line, code, slower, faster, rows) in [
        ("main mine", 1, 5, 0, 20),
        // Faster benchmarks fail nothing unless asked.
        ("mine main", 0, 0, 5, 20),
        ("mine main --fail-on any", 1, 0, 5, 20),
        ("main mine --fail-on none", 0, 5, 0, 20),
        // A change below the threshold is none, and a filter hides the rest.
        ("main mine --threshold 5", 0, 0, 0, 20),
        ("main mine --filter cublas", 0, 0, 0, 5),
        // Runs are compared pair by pair.
        ("main,main-2 mine,mine-2", 1, 5, 0, 20),
    ] {
        let found = baselines.json(line, code);
        let counts = &found["counts"];
        assert_eq!(counts["slower"], slower, "{line}: {found:#}");
        assert_eq!(counts["faster"], faster, "{line}: {found:#}");
        assert_eq!(found["benchmarks"].as_array().unwrap().len(), rows);
        assert_eq!(found["warnings"], json!([]));
        let pairs = if line.contains(',') { 2 } else { 1 };
        assert_eq!(found["classes"][0]["pairs"], pairs);
    }
    let found = baselines.json("main mine", 1);
    assert_eq!(found["schema"], 1);
    let tiled = row(&found, "matmul/gpu/tiled/512");
    let [low, high] = ["low", "high"].map(|end| tiled[end].as_f64().unwrap());
    assert!(1.0 < low && low < 1.03 && 1.03 < high, "{tiled}");
}

pub(crate) fn sides_are_baselines_and_folders_or_have_a_remedy() {
    let (here, there) = (Baselines::new(|_| 1.0), tempfile::tempdir().unwrap());
    suite(&here.root, "other", 3, |_| 1.0);
    let inner = there.path().join("target-reports/criterion");
    suite(&inner, "new", 4, |_| 1.0);
    suite(&inner, "old", 5, |_| 1.0);
    let folder = there.path().display();
    here.json(&format!("main {folder}"), 0);
    here.json(&format!("{folder}:old {folder}"), 0);
    for (line, remedy) in [
        ("main nine", "no baseline `nine` … `main`, `mine`, `other`"),
        (&*format!("{folder}:none main"), "`new`, `old`"),
        ("main no/where", "no/where: no such folder"),
        ("main main", "are the same run: name each run once"),
        ("main,mine other", "as many on one side as on the other"),
    ] {
        // A backtrace is for those who mend the command.
        let mut command = here.command(&format!("RUST_BACKTRACE=1 compare {line}"));
        let error = expect(&mut command, 2, remedy);
        assert_eq!(error.trim().lines().count(), 1, "{error}");
    }
    here.ends("main mine --threshold nan", 2, "--threshold");
    // A folder with the name of a baseline.
    suite(&here.root.join("main"), "new", 6, |_| 1.0);
    let found = here.json("main ./main", 0);
    assert_eq!([&found["base"][0], &found["new"][0]], ["main", "./main"]);
}

/// Where `cargo bench -- --save-baseline NAME` leaves them, in a package, a workspace, or neither.
pub(crate) fn baselines_are_found_where_criterion_puts_them() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let ends = |variables: &str, code: i32, words: &str| {
        let mut command = command::crossover(&format!("{variables} compare main mine"));
        let output = command.current_dir(&top).output().unwrap();
        let output = ended(&output, code, "").replace('\\', "/");
        holds(&output, words);
        output
    };
    let unset = "CRITERION_HOME=";
    let folders =
        "no results in target-reports/criterion, nor in target/criterion; … --save-baseline";
    ends(unset, 2, folders);
    plant(&top.join("target/criterion"));
    ends(unset, 0, "");
    let elsewhere = "CARGO_TARGET_DIR=elsewhere";
    ends(elsewhere, 2, "elsewhere");
    plant(&top.join("elsewhere/criterion"));
    ends(elsewhere, 0, "");
    // Both sides come from one folder, and another one that has both is named.
    suite(&top.join("target-reports/criterion"), "main", 3, |_| 1.0);
    lacks(&ends(unset, 0, ""), &["note: "]);
    suite(&top.join("target-reports/criterion"), "mine", 4, |_| 1.0);
    ends(unset, 0, "are also in target");
}

/// Both baselines in a folder.
fn plant(folder: &Path) {
    suite(folder, "main", 1, |_| 1.0);
    suite(folder, "mine", 2, |_| 1.0);
}

/// As cargo describes a workspace. There is no cargo where tests run under Wine.
#[cfg(unix)]
pub(crate) fn baselines_of_a_workspace_are_found_from_each_of_its_folders() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let workspace = "[workspace]\nmembers = [\"one\"]\nresolver = \"3\"\n";
    for (file, text) in [
        ("Cargo.toml", workspace),
        ("one/Cargo.toml", "[package]\nname = \"one\"\n"),
        ("one/src/lib.rs", ""),
        (".cargo/config.toml", "[build]\ntarget-dir = \"built\"\n"),
    ] {
        fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        fs::write(top.join(file), text).unwrap();
    }
    for (folder, home) in [("built/criterion", ""), ("one/home", "home")] {
        for place in ["", "one"] {
            let line = format!("CRITERION_HOME={home} compare main mine");
            let mut command = command::crossover(&line);
            command.current_dir(top.join(place));
            expect(&mut command, 2, "--save-baseline NAME");
            plant(&top.join(folder));
            expect(&mut command, 0, "");
            fs::remove_dir_all(top.join(folder)).unwrap();
        }
    }
}

pub(crate) fn broken_files_are_named_and_the_rest_compared() {
    let baselines = Baselines::new(|_| 1.0);
    let dir = |id: &str| folder(&baselines.root, "mine", id);
    let sample = |id: &str| dir(id).join("sample.json");
    let of_size = |size| ["tiled", "naive"].map(|kernel| format!("matmul/gpu/{kernel}/{size}"));
    let ids = [64, 128, 256].map(of_size);
    let [[cut, other], [gone, zero], [stale, empty]] = &ids;
    fs::write(dir(cut).join("benchmark.json"), "{\"full").unwrap();
    fs::write(sample(other), "{}").unwrap();
    fs::remove_file(sample(gone)).unwrap();
    let times = r#"{"iters":[1,1,1,1,1],"times":[1,1,1,0,1]}"#;
    fs::write(sample(zero), times).unwrap();
    // A sidecar of other samples does not say which clock it was.
    let changed = fs::read_to_string(sample(stale)).unwrap() + "\n";
    fs::write(sample(stale), changed).unwrap();
    // As caches restore a folder.
    fs::remove_dir_all(dir(empty)).unwrap();
    fs::create_dir(dir(empty)).unwrap();
    // A gate fails, also where the base is broken.
    for line in ["main mine", "mine main"] {
        let found = baselines.json(line, 1);
        assert_eq!(found["counts"]["unreadable"], 5, "{found:#}");
        for (id, verdict, reason) in [
            (cut, "unreadable", "EOF while parsing"),
            (gone, "unreadable", "(os error 2)"),
            (empty, "unreadable", "the folder is empty"),
            (stale, "unsure", "an unknown clock"),
        ] {
            let row = row(&found, id);
            assert_eq!(row["verdict"], verdict, "{row}");
            holds(&row["reason"].to_string(), reason);
        }
        // Each is named with its path.
        let problems = found["problems"].to_string();
        for id in ids.as_flattened() {
            let path = json!(dir(id)).to_string();
            holds(&problems, path.trim_matches('"'));
        }
    }
}

pub(crate) fn a_renamed_benchmark_is_gone_and_new_and_a_skip_says_why() {
    let baselines = Baselines::new(|_| 1.0);
    let [before, after, wrong] = ["before", "after", "wrong"].map(|it| format!("g/gpu/{it}/8"));
    for (baseline, id) in [("main", &before), ("mine", &after), ("main", &wrong)] {
        write(&baselines.root, baseline, &Result::new(id, 1e6, 1));
    }
    record(&baselines.root, "run-mine", |run| {
        run.failed.push(Failure {
            id: wrong.clone(),
            error: "wrong result".to_owned(),
        });
        run.skipped.push(Skip {
            id: "g/gpu/before".to_owned(),
            reason: "too little memory".to_owned(),
        });
    });
    // A result that was wrong on the new side is no clean comparison.
    let found = baselines.json("main mine", 1);
    for (id, verdict, reason) in [
        (&before, "gone", json!("skipped: too little memory")),
        (&wrong, "failed", json!("failed: wrong result")),
        (&after, "new", Value::Null),
    ] {
        let row = row(&found, id);
        assert_eq!(row["verdict"], verdict, "{row}");
        assert_eq!(row["reason"], reason, "{row}");
        let are_there = ["base_samples", "new_samples"].map(|side| row[side] != json!([]));
        assert_eq!(are_there, [verdict != "new", verdict == "new"], "{row}");
    }
    // Nothing in common is no clean comparison.
    let line = "main mine --filter (before|after)/";
    baselines.ends(line, 2, "nothing could be compared");
}

pub(crate) fn throttling_and_unlike_machines_are_named() {
    let baselines = Baselines::new(|_| 1.0);
    let root = &baselines.root;
    let id = "matmul/gpu/tiled/64";
    write(root, "mine", &Result::new(id, 1.5e5, 5).throttled());
    record(root, "run-mine", |run| {
        run.environment.dirty = Some(true);
        run.environment.cpu.usable_cores += 1;
        run.environment.cpu.governor = Some("powersave".to_owned());
        let gpu = run.environment.gpu.as_mut().unwrap();
        gpu.max_memory_clock_mhz = Some(2619);
        gpu.mig = Some(true);
        gpu.driver = Some("590.2".to_owned());
        gpu.power_limit_w = Some(600.0);
    });
    let found = baselines.json("main mine", 1);
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
        "highest memory clock differs: base unknown, new 2619 MHz",
        "power limit differs: base unknown, new 600 W",
        "usable cores differs: base 0, new 1",
    ];
    assert_eq!(found["warnings"], json!(warnings));
    let commit = "new: commit 0123456789ab with uncommitted changes";
    assert_eq!(found["notes"][1], commit);
    // The mark stands wherever the verdict does, also on the page, which stands alone.
    let mark = "slower; new throttled";
    baselines.ends("main mine --markdown --html out/page.html", 1, mark);
    baselines.ends("main mine", 1, "throttled");
    let page = fs::read_to_string(root.join("out/page.html")).unwrap();
    holds(&page, mark);
    let plots = page.matches("<figure><svg").count();
    assert_eq!(plots, 8, "two plots for four kernels");
    holds(&page, "default-src 'none'");
    lacks(&page, &["<link", "<script", "src="]);
    // A page that cannot be written is one error.
    let error = baselines.ends("main mine --html matmul", 2, "os error");
    assert_eq!(error.matches("os error").count(), 1, "{error}");
}

pub(crate) fn results_without_our_sidecar_compare_too() {
    let mut baselines = Baselines::new(|_| 1.0);
    baselines.root = baselines.root.join("plain");
    for (baseline, seed) in [("main", 1), ("mine", 2)] {
        for i in 0..10 {
            let result = Result::new(&format!("g/cpu/f/{}", i + 1), 1e6, seed * 100 + i);
            write(&baselines.root, baseline, &result.without_sidecar());
        }
    }
    let words =
        "machine of base is unknown … `crossover ab` shows smaller ones … so no error rate holds";
    let shown = baselines.ends("main mine", 0, words);
    assert!(shown.starts_with("the machine of base"), "{shown}");
    let found = baselines.json("main mine", 0);
    assert_eq!(found["classes"][0]["benchmarks"], 10, "{found:#}");
    // Until the machine is written beside each.
    for (baseline, code, words) in [
        ("nine", 2, "no results have a baseline `nine`"),
        ("main", 0, "CPU"),
        ("mine", 0, "CPU"),
    ] {
        let mut save = baselines.command(&format!("env --save {baseline}"));
        expect(&mut save, code, words);
    }
    lacks(&baselines.ends("main mine", 0, ""), &["machine of"]);
    let mine = baselines.root.join("runs/baselines/mine.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&mine).unwrap()).unwrap();
    record["environment"]["cpu"]["model"] = json!("Another");
    fs::write(&mine, record.to_string()).unwrap();
    // Another machine decides nothing.
    let found = baselines.json("main mine", 2);
    assert_eq!(found["counts"]["unsure"], 10);
    let reason = "the sides ran on different machines: CPU ";
    holds(&found["benchmarks"][0]["reason"].to_string(), reason);
}
