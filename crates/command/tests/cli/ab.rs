//! `crossover ab`: order of the runs, verdicts, and what is left behind.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::compare::{compared, row, verdict};
use crate::full_disk;
use crate::printed::{ended, ends, expect, holds, lacks, table, text};
use crate::repositories::{BOTH, ONE_PAIR, Place, executable, repository};

fn verdicts<'a>(json: &'a Value, ids: &[&str]) -> Vec<&'a str> {
    ids.iter().map(|id| verdict(json, id)).collect()
}

pub(crate) fn short_processes_run_in_turn_and_are_compared_pair_by_pair() {
    let fresh = [("sort/100", 105.0), ("sum", 20.0), ("later", 1.0)];
    // Each process leaves a child.
    let body =
        "echo ${#AB_PADDING} NVML:$CROSSOVER_MONITOR >> lengths; sleep 600 & echo $! >> started";
    let place = Place::bundles(&BOTH, &fresh, body);
    let output = place.ab("--json -- s|l").output().unwrap();
    let json = compared(&output, 1);
    let found = verdicts(&json, &["sort/100", "sum", "later"]);
    assert_eq!(found, ["slower", "same", "new"], "{json:#}");
    assert_eq!(json["screened"], 8);
    assert_eq!(json["warnings"], serde_json::json!([]));
    let log = place.read("log");
    let first = "fresh sort/100, old sort/100, old sum, fresh sum, fresh later, old sort/100, fresh sort/100, \
        fresh sum, old sum";
    assert_eq!(Vec::from_iter(log.lines().take(9)).join(", "), first);
    place.read("started").lines().for_each(ends);
    // Each process has its stack elsewhere, and none polls NVML.
    let lengths = place.read("lengths");
    let lengths = BTreeSet::from_iter(lengths.lines());
    assert!(lengths.len() > 20, "{lengths:?}");
    assert!(lengths.iter().all(|it| it.ends_with(" NVML:off")));
    // What is decided is not run again.
    assert_eq!(log.matches("fresh sum").count(), 8);
    assert_eq!(log.matches("old sort").count(), 8 + 6);
    let kept = place.kept();
    for name in ["b1/2/later", "a14/0/sort/100", "compare.html", "compare.md"] {
        assert!(kept.join(name).exists(), "{name}");
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
    // A name that is used twice is selected, a plain one is not.
    let twins = r#"for last; do :; done
case $last in
  '^a$') echo a: bench;;
  '^'*|crossover*) ;;
  *) printf '%s: bench\n' a 'a #2' b;;
esac"#;
    let knows_nothing = r#"[ "$2" = --list ] && [ $# = 2 ] && echo x: bench || exit 1"#;
    for [old, fresh, says] in table(
        "
        exit 3        | exit 0 | cannot list its benchmarks: it failed (exit status: 3)
        echo x: bench | exit 0 | fresh has no benchmark
        exit 0        | exit 0 | old has no benchmark
        KNOWS_NOTHING | exit 0 | knows no option of Criterion's
        TWINS         | exit 0 | selects none of them
        ",
    ) {
        let old = old.replace("KNOWS_NOTHING", knows_nothing);
        let old = &old.replace("TWINS", twins);
        let place = Place::new("");
        executable(&place.path("old/run"), old);
        executable(&place.path("fresh/run"), fresh);
        place.ends("old fresh", 2, says);
    }
    // Such as names with the commit.
    let place = Place::bundles(&[("at-1", 20.0)], &[("at-2", 20.0)], "");
    for (fail_on, code) in [("slower", 2), ("any", 1)] {
        let json = place.compared(&format!("--fail-on {fail_on}"), code);
        assert_eq!(verdicts(&json, &["at-1", "at-2"]), ["gone", "new"]);
    }
    // A pair each.
    assert_eq!(place.read("log").lines().count(), 4);
}

pub(crate) fn what_is_neither_a_revision_nor_a_bundle_has_its_remedy() {
    let place = Place::project(&BOTH[..1], "");
    place.commit("file", "changed\n");
    fs::create_dir(place.top.join("empty")).unwrap();
    executable(&place.top.join("a/run"), "exit 0");
    place.cargo("exit 1", "");
    for [sides, says] in table(
        "
        nowhere | neither a bundle folder nor a revision
        empty   | the folder has no executable `run`
        a       | name the second one too
                | does not build
        ",
    ) {
        place.ends(sides, 2, says);
    }
    place.is_clean();
    let mut outside = Place::new("");
    let says = "This is not a git repository. Run `crossover ab` inside one";
    let error = outside.ends("", 2, says);
    assert_eq!(error.matches("repository").count(), 1, "{error}");
    let url = format!("file://{}", place.top.display());
    outside.git(&format!("clone --quiet --depth 1 {url} shallow"));
    outside.top = outside.path("shallow");
    outside.ends("HEAD~1", 2, "`git fetch --deepen=100`");
}

