//! `crossover keep` and `crossover history` on planted results.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::baselines::{Result, write};
use crate::command;
use crate::printed::{expect, holds};
use crate::repositories::{executable, git_line};

/// Keeps one run of twelve benchmarks, the third of which takes so many times as long, as that machine.
fn keep(top: &Path, run: u64, factor: f64, machine: &str) {
    let results = top.join("results");
    for i in 1..=12 {
        let ns = 1e3 * i as f64 * if i == 3 { factor } else { 1.0 };
        let result = Result::new(&format!("g/f/{i}"), ns, 100 * run + i);
        write(&results, "new", &result.without_sidecar());
    }
    let keep = format!("keep history --results results --machine {machine}");
    let mut command = command::crossover(&keep);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}/bin:{path}", top.display()));
    let kept = "12 benchmarks in history/";
    expect(command.current_dir(top), 0, kept);
}

fn history(top: &Path, arguments: &str, code: i32, words: &str) -> String {
    let line = format!("history history --html history.html {arguments}");
    expect(command::crossover(&line).current_dir(top), code, words)
}

pub(crate) fn a_step_is_suspected_once_with_the_command_that_confirms_it() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    git_line(top, "init --quiet");
    let run = |run: u64, factor: f64| {
        git_line(top, "commit --quiet --allow-empty --message change");
        keep(top, run, factor, "runner");
        git_line(top, "rev-parse HEAD").trim().to_owned()
    };
    // Written at one time: the order is that of the commits.
    let commits: Vec<String> = (1..=7).map(|at| run(at, 1.0)).collect();
    let first_bad = run(8, 1.2);
    // One run alone may be an outlier.
    let spread = "runner: 8 runs\nspread between runs: 0.0 … 3.60 µs";
    history(top, "--machine runner", 0, spread);
    run(9, 1.2);
    run(10, 1.2);
    let ab = format!("crossover ab {} {first_bad} -- '^(g/f/3)$'\n", commits[6]);
    let found = "\ng/f/3: … suspected slower: +20 … To confirm the change (commits: 1):\n";
    history(top, "--machine runner", 1, &(found.to_owned() + &ab));
    for (arguments, code, words) in [
        ("--fail-on none", 0, "suspected slower"),
        ("--markdown", 1, "\n    g/f/3: "),
        // `ab` runs, and finds no package here.
        ("--confirm", 2, "Cargo.toml"),
    ] {
        history(top, &format!("--machine runner {arguments}"), code, words);
    }
    let page = fs::read_to_string(top.join("history.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script"));
    fs::write(top.join("history/runner/notes.txt"), "mine").unwrap();
    fs::create_dir(top.join("bin")).unwrap();
    executable(&top.join("bin/rustc"), "echo rustc 99.0");
    run(11, 1.2);
    let later = history(top, "--machine runner", 0, "suspected before slower");
    holds(&later, " until then, rustc 99.0 since ");
    holds(&later, "left out: history/runner/notes.txt: is damaged");
    // With its host as the name, a runner that lives one hour has one run.
    keep(top, 12, 1.2, "host-12");
    let few = "1 of 5 runs: how much runs differ is not known yet";
    history(top, "--machine host-12", 0, few);
    // Benchmarks that did not run again are not kept again.
    let again = Result::new("g/f/3", 3e3, 1_300).without_sidecar();
    write(&top.join("results"), "new", &again);
    let sample = fs::File::options()
        .append(true)
        .open(top.join("results/g/f/3/new/sample.json"));
    let later = SystemTime::now() + Duration::from_secs(60);
    sample.unwrap().set_modified(later).unwrap();
    let mut again = command::crossover("keep history --results results --machine host-12");
    let kept = "1 benchmark in … left out: 11 benchmarks that did not run since they were kept";
    expect(again.current_dir(top), 0, kept);
}
