//! Child processes: started in a group of their own, asked over a channel, and ended with their own
//! children.
//!
//! Messages are lines of JSON. The child finds the channel by an environment variable, connects, and
//! speaks first. Standard output and standard error belong to the code in the child, so nothing is
//! exchanged there.

use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crossover_system::channel::{self, Listener, Stream};
use crossover_system::{interrupt, own_executable, process};
use crossover_timing::BoxError;
use crossover_words::text::with_causes;

/// Time between two checks for a signal.
const GLANCE: Duration = Duration::from_millis(50);
/// Time between two checks whether a child has connected.
const SHORT: Duration = Duration::from_millis(2);
/// The time in which a process ends by itself that is interrupted, or notices that another one has ended.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// A process that has not connected after this time never will.
pub const START: Duration = Duration::from_secs(60);
/// A process that sends nothing for this long counts as hung, if another one waits for it.
pub(crate) const SILENCE: Duration = Duration::from_secs(300);

/// Said of a child that ended, or did something else, before it asked.
const NEVER_ASKED: &str = "it never asked what to do; an executable that runs groups must call `run_child` or \
    `bench` first in `main`";

/// The reason why a child does not go on.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// A signal was received.
    #[error("interrupted")]
    Interrupted,
    /// It sent another message, as an executable of another version may.
    #[error("a message of a child process cannot be read")]
    Message(#[source] io::Error),
    /// It sent nothing for so long.
    #[error("a child process sent nothing for {} s", .0.as_secs())]
    Silent(Duration),
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
    /// Where it connects, and the folder that is removed at its end.
    channel: Option<(Listener, TempDir)>,
    link: Option<Channel<Stream>>,
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
            link: None,
        })
    }

    /// Starts a child that finds a channel to this process in an environment variable.
    ///
    /// # Errors
    /// As [`start`](Self::start), or that there is no channel.
    pub fn start_asked(command: &mut Command, variable: &str) -> Result<Self, ChildError> {
        let folder = tempfile::tempdir().map_err(no_channel)?;
        let path = folder.path().join("channel");
        let listener = channel::bind(&path).map_err(no_channel)?;
        listener.set_nonblocking(true).map_err(no_channel)?;
        let mut child = Self::start(command.env(variable, path))?;
        child.channel = Some((listener, folder));
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
        while start.elapsed() < limit {
            not_interrupted()?;
            let Some(link) = &mut self.link else {
                self.link = self.accept().map_err(no_channel)?;
                if self.link.is_none() && self.ends_within(SHORT)?.is_some() {
                    return Ok(None);
                }
                continue;
            };
            match link.receive() {
                Ok(message) => return Ok(Some(message)),
                Err(error) if is_late(&error) => {}
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Err(ChildError::Message(error));
                }
                Err(_) => self.disconnect(),
            }
        }
        Err(ChildError::Silent(limit))
    }

    /// Replies to the last message. If this fails the process has ended, which the next `receive` finds.
    pub fn reply(&mut self, reply: &impl Serialize) {
        if let Some(link) = &mut self.link {
            let _ = link.send(reply);
        }
    }

    /// The next process that has connected.
    fn accept(&self) -> io::Result<Option<Channel<Stream>>> {
        match self.channel.as_ref().map(|(listener, _)| listener.accept()) {
            Some(Ok((stream, _))) => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(GLANCE))?;
                Ok(Some(Channel::new(stream)))
            }
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(None),
        }
    }

    /// Closes the connection to the process that spoke last, which learns that nobody drives it any more.
    pub fn disconnect(&mut self) {
        self.link = None;
    }

    /// The exit status, if the child ends within this time.
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

    /// The exit status of the child; `None` if it takes longer than `limit`, and was ended.
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
pub struct Parent(Channel<Stream>);

impl Parent {
    /// Connects to the channel at this path, which an environment variable names.
    ///
    /// # Errors
    /// The system's error.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self(Channel::new(channel::connect(path)?)))
    }

    /// Sends a message, and waits for the reply.
    ///
    /// # Errors
    /// The parent has ended, or a message cannot be written or read.
    pub fn ask<R: DeserializeOwned>(&mut self, message: &impl Serialize) -> io::Result<R> {
        self.0.send(message)?;
        self.0.receive()
    }
}

/// Set in a process that confirms answers for the run that started it.
pub const CONFIRMS: &str = "CROSSOVER_CONFIRMS";

/// A task for a child.
pub trait Request: Serialize + DeserializeOwned {
    /// The environment variable that tells a child of it.
    const VARIABLE: &'static str;
    /// A child that sends nothing for this long counts as hung.
    const SILENCE: Duration = SILENCE;
    /// The child's reply.
    type Reply: Serialize + DeserializeOwned;
}

/// Has a child do what is requested, with these variables, and hands its replies over until it ends.
///
/// # Errors
/// It cannot be started, fails, never asks or is silent for too long, or a signal has ended this run. The
/// child has ended then too.
pub fn ask<R: Request>(
    request: &R,
    variables: &[(&str, &str)],
    receive: impl FnMut(R::Reply),
) -> Result<(), BoxError> {
    if env::var_os(R::VARIABLE).is_some() {
        // This is the child, and would start another one, which would start another one.
        return Err(NEVER_ASKED.into());
    }
    let mut command = Command::new(own_executable()?);
    ask_by(command.envs(variables.iter().copied()), request, receive)
}

