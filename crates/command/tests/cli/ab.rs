//! `crossover ab`: order of the runs, verdicts, and what is left behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::compare::{compared, row, verdict};
use crate::full_disk;
use crate::printed::{ended, ends, expect, holds, text};
use crate::repositories::{
    BOTH, Bundles, ONE_PAIR, Project, builds, clean, commit, crossover, executable, git, repository,
};

/// The one results folder of a run of the command.
pub(crate) fn kept(cwd: &Path) -> PathBuf {
    let entries = fs::read_dir(cwd.join("target-reports/ab")).unwrap();
    let mut dirs = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir());
    let dir = dirs.next().unwrap();
    assert!(dirs.next().is_none());
    dir
}

pub(crate) fn short_processes_run_in_turn_and_are_compared_pair_by_pair() {
    let fresh = [("sort/100", 105.0), ("sum", 20.0), ("later", 1.0)];
    // Each process leaves a child.
    let body = "echo ${#AB_PADDING} >> lengths; sleep 600 & echo $! >> started";
    let bundles = Bundles::new(&BOTH, &fresh, body);
    let output = bundles.ab("--json -- s|l");
    let json = compared(&output, 1);
    let verdicts = ["sort/100", "sum", "later"].map(|id| verdict(&json, id));
    assert_eq!(verdicts, ["slower", "same", "new"], "{json:#}");
    assert_eq!(json["screened"], 8);
    assert_eq!(json["warnings"].as_array().unwrap().len(), 0, "{json:#}");
    let log = bundles.read("log");
    let first = "fresh sort/100, old sort/100, old sum, fresh sum, fresh later, old sort/100, fresh sort/100, \
        fresh sum, old sum";
    assert_eq!(Vec::from_iter(log.lines().take(9)).join(", "), first);
    bundles.read("started").lines().for_each(ends);
    // Each process has its stack elsewhere.
    let lengths = bundles.read("lengths");
    let lengths: BTreeSet<&str> = lengths.lines().collect();
    assert!(lengths.len() > 20, "{lengths:?}");
    // What is decided is not run again.
    assert_eq!(log.matches("fresh sum").count(), 8);
    assert_eq!(log.matches("old sort").count(), 8 + 6);
    let kept = kept(bundles.dir());
    for name in ["a1/1/sum", "b1/2/later", "a14/0/sort/100"] {
        assert!(kept.join(name).is_dir(), "{name}");
    }
    for name in ["compare.html", "compare.md", "compare.json"] {
        assert!(kept.join(name).is_file(), "{name}");
    }
    let errors = text(&output.stderr);
    holds(&errors, kept.to_str().unwrap());
    // Later pairs print what they decide.
    assert_eq!(errors.matches("pair ").count(), 8, "{errors}");
    holds(&errors, "sort/100: slower so far\n");
    let ignored = fs::read_to_string(kept.with_file_name(".gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}

pub(crate) fn benchmarks_that_cannot_be_compared_are_named() {
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
        // A name that is used twice is selected, a plain one is not.
        (
            r#"for last; do :; done
case $last in
  '^a$') echo a: bench;;
  '^'*|crossover*) ;;
  *) printf '%s: bench\n' a 'a #2' b;;
esac"#,
            "exit 0",
            "selects none of them",
        ),
    ] {
        let bundles = Bundles::new(&BOTH, &BOTH, "");
        executable(&bundles.dir().join("old/run"), old);
        executable(&bundles.dir().join("fresh/run"), fresh);
        ended(&bundles.ab(""), 2, says);
    }
    // Such as names with the commit.
    let bundles = Bundles::new(&[("at-1", 20.0)], &[("at-2", 20.0)], "");
    for (fail_on, code) in [("slower", 2), ("any", 1)] {
        let json = bundles.compared(&format!("--fail-on {fail_on}"), code);
        let verdicts = ["at-1", "at-2"].map(|id| verdict(&json, id));
        assert_eq!(verdicts, ["gone", "new"], "{json:#}");
    }
    // A pair each.
    assert_eq!(bundles.read("log").lines().count(), 4);
}

