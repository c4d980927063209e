//! `crossover ab`: order of the runs, verdicts, and what is left behind, also after an
//! interrupt.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::full_disk;
use crate::printed::{ended, printed, text};
use crate::repositories::{
    builds, cargo, clean, crossover, git, harness, repository, script, work_trees,
};

pub(crate) const BOTH: [(&str, f64); 2] = [("sort/100", 100.0), ("sum", 20.0)];

/// Bundles `old` and `fresh`; what these print and leave must not matter.
pub(crate) fn bundles(dir: &Path, old: &[(&str, f64)], fresh: &[(&str, f64)], body_of_fresh: &str) {
    let log = dir.join("log");
    let noise = "echo noise on standard output; echo more >&2";
    harness(&dir.join("old/run"), &log, old, noise);
    harness(&dir.join("fresh/run"), &log, fresh, body_of_fresh);
}

pub(crate) fn compare(dir: &Path, args: &[&str]) -> Output {
    crossover(dir)
        .args(["old", "fresh"])
        .args(args)
        .output()
        .unwrap()
}

/// Standard output holds the comparison alone.
pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(output)))
}

pub(crate) fn verdict(json: &Value, id: &str) -> String {
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
    let body = "echo ${#AB_PADDING} >> lengths";
    bundles(dir.path(), &BOTH, &fresh, body);
    let output = compare(dir.path(), &["--json", "--", "s|l"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
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
    // Each process has its stack elsewhere.
    let lengths = fs::read_to_string(dir.path().join("lengths")).unwrap();
    let lengths: BTreeSet<&str> = lengths.lines().collect();
    assert!(lengths.len() > 20, "{lengths:?}");
    // What is decided is not run again.
    assert_eq!(log.matches("fresh sum").count(), 8);
    assert_eq!(log.matches("old sort").count(), 8 + 6);
    let kept = kept(dir.path());
    for name in ["a1/1/sum", "b1/2/later", "a14/0/sort/100"] {
        assert!(kept.join(name).is_dir(), "{name}");
    }
    for name in ["compare.html", "compare.md", "compare.json"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
    let said = text(&output.stderr);
    assert!(said.contains(kept.to_str().unwrap()));
    // Of the later pairs, what they decide.
    assert_eq!(said.matches("pair ").count(), 8, "{said}");
    assert!(said.contains("sort/100: slower\n"), "{said}");
    let ignored = fs::read_to_string(kept.with_file_name(".gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}

#[test]
fn benchmarks_that_cannot_be_compared_are_named() {
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
        ended(&output, 2, says);
    }
}

#[test]
fn a_name_of_neither_bundle_nor_revision_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    repository(dir.path());
    fs::create_dir(dir.path().join("empty")).unwrap();
    for (args, says) in [
        (vec!["nowhere"], "neither a bundle folder nor a revision"),
        (vec!["empty"], "without an executable `run`"),
        (vec!["--", "x"], "does not build"),
    ] {
        let output = crossover(dir.path()).args(args).output().unwrap();
        ended(&output, 2, says);
        clean(dir.path());
    }
    script(&dir.path().join("a"), "exit 0");
    let output = crossover(dir.path()).arg("a").output().unwrap();
    assert!(printed(&output).contains("name the second one too"));
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
        .args("--features f --pairs 2 --budget 0 --".split(' '))
        .arg("some filter|s")
        .env("CARGO", cargo)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
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

/// A second comparison in one repository builds the same code for both sides, while the first one runs
/// executables that differ.
#[test]
fn two_comparisons_at_once_in_one_repository_have_executables_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    fs::write(top.join("file"), "slower\n").unwrap();
    git(top, &["commit", "--quiet", "--all", "-m", "second"]);
    let [hold, held] = ["target-hold", "target-held"].map(|name| top.join(name));
    fs::write(&hold, "").unwrap();
    // The first process of all waits.
    let waits = format!(
        "if mkdir {} 2>/dev/null; then while [ -e {} ]; do sleep 0.02; done; fi",
        held.display(),
        hold.display()
    );
    for (code, ns) in [("committed", 20.0), ("slower", 23.0)] {
        let bench = top.join("target-built").join(code);
        harness(&bench, &top.join("target-ran"), &[("sum", ns)], &waits);
    }
    let built = Path::new("$CARGO_TARGET_DIR/x");
    let cargo = cargo(
        top,
        &format!(
            "mkdir -p $CARGO_TARGET_DIR\ncp {}/$(cat file) $CARGO_TARGET_DIR/x\n{}",
            top.join("target-built").display(),
            builds(built)
        ),
    );
    let ab = |old: &str| {
        let mut command = crossover(top);
        command
            .args([old, "HEAD", "--json", "--run-equal"])
            .env("CARGO", &cargo);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let first = ab("HEAD~1").spawn().unwrap();
    while !held.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let second = ab("HEAD").output().unwrap();
    fs::remove_file(&hold).unwrap();
    let first = first.wait_with_output().unwrap();
    assert_eq!(verdict(&json(&second), "sum"), "same");
    assert_eq!(first.status.code(), Some(1), "{}", printed(&first));
    assert_eq!(verdict(&json(&first), "sum"), "slower");
    // The next one has no need of target folders of its own.
    let third = ab("HEAD").output().unwrap();
    assert_eq!(third.status.code(), Some(0), "{}", printed(&third));
    assert!(!top.join("target/ab/3").exists());
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
        .arg("--run-equal")
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
    assert_eq!(output.status.code(), Some(130), "{}", printed(&output));
    assert!(printed(&output).contains("interrupted"));
    clean(top);
    let grandchild = fs::read_to_string(started).unwrap();
    ends(grandchild.trim());
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
            "case $CRITERION_HOME in *b3/*) exit 7;; esac",
            "failed (exit status: 7)",
            3,
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let body = format!("echo more >&2; if [ $id = sum ]; then {fails}; fi");
        bundles(dir.path(), &BOTH, &BOTH, &body);
        let output = compare(dir.path(), &["--json", "--turn-limit", "5"]);
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        let json = json(&output);
        assert_eq!(verdict(&json, "sort/100"), "same");
        assert_eq!(verdict(&json, "sum"), "failed");
        assert_eq!(json["exit_code"], 1);
        let said = text(&output.stderr);
        let named = format!("error: sum of run b{runs} {says}");
        assert!(said.contains(&named), "{said}");
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(log.matches("fresh sum").count(), runs, "{log}");
    }
}

/// Criterion wrote results of other benchmarks, or of the same one, before the process failed.
#[test]
fn nothing_counts_that_a_failed_process_left() {
    let dir = tempfile::tempdir().unwrap();
    for benchmarks in [&BOTH[..], &BOTH[1..]] {
        bundles(dir.path(), benchmarks, benchmarks, "");
        for side in ["old", "fresh"] {
            let run = dir.path().join(side).join("run");
            let panics = "echo thread main panicked at x.rs:1:2: >&2; echo boom >&2; exit 101";
            let panics = format!("case \"$list$filter\" in ^sum*) {panics};; esac\n");
            fs::write(&run, fs::read_to_string(&run).unwrap() + &panics).unwrap();
        }
        let output = compare(dir.path(), &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
        let json = json(&output);
        let found = json["benchmarks"].as_array().unwrap();
        let failed = found.iter().find(|row| row["id"] == "sum");
        let failed = failed.unwrap_or_else(|| panic!("{}", printed(&output)));
        assert_eq!(failed["verdict"], "failed");
        assert!(failed["reason"].to_string().contains("boom"), "{failed}");
        assert_eq!(json["exit_code"], 1);
        if benchmarks.len() > 1 {
            assert_eq!(verdict(&json, "sort/100"), "same");
        }
    }
}

#[test]
fn a_full_disk_is_no_failure_of_a_benchmark() {
    let dir = tempfile::tempdir().unwrap();
    // A file in place of the folder, which nothing can be written to.
    let full = r#"case $CRITERION_HOME in *b2/*) d=$(dirname "$CRITERION_HOME"); rm -r "$d"; touch "$d";; esac"#;
    bundles(dir.path(), &BOTH, &BOTH, full);
    let output = compare(dir.path(), &["--json"]);
    let said = ended(&output, 1, "no more pairs were run");
    assert!(!said.contains("it is not run again"), "{said}");
    assert!(
        said.contains("choose another folder with --results"),
        "{said}"
    );
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.lines().count(), 6, "{log}");
}

/// Whether a process runs; it may wait a moment to be reaped.
fn is_alive(process: &str) -> bool {
    fs::read_to_string(format!("/proc/{process}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Fails where a process goes on.
fn ends(process: &str) {
    for _ in 0..500 {
        if !is_alive(process) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {process} was left");
}

#[test]
fn child_processes_end_with_their_benchmark() {
    let dir = tempfile::tempdir().unwrap();
    let starts = format!(
        "sleep 600 & echo $! >> {}",
        dir.path().join("started").display()
    );
    bundles(dir.path(), &BOTH, &BOTH, &starts);
    let output = compare(dir.path(), &["--pairs", "1", "--budget", "0"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let started = fs::read_to_string(dir.path().join("started")).unwrap();
    assert_eq!(started.lines().count(), 2);
    started.lines().for_each(ends);
}

#[test]
fn a_pipe_in_place_of_a_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    fs::remove_file(top.join("file")).unwrap();
    nix::unistd::mkfifo(&top.join("file"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let builds = cargo(top, "exit 0");
    let output = crossover(top).env("CARGO", builds).output().unwrap();
    ended(
        &output,
        2,
        "note: what git could not read above is as in HEAD",
    );
    clean(top);
}

#[test]
fn a_name_is_a_revision_if_git_knows_it() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    git(top, &["tag", "v1"]);
    script(&top.join("v1"), "touch target-run");
    let bench = top.join("target-bench/run");
    harness(&bench, &top.join("target-ran"), &BOTH[..1], "");
    for revision in ["v1", ":/first"] {
        let output = crossover(top)
            .args([revision, "HEAD", "--pairs", "1", "--budget", "0"])
            .env("CARGO", cargo(top, &builds(&bench)))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    }
    assert!(!top.join("target-run").exists());
    clean(top);
}

#[test]
fn a_revision_that_cannot_be_read_has_its_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let outside = crossover(dir.path()).output().unwrap();
    let said = ended(
        &outside,
        2,
        "This is not a git repository. Run `crossover ab` inside one",
    );
    assert_eq!(said.matches("repository").count(), 1, "{said}");
    let top = dir.path().join("top");
    repository(&top);
    fs::write(top.join("file"), "changed\n").unwrap();
    git(&top, &["commit", "--quiet", "--all", "-m", "second"]);
    let url = format!("file://{}", top.display());
    git(
        dir.path(),
        &["clone", "--quiet", "--depth", "1", &url, "shallow"],
    );
    let shallow = dir.path().join("shallow");
    let output = crossover(&shallow).arg("HEAD~1").output().unwrap();
    ended(&output, 2, "`git fetch --deepen=100`");
}

#[test]
fn equal_executables_are_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let (bench, ran) = (top.join("target-bench/run"), top.join("target-ran"));
    harness(&bench, &ran, &BOTH, "");
    let cargo = cargo(top, &builds(&bench));
    let ab = |arguments: &[&str]| {
        let mut command = crossover(top);
        command.args(["--pairs", "1", "--budget", "0", "--json"]);
        command
            .args(arguments)
            .env("CARGO", &cargo)
            .output()
            .unwrap()
    };
    fs::write(top.join("README.md"), "new\n").unwrap();
    let output = ab(&[]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert_eq!(json(&output)["exit_code"], 0);
    assert!(!ran.exists());
    // Data that is read when they run.
    fs::write(top.join("file"), "changed\n").unwrap();
    let warnings = json(&ab(&[]))["warnings"].to_string();
    assert!(
        warnings.contains("equal executables; they differ in file"),
        "{warnings}"
    );
    assert!(ran.exists());
    git(top, &["checkout", "--quiet", "file"]);
    fs::remove_file(&ran).unwrap();
    assert_eq!(ab(&["--run-equal"]).status.code(), Some(0));
    assert!(ran.exists());
}

#[test]
fn another_toolchain_and_a_lock_file_that_is_ignored_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let lock = |version: &str| format!("name = \"itoa\"\nversion = \"{version}\"\n");
    fs::write(top.join(".git/info/exclude"), "Cargo.lock\n").unwrap();
    fs::write(top.join("Cargo.lock"), lock("1.0.5")).unwrap();
    fs::write(
        top.join("rust-toolchain.toml"),
        "[toolchain]\nchannel = \"1.95\"\n",
    )
    .unwrap();
    let bench = top.join("target-bench/run");
    harness(&bench, &top.join("target-ran"), &BOTH[..1], "");
    let locks = format!(
        "printf '{}' > Cargo.lock\n",
        lock("1.0.19").replace('\n', "\\n")
    );
    let output = crossover(top)
        .args(["--pairs", "1", "--budget", "0", "--json"])
        .env("CARGO", cargo(top, &(locks + &builds(&bench))))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let warnings = json(&output)["warnings"].to_string();
    assert!(
        warnings.contains("without yours: itoa 1.0.5 → 1.0.19"),
        "{warnings}"
    );
    assert!(
        warnings.contains("rust-toolchain differs: none → 1.95"),
        "{warnings}"
    );
}

#[test]
fn one_benchmark_is_named_by_exact_and_quick_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let both = [("sum", 20.0), ("sums", 20.0)];
    bundles(dir.path(), &both, &both, "");
    let options = ["--json", "--pairs", "1", "--budget", "0", "--"];
    let ab = |arguments: &[&str]| compare(dir.path(), &[&options[..], arguments].concat());
    let output = ab(&["--exact", "sum"]);
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert_eq!(json(&output)["benchmarks"].as_array().unwrap().len(), 1);
    let said = ended(&ab(&["--quick"]), 2, "--quick");
    assert!(!said.contains("pair 1"), "{said}");
}

/// There is room for the folder of the results, and then for neither the file of the commit nor that of
/// the work tree.
#[test]
fn a_temporary_folder_that_is_too_small_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    fs::write(top.join("large"), vec![b'x'; 1 << 16]).unwrap();
    for is_committed in [false, true] {
        if is_committed {
            git(top, &["add", "large"]);
            git(top, &["commit", "--quiet", "-m", "large"]);
        }
        let output = crossover(top)
            .env("CARGO", cargo(top, "exit 0"))
            .env("LD_PRELOAD", full_disk::library())
            .env("FULL_AFTER", "8000")
            .output()
            .unwrap();
        let said = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let named = format!(
            "{}: No space left on device (os error 28); name a folder with more room in TMPDIR",
            top.join("tmp").display()
        );
        assert!(said.contains(&named), "{said}");
        clean(top);
    }
}

/// The second pair leaves no room for a third, and none for the files of the comparison.
#[test]
fn complete_pairs_are_compared_where_nothing_more_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let fills = r#"case $CRITERION_HOME in *b2/*) cd "$CRITERION_HOME/../.."; touch a3; mkdir -p compare.html/full;; esac"#;
    let slower = [("sort/100", 105.0), ("sum", 21.0)];
    bundles(dir.path(), &BOTH, &slower, fills);
    let output = compare(dir.path(), &["--pairs", "3", "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", printed(&output));
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
