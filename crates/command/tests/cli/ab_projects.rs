//! `crossover ab` in projects of others: executables of any Criterion, workspaces, and its action.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{self, without_settings};
use crate::compare::{compared, row, verdict};
use crate::printed::{ended, holds};
use crate::repositories::{
    BOTH, Bundles, ONE_PAIR, Project, alone, builds, clean, commit, crossover, executable, git,
    harness, repository,
};

/// An executable does not know an option, prints more than its benchmarks, and has two whose results
/// Criterion stores in one folder.
pub(crate) fn an_executable_is_asked_for_what_it_knows() {
    let both = [("g/a:b", 20.0), ("g/a?b", 30.0)];
    let bundles = Bundles::new(&both, &both, "");
    let prints = "echo loading corpus: bench\nprintf 'loading... '\n";
    for side in ["old", "fresh"] {
        bundles.replace(side, "--nresamples|", "");
        let result =
            "sample.json\"\ncase $id in *:*) echo \"time:   [1.00 Minstr 1.01 Minstr]\";; esac";
        bundles.replace(side, "sample.json\"", result);
        bundles.replace(side, "while [ $#", &format!("{prints}while [ $#"));
    }
    let json = bundles.compared("", 0);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 2, "{json:#}");
    for (id, _) in both {
        assert_eq!(verdict(&json, id), "same");
    }
    holds(&json["warnings"].to_string(), "such as `loading corpus`");
    // One of them prints another unit than time.
    let classes = json["classes"].as_array().unwrap().iter();
    let classes: BTreeSet<&str> = classes.map(|row| row["class"].as_str().unwrap()).collect();
    assert_eq!(
        Vec::from_iter(classes),
        ["benchmarks under 20 µs", "counts under 20,000"]
    );
}

pub(crate) fn every_bench_target_is_compared_or_named() {
    let project = Project::new(&BOTH[..1], "");
    let mut built = builds(&project.path("target-bench/run"));
    for (name, prints) in [
        ("deaf", "sum time:   [1.0 ms 1.1 ms 1.2 ms]"),
        ("silent", "nothing"),
        ("unit-tests", "0 tests, 0 benchmarks"),
    ] {
        let target = project.path("target-bench").join(name);
        executable(&target, &format!("echo '{prints}'"));
        built = built + "\n" + &builds(&target);
    }
    project.cargo(&built);
    let output = project.ab(&format!("{ONE_PAIR} --run-equal")).output();
    let warnings = compared(&output.unwrap(), 0)["warnings"].to_string();
    let deaf = "left out: deaf: it runs its benchmarks instead of listing them";
    holds(&warnings, deaf);
    holds(&warnings, "left out: silent: it lists no benchmark");
    assert!(!warnings.contains("unit-tests"), "{warnings}");
}

/// One runs too slowly for all pairs, and one that takes `--test` for the first pair.
pub(crate) fn slow_benchmarks_leave_the_others_their_time() {
    // The others have their time also where each of their processes takes a second.
    for (slow, seconds, takes_test, ran, says) in [
        (
            "sum",
            1.5,
            false,
            &["old sum", "fresh sum"][..],
            "1 benchmark ran once: 8 pairs of them take more than half of the budget of 0.6 min; the \
             slowest, sum,",
        ),
        (
            "sort/100",
            2.0,
            true,
            &["old sort/100"],
            "did not reach 1 benchmark, such as sort/100, a pair of which takes ",
        ),
    ] {
        let body = format!("if [ $id = {slow} ]; then sleep {seconds}; fi");
        let bundles = Bundles::new(&BOTH, &BOTH, &body);
        bundles.replace("old", "echo noise", &format!("{body}; echo noise"));
        if takes_test {
            bundles.replace("old", "--noplot) ;;", "--noplot|--test) ;;");
        }
        let json = bundles.compared("--budget 0.6", 0);
        let quick = BOTH.iter().find(|(id, _)| *id != slow).unwrap().0;
        assert_eq!(verdict(&json, quick), "same", "{json:#}");
        holds(&json["warnings"].to_string(), says);
        let log = bundles.read("log");
        let slow_ones = log.lines().filter(|line| line.ends_with(slow));
        assert_eq!(Vec::from_iter(slow_ones), ran, "{log}");
    }
}

