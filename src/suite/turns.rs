//! Taking turns with another process, so that both meet the same load: `crossover ab` starts two
//! revisions together and lets one run at a time.
//!
//! The protocol is in [`crossover_protocol::turns`]. While this process analyses or sets up, the other
//! one stands still.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use crossover_protocol::turns::{Instructions, PROTOCOL, TurnMessage, TurnReply};
use crossover_system::{OnCores, channel, interrupt};

/// A process's link to the command that drives it.
pub(super) struct Turns {
    link: RefCell<BufReader<channel::Stream>>,
    told: Instructions,
}

impl Turns {
    /// Connects to the socket.
    ///
    /// # Errors
    /// The system's error, with the remedy.
    pub(super) fn connect(socket: &Path) -> Result<Self, String> {
        let link = channel::connect(socket).map_err(|error| {
            format!(
                "CROSSOVER_TURNS={}: {error}; `crossover ab` sets it, unset it otherwise",
                socket.display()
            )
        })?;
        Ok(Self {
            link: RefCell::new(BufReader::new(link)),
            told: Instructions::default(),
        })
    }

    /// Keeps this thread on the core that both sides share, where one is named.
    pub(super) fn on_one_core(&self) -> Option<OnCores> {
        OnCores::new(&[self.told.core?])
    }

    /// Sends the benchmarks that it could run, and waits for instructions.
    pub(super) fn announce(&mut self, ids: Vec<String>) {
        let protocol = PROTOCOL;
        match self.ask(&TurnMessage::Plan { protocol, ids }) {
            Some(TurnReply::Run(instructions)) => self.told = instructions,
            _ => interrupt::end(),
        }
    }

    /// How this process is to run.
    pub(super) fn told(&self) -> &Instructions {
        &self.told
    }

    /// Sends a message and waits for the turn. Ends the run if there is no reply.
    pub(super) fn say(&self, said: &TurnMessage) {
        if self.ask(said) != Some(TurnReply::Go) {
            interrupt::end();
        }
    }

    /// Sends a message and reads the reply; `None` without a valid reply.
    fn ask(&self, said: &TurnMessage) -> Option<TurnReply> {
        let mut link = self.link.borrow_mut();
        let line = serde_json::to_string(said).ok()? + "\n";
        link.get_mut().write_all(line.as_bytes()).ok()?;
        let mut answer = String::new();
        link.read_line(&mut answer).ok()?;
        serde_json::from_str(&answer).ok()
    }
}