pub(crate) fn a_name_is_a_revision_if_git_knows_it() {
    let place = Place::project(&BOTH[..1], "");
    place.git("tag v1");
    executable(&place.path("top/v1/run"), "touch ../run");
    // The staged files, by the command line of the documentation.
    place.write("top/file", "staged\n");
    place.git("add file");
    place.write("top/file", "not staged\n");
    let tree = place.git("write-tree");
    let staged = place.git(&format!("commit-tree -p HEAD -m staged {tree}"));
    place.cargo("cat file >> $dir/seen", "");
    for revision in ["v1", ":/first", staged.trim()] {
        place.compared(&format!("HEAD {revision} {ONE_PAIR}"), 0);
    }
    assert!(!place.exists("run"));
    assert_eq!(place.read("seen"), "committed\n".repeat(5) + "staged\n");
    place.is_clean();
}

pub(crate) fn revisions_are_built_and_run_at_one_path_and_the_work_tree_is_left_alone() {
    let leaves = r#"echo "$PWD|$(cat file)" >> $log-at; echo left > left"#;
    let place = Place::project(&BOTH[..1], leaves);
    place.commit("gone", "x");
    // Changed, deleted, new and ignored files.
    fs::remove_file(place.path("top/gone")).unwrap();
    place.write("top/file", "changed\n");
    place.write("top/fresh", "new\n");
    place.write("top/target-x", "ignored");
    let before = place.git("status --porcelain");
    // The user goes on editing.
    let logs = r#"files=$(ls | tr '\n' ' ') status=$(git status --porcelain | tr '\n' ' ')
echo "$PWD|$(cat file)|$*|$CARGO_TARGET_DIR|$files|$status" | sed 's/ --config.*--list//' >> $dir/log-at
echo edited > $dir/top/file"#;
    place.cargo(logs, "");
    let options = "--features f --all-features --no-default-features --pairs 2 --budget 0 --";
    let mut ab = place.ab(options);
    let says = "The time of a process is that of its fastest sample.";
    expect(ab.arg("some filter|s"), 0, says);
    let log = place.read("log-at");
    let (tree, _) = log.split_once('|').unwrap();
    let target = place.top.canonicalize().unwrap().join("target/ab/build");
    let flags = "bench --all-features --no-default-features --features f";
    let built = format!("{flags}|{}", target.display());
    let want = [
        &format!("committed|{built}|file gone |"),
        &format!("changed|{built}|file fresh | M file  D gone ?? fresh "),
        "changed",
        "committed",
        "committed",
        "changed",
    ];
    let want = want.map(|line| format!("{tree}|{line}"));
    assert_eq!(Vec::from_iter(log.lines()), want);
    assert_eq!(place.git("status --porcelain"), before);
    place.is_clean();
}

