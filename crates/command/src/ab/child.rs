//! Child processes that end when the user interrupts. One of them may be a side of a comparison that is driven over
//! a channel: its executables run one after the other, and each stands still until it is told to go on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::Context;

use crossover_protocol::child::{Child, ChildError, no_channel};
use crossover_protocol::turns::{Instructions, PROTOCOL, TURNS, TurnMessage, TurnReply};
use crossover_system::interrupt;
use crossover_words::text::visible;

use crate::ab::child;
use crate::ab::executable::Executable;

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

/// The point at which a side stands still.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Connected, nothing set up.
    Start,
    /// Before or between the samples of this benchmark.
    In(String),
    Ended,
}

/// The executables of one side.
pub(super) struct Driven {
    /// The remaining executables.
    commands: std::vec::IntoIter<Command>,
    child: Option<Child>,
    /// The benchmarks after the current one.
    ahead: Vec<String>,
    pub(super) pause: Pause,
    /// Of the first executable that failed, or of the last one; `None` where it hung and was ended.
    pub(super) status: Option<ExitStatus>,
    /// The results of its calibrations, by the name of the choice.
    pub(super) choices: BTreeMap<String, String>,
    /// Seconds that it ran for each benchmark.
    pub(super) seconds: BTreeMap<String, f64>,
    instructions: Instructions,
    /// The time limit of a turn.
    limit: Duration,
}

/// Returns whether an executable takes turns when it is offered to, in our version of the protocol.
///
/// # Errors
/// An interrupt, or that it cannot be started.
pub(super) fn takes_turns(executable: &Executable, limit: Duration) -> anyhow::Result<bool> {
    let mut command = executable.command();
    command
        .arg("--list")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = Child::start_asked(child::without_repository(&mut command), TURNS)?;
    match child.receive(limit) {
        Ok(message) => Ok(matches!(
            message,
            Some(TurnMessage::Plan {
                protocol: PROTOCOL,
                ..
            })
        )),
        Err(ChildError::Silent(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

impl Driven {
    /// Starts the first executable, and waits until it stands still.
    ///
    /// # Errors
    /// An interrupt, or that it cannot be started.
    pub(super) fn start(
        commands: Vec<Command>,
        instructions: Instructions,
        limit: Duration,
    ) -> Result<Self, ChildError> {
        let mut this = Self {
            commands: commands.into_iter(),
            child: None,
            ahead: Vec::new(),
            pause: Pause::Ended,
            status: None,
            choices: BTreeMap::new(),
            seconds: BTreeMap::new(),
            instructions,
            limit,
        };
        this.arrive()?;
        Ok(this)
    }

    /// Lets it run until it stands still again.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn go_on(&mut self) -> Result<(), ChildError> {
        let start = Instant::now();
        let reply = match self.pause {
            Pause::Start => TurnReply::Run(self.instructions.clone()),
            _ => TurnReply::Go,
        };
        if let Some(child) = &mut self.child {
            child.reply(&reply);
        }
        self.arrive()?;
        // Includes the work before its current point, such as set-up.
        if let Pause::In(id) = &self.pause {
            *self.seconds.entry(id.clone()).or_default() += start.elapsed().as_secs_f64();
        }
        Ok(())
    }

    /// Waits until it stands still.
    fn arrive(&mut self) -> Result<(), ChildError> {
        loop {
            let Some(child) = &mut self.child else {
                let Some(mut command) = self.commands.next() else {
                    self.pause = Pause::Ended;
                    return Ok(());
                };
                self.child = Some(child::start_quietly(&mut command, TURNS)?);
                continue;
            };
            match child.receive(self.limit) {
                Ok(Some(TurnMessage::Plan {
                    protocol: PROTOCOL,
                    ids,
                })) => {
                    self.ahead = ids
                        .into_iter()
                        .filter(|id| self.instructions.wants(id))
                        .collect();
                    self.pause = Pause::Start;
                    return Ok(());
                }
                Ok(Some(TurnMessage::Ready { id } | TurnMessage::Sampled { id })) => {
                    if let Some(here) = self.ahead.iter().position(|ahead| *ahead == id) {
                        self.ahead.drain(..=here);
                    }
                    self.pause = Pause::In(id);
                    return Ok(());
                }
                Ok(Some(TurnMessage::Chose { choices })) => {
                    self.choices.extend(choices);
                    child.reply(&TurnReply::Go);
                }
                // It ends when nobody drives it any more.
                Ok(Some(TurnMessage::Plan { .. })) => child.disconnect(),
                Ok(None) => {
                    let status = child.ends_within(Duration::ZERO)?;
                    let failed = self.status.filter(|status| !status.success());
                    self.status = failed.or(status);
                    self.child = None;
                }
                Err(ChildError::Silent(_)) => {
                    self.child = None;
                    self.status = None;
                    self.pause = Pause::Ended;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a benchmark is one of those after the current one.
    pub(super) fn comes_to(&self, id: &str) -> bool {
        self.ahead.iter().any(|ahead| ahead == id)
    }

    /// Takes its next sample of a benchmark, in seconds; `None` if it is not at this benchmark, or takes no
    /// more.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn sample(&mut self, id: &str) -> Result<Option<f64>, ChildError> {
        let is_here = |pause: &Pause| matches!(pause, Pause::In(here) if here == id);
        let start = Instant::now();
        if is_here(&self.pause) {
            self.go_on()?;
        }
        Ok(is_here(&self.pause).then(|| start.elapsed().as_secs_f64()))
    }
}