/// As one that sets its own measurement time.
pub(crate) fn a_benchmark_that_takes_the_time_of_the_others_is_left_out() {
    let sleeps = "if [ $id = sort/100 ]; then sleep 600; fi";
    let is_left_out = |budget| {
        let bundles = Bundles::new(&BOTH, &BOTH, sleeps);
        bundles.replace("old", "echo noise", &format!("{sleeps}; echo noise"));
        let json = bundles.compared(budget, 0);
        let benchmarks = json["benchmarks"].as_array().unwrap();
        assert_eq!(benchmarks.len(), 1, "{json:#}");
        assert_eq!(benchmarks[0]["id"], "sum");
        let says = "the budget did not reach 1 benchmark, such as sort/100, a pair of which takes";
        holds(&json["warnings"].to_string(), says);
        // Later pairs run the other one alone.
        let log = bundles.read("log");
        let last = log.rfind("sort/100").unwrap();
        assert!(log[last..].matches("old sum").count() >= 2, "{log}");
    };
    // They wait beside each other.
    thread::scope(|scope| {
        scope.spawn(|| is_left_out("--budget 0.8"));
        is_left_out("--budget 0 --pairs 3");
    });
}

pub(crate) fn a_benchmark_that_takes_far_longer_on_one_side_fails() {
    let bundles = Bundles::new(&BOTH, &BOTH, "if [ $id = sort/100 ]; then sleep 600; fi");
    let json = bundles.compared("--budget 0 --pairs 1", 1);
    let failed = row(&json, "sort/100");
    assert_eq!(failed["verdict"], "failed");
    let says = "run b1 took 8 s, more than twice as long as the other side, and was ended";
    holds(&failed["reason"].to_string(), says);
}

/// Nobody ever writes to the standard input of `ab`.
pub(crate) fn a_benchmark_that_reads_standard_input_finds_it_empty() {
    let bundles = Bundles::new(&BOTH, &BOTH, "cat > /dev/null");
    let mut ab = bundles.command("--json --budget 0 --pairs 1 --turn-limit 5");
    let mut ab = ab.stdin(Stdio::piped()).spawn().unwrap();
    let open = ab.stdin.take();
    let json = compared(&ab.wait_with_output().unwrap(), 0);
    drop(open);
    assert_eq!(json["failures"].as_array().unwrap().len(), 0, "{json:#}");
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), BOTH.len());
}

pub(crate) fn a_name_that_acts_on_a_terminal_is_left_out_and_never_printed() {
    let acting = ["red\u{1b}[31m", "turned\u{202e}", "tab\tbed", "two\nlines"];
    let benchmarks = acting.map(|id| (id, 20.0));
    let all = [&BOTH[..], &benchmarks].concat();
    let bundles = Bundles::new(&all, &all, "");
    for form in ["--all", "--markdown", "--json"] {
        let output = bundles.ab(&format!("--pairs 1 --budget 0 {form}"));
        let said = ended(&output, 0, "");
        for acts in ['\u{1b}', '\u{202e}', '\t'] {
            assert!(!said.contains(acts), "{said:?}");
        }
        // Markdown and JSON escape the backslash.
        let said = said.replace("\\\\", "\\").replace("\\[", "[");
        for named in ["red\\u{1b}[31m", "turned\\u{202e}", "tab bed", "two lines"] {
            let named = format!("left out: {named}: its name has a character that cannot be shown");
            holds(&said, &named);
        }
    }
    let ran = |line: &str| BOTH.iter().any(|(id, _)| line.ends_with(&format!(" {id}")));
    assert!(bundles.read("log").lines().all(ran));
}

/// Packages of a workspace with bench targets that only start the stand-in of their package.
fn workspace(top: &Path) {
    repository(top);
    members(top, &["one", "two"]);
    package(top, "one", &["x", "y"], &BOTH);
    package(top, "two", &["x"], &BOTH);
    commit(top, "packages");
}

fn members(top: &Path, names: &[&str]) {
    let manifest = format!("[workspace]\nmembers = {names:?}\nresolver = \"2\"\n");
    fs::write(top.join("Cargo.toml"), manifest).unwrap();
}

fn package(top: &Path, name: &str, benches: &[&str], benchmarks: &[(&str, f64)]) {
    let dir = top.join(name);
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::create_dir_all(dir.join("benches")).unwrap();
    fs::write(dir.join("src/lib.rs"), "").unwrap();
    let mut manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\nf = []\n"
    );
    for bench in benches {
        manifest += &format!("[[bench]]\nname = \"{bench}\"\nharness = false\n");
        // Its path is that of the work tree in which it was built, which cargo tells what it starts.
        let main = r#"fn main() {
    use std::os::unix::process::CommandExt;
    let harness = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/harness/run";
    let error = std::process::Command::new(harness).args(std::env::args().skip(1)).exec();
    panic!("{error}");
}"#;
        fs::write(dir.join(format!("benches/{bench}.rs")), main).unwrap();
    }
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    planted(top, name, benchmarks);
}