fn ask_by<R: Request>(
    command: &mut Command,
    request: &R,
    mut receive: impl FnMut(R::Reply),
) -> Result<(), BoxError> {
    let mut child = Child::start_asked(command.stdout(Stdio::null()), R::VARIABLE)?;
    match child.receive(START) {
        Ok(Some(())) => child.reply(request),
        Ok(None) => return ended(child).and(Err(NEVER_ASKED.into())),
        Err(ChildError::Silent(_)) => return Err(NEVER_ASKED.into()),
        Err(error) => return Err(error.into()),
    }
    while let Some(reply) = child.receive::<Result<R::Reply, String>>(R::SILENCE)? {
        receive(reply?);
    }
    ended(child)
}

/// # Errors
/// The child did not end well.
fn ended(mut child: Child) -> Result<(), BoxError> {
    match child.ends_within(Duration::ZERO)? {
        Some(status) if !status.success() => Err(format!("it ended with {status}").into()),
        _ => Ok(()),
    }
}

/// Sends a reply.
pub type Say<'a, R> = &'a mut dyn FnMut(R) -> io::Result<()>;

/// Does what this process is asked to and returns its exit code; `None` in a process without a request of
/// this kind.
pub fn answer<R: Request>(
    work: impl FnOnce(R, Say<'_, R::Reply>) -> Result<(), BoxError>,
) -> Option<ExitCode> {
    let channel = env::var_os(R::VARIABLE)?;
    let answered = || -> Result<(), BoxError> {
        let mut parent = Parent::connect(Path::new(&channel))?;
        let request = parent.ask(&())?;
        let worked = work(request, &mut |reply| parent.0.send(&Ok::<_, String>(reply)));
        if let Err(error) = &worked {
            parent.0.send(&Err::<R::Reply, _>(with_causes(&**error)))?;
        }
        worked
    };
    Some(match answered() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

/// One end of a channel.
pub(crate) struct Channel<S> {
    stream: BufReader<S>,
    /// The part of the next message that has come.
    line: Vec<u8>,
}

impl<S: Read + Write> Channel<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream: BufReader::new(stream),
            line: Vec::new(),
        }
    }

    pub(crate) fn stream(&self) -> &S {
        self.stream.get_ref()
    }

    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        send(self.stream.get_mut(), message)
    }

    /// The next message. The rest of one that [is late](is_late) may be received by another call.
    ///
    /// # Errors
    /// There is none within the time limit of the stream, the other end is closed, or it is another message.
    pub(crate) fn receive<M: DeserializeOwned>(&mut self) -> io::Result<M> {
        self.receive_short(u64::MAX)
    }

    /// As [`receive`](Self::receive), and a message of more bytes is an error.
    pub(crate) fn receive_short<M: DeserializeOwned>(&mut self, bytes: u64) -> io::Result<M> {
        let mut from = (&mut self.stream).take(bytes);
        from.read_until(b'\n', &mut self.line)?;
        let line = std::mem::take(&mut self.line);
        if !line.ends_with(b"\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_slice(&line)?)
    }
}

pub(crate) fn send(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(message)? + "\n";
    to.write_all(line.as_bytes())
}

/// Whether a message has not come yet.
pub(crate) fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    const CHILD: &str = "child::tests::child";

    #[derive(Serialize, Deserialize)]
    struct Count {
        to: u32,
        then_fails: bool,
    }

    impl Request for Count {
        const VARIABLE: &'static str = "CROSSOVER_TEST_COUNTS";
        type Reply = u32;
    }

    /// The same request by another version, which expects other replies.
    #[derive(Serialize, Deserialize)]
    struct OtherCount(Count);

    impl Request for OtherCount {
        const VARIABLE: &'static str = Count::VARIABLE;
        type Reply = String;
    }

    /// No test, but the child, in whose standard output the harness prints before and after it.
    #[test]
    #[ignore = "started by the test below"]
    fn child() {
        answer(|Count { to, then_fails }, say| {
            for number in 1..=to {
                println!("this belongs to the code in the child");
                say(number)?;
            }
            if then_fails {
                Err("no device".into())
            } else {
                Ok(())
            }
        });
    }

    fn ask<R: Request>(test: &str, request: &R) -> (Vec<R::Reply>, Result<(), String>) {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture"]);
        let mut replies = Vec::new();
        let asked = ask_by(&mut command, request, |reply| replies.push(reply));
        (replies, asked.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_message_of_another_version_is_named() {
        let (to, then_fails) = (1, false);
        let (_, asked) = ask(CHILD, &OtherCount(Count { to, then_fails }));
        let unread = "a message of a child process cannot be read";
        assert_eq!(asked, Err(unread.to_owned()));
    }

    #[test]
    fn a_child_replies_fails_or_never_asks() {
        let ask = |test: &str, to, then_fails| ask(test, &Count { to, then_fails });
        assert_eq!(ask(CHILD, 2, false), (vec![1, 2], Ok(())));
        let failed = Err("no device".to_owned());
        assert_eq!(ask(CHILD, 1, true), (vec![1], failed));
        let (replies, asked) = ask("no such test", 1, false);
        assert!(replies.is_empty());
        let error = asked.unwrap_err();
        assert!(
            error.contains("call `run_child` or `bench` first"),
            "{error}"
        );
    }
}
