//! `crossover ab`: order of the runs, verdicts, and what is left behind, also after an
//! interrupt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::repositories::{
    alone, builds, cargo, clean, crossover, git, harness, repository, script, shown, text,
    work_trees,
};

const BOTH: [(&str, f64); 2] = [("sort/100", 100.0), ("sum", 20.0)];

/// Bundles `old` and `fresh`; what these print and leave must not matter.
fn bundles(dir: &Path, old: &[(&str, f64)], fresh: &[(&str, f64)], body_of_fresh: &str) {
    let log = dir.join("log");
    let noise = "echo noise on standard output; echo more >&2";
    harness(&dir.join("old/run"), &log, old, noise);
    harness(&dir.join("fresh/run"), &log, fresh, body_of_fresh);
}

fn compare(dir: &Path, args: &[&str]) -> Output {
    crossover(dir)
        .args(["old", "fresh"])
        .args(args)
        .output()
        .unwrap()
}

/// Standard output holds the comparison alone.
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(output)))
}

fn verdict(json: &Value, id: &str) -> String {
    let benchmarks = json["benchmarks"].as_array().unwrap();
    let found = benchmarks.iter().find(|benchmark| benchmark["id"] == id);
    found.unwrap_or_else(|| panic!("{id}: {json:#}"))["verdict"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The one results folder of a run of the command.
fn kept(cwd: &Path) -> PathBuf {
    let entries = fs::read_dir(cwd.join("target-reports/ab")).unwrap();
    let mut dirs = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let dir = dirs.next().unwrap();
    assert!(dirs.next().is_none());
    dir
}

#[test]
fn short_processes_run_in_turn_and_are_compared_pair_by_pair() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = [("sort/100", 105.0), ("sum", 20.0), ("later", 1.0)];
    bundles(dir.path(), &BOTH, &fresh, "");
    let output = compare(dir.path(), &["--json", "--", "s|l"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let json = json(&output);
    assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
    assert_eq!(verdict(&json, "sum"), "same");
    assert_eq!(verdict(&json, "later"), "new");
    assert_eq!(json["screened"], 8);
    assert_eq!(json["warnings"].as_array().unwrap().len(), 0, "{json:#}");
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    let first: Vec<&str> = log.lines().take(9).collect();
    assert_eq!(
        first,
        [
            "fresh sort/100",
            "old sort/100",
            "old sum",
            "fresh sum",
            "fresh later",
            "old sort/100",
            "fresh sort/100",
            "fresh sum",
            "old sum",
        ]
    );
    // What is decided is not run again.
    assert_eq!(log.matches("fresh sum").count(), 8);
    assert_eq!(log.matches("old sort").count(), 8 + 6);
    let kept = kept(dir.path());
    for name in ["a1/sum", "b1/later", "a14/sort/100"] {
        assert!(kept.join(name).is_dir(), "{name}");
    }
    for name in ["compare.html", "compare.md", "compare.json"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
    assert!(text(&output.stderr).contains(kept.to_str().unwrap()));
}

#[test]
fn what_cannot_be_compared_is_named() {
    for (old, fresh, says) in [
        (
            "exit 3",
            "exit 0",
            "cannot list its benchmarks: it failed (exit status: 3)",
        ),
        ("echo x: bench", "exit 0", "fresh has no benchmark"),
        ("exit 0", "exit 0", "old has no benchmark"),
        (
            r#"[ "$2" = --list ] && [ $# = 2 ] && echo x: bench || exit 1"#,
            "exit 0",
            "knows no option of Criterion's",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        script(&dir.path().join("old"), old);
        script(&dir.path().join("fresh"), fresh);
        let output = compare(dir.path(), &[]);
        assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
        assert!(shown(&output).contains(says), "{}", shown(&output));
    }
}

#[test]
fn what_is_neither_a_bundle_nor_a_revision_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    repository(dir.path());
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (args, says) in [
        (vec!["nowhere"], "neither a bundle folder nor a revision"),
        (vec!["empty"], "without an executable `run`"),
        (vec!["--", "x"], "does not build"),
    ] {
        let output = crossover(dir.path()).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(shown(&output).contains(says), "{}", shown(&output));
        clean(dir.path());
    }
    script(&dir.path().join("a"), "exit 0");
    let output = crossover(dir.path()).arg("a").output().unwrap();
    assert!(shown(&output).contains("name the second one too"));
}

#[test]
fn revisions_are_built_and_run_at_one_path_and_the_work_tree_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    // Changed, deleted, new and ignored files.
    fs::write(top.join("gone"), "x").unwrap();
    git(top, &["add", "gone"]);
    git(top, &["commit", "--quiet", "-m", "second"]);
    fs::remove_file(top.join("gone")).unwrap();
    fs::write(top.join("file"), "changed\n").unwrap();
    fs::write(top.join("fresh"), "new\n").unwrap();
    fs::write(top.join("target-x"), "ignored").unwrap();
    let before = git(top, &["status", "--porcelain"]);
    let log = top.join("target-log");
    let bench = top.join("target-bench/run");
    let leaves = format!(
        r#"echo "$PWD|$(cat file)" >> {}; echo left > left"#,
        log.display()
    );
    harness(&bench, &top.join("target-ran"), &BOTH[..1], &leaves);
    let cargo = cargo(
        top,
        &format!(
            r#"echo "$PWD|$(cat file)|$1 $2|$CARGO_TARGET_DIR|$(ls | tr '\n' ' ')|$(git status --porcelain | tr '\n' ' ')" >> {log}
{built}"#,
            log = log.display(),
            built = builds(&bench),
        ),
    );
    let output = crossover(top)
        .args([
            "--features",
            "f",
            "--pairs",
            "2",
            "--budget",
            "0",
            "--",
            "some filter|s",
        ])
        .env("CARGO", cargo)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let log = fs::read_to_string(&log).unwrap();
    let (tree, _) = log.split_once('|').unwrap();
    let target = |side: &str| top.canonicalize().unwrap().join("target/ab").join(side);
    let built = |side: &str, files: &str| {
        format!(
            "{tree}|{files}",
            files = files.replace("TARGET", target(side).to_str().unwrap())
        )
    };
    let want = [
        built("a", "committed|bench --features|TARGET|file gone |"),
        built(
            "b",
            "changed|bench --features|TARGET|file fresh | M file  D gone ?? fresh ",
        ),
        format!("{tree}|changed"),
        format!("{tree}|committed"),
        format!("{tree}|committed"),
        format!("{tree}|changed"),
    ]
    .join("\n");
    assert_eq!(log.trim_end(), want);
    assert_eq!(git(top, &["status", "--porcelain"]), before);
    clean(top);
}

#[test]
fn an_interrupt_ends_the_children_and_removes_the_work_trees() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let started = top.join("target-started");
    // A child of the child that would outlive both, and heeds no interrupt.
    let sleeps = format!(
        r#"trap "" INT
sleep 600 &
echo $! > {0}.part
mv {0}.part {0}
wait
sleep 600"#,
        started.display()
    );
    let bench = top.join("target-bench/run");
    harness(&bench, &top.join("target-ran"), &BOTH, &sleeps);
    let child = crossover(top)
        .env("CARGO", cargo(top, &builds(&bench)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !started.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_ne!(work_trees(top), 0);
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", shown(&output));
    assert!(shown(&output).contains("interrupted"));
    clean(top);
    let grandchild: i32 = fs::read_to_string(started).unwrap().trim().parse().unwrap();
    // Killed with its group; it may wait a moment to be reaped.
    let alive = || {
        fs::read_to_string(format!("/proc/{grandchild}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    for _ in 0..500 {
        if !alive() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {grandchild} outlived the interrupt");
}

#[test]
fn a_killed_comparison_is_cleared_up_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let started = top.join("target-started");
    let waits = cargo(
        top,
        &format!(
            "touch {}\nwhile [ -e {0} ]; do sleep 0.05; done",
            started.display()
        ),
    );
    let mut child = crossover(top).env("CARGO", waits).spawn().unwrap();
    while !started.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&started).unwrap();
    assert_ne!(work_trees(top), 0);
    // Nothing is built here, but what was left is gone.
    let fails = cargo(top, "exit 1");
    let output = crossover(top).env("CARGO", fails).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    clean(top);
}

/// One benchmark panics, is killed, hangs or leaves no result: it is named, it is not run again, and
/// the other one is compared.
#[test]
fn a_benchmark_that_fails_is_an_error_whatever_the_verdict() {
    for (fails, says, runs) in [
        (
            "echo 'thread main panicked at x.rs:1:2:' >&2; echo boom >&2; echo '  0: backtrace' >&2; exit 101",
            "failed (exit status: 101): thread main panicked at x.rs:1:2: boom;",
            1,
        ),
        ("kill -KILL $$", "failed (signal: 9 (SIGKILL)", 1),
        ("sleep 600", "took longer than --turn-limit", 1),
        ("exit 0", "left no result", 1),
        (
            "case $CRITERION_HOME in *b3) exit 7;; esac",
            "failed (exit status: 7)",
            3,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let body = format!("echo more >&2; if [ $id = sum ]; then {fails}; fi");
        bundles(dir.path(), &BOTH, &BOTH, &body);
        let output = compare(dir.path(), &["--json", "--turn-limit", "5"]);
        assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
        let json = json(&output);
        assert_eq!(verdict(&json, "sort/100"), "same");
        let said = text(&output.stderr);
        let named = format!("error: sum of run b{runs} {says}");
        assert!(said.contains(&named), "{said}");
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(log.matches("fresh sum").count(), runs, "{log}");
    }
}

#[test]
fn much_that_is_untracked_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    fs::File::create(top.join("large"))
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let builds = cargo(top, "exit 0");
    let said = || shown(&crossover(top).env("CARGO", &builds).output().unwrap());
    assert!(!said().contains("untracked"), "{}", said());
    fs::write(top.join("small"), "x").unwrap();
    assert!(
        said().contains("the largest is large with 64 MiB"),
        "{}",
        said()
    );
}

/// The second pair leaves no room for a third, and none for the files of the comparison.
#[test]
fn complete_pairs_are_compared_where_nothing_more_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let fills = r#"case $CRITERION_HOME in *b2) touch "$CRITERION_HOME/../a3"; mkdir -p "$CRITERION_HOME/../compare.html/full";; esac"#;
    let slower = [("sort/100", 105.0), ("sum", 21.0)];
    bundles(dir.path(), &BOTH, &slower, fills);
    let output = compare(dir.path(), &["--pairs", "3", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let json = json(&output);
    assert_eq!(json["classes"][0]["pairs"], 2, "{json:#}");
    let text = text(&output.stderr);
    for file in ["a3: ", "compare.html: "] {
        assert!(
            text.contains(file) && !text.contains("CRITERION_HOME"),
            "{text}"
        );
    }
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 8);
}

/// What an old Criterion does not know is left out of the command line, and benchmarks that it
/// cannot run alone are named.
#[test]
fn an_executable_is_asked_for_what_it_knows() {
    let dir = tempfile::tempdir().unwrap();
    let all = [("sum", 20.0), ("sums", 20.0)];
    bundles(dir.path(), &all, &all, "");
    for side in ["old", "fresh"] {
        let run = dir.path().join(side).join("run");
        let newer = fs::read_to_string(&run).unwrap();
        // Whole seconds, a filter that is a part of a name, and the other form of the list.
        let older = newer
            .replace("--nresamples|", "")
            .replace(
                "--measurement-time) shift;;",
                "--measurement-time) shift; case $1 in *.*) exit 1;; esac;;",
            )
            .replace("grep -Eq", "grep -Fq")
            .replace("filter=.", "filter=")
            .replace(": benchmark", ": bench");
        assert!(older.lines().count() == newer.lines().count() && older != newer);
        fs::write(run, older).unwrap();
    }
    let output = compare(dir.path(), &["--json", "--pairs", "2", "--budget", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let json = json(&output);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 1, "{json:#}");
    verdict(&json, "sums");
    let warnings = json["warnings"].to_string();
    assert!(warnings.contains("whole seconds alone"), "{warnings}");
    assert!(
        warnings.contains("1 benchmark of run that cannot be run alone")
            && warnings.contains("such as sum\""),
        "{warnings}"
    );
}

/// Slow benchmarks leave the others their time.
#[test]
fn benchmarks_too_slow_for_the_budget_run_once() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "if [ $id = sum ]; then sleep 1; fi";
    bundles(dir.path(), &BOTH, &BOTH, slow);
    let output = compare(dir.path(), &["--json", "--budget", "0.2"]);
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let json = json(&output);
    assert_eq!(verdict(&json, "sort/100"), "same");
    let warnings = json["warnings"].to_string();
    assert!(
        warnings.contains("1 benchmark ran once") && warnings.contains("the slowest, sum,"),
        "{warnings}"
    );
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
    let one = ab(&[
        "-p",
        "one",
        "-p",
        "three",
        "--features",
        "one/f",
        "--bench",
        "x",
        "--bench",
        "z",
    ]);
    assert_eq!(one.status.code(), Some(1), "{}", shown(&one));
    let one = json(&one);
    assert_eq!(verdict(&one, "one/x/sort/100"), "slower", "{one:#}");
    // Lines of a lock file that was made for either side.
    assert!(
        one["warnings"]
            .to_string()
            .contains("Cargo.lock differs: three none → 0.1.0"),
        "{one:#}"
    );
    let ids = |json: &Value| -> Vec<String> {
        let benchmarks = json["benchmarks"].as_array().unwrap().iter();
        let mut ids: Vec<String> = benchmarks
            .map(|b| b["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids
    };
    // Two targets with benchmarks of one name.
    let all = json(&ab(&["--workspace"]));
    assert_eq!(
        ids(&all),
        [
            "one/x/sort/100",
            "one/x/sum",
            "one/y/sort/100",
            "one/y/sum",
            "three/z/sort/100",
            "three/z/sum",
            "two/x/sort/100",
            "two/x/sum",
        ]
    );
    assert_eq!(verdict(&all, "three/z/sum"), "new");
    assert_eq!(verdict(&all, "one/y/sort/100"), "slower");
    let none = ab(&["-p", "three"]);
    assert_eq!(none.status.code(), Some(2), "{}", shown(&none));
    assert!(
        shown(&none).contains("has no benchmark"),
        "{}",
        shown(&none)
    );
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
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
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
    let form =
        |name: &str| fs::read_to_string(PathBuf::from(value("results=")).join(name)).unwrap();
    let parsed = |name: &str| serde_json::from_str::<Value>(&form(name)).unwrap();
    let near = |value: &Value| (value.as_f64().unwrap() / 300.0 - 1.0).abs() < 0.01;
    let latency = &parsed("compare-bencher.json")["sort/100"]["latency"];
    assert!(near(&latency["value"]), "{latency}");
    assert!(
        latency["lower_value"].as_f64() < latency["upper_value"].as_f64(),
        "{latency}"
    );
    let entries = parsed("compare-github-action-benchmark.json");
    assert!(
        near(&entries[0]["value"]) && entries[0]["unit"] == "ns",
        "{entries}"
    );
    let junit = form("compare-junit.xml");
    assert!(
        junit.contains(r#"tests="2" failures="1" errors="0" skipped="0""#),
        "{junit}"
    );
    assert!(
        junit.contains(r#"<testcase classname="sort" name="100""#),
        "{junit}"
    );
    // Nothing to compare is said too.
    let output = run("nowhere", "none");
    assert_eq!(output.status.code(), Some(2), "{}", shown(&output));
    let comment = fs::read_to_string(at("comment.md")).unwrap();
    assert!(comment.contains("could not be compared"), "{comment}");
}