/// The executables that the bench targets of a package start.
fn planted(top: &Path, package: &str, benchmarks: &[(&str, f64)]) {
    let run = top.join(package).join("harness/run");
    harness(&run, &top.join("target-ran"), benchmarks, "");
}

const SLOWER: [(&str, f64); 2] = [("sort/100", 300.0), ("sum", 20.0)];

fn ab(top: &Path, options: &str) -> Output {
    let mut command = crossover(top);
    let output = command.args(options.split_whitespace()).output().unwrap();
    clean(top);
    output
}

/// Neither the repository nor cargo is there when they are compared.
pub(crate) fn bundles_of_a_project_are_compared_without_its_sources() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    fs::create_dir(&top).unwrap();
    workspace(&top);
    let bundle = |name: &str, options: &str| {
        let mut bundle = command::crossover(&["bundle"]);
        let options = options.replace("DIR", &dir.path().join(name).to_string_lossy());
        let bundle = alone(bundle.args(options.split_whitespace()).current_dir(&top));
        bundle.env("TMPDIR", dir.path()).output().unwrap()
    };
    let options = "DIR HEAD --orders 3 --package one --bench x";
    ended(&bundle("old", options), 0, "1 executable of HEAD");
    let record = fs::read(dir.path().join("old/bundle.json")).unwrap();
    let record: Value = serde_json::from_slice(&record).unwrap();
    for (field, part) in [("toolchain", "."), ("machine", std::env::consts::ARCH)] {
        let value = record[field].as_str().unwrap();
        assert!(value.contains(part), "{field}: {value}");
    }
    planted(&top, "one", &SLOWER);
    commit(&top, "slower");
    ended(&bundle("fresh", options), 0, "1 executable of HEAD");
    ended(
        &bundle("fresh", options),
        2,
        "is not empty; name another folder",
    );
    ended(
        &bundle("other", "DIR HEAD -p none"),
        2,
        "it has no bench target",
    );
    fs::remove_dir_all(&top).unwrap();
    // The stand-ins write a log to it.
    fs::create_dir(&top).unwrap();
    let run = |options: &str| {
        let mut ab = crossover(dir.path());
        ab.args(options.split_whitespace())
            .args(["--json", "--pairs", "4", "--budget", "0"])
            .env("PATH", "/usr/bin:/bin");
        ab.output().unwrap()
    };
    let json = compared(&run("old fresh"), 1);
    assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
    assert_eq!(verdict(&json, "sum"), "same");
    let is_random = json["layout"] == "random";
    assert_eq!(is_random, cfg!(target_os = "linux"), "{json:#}");
    holds(
        &json["warnings"].to_string(),
        "commit of the bundles: HEAD (",
    );
    // Each pair has orders of its own.
    let pairs = json["benchmarks"][0]["pairs"].as_u64().unwrap();
    assert_eq!(pairs, if is_random { 3 } else { 4 });
    let json = compared(&run("fresh fresh --layout fixed"), 0);
    assert_eq!(verdict(&json, "sort/100"), "same", "{json:#}");
    assert_eq!(json["layout"], "fixed");
    // By hand, with the exit code of its benchmarks.
    let mut by_hand = Command::new("sh");
    by_hand
        .arg(dir.path().join("fresh/run"))
        .args(["bench", "--list"]);
    let by_hand = by_hand.current_dir(dir.path()).output().unwrap();
    assert_eq!(
        ended(&by_hand, 0, ""),
        "sort/100: benchmark\nsum: benchmark\n"
    );
}

