//! Child processes that end when the user interrupts.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;

use crossover_protocol::child::{Child, ChildError, no_channel};
use crossover_system::interrupt;
use crossover_words::text::visible;

/// The message after an interrupt.
pub(super) const INTERRUPTED: &str = "interrupted: worktrees are removed, finished runs are kept";

/// Begins the line in which Criterion prints a result.
pub(super) const RESULT: &str = "time:   [";

/// Whether the user interrupted.
pub(super) fn interrupted() -> bool {
    interrupt::signal().is_some()
}

/// Runs `command` to its end, or until the user interrupts. What it prints goes to standard
/// error, since standard output is for the comparison.
///
/// # Errors
/// An interrupt, or that the command could not be started.
pub(super) fn run(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let child = Child::start(without_repository(command.stdout(io::stderr())))?;
    child.wait(Duration::MAX)?.context("there is no limit")
}

/// The output of a process that ran to its end.
pub(super) struct Output {
    /// `None` where it took longer than it may, and was ended.
    pub(super) status: Option<ExitStatus>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The files that it printed to, which take room in the temporary folder.
    _files: [File; 2],
}

impl Output {
    pub(super) fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// How it failed, with what it printed of a panic, or else its last lines.
    pub(super) fn failure(&self) -> String {
        if self.succeeded() && self.stdout.contains(RESULT) {
            return "measured, but left no result in CRITERION_HOME: a bench that calls `output_directory` \
                    writes elsewhere"
                .to_owned();
        }
        let how = match self.status {
            Some(status) if status.success() => "left no result in CRITERION_HOME".to_owned(),
            Some(status) => format!("failed ({status})"),
            None => "took longer than --turn-limit and was ended".to_owned(),
        };
        let errors = self.stdout.split_once("Criterion.rs ERROR: ");
        let printed = match (errors, self.stderr.trim()) {
            // With it, Criterion drops a benchmark and goes on.
            (Some((_, error)), _) if self.succeeded() => error.split('\n').next().unwrap_or(error),
            (_, "") => &self.stdout,
            _ => &self.stderr,
        };
        /// A panic prints its place and its message.
        const LINES: usize = 2;
        let lines: Vec<&str> = (printed.lines())
            .filter(|line| !is_progress(line) && !line.starts_with("note: "))
            .collect();
        // A backtrace may follow.
        let panic = lines.iter().position(|line| line.contains("panicked at"));
        let from = panic.unwrap_or(lines.len().saturating_sub(LINES));
        let message: Vec<&str> = lines[from..].iter().take(LINES).copied().collect();
        match message.join(" ") {
            message if message.is_empty() => how,
            message => format!("{how}: {}", visible(&message)),
        }
    }
}

/// Runs `command` to its end, but not for longer than `limit`, and returns what it printed.
///
/// # Errors
/// As [`run`].
pub(super) fn output(command: &mut Command, limit: Duration) -> anyhow::Result<Output> {
    // Files, because nobody reads a pipe while it runs.
    let [mut out, mut err] = [tempfile::tempfile()?, tempfile::tempfile()?];
    command.stdout(out.try_clone()?).stderr(err.try_clone()?);
    let status = Child::start(without_repository(command))?.wait(limit)?;
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
        _files: [out, err],
    })
}

/// Starts `command` as [`run`] does, without the lines in which Criterion prints its progress and
/// results: two runs at once would mix theirs. It finds a channel to this process in `variable`.
///
/// # Errors
/// As [`run`].
pub(super) fn start_quietly(command: &mut Command, variable: &str) -> Result<Child, ChildError> {
    let (errors, theirs) = io::pipe().map_err(no_channel)?;
    let command = without_repository(command.stderr(theirs));
    let child = Child::start_asked(command.stdout(Stdio::null()), variable)?;
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
