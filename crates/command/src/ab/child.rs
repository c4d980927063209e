//! Child processes that end when the user interrupts.

use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crossover_protocol::local_variables;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How long an interrupted child may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// The user interrupted.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: worktrees are removed, finished runs are kept")]
pub(super) struct Interrupted;

/// Makes an interrupt only set a flag from here on, so that worktrees are removed on the way out.
pub(super) fn catch_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::SeqCst))
        .context("interrupts cannot be caught")
}

/// Whether the user interrupted.
pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Runs `command` to its end, or until the user interrupts. What it prints goes to standard
/// error, since standard output is for the comparison.
///
/// # Errors
/// [`Interrupted`], or that the command could not be started.
pub(super) fn run(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let mut child = start(command, Stdio::from(io::stderr()))?;
    loop {
        if let Some(status) = child.try_wait()? {
            check()?;
            return Ok(status);
        }
        if interrupted() {
            end(&mut child);
            return Err(Interrupted.into());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Starts `command`, with what it prints going to `out`.
///
/// # Errors
/// [`Interrupted`], or that it could not be started.
fn start(command: &mut Command, out: Stdio) -> anyhow::Result<Child> {
    check()?;
    // In a hook git's variables name the user's repository and index. A child works on our own.
    local_variables::remove(command);
    // A group of its own: an interrupt reaches it once, from here, and with all its children.
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out)
        .spawn()
        .with_context(|| format!("{} could not be started", command.get_program().display()))
}

/// Starts `command` as [`run`] does, without the lines in which Criterion prints its progress and
/// results: two runs at once would mix theirs.
///
/// # Errors
/// As [`start`].
pub(super) fn start_quietly(command: &mut Command) -> anyhow::Result<Child> {
    let (errors, theirs) = io::pipe()?;
    let child = start(command.stderr(theirs), Stdio::null())?;
    // It holds the pipe's other end, and the thread would wait for it.
    command.stderr(Stdio::null());
    std::thread::spawn(move || {
        for line in BufReader::new(errors).lines().map_while(Result::ok) {
            if !(line.is_empty() || PROGRESS.iter().any(|begins| line.starts_with(begins))) {
                eprintln!("{line}");
            }
        }
    });
    Ok(child)
}

/// Beginnings of the lines of progress.
const PROGRESS: [&str; 2] = ["Benchmarking ", "Gnuplot not found"];

/// # Errors
/// [`Interrupted`], if so.
pub(super) fn check() -> anyhow::Result<()> {
    if interrupted() {
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Asks the child and its children to end, and makes them after [`GRACE`].
pub(super) fn end(child: &mut Child) {
    let Ok(group) = i32::try_from(child.id()) else {
        return;
    };
    let group = Pid::from_raw(group);
    // A group that has ended meanwhile is what is wanted.
    let _ = killpg(group, Signal::SIGINT);
    let start = Instant::now();
    while start.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(50));
    }
    kill(child);
}

/// Ends the child and its children at once.
pub(super) fn kill(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        let _ = child.wait();
    }
}
