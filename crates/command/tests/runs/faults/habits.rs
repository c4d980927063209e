//! Executables whose own code uses standard output, or leaves processes behind, where a run or `ab` starts
//! them to ask them.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::printed::ends;

/// Names habits of an executable.
pub(crate) const HABITS: &str = "CROSSOVER_TEST_HABITS";
/// Names the folder in which it notes the processes that it leaves, and finds files that hold its routines.
const FOLDER: &str = "CROSSOVER_TEST_LEFT";

const MAIN_PRINTS: &str = "main-prints";
const LIBRARY_PRINTS: &str = "library-prints";
const LEAVES_A_PROCESS: &str = "leaves-a-process";
/// All processes that are to answer hang, but the one that removes the file [`FIRST`].
const HANGS_LATER: &str = "hangs-later";
const FIRST: &str = "first";
/// Processes that confirm answers are killed in their first measurement.
pub(crate) const CONFIRMS_AND_IS_KILLED: &str = "confirms-and-dies";
pub(crate) const IS_KILLED: &str = "is-killed";
pub(crate) const IS_STOPPED: &str = "is-stopped";

/// Printed by a routine that is held.
pub(crate) const HELD: &str = "the routine is held";

fn has(habit: &str) -> bool {
    static ALL: LazyLock<String> = LazyLock::new(|| std::env::var(HABITS).unwrap_or_default());
    ALL.contains(habit)
}

/// Called by `main` before it does anything else.
pub(crate) fn before_it_answers() {
    if has(MAIN_PRINTS) {
        println!("{{\"Ok\":{{}}}}\nhello");
    }
    let is_asked = |name| std::env::var_os(name).is_some();
    let folder = || PathBuf::from(std::env::var_os(FOLDER).unwrap());
    if has(HANGS_LATER)
        && is_asked("CROSSOVER_CONFIRMS")
        && fs::remove_file(folder().join(FIRST)).is_err()
    {
        std::thread::sleep(Duration::from_secs(600));
    }
    let asks = ["CROSSOVER_CONFIRMS", "CROSSOVER_TURNS"];
    if has(LEAVES_A_PROCESS) && asks.into_iter().any(is_asked) {
        // It holds no pipe of a test, which would wait for its end.
        let leaves = r#"sleep 600 > /dev/null 2>&1 & : > "$0/left-$!""#;
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", leaves]).arg(folder());
        assert!(shell.status().unwrap().success());
    }
}

/// Called by a routine of this size in its run of this number. It waits as long as the file that
/// [`held`] makes is there.
pub(crate) fn in_a_library(size: usize, run: u32) {
    static OF: LazyLock<Option<OsString>> = LazyLock::new(|| std::env::var_os(FOLDER));
    let file = OF.as_ref().map(|of| hold(Path::new(of), size, run));
    if let Some(file) = file.filter(|file| file.exists()) {
        eprintln!("{HELD}");
        while file.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    for (habit, signal) in [(IS_KILLED, Signal::SIGKILL), (IS_STOPPED, Signal::SIGSTOP)] {
        if run == 50 && has(habit) {
            nix::sys::signal::raise(signal).unwrap();
        }
    }
    if has(CONFIRMS_AND_IS_KILLED) && std::env::var_os("CROSSOVER_CONFIRMS").is_some() {
        nix::sys::signal::raise(Signal::SIGKILL).unwrap();
    }
    if has(LIBRARY_PRINTS) {
        // Past Rust's own handle, as C does.
        let _ = nix::unistd::write(io::stdout(), b"a library of C\n");
    }
}

fn hold(folder: &Path, size: usize, run: u32) -> PathBuf {
    folder.join(format!("hold-{size}-{run}"))
}

/// Holds the routine of this size in its run of this number until the folder is dropped.
pub(crate) fn held(command: &mut Command, size: usize, run: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(hold(folder.path(), size, run), "").unwrap();
    command.env(FOLDER, folder.path());
    folder
}

/// Lets the first process answer, and no other one.
pub(crate) fn hang_later(command: &mut Command) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(FIRST), "").unwrap();
    command.env(HABITS, HANGS_LATER).env(FOLDER, folder.path());
    folder
}

/// Gives a run all habits of the code around it.
pub(crate) fn all<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let habits = [MAIN_PRINTS, LIBRARY_PRINTS, LEAVES_A_PROCESS].join(" ");
    command.env(HABITS, habits).env(FOLDER, folder)
}

/// Fails if no process was left behind, or one goes on.
pub(crate) fn nothing_is_left(folder: &Path) {
    let notes = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let names = notes.filter_map(|note| note.file_name().into_string().ok());
    let left = names.filter_map(|name| Some(name.strip_prefix("left-")?.to_owned()));
    let left = Vec::from_iter(left);
    assert!(!left.is_empty());
    left.iter().for_each(|process| ends(process));
}
