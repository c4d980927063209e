//! `crossover ab` in projects of others: executables of any Criterion, workspaces, and its action.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::command::{self, without_settings};
use crate::compare::{compared, row, verdict};
use crate::printed::{ended, expect, holds, lacks, table, with_line};
use crate::repositories::{
    BOTH, ONE_PAIR, Place, alone, builds, commit, executable, git_line, starts,
};

/// An executable does not know an option, prints more than its benchmarks, and has two whose results
/// Criterion stores in one folder.
pub(crate) fn an_executable_is_asked_for_what_it_knows() {
    let both = [("g/a:b", 20.0), ("g/a?b", 30.0)];
    let place = Place::bundles(&both, &both, "");
    let prints = "echo loading corpus: bench\nprintf 'loading... '\n";
    for side in ["old", "fresh"] {
        place.replace(side, "--nresamples|", "");
        let result =
            "sample.json\"\ncase $id in *:*) echo \"time:   [1.00 Minstr 1.01 Minstr]\";; esac";
        place.replace(side, "sample.json\"", result);
        place.replace(side, "while [ $#", &format!("{prints}while [ $#"));
    }
    let json = place.compared(ONE_PAIR, 0);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 2, "{json:#}");
    for (id, _) in both {
        assert!(row(&json, id)["ratio"].is_number(), "{json:#}");
    }
    holds(&json["warnings"].to_string(), "such as `loading corpus`");
    // One of them prints another unit than time.
    let classes = json["classes"].as_array().unwrap().iter();
    let classes = BTreeSet::from_iter(classes.map(|row| row["class"].as_str().unwrap()));
    let expected = ["benchmarks under 20 µs", "counts under 20,000"];
    assert_eq!(Vec::from_iter(classes), expected);
}

pub(crate) fn every_bench_target_is_compared_or_named() {
    let place = Place::project(&BOTH[..1], "");
    let built = [
        ("deaf", "sum time:   [1.0 ms 1.1 ms 1.2 ms]"),
        ("silent", "nothing"),
        ("unit-tests", "0 tests, 0 benchmarks"),
    ]
    .map(|(name, prints)| {
        let target = place.path("bench").join(name);
        executable(&target, &format!("echo '{prints}'"));
        builds(&target)
    });
    place.cargo("", &built.join("\n"));
    let json = place.compared(&format!("{ONE_PAIR} --run-equal"), 0);
    let warnings = json["warnings"].to_string();
    let deaf = "left out: deaf: it runs its benchmarks instead of listing them";
    holds(&warnings, deaf);
    holds(&warnings, "left out: silent: it lists no benchmark");
    lacks(&warnings, &["unit-tests"]);
}

/// One runs too slowly for all pairs, one that takes `--test` for the first pair, and one longer than all others
/// together, as one that sets its own measurement time.
pub(crate) fn slow_benchmarks_leave_the_others_their_time() {
    // The others have their time also where each of their processes takes a second.
    let once = "1 benchmark ran once: 8 pairs of them take more than half of the budget of 0.6 min; \
        the slowest, sum,";
    let not_reached =
        "the budget did not reach 1 benchmark, such as sort/100, a pair of which takes ";
    let compare = |slow: &str, seconds, options, warning, runs: Option<usize>| {
        let sleeps = format!("if [ $id = {slow} ]; then sleep {seconds}; fi");
        let place = Place::bundles(&BOTH, &BOTH, &sleeps);
        place.replace("old", "echo noise", &format!("{sleeps}; echo noise"));
        if seconds == 2.0 {
            place.replace("old", "--noplot) ;;", "--noplot|--test) ;;");
        }
        let json = place.compared(options, 0);
        let quick = BOTH.iter().find(|(id, _)| *id != slow).unwrap().0;
        assert_eq!(verdict(&json, quick), "same", "{json:#}");
        holds(&json["warnings"].to_string(), warning);
        let log = place.read("log");
        // Later pairs run the other one alone.
        let later = &log[log.rfind(slow).unwrap()..];
        assert!(later.matches(&format!("old {quick}")).count() >= 2, "{log}");
        let ran = log.matches(slow).count();
        assert_eq!(ran, runs.unwrap_or(ran), "{log}");
    };
    // They wait beside each other.
    thread::scope(|scope| {
        for (slow, seconds, options, warning, runs) in [
            ("sum", 1.5, "--budget 0.6", once, Some(2)),
            ("sort/100", 2.0, "--budget 0.6", not_reached, Some(1)),
            ("sort/100", 600.0, "--budget 0.8", not_reached, None),
            ("sort/100", 600.0, "--budget 0 --pairs 3", not_reached, None),
        ] {
            scope.spawn(move || compare(slow, seconds, options, warning, runs));
        }
    });
}