/// The second one begins during the first build.
pub(crate) fn a_second_comparison_builds_elsewhere() {
    let place = Place::project(&BOTH[..1], "");
    let options = format!("{ONE_PAIR} --run-equal --json");
    let nested = format!(
        r#"echo "$CARGO_TARGET_DIR" >> $dir/built
if [ ! -e $dir/nested ]; then
  touch $dir/nested
  (cd $dir/top; env -u CARGO_TARGET_DIR {} ab {options} > $dir/nested)
fi"#,
        env!("CARGO_BIN_EXE_crossover")
    );
    place.cargo(&nested, "");
    place.ends(&options, 0, "");
    holds(&place.read("nested"), r#""exit_code": 0"#);
    // A later one takes the first folder again.
    place.ends(&options, 0, "");
    let built = place.read("built");
    for (folder, builds) in [("/target/ab/build\n", 4), ("/target/ab/2/build\n", 2)] {
        assert_eq!(built.matches(folder).count(), builds, "{built}");
    }
    place.is_clean();
}

/// One benchmark panics, is killed, hangs or leaves no result: it is named, it is not run again, and
/// the other one is compared.
pub(crate) fn a_benchmark_that_fails_is_an_error_whatever_the_verdict() {
    let panics = "echo 'thread main panicked at x.rs:1:2:' >&2; echo boom >&2; echo '  0: backtrace' >&2; exit 101";
    for [fails, runs, says] in table(
        r#"
        PANICS             | 1 | failed (exit status: 101): thread main panicked at x.rs:1:2: boom;
        trap "PANICS" EXIT | 1 | failed (exit status: 101): thread main panicked at x.rs:1:2: boom;
        kill -KILL $$      | 1 | failed (signal: 9 (SIGKILL)
        sleep 600          | 1 | took longer than --turn-limit
        exit 0             | 1 | left no result in CRITERION_HOME: more;
        echo 'sum  time:   [1.0 ms 1.1 ms 1.2 ms]'; exit 0 | 1 | measured, but left no result … `output_directory` writes
        echo 'Criterion.rs ERROR: one took zero time.'; exit 0 | 1 | left no result in CRITERION_HOME: one took zero time.;
        case $CRITERION_HOME in *b3/*) exit 7;; esac | 3 | failed (exit status: 7)
        "#,
    ) {
        let fails = fails.replace("PANICS", panics);
        let body = format!("echo more >&2; if [ $id = sum ]; then {fails}; fi");
        let place = Place::bundles(&BOTH, &BOTH, &body);
        let mut ab = place.ab("--json --pairs 3 --budget 0 --turn-limit 5");
        let output = ab.output().unwrap();
        let json = compared(&output, 1);
        assert!(row(&json, "sort/100")["ratio"].is_number(), "{json:#}");
        assert_eq!(verdict(&json, "sum"), "failed");
        assert_eq!(json["exit_code"], 1);
        let named = format!("error: sum of run b{runs} {says}");
        holds(&text(&output.stderr), &named);
        // One that hangs is run again, for longer, after the others.
        let hangs = usize::from(fails == "sleep 600");
        let attempts = place.read("log").matches("fresh sum").count();
        assert_eq!(attempts, runs.parse::<usize>().unwrap() + hangs);
    }
    // Where nothing else is compared, and all the options that `ab` would give are the user's.
    let place = Place::bundles(&BOTH, &BOTH, panics);
    let options =
        "--noplot --nresamples 1000 --sample-size 20 --warm-up-time 0.1 --measurement-time 0.2";
    let json = place.compared(&format!("-- {options} sum"), 1);
    assert_eq!(verdict(&json, "sum"), "failed");
    holds(&row(&json, "sum")["reason"].to_string(), "boom");
}

/// Files stand where folders would be made: for the results of a process, for those of the third pair, and
/// for the comparison. Or the temporary folder is full, because of what a process prints.
pub(crate) fn complete_pairs_are_compared_where_nothing_more_can_be_written() {
    let no_result = r#"case $CRITERION_HOME in *b2/1) d=$(dirname "$CRITERION_HOME"); rm -r "$d"; touch "$d";; esac"#;
    let no_pair = r#"case $CRITERION_HOME in *b2/*) cd "$CRITERION_HOME/../.."; touch a3; mkdir -p compare.html/full;; esac"#;
    let no_output = r#"echo progress; case $CRITERION_HOME in *b2/1) touch "$(dirname $log)/full";; esac; echo progress"#;
    let rows = table(
        "
        7 | error: no more pairs were run: … choose another folder with --results
        8 | compare.html: … a3:
        7 | error: no more pairs were run: … /tmp: make room there, or name a folder with more room in TMPDIR: No space left
        ",
    );
    for ([processes, says], fills) in rows.zip([no_result, no_pair, no_output]) {
        // Alone it is why the command fails.
        let place = Place::bundles(&BOTH, &BOTH, fills);
        let mut ab = place.ab("--json --pairs 3");
        ab.env("FULL_IN", place.path("tmp"));
        ab.env("FULL_FROM", place.path("full"));
        let ab = ab.env("LD_PRELOAD", full_disk::library());
        let output = ab.output().unwrap();
        let json = compared(&output, 1);
        assert_eq!(row(&json, "sort/100")["pairs"], 2, "{json:#}");
        assert_eq!(json["classes"][0]["pairs"], 2, "{json:#}");
        assert_eq!(json["counts"]["failed"], 0, "{json:#}");
        let errors = text(&output.stderr);
        holds(&errors, says);
        // It is no failure of a benchmark.
        lacks(&errors, &["it is not run again", "CRITERION_HOME"]);
        let ran = place.read("log").lines().count().to_string();
        assert_eq!(ran, processes, "{errors}");
    }
}

/// Because of the file of its page, or of standard output.
pub(crate) fn a_comparison_that_cannot_be_shown_is_kept() {
    let is_kept = |place: &Place| place.kept().join("compare.json").exists();
    let takes_its_place = "mkdir -p \"$(dirname $log)/page.html\"";
    let place = Place::bundles(&BOTH, &BOTH, takes_its_place);
    let options = format!("{ONE_PAIR} --all --html page.html");
    let output = place.ends(&options, 2, "page.html: ");
    holds(&output, "sort/100");
    assert!(is_kept(&place));
    // It is refused before anything runs.
    let ran = place.read("log");
    let says = "--html: choose another file: page.html: is a directory";
    place.ends(&options, 2, says);
    assert_eq!(place.read("log"), ran);

    let place = Place::bundles(&BOTH, &BOTH, "");
    let mut ab = place.ab(ONE_PAIR);
    let full = File::options().write(true).open("/dev/full").unwrap();
    ended(&ab.stdout(full).output().unwrap(), 2, "compare.json: /");
    assert!(is_kept(&place));
    // One that is shown and cannot be kept.
    let fills = r#"mkdir -p "$CRITERION_HOME/../../compare.html/full""#;
    let place = Place::bundles(&BOTH, &BOTH, fills);
    place.ends(ONE_PAIR, 1, "error: … compare.html: ");
}

pub(crate) fn equal_executables_are_not_run() {
    let place = Place::project(&BOTH, "");
    // Unchanged since it was committed, though git would now change its line end; and a repository that is
    // not part of this one.
    place.write("top/GONE.md", "gone\n");
    place.write("top/lines", "one\r\n");
    let earlier = SystemTime::now() - Duration::from_secs(60);
    let lines = File::options().append(true).open(place.path("top/lines"));
    lines.unwrap().set_modified(earlier).unwrap();
    place.commit(".gitignore", "target*\n");
    place.write("top/.git/info/attributes", "/lines text\n");
    repository(&place.path("top/nested"));
    place.write("top/README.md", "new\n");
    fs::remove_file(place.path("top/GONE.md")).unwrap();
    let runs = |option: &str| {
        let _ = fs::remove_file(place.path("log"));
        let json = place.compared(&format!("{ONE_PAIR} {option}"), 0);
        (place.exists("log"), json["warnings"].to_string())
    };
    assert!(!runs("").0);
    // Data that is read when they run.
    place.write("top/file", "changed\n");
    let (are_run, warnings) = runs("");
    assert!(are_run);
    holds(&warnings, "equal executables; they differ in file");
    place.git("checkout --quiet file");
    assert!(runs("--run-equal").0);
    // The file was built differently where a document alone differs.
    place.cargo("", "[ ! -e README.md ] || echo '# text' >> \"$built\"");
    assert!(runs("").0);
}

pub(crate) fn another_toolchain_and_another_lock_file_are_named() {
    let place = Place::project(&BOTH[..1], "");
    let toolchain = "[toolchain]\nchannel = \"1.95\"\n";
    place.write("top/rust-toolchain.toml", toolchain);
    place.write("top/Cargo.lock", "version = 4\n");
    let warnings = place.compared(ONE_PAIR, 0)["warnings"].to_string();
    let named = "Cargo.lock differs between the sides … rust-toolchain.toml differs";
    holds(&warnings, named);
    // One that git ignores serves both sides.
    place.write("top/.gitignore", "target*\nCargo.lock\n");
    place.cargo("cat Cargo.lock >> $dir/locks", "");
    let warnings = place.compared(ONE_PAIR, 0)["warnings"].to_string();
    lacks(&warnings, &["Cargo.lock"]);
    assert_eq!(place.read("locks"), "version = 4\n".repeat(2));
}

/// There is room for the folder of the results, and then for neither the file of the commit nor that of
/// the work tree.
pub(crate) fn a_temporary_folder_that_is_too_small_is_named() {
    let place = Place::project(&BOTH, "");
    place.write("top/large", &"x".repeat(1 << 16));
    let named =
        "/tmp: No space left on device (os error 28); name a folder with more room in TMPDIR";
    for is_committed in [false, true] {
        if is_committed {
            place.commit("file", "changed\n");
        }
        let mut ab = place.ab("FULL_AFTER=8000");
        expect(ab.env("LD_PRELOAD", full_disk::library()), 2, named);
        place.is_clean();
    }
}
