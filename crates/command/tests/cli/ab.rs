//! `crossover ab`: order of the runs, verdicts, and what is left behind, also after an
//! interrupt.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::baselines::suite;
use crate::repositories::{
    cargo, clean, crossover, git, repository, script, shown, text, work_trees,
};

/// A bundle whose `run` copies the next of its prepared results to CRITERION_HOME and logs
/// that it ran, with its arguments.
fn bundle(dir: &Path, log: &Path, seed: u64, ratio: f64) {
    for turn in 1..=2 {
        let results = dir.join(format!("results-{turn}"));
        suite(&results, "new", seed + turn, |_| ratio);
    }
    script(
        dir,
        &format!(
            r#"echo "$(basename {dir}) $*" >> {log}
turn=$(grep -c "^$(basename {dir}) " {log})
mkdir -p "$CRITERION_HOME"
cp -r {dir}/results-$turn/. "$CRITERION_HOME"
echo "noise on standard output""#,
            dir = dir.display(),
            log = log.display()
        ),
    );
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
fn bundles_run_in_turn_and_are_compared_pair_by_pair() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    bundle(&dir.path().join("old"), &log, 10, 1.0);
    bundle(&dir.path().join("fresh"), &log, 20, 1.02);
    let output = crossover(dir.path())
        .args(["old", "fresh", "--json", "--", "matmul", "--quick"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert_eq!(
        fs::read_to_string(&log).unwrap(),
        "old bench matmul --quick\nfresh bench matmul --quick\n\
         fresh bench matmul --quick\nold bench matmul --quick\n"
    );
    // Standard output holds the comparison alone.
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["counts"]["slower"], 20, "{json:#}");
    assert_eq!(json["classes"][0]["pairs"], 2);
    let kept = kept(dir.path());
    for name in ["a1", "a2", "b1", "b2"] {
        assert!(kept.join(name).join("matmul").is_dir(), "{name}");
    }
    for name in ["compare.html", "compare.md", "compare.json"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
    assert!(text(&output.stderr).contains(kept.to_str().unwrap()));
}

#[test]
fn a_run_without_results_is_named() {
    let dir = tempfile::tempdir().unwrap();
    script(&dir.path().join("a"), "exit 3");
    script(&dir.path().join("b"), "exit 0");
    let output = crossover(dir.path()).args(["a", "b"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = shown(&output);
    assert!(text.contains("run a1 of "), "{text}");
    assert!(text.contains("failed (exit status: 3)"), "{text}");
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
fn revisions_are_built_apart_and_the_work_tree_is_left_alone() {
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
    for (seed, name) in ["a1", "b1", "b2", "a2"].into_iter().enumerate() {
        suite(
            &top.join("target-made").join(name),
            "new",
            seed as u64,
            |_| 1.0,
        );
    }
    let log = top.join("target-log");
    let cargo = cargo(
        top,
        &format!(
            r#"echo "$*|$CARGO_TARGET_DIR|$(cat file)|$(ls | tr '\n' ' ')|$(git status --porcelain | tr '\n' ' ')" >> {log}
case "$*" in *--no-run*) exit 0;; esac
mkdir -p "$CRITERION_HOME"
cp -r {top}/target-made/$(basename "$CRITERION_HOME")/. "$CRITERION_HOME""#,
            log = log.display(),
            top = top.display(),
        ),
    );
    let output = crossover(top)
        .args(["--bench", "b", "--", "some filter"])
        .env("CARGO", cargo)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let target = |side: &str| top.canonicalize().unwrap().join("target/ab").join(side);
    let line = |side: &str, args: &str| {
        let tree = match side {
            "a" => "committed|file gone |",
            _ => "changed|file fresh | M file  D gone ?? fresh ",
        };
        format!("bench --bench b {args}|{}|{tree}", target(side).display())
    };
    let want = [
        line("a", "--no-run"),
        line("b", "--no-run"),
        line("a", "-- some filter"),
        line("b", "-- some filter"),
        line("b", "-- some filter"),
        line("a", "-- some filter"),
    ]
    .join("\n");
    assert_eq!(fs::read_to_string(&log).unwrap().trim_end(), want);
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
    let cargo = cargo(
        top,
        &format!(
            r#"case "$*" in *--no-run*) exit 0;; esac
trap "" INT
sleep 600 &
echo $! > {0}.part
mv {0}.part {0}
wait
sleep 600"#,
            started.display()
        ),
    );
    let child = crossover(top)
        .env("CARGO", cargo)
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

#[test]
fn a_side_that_fails_is_an_error_whatever_the_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    bundle(&dir.path().join("old"), &log, 10, 1.0);
    bundle(&dir.path().join("fresh"), &log, 20, 1.0);
    let run = dir.path().join("fresh/run");
    let fails = fs::read_to_string(&run).unwrap() + "\nexit 1\n";
    fs::write(&run, fails).unwrap();
    let output = crossover(dir.path())
        .args(["old", "fresh"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let text = text(&output.stderr);
    assert!(text.contains("error: run b1 of "), "{text}");
    assert!(text.contains("failed (exit status: 1)"), "{text}");
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
    let log = dir.path().join("log");
    bundle(&dir.path().join("old"), &log, 10, 1.0);
    bundle(&dir.path().join("fresh"), &log, 20, 1.02);
    let run = dir.path().join("old/run");
    let fills = fs::read_to_string(&run).unwrap()
        + "if [ $turn = 2 ]; then cd \"$CRITERION_HOME/..\"; touch a3; mkdir -p compare.html/full; fi\n";
    fs::write(&run, fills).unwrap();
    let output = crossover(dir.path())
        .args(["old", "fresh", "--pairs", "3", "--json"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["classes"][0]["pairs"], 2, "{json:#}");
    assert_eq!(json["counts"]["slower"], 20, "{json:#}");
    let text = text(&output.stderr);
    for file in ["a3: ", "compare.html: "] {
        assert!(
            text.contains(file) && !text.contains("CRITERION_HOME"),
            "{text}"
        );
    }
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 4);
}
