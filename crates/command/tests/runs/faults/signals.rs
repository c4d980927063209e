//! Signals and closed pipes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{SigHandler, Signal, signal};
use serde_json::Value;

use crate::faults::files::records_in;
use crate::faults::habits::{HELD, held};
use crate::faults::run::{SOUND, bench, crossover, files, measured, shown, summary};
use crate::groups::Moody;
use crate::printed::{expect, holds, printed};

pub(crate) fn closed_pipe() {
    use std::os::unix::process::ExitStatusExt;
    let (dir, root) = measured();
    let commands = [
        crossover(&root, &["env"]),
        crossover(&root, &["report", "--no-reference"]),
        crossover(&root, &["export", dir.path().join("x").to_str().unwrap()]),
        bench(&root, &["--bench", "--quick", "sound"]),
        bench(&root, &["--list"]),
    ];
    for mut command in commands {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = printed(&output);
        assert!(!said.contains("panicked"), "{command:?}: {said}");
        let signal = output.status.signal();
        let ended = output.status.code() == Some(0) || signal == Some(13);
        assert!(ended, "{command:?}: {:?} {said}", output.status);
    }
    assert_eq!(shown(&root), SOUND);
}

/// A run whose benchmarks take so many seconds, long enough to be interrupted. Criterion says when it begins.
fn long(root: &Path, seconds: &str, filter: &str) -> Command {
    let options = "--bench --verbose --warm-up-time 0.1 --measurement-time";
    bench(
        root,
        &Vec::from_iter(options.split(' ').chain([seconds, filter])),
    )
}

/// Runs it until it says so, sends the signal, drops what holds it, and gives exit code and words.
pub(crate) fn interrupted_at<T>(
    run: &mut Command,
    words: &str,
    signal: nix::sys::signal::Signal,
    hold: T,
) -> (Option<i32>, String) {
    let mut child = run
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    // Those before it are finished.
    let mut said = String::new();
    while !said.contains(words) {
        assert!(
            errors.read_line(&mut said).unwrap() > 0,
            "it never began: {said}"
        );
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, signal).unwrap();
    drop(hold);
    errors.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    said += &printed.join().unwrap().unwrap();
    (status.code(), said)
}

pub(crate) fn signals() {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM};
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] {
        let dir = tempfile::tempdir().unwrap();
        let mut run = long(dir.path(), "0.4", "sound");
        on_hangup(&mut run, SigHandler::SigDfl);
        // While the second benchmark is measured.
        let hold = held(&mut run, 8, 9);
        let (ended, said) = interrupted_at(&mut run, HELD, signal, hold);
        assert_eq!(ended, Some(code), "{said}");
        holds(&said, "Benchmarking sound/cpu/fill/8");
        holds(&said, "interrupted: the results so far are kept");
        assert!(!said.contains("FAILED"), "{said}");
        let ids = shown(dir.path());
        assert!(ids.contains(&"sound/cpu/fill/4".to_owned()), "{ids:?}");
        assert!(!ids.contains(&"sound/cpu/fill/32".to_owned()), "{ids:?}");
        for (path, bytes) in files(dir.path()) {
            assert!(!bytes.is_empty(), "{} is empty", path.display());
        }
    }
}

/// Sets the action of a hangup, which the command would inherit from the tests.
fn on_hangup(command: &mut Command, handler: SigHandler) {
    let set = move || {
        // SAFETY: neither of the two actions runs a handler.
        unsafe { signal(Signal::SIGHUP, handler) }?;
        Ok(())
    };
    // SAFETY: setting an action is allowed between fork and exec.
    unsafe { command.pre_exec(set) };
}

/// As over a connection that ends.
pub(crate) fn nohup() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = long(dir.path(), "0.1", "sound");
    on_hangup(&mut run, SigHandler::SigIgn);
    let hold = held(&mut run, 8, 9);
    let (ended, said) = interrupted_at(&mut run, HELD, Signal::SIGHUP, hold);
    assert_eq!(ended, Some(0), "{said}");
    let ids = shown(dir.path());
    assert!(ids.contains(&"sound/cpu/fill/32".to_owned()), "{ids:?}");
}

/// The first measurement was unsteady, and the second comes to nothing: the first is the result.
pub(crate) fn once_more() {
    let dir = tempfile::tempdir().unwrap();
    let signal = nix::sys::signal::Signal::SIGINT;
    let mut run = bench(dir.path(), &["--bench", "moody/cpu/never/4"]);
    // One run verifies the first result.
    let hold = held(run.args(Moody::OPTIONS), 4, Moody::OF_THE_FIRST + 3);
    let (code, said) = interrupted_at(&mut run, HELD, signal, hold);
    assert_eq!(code, Some(130), "{said}");
    holds(&said, "1 benchmark unsteady, so no answer uses them");
    let summary = summary(dir.path());
    let [result] = &summary["benchmarks"].as_array().unwrap()[..] else {
        panic!("{summary}")
    };
    assert_eq!(result["id"], "moody/cpu/never/4");
    assert!(result["unsteady"].is_string(), "{result}");
    let aside = files(dir.path()).into_keys().find(|path| {
        let text = path.to_string_lossy();
        text.contains("result/") || text.contains(".earlier")
    });
    assert_eq!(aside, None);
}

/// A run that has no chance to say so: its record has what was skipped until then and what was
/// still to come.
pub(crate) fn killed() {
    let (_dir, root) = measured();
    let (first, last) = ("faulty/cpu/errs/4", "choice/cpu/best/4");
    let filter = "faulty/cpu/errs/4$|choice";
    let signal = nix::sys::signal::Signal::SIGKILL;
    let words = format!("Benchmarking {last}");
    let (code, said) = interrupted_at(&mut long(&root, "600", filter), &words, signal, ());
    assert_eq!(code, None, "{said}");
    let mut records = records_in(&root).into_iter();
    let record = records.find(|run| run.finished.is_none()).unwrap();
    let mut planned = record.planned.clone();
    planned.sort();
    assert_eq!(planned, [last, first]);
    // Of the last group, which began long after the record was first written.
    for (id, why) in [
        ("choice/gpu/none", "CROSSOVER_DEVICE"),
        (
            "choice/cpu/best",
            "sizes 8 are not in the set quick; CROSSOVER_SIZES=full",
        ),
    ] {
        let skipped = record.skipped.iter().find(|skip| skip.id == id);
        assert!(
            skipped.is_some_and(|skip| skip.reason.contains(why)),
            "{record:?}"
        );
    }
    let not_reached = || -> Vec<Value> {
        let left_out = summary(&root)["left_out"].as_array().unwrap().clone();
        let ended = |out: &Value| out["reason"].as_str().unwrap().contains("ended before it");
        left_out
            .into_iter()
            .filter(ended)
            .map(|out| out["what"].clone())
            .collect()
    };
    assert_eq!(not_reached(), [last]);
    // A run that gets to its end leaves nothing of the kind.
    let quick = ["--bench", "--quick", "choice"];
    expect(&mut bench(&root, &quick), 0, "");
    assert_eq!(not_reached(), [""; 0]);
}
