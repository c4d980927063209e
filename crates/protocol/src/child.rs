//! Child processes: started in a group of their own, asked over a channel, and ended with their own
//! children.
//!
//! Messages are lines of JSON. The child finds the channel by an environment variable, connects, and
//! speaks first. Standard output and standard error belong to the code in the child, so nothing is
//! exchanged there.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crossover_system::channel::{self, Listener, Stream};
use crossover_system::{interrupt, process};

/// Time between two checks for a signal.
const GLANCE: Duration = Duration::from_millis(50);
/// Time between two checks whether a child has connected.
const SHORT: Duration = Duration::from_millis(2);
/// The time in which an interrupted child may end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// The reason why a child does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// A signal was received.
    #[error("interrupted")]
    Interrupted,
    /// It sent nothing for so long.
    #[error("a child process sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
    /// It sent something that is no message.
    #[error("a message of a child process cannot be read")]
    Message(#[from] serde_json::Error),
    /// The system's error, with what failed.
    #[error("{0}")]
    System(String, #[source] io::Error),
}

/// The error of a channel that cannot be made.
pub fn no_channel(error: io::Error) -> ChildError {
    let remedy = "no channel to a child process; name a folder with more room in TMPDIR";
    ChildError::System(remedy.to_owned(), error)
}

/// A child process. When this is dropped, it and its children are asked to end, and made to a few
/// seconds later.
pub struct Child {
    process: std::process::Child,
    /// Receives at its end.
    ended: Receiver<()>,
    status: Option<ExitStatus>,
    channel: Option<Channel>,
}

/// The channel to a child.
struct Channel {
    listener: Listener,
    link: Option<BufReader<Stream>>,
    /// Removed at the end.
    _folder: TempDir,
}

impl Child {
    /// Starts a child that is asked nothing. Its standard input is empty.
    ///
    /// # Errors
    /// An interrupt, or that it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, ChildError> {
        not_interrupted()?;
        let started = process::in_own_group(command).stdin(Stdio::null()).spawn();
        let process = started.map_err(|error| {
            let program = command.get_program().display();
            ChildError::System(format!("{program} could not be started"), error)
        })?;
        let until_end = process::until_end(&process);
        let (tell, ended) = mpsc::channel();
        // A thread that sleeps until then, because polling would take time from the measurement.
        std::thread::spawn(move || {
            until_end();
            let _ = tell.send(());
        });
        Ok(Self {
            process,
            ended,
            status: None,
            channel: None,
        })
    }

    /// Starts a child that finds a channel to this process in an environment variable.
    ///
    /// # Errors
    /// As [`start`](Self::start), or that there is no channel.
    pub fn start_asked(command: &mut Command, variable: &str) -> Result<Self, ChildError> {
        let (channel, path) = Channel::new().map_err(no_channel)?;
        let mut child = Self::start(command.env(variable, path))?;
        child.channel = Some(channel);
        Ok(child)
    }

    /// Waits for the next message of the child, or of the next process that it starts for it; `None` at
    /// the end of the child.
    ///
    /// # Errors
    /// An interrupt, a message that cannot be read, or none within `limit`.
    pub fn receive<M: DeserializeOwned>(
        &mut self,
        limit: Duration,
    ) -> Result<Option<M>, ChildError> {
        let start = Instant::now();
        let mut line = Vec::new();
        while start.elapsed() < limit {
            not_interrupted()?;
            let Some(channel) = &mut self.channel else {
                return Ok(None);
            };
            let Some(link) = &mut channel.link else {
                if !channel.accept().map_err(no_channel)? && self.ends_within(SHORT)?.is_some() {
                    return Ok(None);
                }
                continue;
            };
            match link.read_until(b'\n', &mut line) {
                Ok(_) if line.ends_with(b"\n") => return Ok(Some(serde_json::from_slice(&line)?)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // The end of a process.
                Ok(_) | Err(_) => {
                    line.clear();
                    self.disconnect();
                }
            }
        }
        Err(ChildError::Silent(limit))
    }

    /// Replies to the last message.
    ///
    /// # Errors
    /// The reply is no JSON.
    pub fn reply(&mut self, reply: &impl Serialize) -> Result<(), ChildError> {
        let line = serde_json::to_string(reply)? + "\n";
        let channel = self.channel.as_mut();
        if let Some(link) = channel.and_then(|channel| channel.link.as_mut()) {
            // If this fails the process has ended, which the next `receive` finds.
            let _ = link.get_mut().write_all(line.as_bytes());
        }
        Ok(())
    }

    /// Closes the connection to the process that spoke last, which learns that nobody drives it any more.
    pub fn disconnect(&mut self) {
        if let Some(channel) = &mut self.channel {
            channel.link = None;
        }
    }

    /// Its status, if it ends within this time.
    ///
    /// # Errors
    /// An interrupt.
    pub fn ends_within(&mut self, time: Duration) -> Result<Option<ExitStatus>, ChildError> {
        let is_running = self.ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        not_interrupted()?;
        if !is_running && self.status.is_none() {
            // Its remaining children end too, before another process could get the number of its group.
            let killed = process::kill(&mut self.process);
            let failed = |error| ChildError::System("its end cannot be awaited".to_owned(), error);
            self.status = Some(killed.map_err(failed)?);
        }
        Ok(self.status)
    }

    /// Its status at its end; `None` if it takes longer than `limit`, and was ended.
    ///
    /// # Errors
    /// An interrupt.
    pub fn wait(mut self, limit: Duration) -> Result<Option<ExitStatus>, ChildError> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.ends_within(GLANCE)? {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }
}

impl Channel {
    /// A channel, and the path by which a child finds it.
    fn new() -> io::Result<(Self, PathBuf)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("channel");
        let listener = channel::bind(&path)?;
        listener.set_nonblocking(true)?;
        let this = Self {
            listener,
            link: None,
            _folder: folder,
        };
        Ok((this, path))
    }

    /// Returns whether a process has connected.
    fn accept(&mut self) -> io::Result<bool> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(GLANCE))?;
                self.link = Some(BufReader::new(stream));
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.disconnect();
        if self.status.is_none() {
            process::interrupt(&self.process);
            let _ = self.ended.recv_timeout(GRACE);
            let _ = process::kill(&mut self.process);
        }
    }
}

/// # Errors
/// That a signal was received.
pub fn not_interrupted() -> Result<(), ChildError> {
    match interrupt::signal() {
        Some(_) => Err(ChildError::Interrupted),
        None => Ok(()),
    }
}

/// The process that started this one and asks it.
pub struct Parent(BufReader<Stream>);

impl Parent {
    /// Connects to the channel at this path, which an environment variable names.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::new(channel::connect(path)?)))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The parent has ended, or the message is no JSON.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(message)? + "\n";
        self.0.get_mut().write_all(line.as_bytes())
    }

    /// Sends a message, and waits for the reply.
    ///
    /// # Errors
    /// As [`send`](Self::send), or the reply cannot be read.
    pub fn ask<R: DeserializeOwned>(&mut self, message: &impl Serialize) -> io::Result<R> {
        self.send(message)?;
        let mut reply = String::new();
        self.0.read_line(&mut reply)?;
        Ok(serde_json::from_str(&reply)?)
    }
}
