//! A side of a comparison that is driven over a channel: its executables run one after the other, and
//! each stands still until it is told to go on.

use std::collections::BTreeMap;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::ab::child;
use crate::ab::executable::Executable;
use crossover_protocol::child::{Child, ChildError};
use crossover_protocol::turns::{Instructions, PROTOCOL, TURNS, TurnMessage, TurnReply};

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
    /// The exit status of the first executable that failed, or of the last one; `None` if it hung and was ended.
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
        let mut side = Self {
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
        side.arrive()?;
        Ok(side)
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