pub(crate) fn a_benchmark_that_takes_far_longer_on_one_side_fails() {
    let place = Place::bundles(&BOTH, &BOTH, "if [ $id = sort/100 ]; then sleep 600; fi");
    let json = place.compared(ONE_PAIR, 1);
    let failed = row(&json, "sort/100");
    assert_eq!(failed["verdict"], "failed");
    let says = "run b1 took 8 s, more than twice as long as the other side, and was ended";
    holds(&failed["reason"].to_string(), says);
}

/// Nobody ever writes to the standard input of `ab`.
pub(crate) fn a_benchmark_that_reads_standard_input_finds_it_empty() {
    let place = Place::bundles(&BOTH, &BOTH, "cat > /dev/null");
    let mut ab = place.ab(&format!("--json {ONE_PAIR} --turn-limit 60"));
    let mut ab = ab.stdin(Stdio::piped()).spawn().unwrap();
    let open = ab.stdin.take();
    let json = compared(&ab.wait_with_output().unwrap(), 0);
    drop(open);
    assert_eq!(json["failures"], serde_json::json!([]));
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), BOTH.len());
}

pub(crate) fn a_name_that_acts_on_a_terminal_is_left_out_and_never_printed() {
    let acting = ["red\u{1b}[31m", "turned\u{202e}", "tab\tbed", "two\nlines"];
    let all = [&BOTH[..], &acting.map(|id| (id, 20.0))].concat();
    let place = Place::bundles(&all, &all, "");
    for form in ["--all", "--markdown", "--json"] {
        let shown = place.ends(&format!("{ONE_PAIR} {form}"), 0, "");
        lacks(&shown, &["\u{1b}", "\u{202e}", "\t"]);
        // Markdown and JSON escape the backslash.
        let shown = shown.replace("\\\\", "\\").replace("\\[", "[");
        for named in ["red\\u{1b}[31m", "turned\\u{202e}", "tab bed", "two lines"] {
            let named = format!("left out: {named}: its name has a character that cannot be shown");
            holds(&shown, &named);
        }
    }
    let ran = |line: &str| BOTH.iter().any(|(id, _)| line.ends_with(&format!(" {id}")));
    assert!(place.read("log").lines().all(ran));
}

const SLOWER: [(&str, f64); 2] = [("sort/100", 300.0), ("sum", 20.0)];

/// A workspace that cargo itself builds, in `top`.
struct Workspace(Place);

impl Workspace {
    /// Packages with bench targets that only start the stand-in of their package.
    fn new() -> Self {
        let this = Self(Place::new("top"));
        crate::repositories::repository(&this.0.top);
        this.members(&["one", "two"]);
        this.package("one", &["x", "y"]);
        this.package("two", &["x"]);
        commit(&this.0.top, "packages");
        this
    }

    fn members(&self, names: &[&str]) {
        let manifest = format!("[workspace]\nmembers = {names:?}\nresolver = \"2\"\n");
        self.0.write("top/Cargo.toml", &manifest);
    }