pub(crate) fn packages_targets_and_features_are_those_that_a_side_has() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    workspace(top);
    // In the work tree one is slower, and a third package is new.
    planted(top, "one", &SLOWER);
    members(top, &["one", "two", "three"]);
    package(top, "three", &["z"], &BOTH);
    let pairs = "--json --pairs 4 --budget 0";
    let one = "-p one -p three --features one/f --bench x --bench z";
    let one = compared(&ab(top, &format!("{pairs} {one}")), 1);
    assert_eq!(verdict(&one, "one/x/sort/100"), "slower", "{one:#}");
    // The lock files that cargo made.
    holds(&one["warnings"].to_string(), "Cargo.lock differs between");
    // Two targets with benchmarks of one name, and one that cargo skips.
    let manifest = top.join("one/Cargo.toml");
    let target = "[[bench]]\nname = \"w\"\nharness = false\nrequired-features = [\"f\"]\n";
    fs::copy(top.join("one/benches/x.rs"), top.join("one/benches/w.rs")).unwrap();
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap() + target).unwrap();
    let all = compared(&ab(top, &format!("{pairs} --workspace")), 1);
    let skipped = "left out: one/w, which cargo builds with `--features f`";
    holds(&all["warnings"].to_string(), skipped);
    let benchmarks = all["benchmarks"].as_array().unwrap().iter();
    let mut ids: Vec<&str> = benchmarks.map(|row| row["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(
        ids.join(" "),
        "one/x/sort/100 one/x/sum one/y/sort/100 one/y/sum three/z/sort/100 three/z/sum two/x/sort/100 two/x/sum"
    );
    assert_eq!(verdict(&all, "three/z/sum"), "new");
    assert_eq!(verdict(&all, "one/y/sort/100"), "slower");
    let unknown = ab(top, "--bench x --bench nosuch");
    let said = ended(&unknown, 2, "bench target `nosuch`");
    assert!(!said.contains("building"), "{said}");
    ended(&ab(top, "-p three"), 2, "has no benchmark");
    // A package that does not build leaves the others.
    fs::write(top.join("two/src/lib.rs"), "no Rust").unwrap();
    let others = compared(&ab(top, &format!("{ONE_PAIR} --bench x")), 0);
    assert_eq!(others["benchmarks"].as_array().unwrap().len(), 2);
    let broken = "left out: package two, whose benchmarks do not build in work tree";
    holds(&others["warnings"].to_string(), broken);
}

/// The action's script, with a stand-in for the runner of CI.
struct Action {
    dir: TempDir,
}

