//! Runs that are cut short in the middle: the earlier results are still there and still shown,
//! nothing is torn, and a rerun works. `FAULT_ROUNDS` says how often each is tried.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::faults::run::{SOUND, bench, copied, measured, shown};
use crate::full_disk;
use crate::printed::{expect, printed};

/// A run that replaces what `measured` left, with its copy in a baseline.
const AGAIN: [&str; 5] = ["--bench", "--quick", "--save-baseline", "main", "sound"];

pub(crate) fn rounds() -> u32 {
    let rounds = std::env::var("FAULT_ROUNDS");
    rounds.map_or(1, |text| text.parse().expect("FAULT_ROUNDS is a number"))
}

/// Results of a run with a baseline, and the seconds that such a run takes.
fn with_baseline() -> (tempfile::TempDir, PathBuf, f64) {
    static WITH_BASELINE: OnceLock<(tempfile::TempDir, f64)> = OnceLock::new();
    let (once, whole) = WITH_BASELINE.get_or_init(|| {
        let (dir, root) = measured();
        let start = Instant::now();
        expect(&mut bench(&root, &AGAIN), 0, "");
        (dir, start.elapsed().as_secs_f64())
    });
    let (dir, root) = copied(once.path());
    (dir, root, *whole)
}

fn is_json(path: &Path) -> bool {
    let text = fs::read(path).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).is_ok()
}

fn hidden(path: &Path, prefix: &str) -> bool {
    let parts = path.iter().map(|part| part.to_string_lossy().into_owned());
    parts.into_iter().any(|part| part.starts_with(prefix))
}

/// No file is torn. Where a killed process left `.earlier-<name>`, that holds the result, and the
/// folder `<name>` may be incomplete.
fn assert_nothing_torn(root: &Path, killed: bool) {
    for entry in walkdir::WalkDir::new(root) {
        let entry = entry.unwrap();
        let path = entry.path();
        let below = path.strip_prefix(root).unwrap();
        let temporary = hidden(below, ".crossover-");
        let earlier = hidden(below, ".earlier-");
        assert!(
            killed || !temporary && !earlier,
            "{} is left",
            path.display()
        );
        if temporary || !entry.file_type().is_file() || entry.file_name() == "crossover.lock" {
            continue;
        }
        let dir = path.parent().unwrap();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        if dir.with_file_name(format!(".earlier-{name}")).exists() {
            assert!(killed);
            continue;
        }
        // Nothing reads Criterion's own record of the change.
        let change = hidden(below, "change");
        let unread = change || hidden(below, "report");
        let empty = entry.metadata().unwrap().len() == 0;
        assert!(!empty || killed && unread, "{} is empty", path.display());
        let is_json_file = path.extension().is_some_and(|e| e == "json");
        if is_json_file && !change {
            assert!(is_json(path), "{} is torn", path.display());
        }
    }
}

/// The earlier results are shown, nothing is torn, and a rerun clears what was left.
fn assert_unharmed(root: &Path, killed: bool) {
    assert_nothing_torn(root, killed);
    assert_eq!(shown(root), SOUND);
    expect(&mut bench(root, &AGAIN), 0, "");
    assert_nothing_torn(root, false);
    assert_eq!(shown(root), SOUND);
}

/// About as many bytes as such a run writes.
fn written(root: &Path) -> u64 {
    let files = walkdir::WalkDir::new(root).into_iter().map(Result::unwrap);
    files.map(|entry| entry.metadata().unwrap().len()).sum()
}

fn random() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(16)
}

/// The bytes after which such a run is cut short, `most` or fewer.
fn rooms(most: u64) -> impl Iterator<Item = u64> {
    let mut random = random();
    // The first round is in the midst of the first results.
    let first = std::iter::once(most / 9);
    let others = std::iter::repeat_with(move || random.random_range(0..most));
    first.chain(others).take(rounds() as usize)
}

pub(crate) fn full_disk() {
    let (_dir, root, _) = with_baseline();
    let most = written(&root);
    for room in rooms(most) {
        let output = bench(&root, &AGAIN)
            .env("LD_PRELOAD", full_disk::library())
            .env("FULL_AFTER", room.to_string())
            .output()
            .unwrap();
        let said = printed(&output);
        // Nothing was lost where only Criterion's pages did not fit.
        let pages_only = output.status.success() && said.contains("Criterion.rs ERROR");
        let told =
            said.contains("no more results can be written") && output.status.code() == Some(1);
        let before = output.status.code() == Some(2)
            && said.contains("set CRITERION_HOME to a folder where they can");
        // Of the benchmarks none, since the run ends where the first one finds no room.
        let failed = said.matches("FAILED ").count() == 1;
        let record = said.contains("FAILED the run's record") && failed;
        let record = record && output.status.code() == Some(1);
        let report = said.contains("no report was written") && output.status.code() == Some(1);
        assert!(
            pages_only || told || before || record || report,
            "after {room} bytes of {most}: {:?}\n{said}",
            output.status
        );
        assert!(!said.contains("panicked"), "{said}");
        assert_unharmed(&root, false);
    }
}

pub(crate) fn killed_at_a_byte() {
    let (_dir, root, _) = with_baseline();
    for room in rooms(written(&root)) {
        let status = bench(&root, &AGAIN)
            .env("LD_PRELOAD", full_disk::library())
            .env("FULL_AFTER", room.to_string())
            .env("KILLED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        assert_unharmed(&root, true);
    }
}

/// Interrupts a run at random moments, and looks at what it left.
pub(crate) fn interrupted_at_a_moment() {
    let (_dir, root, whole) = with_baseline();
    let mut random = random();
    for _ in 0..rounds() {
        let mut child = bench(&root, &AGAIN)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_secs_f64(whole * random.random::<f64>()));
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
        let status = child.wait().unwrap();
        let ended = matches!(status.code(), Some(0 | 130));
        // A signal that comes before the process catches signals ends it.
        let early = status.signal() == Some(Signal::SIGINT as i32);
        assert!(ended || early, "{status}");
        assert_unharmed(&root, false);
    }
}
