//! `crossover ab` in projects of others: executables of any Criterion, workspaces, and its action.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ab::{BOTH, bundles, compare, json, verdict};
use crate::printed::{ended, holds, printed};
use crate::repositories::{
    alone, builds, cargo, clean, crossover, executable, git, harness, repository,
};

/// What a fork of Criterion does not know is left out of the command line.
#[test]
fn an_executable_is_asked_for_what_it_knows() {
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), &BOTH, &BOTH, "");
    changed(dir.path(), "--nresamples|", "");
    let output = compare(dir.path(), &["--json", "--pairs", "2", "--budget", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json = json(&output);
    for (id, _) in BOTH {
        verdict(&json, id);
    }
}

/// Changes a text in the stand-ins of both sides.
fn changed(dir: &Path, text: &str, to: &str) {
    for side in ["old", "fresh"] {
        let run = dir.join(side).join("run");
        let harness = fs::read_to_string(&run).unwrap();
        assert!(harness.contains(text));
        fs::write(run, harness.replace(text, to)).unwrap();
    }
}

/// Such as instructions, which are counted and do not vary.
#[test]
fn counts_are_compared_and_shown_without_a_unit() {
    let dir = tempfile::tempdir().unwrap();
    let counts = |more: f64| [("equal", 100_000.0), ("more", more), ("some", 7.0)];
    bundles(dir.path(), &counts(100_000.0), &counts(102_000.0), "");
    changed(
        dir.path(),
        "10 * ns * process * (1 + 0.002 * (rand() - 0.5))",
        "10 * ns",
    );
    let output = compare(dir.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let json = json(&output);
    for (id, expected) in [("equal", "same"), ("more", "slower"), ("some", "same")] {
        assert_eq!(verdict(&json, id), expected, "{json:#}");
    }
    let said = printed(&compare(
        dir.path(),
        &["--all", "--pairs", "1", "--budget", "0"],
    ));
    holds(&said, "100,000");
    assert!(!said.contains("µs") && !said.contains(" ns"), "{said}");
    // Nor a column for the clock. What changed may be layout.
    assert!(!said.contains("unknown"), "{said}");
    holds(&said, "may be layout");
}

#[test]
fn benchmarks_whose_results_share_a_folder_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let both = [("g/a:b", 20.0), ("g/a?b", 30.0)];
    bundles(dir.path(), &both, &both, "");
    let output = compare(dir.path(), &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json = json(&output);
    for (id, _) in both {
        assert_eq!(verdict(&json, id), "same");
    }
}

#[test]
fn printed_lines_are_no_benchmarks() {
    let dir = tempfile::tempdir().unwrap();
    bundles(dir.path(), &BOTH, &BOTH, "");
    let prints = "echo loading corpus: bench\nprintf 'loading... '\nfilter=. list=";
    changed(dir.path(), "filter=. list=", prints);
    let output = compare(dir.path(), &["--json", "--pairs", "2", "--budget", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json = json(&output);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 2, "{json:#}");
    for (id, _) in BOTH {
        verdict(&json, id);
    }
    holds(&json["warnings"].to_string(), "such as `loading corpus`");
}

#[test]
fn every_bench_target_is_compared_or_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let target = |name: &str| top.join("target-bench").join(name);
    harness(&target("works"), &top.join("target-ran"), &BOTH[..1], "");
    for (name, prints) in [
        ("deaf", "sum time:   [1.0 ms 1.1 ms 1.2 ms]"),
        ("silent", "nothing"),
        ("unit-tests", "0 tests, 0 benchmarks"),
    ] {
        executable(&target(name), &format!("echo '{prints}'"));
    }
    let built = ["works", "deaf", "silent", "unit-tests"].map(|name| builds(&target(name)));
    let output = crossover(top)
        .args(["--json", "--pairs", "1", "--budget", "0", "--run-equal"])
        .env("CARGO", cargo(top, &built.join("\n")))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let warnings = json(&output)["warnings"].to_string();
    holds(
        &warnings,
        "left out: deaf: it runs its benchmarks instead of listing them",
    );
    holds(&warnings, "left out: silent: it lists no benchmark");
    assert!(!warnings.contains("unit-tests"), "{warnings}");
}

/// Slow benchmarks leave the others their time.
#[test]
fn benchmarks_too_slow_for_the_budget_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "if [ $id = sum ]; then sleep 1; fi";
    bundles(dir.path(), &BOTH, &BOTH, slow);
    let output = compare(dir.path(), &["--json", "--budget", "0.2"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json = json(&output);
    assert_eq!(verdict(&json, "sort/100"), "same");
    let warnings = json["warnings"].to_string();
    holds(&warnings, "1 benchmark ran once");
    holds(&warnings, "the slowest, sum,");
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.matches("fresh sum").count(), 1, "{log}");
}

/// Packages of a workspace with bench targets that only start the stand-in of their package.
fn workspace(top: &Path) {
    repository(top);
    fs::write(
        top.join("Cargo.toml"),
        "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"2\"\n",
    )
    .unwrap();
    package(top, "one", &["x", "y"]);
    package(top, "two", &["x"]);
    git(top, &["add", "."]);
    git(top, &["commit", "--quiet", "-m", "packages"]);
}

fn package(top: &Path, name: &str, benches: &[&str]) {
    let dir = top.join(name);
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::create_dir_all(dir.join("benches")).unwrap();
    fs::write(dir.join("src/lib.rs"), "").unwrap();
    let mut manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\nf = []\n"
    );
    for bench in benches {
        manifest += &format!("[[bench]]\nname = \"{bench}\"\nharness = false\n");
        // Its path is that of the work tree in which it was built.
        let main = r#"fn main() {
    use std::os::unix::process::CommandExt;
    let harness = concat!(env!("CARGO_MANIFEST_DIR"), "/harness/run");
    let error = std::process::Command::new(harness).args(std::env::args().skip(1)).exec();
    panic!("{error}");
}"#;
        fs::write(dir.join(format!("benches/{bench}.rs")), main).unwrap();
    }
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    harness(&dir.join("harness/run"), &top.join("target-ran"), &BOTH, "");
}