    fn package(&self, name: &str, benches: &[&str]) {
        // Its path is that of the work tree in which it was built, which cargo tells what it starts.
        let run = r#"std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/harness/run""#;
        let (folder, main) = (format!("top/{name}"), starts(run, "\"\""));
        self.0
            .package(&folder, "[features]\nf = []", benches, &main);
        self.plant(name, &BOTH);
    }

    /// The executables that the bench targets of a package start.
    fn plant(&self, package: &str, benchmarks: &[(&str, f64)]) {
        let run = format!("top/{package}/harness/run");
        self.0.harness(&run, benchmarks, "");
    }

    fn compared(&self, options: &str, code: i32) -> Value {
        let json = self.0.compared(options, code);
        self.0.is_clean();
        json
    }
}

/// Neither the repository nor cargo is there when they are compared.
pub(crate) fn bundles_of_a_project_are_compared_without_its_sources() {
    let mut workspace = Workspace::new();
    let place = &workspace.0;
    let bundle = |line: &str, code: i32, words: &str| {
        let mut bundle = command::crossover(&format!("bundle {}/{line}", place.dir()));
        let bundle = alone(&mut bundle).current_dir(&place.top);
        expect(bundle.env("TMPDIR", place.path("tmp")), code, words);
    };
    let options = "HEAD --orders 3 --package one --bench x";
    let done = "1 executable of HEAD";
    bundle(&format!("old {options}"), 0, done);
    let record: Value = serde_json::from_str(&place.read("old/bundle.json")).unwrap();
    for (field, part) in [("toolchain", "."), ("machine", std::env::consts::ARCH)] {
        holds(record[field].as_str().unwrap(), part);
    }
    workspace.plant("one", &SLOWER);
    commit(&place.top, "slower");
    bundle(&format!("fresh {options}"), 0, done);
    let full = "is not empty; name another folder";
    bundle(&format!("fresh {options}"), 2, full);
    bundle("other HEAD -p none", 2, "it has no bench target");
    fs::remove_dir_all(&place.top).unwrap();
    workspace.0.top = workspace.0.path("");
    let compared = |sides: &str, code: i32| {
        let line = format!("{sides} --json --pairs 4 --budget 0");
        let mut ab = workspace.0.ab(&line);
        compared(&ab.env("PATH", "/usr/bin:/bin").output().unwrap(), code)
    };
    let json = compared("old fresh", 1);
    assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
    assert_eq!(verdict(&json, "sum"), "same");
    assert_eq!(json["layout"], "random", "{json:#}");
    let commits = "commit of the bundles: HEAD (";
    holds(&json["warnings"].to_string(), commits);
    // Each pair has orders of its own.
    assert_eq!(json["benchmarks"][0]["pairs"], 3);
    let seed = |run| fs::read_to_string(workspace.0.kept().join(run).join("layout-seed"));
    let seeds = ["a1", "a2", "a3"].map(|run| seed(run).unwrap());
    assert_eq!(BTreeSet::from(seeds).len(), 3);
    // A killed comparison leaves its folder, and one that runs has locked it.
    workspace.0.write("tmp/crossover-bundle/locked", "");
    let running = fs::File::create(workspace.0.path("tmp/crossover-bundle.lock")).unwrap();
    running.lock().unwrap();
    workspace.0.ends("old fresh", 2, "uses this folder");
    drop(running);
    let undecided = compared("fresh fresh --threshold 0.0001 --fail-on none", 0);
    holds(
        &undecided["warnings"].to_string(),
        "is left in the bundles after 3 pairs",
    );
    let json = compared("fresh fresh --layout fixed", 0);
    assert_eq!(verdict(&json, "sort/100"), "same", "{json:#}");
    assert_eq!(json["layout"], "fixed");
    // By hand, with the exit code of its benchmarks.
    let mut by_hand = Command::new("sh");
    let by_hand = with_line(&mut by_hand, "fresh/run bench --list");
    let listed = expect(by_hand.current_dir(&workspace.0.top), 0, "");
    assert_eq!(listed, "sort/100: benchmark\nsum: benchmark\n");
}