pub(crate) fn what_is_neither_a_revision_nor_a_bundle_has_its_remedy() {
    let project = Project::new(&BOTH[..1], "");
    let top = project.top();
    project.write("file", "changed\n");
    commit(top, "second");
    fs::create_dir(top.join("empty")).unwrap();
    executable(&top.join("a/run"), "exit 0");
    for (sides, says) in [
        ("nowhere", "neither a bundle folder nor a revision"),
        ("empty", "the folder has no executable `run`"),
        ("a", "name the second one too"),
    ] {
        ended(&project.ab(sides).output().unwrap(), 2, says);
    }
    project.cargo("exit 1");
    ended(&project.ab("").output().unwrap(), 2, "does not build");
    clean(top);
    let outside = tempfile::tempdir().unwrap();
    let says = "This is not a git repository. Run `crossover ab` inside one";
    let said = expect(&mut crossover(outside.path()), 2, says);
    assert_eq!(said.matches("repository").count(), 1, "{said}");
    let shallow = outside.path().join("shallow");
    let url = format!("file://{}", top.display());
    let clone = ["clone", "--quiet", "--depth", "1", &url, "shallow"];
    git(outside.path(), &clone);
    let output = crossover(&shallow).arg("HEAD~1").output().unwrap();
    ended(&output, 2, "`git fetch --deepen=100`");
}

pub(crate) fn a_name_is_a_revision_if_git_knows_it() {
    let project = Project::new(&BOTH[..1], "");
    let top = project.top();
    git(top, &["tag", "v1"]);
    executable(&project.path("v1/run"), "touch target-run");
    // The staged files, by the command line of the documentation.
    project.write("file", "staged\n");
    git(top, &["add", "file"]);
    project.write("file", "not staged\n");
    let tree = git(top, &["write-tree"]);
    let staged = ["commit-tree", "-p", "HEAD", "-m", "staged", tree.trim()];
    let staged = git(top, &staged);
    project.cargo(&format!(
        "cat file >> {}\n{}",
        project.path("target-seen").display(),
        builds(&project.path("target-bench/run"))
    ));
    for revision in ["v1", ":/first", staged.trim()] {
        let options = format!("HEAD {revision} {ONE_PAIR}");
        compared(&project.ab(&options).output().unwrap(), 0);
    }
    assert!(!project.path("target-run").exists());
    let seen = fs::read_to_string(project.path("target-seen")).unwrap();
    assert_eq!(seen, "committed\n".repeat(5) + "staged\n");
    clean(top);
}

pub(crate) fn revisions_are_built_and_run_at_one_path_and_the_work_tree_is_left_alone() {
    let leaves = r#"echo "$PWD|$(cat file)" >> $log-at; echo left > left"#;
    let project = Project::new(&BOTH[..1], leaves);
    let top = project.top();
    // Changed, deleted, new and ignored files.
    project.write("gone", "x");
    commit(top, "second");
    fs::remove_file(top.join("gone")).unwrap();
    project.write("file", "changed\n");
    project.write("fresh", "new\n");
    project.write("target-x", "ignored");
    let before = git(top, &["status", "--porcelain"]);
    // The user goes on editing.
    project.cargo(&format!(
        r#"echo "$PWD|$(cat file)|$1 $2|$CARGO_TARGET_DIR|$(ls | tr '\n' ' ')|$(git status --porcelain | tr '\n' ' ')" >> {}-at
echo edited > {}/file
{}"#,
        project.ran().display(),
        top.display(),
        builds(&project.path("target-bench/run")),
    ));
    let mut ab = project.ab("--features f --pairs 2 --budget 0 --");
    let says = "The time of a process is that of its fastest sample.";
    ended(&ab.arg("some filter|s").output().unwrap(), 0, says);
    let log = fs::read_to_string(project.path("target-ran-at")).unwrap();
    let (tree, _) = log.split_once('|').unwrap();
    let target = top.canonicalize().unwrap().join("target/ab");
    let target = target.to_str().unwrap();
    let want = [
        "committed|bench --features|TARGET/build|file gone |",
        "changed|bench --features|TARGET/build|file fresh | M file  D gone ?? fresh ",
        "changed",
        "committed",
        "committed",
        "changed",
    ];
    let want = want.map(|line| format!("{tree}|{}", line.replace("TARGET", target)));
    assert_eq!(Vec::from_iter(log.lines()), want);
    assert_eq!(git(top, &["status", "--porcelain"]), before);
    clean(top);
}

