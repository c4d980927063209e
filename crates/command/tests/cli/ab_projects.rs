//! `crossover ab` in projects of others: executables of any Criterion, workspaces, and its action.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::compare::{compared, verdict};
use crate::printed::{ended, holds, printed};
use crate::repositories::{
    BOTH, Bundles, ONE_PAIR, Project, alone, builds, clean, commit, crossover, executable, git,
    harness, repository,
};

/// An executable does not know an option, prints more than its benchmarks, and has two whose results
/// Criterion stores in one folder.
#[test]
fn an_executable_is_asked_for_what_it_knows() {
    let both = [("g/a:b", 20.0), ("g/a?b", 30.0)];
    let bundles = Bundles::new(&both, &both, "");
    let prints = "echo loading corpus: bench\nprintf 'loading... '\n";
    for side in ["old", "fresh"] {
        bundles.replace(side, "--nresamples|", "");
        bundles.replace(side, "while [ $#", &format!("{prints}while [ $#"));
    }
    let json = bundles.compared("", 0);
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 2, "{json:#}");
    for (id, _) in both {
        assert_eq!(verdict(&json, id), "same");
    }
    holds(&json["warnings"].to_string(), "such as `loading corpus`");
}

#[test]
fn every_bench_target_is_compared_or_named() {
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
#[test]
fn slow_benchmarks_leave_the_others_their_time() {
    for (slow, takes_test, ran, says) in [
        (
            "sum",
            false,
            &["old sum", "fresh sum"][..],
            "1 benchmark ran once: 8 pairs of them take more than half of the budget of 0.2 min; the \
             slowest, sum,",
        ),
        (
            "sort/100",
            true,
            &["old sort/100"],
            "did not reach 1 benchmark, such as sort/100, a pair of which takes 2",
        ),
    ] {
        let body = format!("if [ $id = {slow} ]; then sleep 1; fi");
        let bundles = Bundles::new(&BOTH, &BOTH, &body);
        if takes_test {
            let run = |side: &str| bundles.dir().join(side).join("run");
            fs::copy(run("fresh"), run("old")).unwrap();
            bundles.replace("old", "--noplot) ;;", "--noplot|--test) ;;");
        }
        let json = bundles.compared("--budget 0.2", 0);
        let quick = BOTH.iter().find(|(id, _)| *id != slow).unwrap().0;
        assert_eq!(verdict(&json, quick), "same", "{json:#}");
        holds(&json["warnings"].to_string(), says);
        let log = bundles.read("log");
        let slow_ones = log.lines().filter(|line| line.ends_with(slow));
        assert_eq!(Vec::from_iter(slow_ones), ran, "{log}");
    }
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

#[test]
fn packages_targets_and_features_are_those_that_a_side_has() {
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
    // Lines of a lock file that was made for either side.
    let lock = "Cargo.lock differs: three none → 0.1.0";
    holds(&one["warnings"].to_string(), lock);
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

/// What the action runs in CI, whole, in a bare clone.
#[test]
fn the_action_leaves_a_summary_a_comment_and_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("top");
    workspace(&top);
    planted(&top, "one", &SLOWER);
    commit(&top, "slower");
    git(dir.path(), &["clone", "--quiet", "--bare", "top", "bare"]);
    fs::create_dir(dir.path().join("temporary")).unwrap();
    let at = |name: &str| dir.path().join("temporary").join(name);
    let read = |name: &str| fs::read_to_string(at(name)).unwrap();
    let action = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/ab/run");
    let run = |base: &str, fail_on: &str, code: i32| {
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
        assert_eq!(output.status.code(), Some(code), "{}", printed(&output));
    };
    run("HEAD~1", "slower", 1);
    let summary = read("summary");
    holds(&summary, "### Benchmarks: 1 slower, 1 same");
    holds(&summary, "| sort/100 |");
    let said = read("output");
    let value = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} {said}"))
    };
    assert_eq!(value("exit-code="), "1");
    assert_eq!(fs::read_to_string(value("comment=")).unwrap(), summary);
    let kept = PathBuf::from(value("results=")).join("compare.json");
    let kept: Value = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(verdict(&kept, "sort/100"), "slower");
    // Nothing to compare is said too.
    run("nowhere", "none", 2);
    holds(&read("comment.md"), "could not be compared");
}
