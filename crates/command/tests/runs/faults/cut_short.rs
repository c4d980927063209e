//! Runs that are cut short in the middle: the earlier results are still there and still shown,
//! nothing is torn, and a rerun works. `FAULT_ROUNDS` says how often each is tried.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::faults::run::{SOUND, Suite, files};
use crate::full_disk;
use crate::printed::{lacks, printed};

/// A run that replaces the results of [`Suite::measured`], with their copy in a baseline.
const AGAIN: &str = "--bench --quick --save-baseline main sound";

/// Random shares of a run, one for each round after the first.
pub(crate) fn shares(first: f64) -> impl Iterator<Item = f64> {
    let rounds = std::env::var("FAULT_ROUNDS");
    let rounds = rounds.map_or(1, |text| text.parse().expect("FAULT_ROUNDS is a number"));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(16);
    let later = std::iter::repeat_with(move || random.random());
    std::iter::once(first).chain(later).take(rounds)
}

/// Results of a run with a baseline, and the seconds that such a run takes.
fn with_baseline() -> (Suite, f64) {
    static WITH_BASELINE: OnceLock<(Suite, f64)> = OnceLock::new();
    let (once, seconds) = WITH_BASELINE.get_or_init(|| {
        let suite = Suite::measured();
        let start = Instant::now();
        suite.run(AGAIN, 0, "");
        (suite, start.elapsed().as_secs_f64())
    });
    (once.copy(), *seconds)
}

fn is_below(path: &Path, prefix: &str) -> bool {
    let mut names = path.iter().map(|name| name.to_string_lossy());
    names.any(|name| name.starts_with(prefix))
}

/// No file is torn. Where a killed process left `.earlier-<name>`, that holds the result, and the
/// folder `<name>` may be incomplete.
fn assert_nothing_torn(root: &Path, killed: bool) {
    for entry in walkdir::WalkDir::new(root) {
        let path = entry.unwrap().into_path();
        let below = path.strip_prefix(root).unwrap();
        let is_left = is_below(below, ".crossover-") || is_below(below, ".earlier-");
        assert!(killed || !is_left, "{} is left", path.display());
    }
    for (path, bytes) in files(root) {
        let place = path.display();
        let below = path.strip_prefix(root).unwrap();
        let folder = path.parent().unwrap();
        let name = folder.file_name().unwrap().to_string_lossy();
        let earlier = folder.with_file_name(format!(".earlier-{name}"));
        if is_below(below, ".crossover-") || earlier.exists() {
            continue;
        }
        // Nothing reads Criterion's own record of the change.
        let change = is_below(below, "change");
        let unread = change || is_below(below, "report");
        assert!(!bytes.is_empty() || killed && unread, "{place} is empty");
        if path.extension().is_some_and(|it| it == "json") && !change {
            let json = serde_json::from_slice::<serde_json::Value>(&bytes);
            assert!(json.is_ok(), "{place} is torn");
        }
    }
}

/// The earlier results are shown, nothing is torn, and a rerun clears what was left.
fn assert_unharmed(suite: &Suite, killed: bool) {
    assert_nothing_torn(&suite.root, killed);
    assert_eq!(suite.shown(), SOUND);
    suite.run(AGAIN, 0, "");
    assert_nothing_torn(&suite.root, false);
    assert_eq!(suite.shown(), SOUND);
}

/// Runs again with room for a share of what such a run writes, and gives the run to `ends`.
fn with_little_room(killed: bool, ends: impl Fn(&mut Command)) {
    let (suite, _) = with_baseline();
    let written: usize = suite.files().values().map(Vec::len).sum();
    // The first round is in the midst of the first results.
    for share in shares(0.4) {
        let room = (share * written as f64) as u64;
        let mut run = suite.bench(&format!("FULL_AFTER={room} {AGAIN}"));
        ends(run.env("LD_PRELOAD", full_disk::library()));
        assert_unharmed(&suite, killed);
    }
}

pub(crate) fn a_full_disk() {
    with_little_room(false, |run| {
        let output = run.output().unwrap();
        let printed = printed(&output);
        let says = |words: &str| printed.contains(words);
        let is_told = match output.status.code() {
            // Nothing was lost where only Criterion's pages did not fit.
            Some(0) => says("Criterion.rs ERROR"),
            // Of the benchmarks none failed, since the run ends where the first one finds no room.
            Some(1) => {
                let failures = printed.matches("FAILED ").count();
                says("no more results can be written")
                    || says("no report was written") && failures == 0
                    || says("FAILED the run's record") && failures == 1
            }
            Some(2) => says("set CRITERION_HOME to a folder where they can"),
            _ => false,
        };
        assert!(is_told, "{run:?}: {}\n{printed}", output.status);
        lacks(&printed, &["panicked"]);
    });
}

pub(crate) fn a_kill_between_any_two_bytes() {
    with_little_room(true, |run| {
        run.env("KILLED", "1").stdout(Stdio::null());
        let status = run.stderr(Stdio::null()).status().unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
    });
}

pub(crate) fn an_interrupt_at_any_moment() {
    let (suite, seconds) = with_baseline();
    for share in shares(0.5) {
        let mut run = suite.bench(AGAIN);
        let run = run.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = run.spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(seconds * share));
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
        let status = child.wait().unwrap();
        let ended = matches!(status.code(), Some(0 | 130));
        // A signal that comes before the process catches signals ends it.
        let early = status.signal() == Some(Signal::SIGINT as i32);
        assert!(ended || early, "{status}");
        assert_unharmed(&suite, false);
    }
}
