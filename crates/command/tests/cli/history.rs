//! `crossover keep` and `crossover history` on planted results.

use std::fs;
use std::path::Path;

use crate::baselines::{Result, write};
use crate::command;
use crate::printed::{expect, holds};
use crate::repositories::git_line;

/// Keeps one run of twelve benchmarks, whose third has a factor of its own, as that machine.
fn keep(top: &Path, run: u64, factor: f64, machine: &str) {
    let results = top.join("results");
    for i in 1..=12 {
        let factor = if i == 3 { factor } else { 1.0 };
        let ns = 1e3 * i as f64 * factor;
        let result = Result::new(&format!("g/f/{i}"), ns, 100 * run + i);
        write(&results, "new", &result.without_sidecar());
    }
    let keep = format!("keep history --results results --machine {machine}");
    let mut command = command::crossover(&keep);
    let kept = "12 benchmarks in history/";
    expect(command.current_dir(top), 0, kept);
}

fn history(top: &Path, machine: &str) -> String {
    let line = format!("history history --machine {machine} --html history.html");
    expect(command::crossover(&line).current_dir(top), 0, machine)
}

pub(crate) fn a_step_is_suspected_with_the_command_that_confirms_it_and_reported_once() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    git_line(top, "init --quiet");
    let mut commits = Vec::new();
    let mut found = Vec::new();
    for run in 1..=11 {
        git_line(top, "commit --quiet --allow-empty --message change");
        commits.push(git_line(top, "rev-parse HEAD").trim().to_owned());
        // Written at one time: the order is that of the commits.
        let factor = if run >= 8 { 1.2 } else { 1.0 };
        keep(top, run, factor, "runner");
        if run == 4 {
            holds(
                &history(top, "runner"),
                "4 of 5 runs: how much runs differ is not known yet",
            );
        }
        if run >= 7 {
            let shown = history(top, "runner");
            found.extend(shown.contains("crossover ab").then_some((run, shown)));
        }
    }
    let [(run, shown)] = &found[..] else {
        panic!("reported once: {found:?}");
    };
    assert!((8..=10).contains(run), "within three runs: {run}");
    let first = shown.lines().find(|line| line.starts_with("g/f/")).unwrap();
    holds(first, "g/f/3: ");
    holds(first, "suspected slower: +20");
    let [good, bad] = [&commits[6], &commits[7]];
    holds(shown, "To confirm a change in 1 commit:");
    holds(
        shown,
        &format!("crossover ab {good} {bad} -- '^(g/f/3)$'\n"),
    );
    holds(&history(top, "runner"), "suspected before slower");
    // With its host as the name, a runner that lives one hour has one run.
    keep(top, 11, 1.2, "host-11");
    holds(&history(top, "host-11"), "1 of 5 runs");
    let page = fs::read_to_string(top.join("history.html")).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script"));
    fs::write(top.join("history/runner/notes.txt"), "mine").unwrap();
    holds(
        &history(top, "runner"),
        "left out: history/runner/notes.txt: is damaged or no kept run",
    );
}