impl Action {
    fn new() -> Self {
        let this = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(this.path("temporary")).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs it with this command in place of `crossover`, and returns its outputs.
    fn run(&self, place: &str, command: &Path, set: &[(&str, &str)], code: i32) -> Outputs {
        let action = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/ab/run");
        let _ = fs::remove_file(self.path("output"));
        let output = alone(without_settings(&mut Command::new(action)))
            .current_dir(self.path(place))
            .env("CROSSOVER", command)
            .env("RUNNER_TEMP", self.path("temporary"))
            .env("TMPDIR", self.path("temporary"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .env("GITHUB_OUTPUT", self.path("output"))
            .envs(set.iter().copied())
            .output()
            .unwrap();
        ended(&output, code, "");
        let said = fs::read_to_string(self.path("output")).unwrap();
        let outputs = said.lines().map(|line| line.split_once('=').unwrap());
        let outputs: Outputs = outputs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        assert_eq!(outputs["exit-code"], code.to_string());
        outputs
    }
}

type Outputs = BTreeMap<String, String>;

/// What the action runs in CI, whole, in a bare clone.
pub(crate) fn the_action_leaves_a_summary_a_comment_and_a_folder() {
    let action = Action::new();
    let top = action.path("top");
    workspace(&top);
    planted(&top, "one", &SLOWER);
    commit(&top, "slower");
    fs::write(top.join("README.md"), "one\n").unwrap();
    commit(&top, "a text");
    git(
        action.dir.path(),
        &["clone", "--quiet", "--bare", "top", "bare"],
    );
    let run = |base: &str, fail_on: &str, code: i32| {
        let set = [
            ("AB_BASE", base),
            ("AB_FAIL_ON", fail_on),
            ("AB_ARGUMENTS", "-p\none\n--bench\nx\n\n--pairs\n4"),
        ];
        let crossover = Path::new(env!("CARGO_BIN_EXE_crossover"));
        action.run("bare", crossover, &set, code)
    };
    let first = run("HEAD~2", "slower", 1);
    let summary = fs::read_to_string(action.path("summary")).unwrap();
    holds(&summary, "### Benchmarks: 1 slower, 1 same");
    holds(&summary, "| sort/100 |");
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

/// A branch left `main` at its third commit; then `main` got another one, and both were merged. No clone
/// loses commits or gains branches.
pub(crate) fn the_action_compares_what_its_event_changed() {
    let action = Action::new();
    let top = action.path("top");
    repository(&top);
    git(&top, &["branch", "--quiet", "-M", "main"]);
    git(&top, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let at = |revision: &str| git(&top, &["rev-parse", revision]).trim().to_owned();
    let committed = |name: &str| {
        fs::write(top.join(name), "new\n").unwrap();
        commit(&top, name);
        at("HEAD")
    };
    committed("second");
    let start = committed("third");
    git(&top, &["branch", "--quiet", "release"]);
    git(&top, &["switch", "--quiet", "-c", "branch"]);
    let branch = committed("of-branch");
    git(&top, &["switch", "--quiet", "main"]);
    let main = committed("of-main");
    git(&top, &["switch", "--quiet", "-c", "merge"]);
    git(&top, &["merge", "--quiet", "--no-edit", "branch"]);
    let merge = at("HEAD");
    let url = format!("file://{}", top.display());
    for (name, of, depth) in [
        ("merged", "merge", "--depth=1"),
        ("shallow", "branch", "--depth=1"),
        ("deeper", "branch", "--depth=3"),
        ("whole", "branch", "--no-local"),
        ("base", "main", "--no-local"),
    ] {
        let clone = ["clone", "--quiet", "--branch", of, depth, &url, name];
        git(action.dir.path(), &clone);
    }
    git(&top, &["switch", "--quiet", "-c", "later", "main"]);
    let later = committed("later");
    // Logs the commits that it is given.
    let log = action.path("log");
    let logs = format!(
        "git rev-parse \"$2^{{commit}}\" \"$3^{{commit}}\" > {}; shift 6; echo $@ >> {0}; echo compared",
        log.display()
    );
    executable(&action.path("crossover"), &logs);
    let (none, zeros) = (String::new(), "0".repeat(40));
    let same = "base and head are the same commit: name the new code in the input `head`";
    for (place, event_base, event_head, named, sides) in [
        // The event knows an older commit of the base.
        ("merged", &start, &branch, "", Ok([&main, &merge])),
        ("whole", &main, &branch, "", Ok([&start, &branch])),
        ("shallow", &main, &branch, "", Ok([&main, &branch])),
        ("whole", &start, &none, "", Ok([&start, &branch])),
        ("merged", &start, &branch, "branch", Ok([&branch, &merge])),
        // Branches that have no local one.
        (
            "shallow",
            &start,
            &none,
            "origin/main",
            Ok([&main, &branch]),
        ),
        ("deeper", &none, &none, "release", Ok([&start, &branch])),
        ("whole", &none, &none, "main", Ok([&main, &branch])),
        ("whole", &none, &none, "later", Ok([&later, &branch])),
        // A new branch, and one in a clone without its history.
        ("whole", &zeros, &none, "", Ok([&start, &branch])),
        ("shallow", &zeros, &none, "", Ok([&main, &branch])),
        ("whole", &none, &none, "", Err("set the input `base`")),
        // A tag of the default branch, and a pull request whose base was checked out.
        ("base", &zeros, &none, "", Err(same)),
        ("base", &main, &branch, "", Err(same)),
    ] {
        let _ = fs::remove_file(&log);
        let set = [
            ("AB_EVENT_BASE", event_base.as_str()),
            ("AB_EVENT_HEAD", event_head),
            ("AB_BASE", named),
            ("AB_DEFAULT_BRANCH", "main"),
        ];
        let clone = action.path(place);
        let is_shallow = ["rev-parse", "--is-shallow-repository"];
        let kept = || [&["log"][..], &["for-each-ref"], &is_shallow].map(|what| git(&clone, what));
        let before = kept();
        let code = if sides.is_ok() { 0 } else { 2 };
        let outputs = action.run(place, &action.path("crossover"), &set, code);
        assert_eq!(kept(), before, "{place} {named}");
        let comment = fs::read_to_string(&outputs["comment"]).unwrap();
        match sides {
            Ok([base, head]) => {
                let given = fs::read_to_string(&log).unwrap();
                // Behind them nothing: the defaults are those of the command.
                assert_eq!(given, format!("{base}\n{head}\n\n"), "{place} {named}");
            }
            Err(why) => holds(&comment, why),
        }
    }
}

/// With a stand-in for cargo, which writes a command that prints the folder and the flags it was compiled with.
pub(crate) fn the_action_compiles_the_command_once_and_for_itself() {
    let action = Action::new();
    repository(&action.path("top"));
    let cargo = "while [ \"$1\" != --root ]; do shift; done; mkdir -p \"$2/bin\"
        echo \"echo compiled in $PWD with [$RUSTFLAGS]\" > \"$2/bin/crossover\"; chmod +x \"$2/bin/crossover\"";
    let cargo_at = action.path("bin/cargo");
    executable(&cargo_at, cargo);
    let path = format!(
        "{}:{}",
        action.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let run = || {
        let set = [
            ("AB_BASE", "HEAD"),
            ("AB_ARGUMENTS", "--run-equal"),
            ("PATH", &*path),
            ("RUSTFLAGS", "-D warnings"),
        ];
        let outputs = action.run("top", Path::new(""), &set, 0);
        fs::read_to_string(&outputs["comment"]).unwrap()
    };
    let first = run();
    assert!(first.ends_with(".github/actions/ab with []\n"), "{first}");
    // From a cache.
    executable(&cargo_at, "exit 1");
    assert_eq!(run(), first);
}