pub(crate) fn packages_targets_and_features_are_those_that_a_side_has() {
    let workspace = Workspace::new();
    let place = &workspace.0;
    // In the work tree one is slower, and a third package is new.
    workspace.plant("one", &SLOWER);
    workspace.members(&["one", "two", "three"]);
    workspace.package("three", &["z"]);
    let pairs = "--pairs 4 --budget 0 --layout fixed";
    let one = "-p one -p three --features one/f --bench x --bench z";
    let one = workspace.compared(&format!("{pairs} {one}"), 1);
    assert_eq!(verdict(&one, "one/x/sort/100"), "slower", "{one:#}");
    // The lock files that cargo made.
    holds(&one["warnings"].to_string(), "Cargo.lock differs between");
    // Two targets with benchmarks of one name, and one that cargo skips.
    let target = "[[bench]]\nname = \"w\"\nharness = false\nrequired-features = [\"f\"]\n";
    let manifest = place.read("top/one/Cargo.toml") + target;
    place.write("top/one/Cargo.toml", &manifest);
    place.write("top/one/benches/w.rs", &place.read("top/one/benches/x.rs"));
    let all = workspace.compared(&format!("{pairs} --workspace"), 1);
    let skipped = "left out: one/w, which cargo builds with `--features f`";
    holds(&all["warnings"].to_string(), skipped);
    let benchmarks = all["benchmarks"].as_array().unwrap().iter();
    let ids = BTreeSet::from_iter(benchmarks.map(|row| row["id"].as_str().unwrap()));
    assert_eq!(
        Vec::from_iter(ids).join(" "),
        "one/x/sort/100 one/x/sum one/y/sort/100 one/y/sum three/z/sort/100 three/z/sum two/x/sort/100 two/x/sum"
    );
    assert_eq!(verdict(&all, "three/z/sum"), "new");
    assert_eq!(verdict(&all, "one/y/sort/100"), "slower");
    let unknown = place.ends("--bench x --bench nosuch", 2, "bench target `nosuch`");
    lacks(&unknown, &["building"]);
    place.ends("-p three", 2, "has no benchmark");
    // A package that does not build leaves the others.
    place.write("top/two/src/lib.rs", "no Rust");
    let others = workspace.compared(&format!("{ONE_PAIR} --bench x"), 0);
    assert_eq!(others["benchmarks"].as_array().unwrap().len(), 2);
    let broken = "left out: package two, whose benchmarks do not build in work tree";
    holds(&others["warnings"].to_string(), broken);
}

/// Runs the action's script in a folder, with a stand-in for the runner of CI and this command in place of
/// `crossover`, and returns its outputs.
fn run_action(
    place: &Place,
    folder: &str,
    command: &Path,
    set: &[(&str, &str)],
    code: i32,
) -> BTreeMap<String, String> {
    let action = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/ab/run");
    let _ = fs::remove_file(place.path("output"));
    let output = alone(without_settings(&mut Command::new(action)))
        .current_dir(place.path(folder))
        .env("CROSSOVER", command)
        .env("PATH", place.search_path())
        .env("RUNNER_TEMP", place.path("tmp"))
        .env("TMPDIR", place.path("tmp"))
        .env("GITHUB_STEP_SUMMARY", place.path("summary"))
        .env("GITHUB_OUTPUT", place.path("output"))
        .envs(set.iter().copied())
        .output()
        .unwrap();
    ended(&output, code, "");
    let outputs = place.read("output");
    let outputs = outputs.lines().map(|line| line.split_once('=').unwrap());
    let outputs = outputs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let outputs = BTreeMap::from_iter(outputs);
    assert_eq!(outputs["exit-code"], code.to_string());
    outputs
}

