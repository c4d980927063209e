//! Child processes that end when the user interrupts.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

use crossover_system::process;
use crossover_words::text::visible;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Time between two checks for an interrupt.
pub(super) const GLANCE: Duration = Duration::from_millis(50);

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
    wait(&mut child, None)?.context("there is no limit")
}

/// What a process left that ran to its end.
pub(super) struct Output {
    /// `None` where it took longer than it may, and was ended.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Output {
    pub(super) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it failed, with what it printed of a panic, or else its last lines.
    pub(super) fn failure(&self) -> String {
        /// A panic says its place and its message.
        const LINES: usize = 2;
        let how = match self.status {
            Some(status) => format!("failed ({status})"),
            None => "took longer than --turn-limit and was ended".to_owned(),
        };
        let printed = match self.stderr.trim() {
            "" => &self.stdout,
            _ => &self.stderr,
        };
        let lines: Vec<&str> = (printed.lines())
            .filter(|line| !is_progress(line) && !line.starts_with("note: "))
            .collect();
        // A backtrace may follow.
        let panic = lines.iter().position(|line| line.contains("panicked at"));
        let from = panic.unwrap_or(lines.len().saturating_sub(LINES));
        let said: Vec<&str> = lines[from..].iter().take(LINES).copied().collect();
        match said.join(" ") {
            said if said.is_empty() => how,
            said => format!("{how}: {}", visible(&said)),
        }
    }

    /// How it ended without a result, with the last line that it printed as an error.
    pub(super) fn without_result(&self) -> String {
        let how = "left no result in CRITERION_HOME";
        let mut lines = self.stderr.lines().filter(|line| !is_progress(line));
        match lines.rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{how}: {}", visible(line)),
            None => how.to_owned(),
        }
    }
}

/// Runs `command` to its end, but not for longer than `limit`, and returns what it printed.
///
/// # Errors
/// As [`run`].
pub(super) fn output(command: &mut Command, limit: Duration) -> anyhow::Result<Output> {
    // Files, since nobody reads a pipe while it runs.
    let [mut out, mut err] = [tempfile::tempfile()?, tempfile::tempfile()?];
    let mut child = start(
        command.stderr(err.try_clone()?),
        Stdio::from(out.try_clone()?),
    )?;
    let status = wait(&mut child, Some(limit))?;
    let text = |file: &mut File| -> io::Result<String> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(Output {
        status,
        stdout: text(&mut out)?,
        stderr: text(&mut err)?,
    })
}

/// Waits for the end of a child; `None` where it takes longer than `limit`, and was ended. What
/// it started ends with it.
///
/// # Errors
/// [`Interrupted`], after which it has ended too.
fn wait(child: &mut Child, limit: Option<Duration>) -> anyhow::Result<Option<ExitStatus>> {
    let until_end = process::until_end(child);
    let (tell, ended) = channel();
    // A thread that sleeps until then: asking time and again would take time from what is measured.
    std::thread::spawn(move || {
        until_end();
        let _ = tell.send(());
    });
    let start = Instant::now();
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(GLANCE) {
        if interrupted() {
            end(child);
            return Err(Interrupted.into());
        }
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            end(child);
            return Ok(None);
        }
    }
    // What it started and left behind ends too, before another process could get the number of its group.
    let status = process::kill(child)?;
    check()?;
    Ok(Some(status))
}

/// The status of a child, where it has ended.
///
/// # Errors
/// What the system says.
pub(super) fn ended(child: &mut Child) -> anyhow::Result<Option<ExitStatus>> {
    match process::has_ended(child)? {
        false => Ok(None),
        true => Ok(Some(process::kill(child)?)),
    }
}

/// Starts `command`, with what it prints going to `out`.
///
/// # Errors
/// [`Interrupted`], or that it could not be started.
fn start(command: &mut Command, out: Stdio) -> anyhow::Result<Child> {
    check()?;
    // A group of its own: an interrupt reaches it once, from here, and with all its children.
    process::in_own_group(without_repository(command))
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
            if !(line.is_empty() || is_progress(&line)) {
                eprintln!("{line}");
            }
        }
    });
    Ok(child)
}

/// Whether Criterion prints this line while it works.
fn is_progress(line: &str) -> bool {
    ["Benchmarking ", "Gnuplot not found"]
        .iter()
        .any(|begins| line.starts_with(begins))
}

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
    process::interrupt(child);
    let start = Instant::now();
    while start.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = process::kill(child);
}

/// Of the variables that git lists, those that carry the settings of `git -c`, such as
/// `safe.directory`, and name no repository. git itself keeps these two when it enters a submodule.
const SETTINGS: [&str; 2] = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// Has `command` find its repository by its current folder alone: git tells its hooks and aliases by
/// environment variables on which repository they run.
pub(super) fn without_repository(command: &mut Command) -> &mut Command {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    for name in NAMES.get_or_init(repository_variables) {
        command.env_remove(name);
    }
    command
}

/// git's own list, since a later version may add to it. Where there is no git, no hook runs.
fn repository_variables() -> Vec<String> {
    let listed = Command::new("git")
        .args(["rev-parse", "--local-env-vars"])
        .output();
    let listed = listed.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&listed)
        .lines()
        .filter(|name| !SETTINGS.contains(name))
        .map(str::to_owned)
        .collect()
}