/// The second one begins during the first build.
pub(crate) fn a_second_comparison_builds_elsewhere_with_the_options_of_cargo() {
    let project = Project::new(&BOTH[..1], "");
    project.cargo(&format!(
        r#"echo "$* $CARGO_TARGET_DIR" >> {ran}
if [ ! -e {ran}-nested ]; then
  touch {ran}-nested
  (cd {top}; env -u CARGO_TARGET_DIR {crossover} ab {ONE_PAIR} --run-equal > {ran}-nested)
fi
{built}"#,
        ran = project.ran().display(),
        top = project.top().display(),
        crossover = env!("CARGO_BIN_EXE_crossover"),
        built = builds(&project.path("target-bench/run")),
    ));
    let options = format!("{ONE_PAIR} --run-equal --all-features --no-default-features");
    compared(&project.ab(&options).output().unwrap(), 0);
    let nested = fs::read_to_string(project.path("target-ran-nested")).unwrap();
    holds(&nested, r#""exit_code": 0"#);
    let log = fs::read_to_string(project.ran()).unwrap();
    for built in ["/target/ab/build\n", "/target/ab/2/build\n"] {
        assert_eq!(log.matches(built).count(), 2, "{log}");
    }
    holds(&log, "--all-features --no-default-features");
    clean(project.top());
}

/// One benchmark panics, is killed, hangs or leaves no result: it is named, it is not run again, and
/// the other one is compared.
pub(crate) fn a_benchmark_that_fails_is_an_error_whatever_the_verdict() {
    for (fails, says, runs) in [
        (
            "echo 'thread main panicked at x.rs:1:2:' >&2; echo boom >&2; echo '  0: backtrace' >&2; exit 101",
            "failed (exit status: 101): thread main panicked at x.rs:1:2: boom;",
            1,
        ),
        ("kill -KILL $$", "failed (signal: 9 (SIGKILL)", 1),
        // It is run again, for longer, after the others.
        ("sleep 600", "took longer than --turn-limit", 1),
        ("exit 0", "left no result in CRITERION_HOME: more;", 1),
        (
            "echo 'sum  time:   [1.0 ms 1.1 ms 1.2 ms]'; exit 0",
            "measured, but left no result in CRITERION_HOME: a bench that calls `output_directory` writes",
            1,
        ),
        // As for times of zero.
        (
            "echo 'Criterion.rs ERROR: one took zero time.'; exit 0",
            "left no result in CRITERION_HOME: one took zero time.;",
            1,
        ),
        (
            "case $CRITERION_HOME in *b3/*) exit 7;; esac",
            "failed (exit status: 7)",
            3,
        ),
    ] {
        let body = format!("echo more >&2; if [ $id = sum ]; then {fails}; fi");
        let bundles = Bundles::new(&BOTH, &BOTH, &body);
        let output = bundles.ab("--json --turn-limit 5");
        let json = compared(&output, 1);
        assert_eq!(verdict(&json, "sort/100"), "same");
        assert_eq!(verdict(&json, "sum"), "failed");
        assert_eq!(json["exit_code"], 1);
        let named = format!("error: sum of run b{runs} {says}");
        holds(&text(&output.stderr), &named);
        let log = bundles.read("log");
        let attempts = if fails.starts_with("sleep") { 2 } else { runs };
        assert_eq!(log.matches("fresh sum").count(), attempts, "{log}");
    }
}

/// Criterion wrote results of other benchmarks, or of the same one, before the process failed.
pub(crate) fn nothing_counts_that_a_failed_process_left() {
    for benchmarks in [&BOTH[..], &BOTH[1..]] {
        let bundles = Bundles::new(benchmarks, benchmarks, "");
        for side in ["old", "fresh"] {
            let panics = "echo thread main panicked at x.rs:1:2: >&2; echo boom >&2; exit 101";
            let end = "sample.json\"\ndone";
            let fails = format!("{end}\ncase \"$list$filter\" in ^sum*) {panics};; esac");
            bundles.replace(side, end, &fails);
        }
        let json = bundles.compared("", 1);
        let failed = row(&json, "sum");
        assert_eq!(failed["verdict"], "failed");
        holds(&failed["reason"].to_string(), "boom");
        assert_eq!(json["exit_code"], 1);
        if benchmarks.len() > 1 {
            assert_eq!(verdict(&json, "sort/100"), "same");
        }
    }
}

/// Files stand where folders would be made: for the results of a process, for those of the third pair, and
/// for the comparison.
pub(crate) fn complete_pairs_are_compared_where_nothing_more_can_be_written() {
    let no_result = r#"case $CRITERION_HOME in *b2/1) d=$(dirname "$CRITERION_HOME"); rm -r "$d"; touch "$d";; esac"#;
    let no_pair = r#"case $CRITERION_HOME in *b2/*) cd "$CRITERION_HOME/../.."; touch a3; mkdir -p compare.html/full;; esac"#;
    let ended = [
        "no more pairs were run",
        "choose another folder with --results",
    ];
    for (fills, processes, says) in [
        (no_result, 7, ended),
        (no_pair, 8, ["a3: ", "compare.html: "]),
    ] {
        // Alone it is why the command fails.
        let bundles = Bundles::new(&BOTH, &BOTH, fills);
        let output = bundles.ab("--json --pairs 3");
        let json = compared(&output, 1);
        assert_eq!(json["classes"][0]["pairs"], 2, "{json:#}");
        let errors = text(&output.stderr);
        says.iter().for_each(|words| holds(&errors, words));
        // It is no failure of a benchmark.
        for words in ["it is not run again", "CRITERION_HOME"] {
            assert!(!errors.contains(words), "{errors}");
        }
        assert_eq!(bundles.read("log").lines().count(), processes, "{errors}");
    }
}

/// The temporary folder is full in the middle of the second pair, because of what a process prints.
pub(crate) fn complete_pairs_are_compared_where_the_temporary_folder_is_full() {
    let fills = r#"echo progress; case $CRITERION_HOME in *b2/1) touch "$(dirname $log)/full";; esac; echo progress"#;
    let bundles = Bundles::new(&BOTH, &BOTH, fills);
    let mut ab = bundles.command("--json --pairs 3");
    ab.env("LD_PRELOAD", full_disk::library())
        .env("FULL_IN", bundles.dir().join("tmp"))
        .env("FULL_FROM", bundles.dir().join("full"));
    let output = ab.output().unwrap();
    let json = compared(&output, 1);
    assert_eq!(row(&json, "sort/100")["pairs"], 2, "{json:#}");
    assert_eq!(json["counts"]["failed"], 0, "{json:#}");
    let named = format!(
        "error: no more pairs were run: {}: make room there, or name a folder with more room in \
         TMPDIR: No space left on device (os error 28)",
        bundles.dir().join("tmp").display()
    );
    holds(&text(&output.stderr), &named);
}

/// Because of the file of its page, or of standard output.
pub(crate) fn a_comparison_that_cannot_be_shown_is_kept() {
    let is_kept = |bundles: &Bundles| kept(bundles.dir()).join("compare.json").exists();
    let takes_its_place = "mkdir -p \"$(dirname $log)/page.html\"";
    let bundles = Bundles::new(&BOTH, &BOTH, takes_its_place);
    let options = "--pairs 1 --budget 0 --all --html page.html";
    let said = ended(&bundles.ab(options), 2, "page.html: ");
    holds(&said, "sort/100");
    assert!(is_kept(&bundles));
    // It is refused before anything runs.
    let ran = bundles.read("log");
    let says = "--html: choose another file: page.html: is a directory";
    ended(&bundles.ab(options), 2, says);
    assert_eq!(bundles.read("log"), ran);

    let bundles = Bundles::new(&BOTH, &BOTH, "");
    let mut ab = bundles.command("--pairs 1 --budget 0");
    let full = File::options().write(true).open("/dev/full").unwrap();
    ended(&ab.stdout(full).output().unwrap(), 2, "compare.json: /");
    assert!(is_kept(&bundles));
}

pub(crate) fn equal_executables_are_not_run() {
    let project = Project::new(&BOTH, "");
    let ab = |option: &str| {
        let output = project.ab(&format!("{ONE_PAIR} {option}")).output();
        compared(&output.unwrap(), 0)
    };
    // Unchanged since it was committed, though git would now change its line end; and a repository that is
    // not part of this one.
    project.write("GONE.md", "gone\n");
    project.write("lines", "one\r\n");
    let earlier = SystemTime::now() - Duration::from_secs(60);
    let lines = fs::File::options().append(true).open(project.path("lines"));
    lines.unwrap().set_modified(earlier).unwrap();
    commit(project.top(), "second");
    fs::create_dir(project.path(".git/info")).unwrap();
    project.write(".git/info/attributes", "/lines text\n");
    repository(&project.path("nested"));
    project.write("README.md", "new\n");
    fs::remove_file(project.path("GONE.md")).unwrap();
    assert_eq!(ab("")["exit_code"], 0);
    assert!(!project.ran().exists());
    // Data that is read when they run.
    project.write("file", "changed\n");
    let says = "equal executables; they differ in file";
    holds(&ab("")["warnings"].to_string(), says);
    assert!(project.ran().exists());
    git(project.top(), &["checkout", "--quiet", "file"]);
    fs::remove_file(project.ran()).unwrap();
    ab("--run-equal");
    assert!(project.ran().exists());
    // The file was built differently where a document alone differs.
    fs::remove_file(project.ran()).unwrap();
    let build = builds(&project.path("target-bench/run"));
    project.cargo(&(build + "\n[ ! -e README.md ] || echo '# text' >> \"$built\""));
    ab("");
    assert!(project.ran().exists());
}

pub(crate) fn another_toolchain_and_another_lock_file_are_named() {
    let project = Project::new(&BOTH[..1], "");
    project.write("rust-toolchain.toml", "[toolchain]\nchannel = \"1.95\"\n");
    for has_lock in [false, true] {
        if has_lock {
            project.write("Cargo.lock", "version = 4\n");
        }
        let json = compared(&project.ab(ONE_PAIR).output().unwrap(), 0);
        let warnings = json["warnings"].to_string();
        holds(&warnings, "rust-toolchain.toml differs between the sides");
        assert_eq!(warnings.contains("Cargo.lock differs"), has_lock);
    }
    // One that git ignores serves both sides.
    project.write(".gitignore", "target*\ntmp\nCargo.lock\n");
    let locks = project.path("target-locks");
    let build = builds(&project.path("target-bench/run"));
    project.cargo(&format!("cat Cargo.lock >> {}\n{build}", locks.display()));
    let json = compared(&project.ab(ONE_PAIR).output().unwrap(), 0);
    assert!(!json["warnings"].to_string().contains("Cargo.lock"));
    assert_eq!(
        fs::read_to_string(locks).unwrap(),
        "version = 4\n".repeat(2)
    );
}

pub(crate) fn one_benchmark_is_named_by_exact_and_quick_is_refused() {
    let both = [("sum", 20.0), ("sums", 20.0)];
    let bundles = Bundles::new(&both, &both, "");
    // With all the options that `ab` would give.
    let options =
        "--noplot --nresamples 1000 --sample-size 20 --warm-up-time 0.1 --measurement-time 0.2";
    let exact = format!("--pairs 1 --budget 0 -- {options} --exact sum");
    let json = bundles.compared(&exact, 0);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 1);
    let said = ended(&bundles.ab("-- --quick"), 2, "--quick");
    assert!(!said.contains("pair 1"), "{said}");
}

/// There is room for the folder of the results, and then for neither the file of the commit nor that of
/// the work tree.
pub(crate) fn a_temporary_folder_that_is_too_small_is_named() {
    let project = Project::new(&BOTH, "");
    project.write("large", &"x".repeat(1 << 16));
    for is_committed in [false, true] {
        if is_committed {
            commit(project.top(), "large");
        }
        let mut ab = project.ab("");
        let full = ab.env("LD_PRELOAD", full_disk::library());
        let output = full.env("FULL_AFTER", "8000").output().unwrap();
        let named = format!(
            "{}: No space left on device (os error 28); name a folder with more room in TMPDIR",
            project.path("tmp").display()
        );
        ended(&output, 2, &named);
        clean(project.top());
    }
}
