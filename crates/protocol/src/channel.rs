//! A channel between two processes. Messages are lines of JSON.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

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