/// What the action runs in CI, whole, in a bare clone.
pub(crate) fn the_action_leaves_a_summary_a_comment_and_a_folder() {
    let is_slower = "case \"$id $(cat file)\" in 'sort/100 slower') ns=300;; esac";
    let place = Place::project(&BOTH, is_slower);
    place.commit("file", "slower\n");
    place.commit("README.md", "one\n");
    place.git("clone --quiet --bare . ../bare");
    let run = |base: &str, fail_on: &str, code: i32| {
        let set = [
            ("AB_BASE", base),
            ("AB_FAIL_ON", fail_on),
            ("AB_ARGUMENTS", "--budget\n0\n\n--pairs\n4"),
        ];
        let crossover = Path::new(env!("CARGO_BIN_EXE_crossover"));
        run_action(&place, "bare", crossover, &set, code)
    };
    let first = run("HEAD~2", "slower", 1);
    let summary = place.read("summary");
    holds(&summary, "### Benchmarks: 1 slower, 1 same … | sort/100 |");
    assert_eq!(fs::read_to_string(&first["comment"]).unwrap(), summary);
    let kept = Path::new(&first["results"]).join("compare.json");
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(verdict(&kept, "sort/100"), "slower");
    // Nothing to compare is said too, and shows nothing of the first call.
    let second = run("nowhere", "none", 2);
    assert_eq!(second["results"], "");
    assert_ne!(second["artifact"], first["artifact"]);
    let comment = fs::read_to_string(&second["comment"]).unwrap();
    holds(&comment, "could not be compared");
    // Equal sides have a comparison.
    let third = run("HEAD~1", "none", 0);
    assert!(Path::new(&third["results"]).join("compare.json").exists());
}

/// A branch left `main` at its third commit, `start`; then `main` got another one, and both were merged. No clone
/// loses commits or gains branches.
pub(crate) fn the_action_compares_what_its_event_changed() {
    let place = Place::project(&[], "");
    place.git("branch --quiet -M main");
    place.git("config uploadpack.allowAnySHA1InWant true");
    place.commit("second", "new\n");
    place.commit("third", "new\n");
    place.git("branch --quiet start");
    place.git("switch --quiet -c branch");
    place.commit("of-branch", "new\n");
    place.git("switch --quiet main");
    place.commit("of-main", "new\n");
    place.git("switch --quiet -c merge");
    place.git("merge --quiet --no-edit branch");
    let url = format!("file://{}", place.top.display());
    for clone in [
        "merge --depth=1 URL ../merged",
        "branch --depth=1 URL ../shallow",
        "branch --depth=3 URL ../deeper",
        "branch --no-local URL ../whole",
        "main --no-local URL ../base",
    ] {
        let clone = clone.replace("URL", &url);
        place.git(&format!("clone --quiet --branch {clone}"));
    }
    place.git("switch --quiet -c later main");
    place.commit("later", "new\n");
    // Logs the commits that it is given.
    let log = place.path("log");
    let logs = format!(
        "git rev-parse \"$2^{{commit}}\" \"$3^{{commit}}\" > {}; shift 6; echo $@ >> {0}; echo compared",
        log.display()
    );
    executable(&place.path("crossover"), &logs);
    let commit = |name: &str| match name {
        "" => String::new(),
        "zeros" => "0".repeat(40),
        branch => place.git(&format!("rev-parse {branch}")).trim().to_owned(),
    };
    // The clone, the base and the head of the event, the named base, and what is compared. The event may know an
    // older commit of the base; branches may have no local one; zeros are a new branch, in a clone with or without
    // its history, or a tag of the default branch.
    for [clone, event_base, event_head, named, sides] in table(
        "
        merged  | start | branch |             | main merge
        whole   | main  | branch |             | start branch
        shallow | main  | branch |             | main branch
        whole   | start |        |             | start branch
        shallow | start |        | origin/main | main branch
        deeper  |       |        | start       | start branch
        whole   |       |        | later       | later branch
        whole   | zeros |        |             | start branch
        shallow | zeros |        |             | main branch
        whole   |       |        |             | error: set the input `base`
        base    | main  | branch |             | error: base and head are the same commit: name the new code in the input `head`
        ",
    ) {
        let [event_base, event_head] = [event_base, event_head].map(commit);
        let set = [
            ("AB_EVENT_BASE", &*event_base),
            ("AB_EVENT_HEAD", &event_head),
            ("AB_BASE", named),
            ("AB_DEFAULT_BRANCH", "main"),
        ];
        let folder = place.path(clone);
        let kept = || {
            let kept = ["log", "for-each-ref", "rev-parse --is-shallow-repository"];
            kept.map(|line| git_line(&folder, line))
        };
        let before = kept();
        let why = sides.strip_prefix("error: ");
        let code = if why.is_some() { 2 } else { 0 };
        let outputs = run_action(&place, clone, &place.path("crossover"), &set, code);
        assert_eq!(kept(), before, "{clone} {named}");
        if let Some(why) = why {
            holds(&fs::read_to_string(&outputs["comment"]).unwrap(), why);
            continue;
        }
        // Behind them nothing: the defaults are those of the command.
        let sides = sides.split(' ').map(|name| commit(name) + "\n");
        let sides = sides.collect::<String>() + "\n";
        assert_eq!(place.take("log"), sides, "{clone} {named}");
    }
}

