//! Child processes that end when the user interrupts.

use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How long an interrupted child may take to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// The user interrupted.
#[derive(Debug, thiserror::Error)]
#[error("interrupted: worktrees are removed, finished runs are kept")]
pub(super) struct Interrupted;

/// From here on an interrupt only sets a flag, so that worktrees are removed on the way out.
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
    check()?;
    // A group of its own: an interrupt reaches it once, from here, and with all its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stderr()))
        .spawn()
        .with_context(|| format!("{} could not be started", command.get_program().display()))?;
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

fn check() -> anyhow::Result<()> {
    if interrupted() {
        return Err(Interrupted.into());
    }
    Ok(())
}

/// Asks the child and its children to end, and makes them after [`GRACE`].
#[cfg(unix)]
fn end(child: &mut Child) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;

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
    let _ = killpg(group, Signal::SIGKILL);
    let _ = child.wait();
}

#[cfg(not(unix))]
fn end(child: &mut Child) {
    let start = Instant::now();
    while start.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = child.kill();
    let _ = child.wait();
}