#[test]
fn packages_targets_and_features_are_those_that_a_side_has() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    workspace(top);
    // In the work tree one is slower, and a third package is new.
    harness(
        &top.join("one/harness/run"),
        &top.join("target-ran"),
        &[("sort/100", 300.0), ("sum", 20.0)],
        "",
    );
    package(top, "three", &["z"]);
    fs::write(
        top.join("Cargo.toml"),
        "[workspace]\nmembers = [\"one\", \"two\", \"three\"]\nresolver = \"2\"\n",
    )
    .unwrap();
    let ab = |args: &[&str]| {
        let shared = ["--json", "--pairs", "4", "--budget", "0"];
        let _ = fs::remove_dir_all(top.join("target-reports"));
        let output = crossover(top).args(shared).args(args).output().unwrap();
        clean(top);
        output
    };
    let one = "-p one -p three --features one/f --bench x --bench z";
    let one = ab(&Vec::from_iter(one.split(' ')));
    assert_eq!(one.status.code(), Some(1), "{}", printed(&one));
    let one = json(&one);
    assert_eq!(verdict(&one, "one/x/sort/100"), "slower", "{one:#}");
    // Lines of a lock file that was made for either side.
    holds(
        &one["warnings"].to_string(),
        "Cargo.lock differs: three none → 0.1.0",
    );
    let ids = |json: &Value| -> Vec<String> {
        let benchmarks = json["benchmarks"].as_array().unwrap().iter();
        let mut ids: Vec<String> = benchmarks
            .map(|b| b["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    // Two targets with benchmarks of one name, and one that cargo skips.
    let manifest = top.join("one/Cargo.toml");
    let target = "[[bench]]\nname = \"w\"\nharness = false\nrequired-features = [\"f\"]\n";
    fs::copy(top.join("one/benches/x.rs"), top.join("one/benches/w.rs")).unwrap();
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap() + target).unwrap();
    let all = json(&ab(&["--workspace"]));
    holds(
        &all["warnings"].to_string(),
        "left out: one/w, which cargo builds with `--features f`",
    );
    assert_eq!(
        ids(&all).join(" "),
        "one/x/sort/100 one/x/sum one/y/sort/100 one/y/sum three/z/sort/100 three/z/sum two/x/sort/100 two/x/sum"
    );
    assert_eq!(verdict(&all, "three/z/sum"), "new");
    assert_eq!(verdict(&all, "one/y/sort/100"), "slower");
    let said = ended(
        &ab(&["--bench", "x", "--bench", "nosuch"]),
        2,
        "bench target `nosuch`",
    );
    assert!(!said.contains("building"), "{said}");
    let none = ab(&["-p", "three"]);
    ended(&none, 2, "has no benchmark");
}

#[test]
fn a_package_that_does_not_build_leaves_the_others_to_be_compared() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    workspace(top);
    fs::write(top.join("two/src/lib.rs"), "no Rust").unwrap();
    let output = crossover(top)
        .args([
            "--json",
            "--pairs",
            "1",
            "--budget",
            "0",
            "--run-equal",
            "--bench",
            "x",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let json = json(&output);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 2, "{json:#}");
    let warnings = json["warnings"].to_string();
    holds(
        &warnings,
        "left out: package two, whose benchmarks do not build in work tree",
    );
    clean(top);
}

#[test]
fn a_benchmark_that_would_take_more_than_the_budget_is_not_begun() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "if [ $id = sort/100 ]; then sleep 1; fi";
    bundles(dir.path(), &BOTH, &BOTH, slow);
    let slower = dir.path().join("old/run");
    fs::copy(dir.path().join("fresh/run"), &slower).unwrap();
    changed(dir.path(), "--noplot) ;;", "--noplot|--test) ;;");
    let output = compare(dir.path(), &["--json", "--budget", "0.2"]);
    let json = json(&output);
    assert_eq!(verdict(&json, "sum"), "same", "{json:#}");
    let warnings = json["warnings"].to_string();
    holds(
        &warnings,
        "did not reach 1 benchmark, such as sort/100, a pair of which takes 2",
    );
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.matches("sort/100").count(), 1, "{log}");
}