/// With a stand-in for cargo, which writes a command that prints the folder and the flags it was compiled with.
pub(crate) fn the_action_compiles_the_command_once_and_for_itself() {
    let place = Place::project(&[], "");
    let cargo = "while [ \"$1\" != --root ]; do shift; done; mkdir -p \"$2/bin\"
        echo \"echo compiled in $PWD with [$RUSTFLAGS]\" > \"$2/bin/crossover\"; chmod +x \"$2/bin/crossover\"";
    executable(&place.path("bin/cargo"), cargo);
    let run = || {
        let set = [
            ("AB_BASE", "HEAD"),
            ("AB_ARGUMENTS", "--run-equal"),
            ("RUSTFLAGS", "-D warnings"),
        ];
        let outputs = run_action(&place, "top", Path::new(""), &set, 0);
        fs::read_to_string(&outputs["comment"]).unwrap()
    };
    let first = run();
    assert!(first.ends_with(".github/actions/ab with []\n"), "{first}");
    // From a cache.
    executable(&place.path("bin/cargo"), "exit 1");
    assert_eq!(run(), first);
}

/// With stand-ins for cargo and the command that log their arguments.
pub(crate) fn the_action_keeps_results_and_shows_their_history() {
    let place = Place::project(&[], "");
    let all = "bench -p one\nkeep h\nhistory h --confirm --markdown\n";
    for (bench, found, code, calls, comment) in [
        (0, 0, 0, all, "shown"),
        (0, 1, 1, all, "shown"),
        (101, 0, 2, "bench -p one\n", "could not be compared"),
    ] {
        let log = place.path("calls");
        let logs = format!("echo \"$*\" | sed 's| --html.*||' >> {}", log.display());
        executable(&place.path("bin/cargo"), &format!("{logs}; exit {bench}"));
        let page = "mkdir -p ${6%/*}; touch $6; echo shown";
        let command = format!("{logs}; [ $1 = keep ] || {{ {page}; exit {found}; }}");
        executable(&place.path("crossover"), &command);
        let set = [("AB_HISTORY", "h"), ("AB_ARGUMENTS", "-p\none")];
        let outputs = run_action(&place, "top", &place.path("crossover"), &set, code);
        assert_eq!(place.take("calls"), calls);
        holds(&fs::read_to_string(&outputs["comment"]).unwrap(), comment);
        assert_eq!(outputs["results"].is_empty(), code == 2);
    }
}
