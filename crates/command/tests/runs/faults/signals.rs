//! Signals and closed pipes.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use nix::sys::signal::{SigHandler, Signal, kill, signal};

use crate::faults::habits::{HELD, held};
use crate::faults::run::{SOUND, Suite, files};
use crate::groups::Moody;
use crate::printed::{holds, lacks, printed};

pub(crate) fn a_closed_pipe() {
    let suite = Suite::measured();
    let mut export = suite.crossover("export");
    export.arg(suite.path("x"));
    for mut command in [
        suite.crossover("env"),
        suite.crossover("report --no-reference"),
        export,
        suite.bench("--bench --quick sound"),
        suite.bench("--list"),
    ] {
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = printed(&output);
        lacks(&said, &["panicked"]);
        let ended = output.status.success() || output.status.signal() == Some(13);
        assert!(ended, "{command:?}: {:?} {said}", output.status);
    }
    assert_eq!(suite.shown(), SOUND);
}

/// A run whose benchmarks take so many seconds, long enough to be interrupted. Criterion says when it begins.
fn long(suite: &Suite, seconds: &str, filter: &str) -> Command {
    let options = "--bench --verbose --warm-up-time 0.1 --measurement-time";
    suite.bench(&format!("{options} {seconds} {filter}"))
}

/// Runs it until it says so, sends the signal, drops what holds it, and gives exit code and words.
pub(crate) fn interrupted_at<T>(
    run: &mut Command,
    words: &str,
    signal: Signal,
    hold: T,
) -> (Option<i32>, String) {
    let piped = run.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    // Those before it are finished.
    let mut said = String::new();
    while !said.contains(words) {
        let read = errors.read_line(&mut said).unwrap();
        assert!(read > 0, "it never began: {said}");
    }
    kill(nix::unistd::Pid::from_raw(child.id() as i32), signal).unwrap();
    drop(hold);
    errors.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    said += &printed.join().unwrap().unwrap();
    (status.code(), said)
}

/// A hangup, as over a connection that ends, is ignored under `nohup`.
pub(crate) fn signals_end_a_run_in_order() {
    let (default, ignored) = (SigHandler::SigDfl, SigHandler::SigIgn);
    for (signal, on_hangup, code) in [
        (Signal::SIGINT, default, 130),
        (Signal::SIGTERM, default, 143),
        (Signal::SIGHUP, default, 129),
        (Signal::SIGHUP, ignored, 0),
    ] {
        let suite = Suite::new();
        let mut run = long(&suite, "0.1", "sound");
        set_hangup(&mut run, on_hangup);
        // While the second benchmark is measured.
        let hold = held(&mut run, 8, 9);
        let (ended, said) = interrupted_at(&mut run, HELD, signal, hold);
        assert_eq!(ended, Some(code), "{said}");
        holds(&said, "Benchmarking sound/cpu/fill/8");
        lacks(&said, &["FAILED"]);
        let ids = suite.shown();
        assert!(ids.contains(&"sound/cpu/fill/4".to_owned()), "{ids:?}");
        let reaches_the_end = ids.contains(&"sound/cpu/fill/32".to_owned());
        assert_eq!(reaches_the_end, code == 0, "{ids:?}");
        if code != 0 {
            holds(&said, "interrupted: the results so far are kept");
        }
        for (path, bytes) in files(suite.dir.path()) {
            assert!(!bytes.is_empty(), "{} is empty", path.display());
        }
    }
}

/// Sets the action of a hangup, which the command would inherit from the tests.
fn set_hangup(command: &mut Command, handler: SigHandler) {
    let set = move || {
        // SAFETY: neither of the two actions runs a handler.
        unsafe { signal(Signal::SIGHUP, handler) }?;
        Ok(())
    };
    // SAFETY: setting an action is allowed between fork and exec.
    unsafe { command.pre_exec(set) };
}

/// The first measurement was unsteady, and the second comes to nothing: the first is the result.
pub(crate) fn a_signal_while_it_is_measured_once_more() {
    let suite = Suite::new();
    let line = format!("--bench moody/cpu/never/4 {}", Moody::OPTIONS);
    let mut run = suite.bench(&line);
    // One run verifies the first result.
    let hold = held(&mut run, 4, Moody::OF_THE_FIRST + 3);
    let (code, said) = interrupted_at(&mut run, HELD, Signal::SIGINT, hold);
    assert_eq!(code, Some(130), "{said}");
    holds(&said, "1 benchmark unsteady, so no answer uses them");
    assert_eq!(suite.shown(), ["moody/cpu/never/4"]);
    let result = suite.sidecar("moody/cpu_never/4/new");
    assert!(result.unsteady.is_some(), "{result:?}");
    let aside = suite.files().into_keys().find(|path| {
        let text = path.to_string_lossy();
        text.contains("result/") || text.contains(".earlier")
    });
    assert_eq!(aside, None);
}

/// A run that has no chance to say so: its record has what was skipped until then and what was
/// still to come.
pub(crate) fn a_killed_run_says_what_it_did_not_reach() {
    let suite = Suite::measured();
    let (first, last) = ("faulty/cpu/errs/4", "choice/cpu/best/4");
    let mut run = long(&suite, "600", "faulty/cpu/errs/4$|choice");
    let words = format!("Benchmarking {last}");
    let (code, said) = interrupted_at(&mut run, &words, Signal::SIGKILL, ());
    assert_eq!(code, None, "{said}");
    let mut records = suite.records().into_iter();
    let record = records.find(|run| run.finished.is_none()).unwrap();
    let mut planned = record.planned.clone();
    planned.sort();
    assert_eq!(planned, [last, first]);
    // Of the last group, which began long after the record was first written.
    let missing_size = "sizes 8 are not in the set quick; CROSSOVER_SIZES=full";
    for (id, why) in [
        ("choice/gpu/none", "CROSSOVER_DEVICE"),
        ("choice/cpu/best", missing_size),
    ] {
        let mut skipped = record.skipped.iter();
        let is_told = skipped.any(|skip| skip.id == id && skip.reason.contains(why));
        assert!(is_told, "{record:?}");
    }
}