/// What the action runs in CI, whole, in a bare clone.
#[test]
fn the_action_leaves_a_summary_a_comment_and_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    workspace(&top);
    let slower = [("sort/100", 300.0), ("sum", 20.0)];
    harness(
        &top.join("one/harness/run"),
        &top.join("target-ran"),
        &slower,
        "",
    );
    git(&top, &["commit", "--quiet", "--all", "-m", "slower"]);
    git(dir.path(), &["clone", "--quiet", "--bare", "top", "bare"]);
    fs::create_dir(dir.path().join("temporary")).unwrap();
    let at = |name: &str| dir.path().join("temporary").join(name);
    let action = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/ab/run");
    let run = |base: &str, fail_on: &str| {
        let output = alone(&mut Command::new(action))
            .current_dir(dir.path().join("bare"))
            .env("AB_BASE", base)
            .env("AB_FAIL_ON", fail_on)
            .env("AB_ARGUMENTS", "-p\none\n--bench\nx\n\n--pairs\n4")
            .env("CROSSOVER", env!("CARGO_BIN_EXE_crossover"))
            .env("RUNNER_TEMP", at(""))
            .env("TMPDIR", at(""))
            .env("GITHUB_STEP_SUMMARY", at("summary"))
            .env("GITHUB_OUTPUT", at("output"))
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        fs::remove_dir_all(at("checkout")).unwrap();
        output
    };
    let output = run("HEAD~1", "slower");
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
    let summary = fs::read_to_string(at("summary")).unwrap();
    assert!(
        summary.starts_with("### Benchmarks: 1 slower, 1 same"),
        "{summary}"
    );
    assert!(summary.contains("| sort/100 |"), "{summary}");
    let said = fs::read_to_string(at("output")).unwrap();
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} {said}")).to_owned()
    };
    assert_eq!(value("exit-code="), "1");
    assert_eq!(fs::read_to_string(value("comment=")).unwrap(), summary);
    let kept = PathBuf::from(value("results=")).join("compare.json");
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(verdict(&kept, "sort/100"), "slower");
    // Nothing to compare is said too.
    let output = run("nowhere", "none");
    assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
    let comment = fs::read_to_string(at("comment.md")).unwrap();
    assert!(comment.contains("could not be compared"), "{comment}");
}
