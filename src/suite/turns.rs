//! Taking turns with another process, so that both meet the same load: `crossover ab` starts two
//! revisions together and lets one run at a time.
//!
//! The protocol is in [`crossover_protocol::turns`]. While this process analyses or sets up, the other
//! one stands still.

use std::cell::RefCell;
use std::path::Path;

use crossover_protocol::child::{ChildError, Parent};
use crossover_protocol::turns::{Instructions, PROTOCOL, TURNS, TurnMessage, TurnReply};
use crossover_system::{OnCores, interrupt};

/// A process's link to the command that drives it.
pub(super) struct Turns {
    parent: RefCell<Parent>,
    instructions: Instructions,
}

impl Turns {
    /// Connects to the socket.
    ///
    /// # Errors
    /// The system's error, with the remedy.
    pub(super) fn connect(socket: &Path) -> Result<Self, ChildError> {
        let parent = Parent::connect(socket).map_err(|error| {
            let named = format!("{TURNS}={} is no channel", socket.display());
            let remedy = "`crossover ab` sets it, unset it otherwise";
            ChildError::System(format!("{named}: {remedy}"), error)
        })?;
        Ok(Self {
            parent: RefCell::new(parent),
            instructions: Instructions::default(),
        })
    }

    /// Keeps this thread on the core that both sides share, where one is named.
    pub(super) fn on_one_core(&self) -> Option<OnCores> {
        OnCores::new(&[self.instructions.core?])
    }

    /// Sends the benchmarks that it could run, and waits for instructions.
    pub(super) fn announce(&mut self, ids: Vec<String>) {
        let protocol = PROTOCOL;
        match self
            .parent
            .borrow_mut()
            .ask(&TurnMessage::Plan { protocol, ids })
        {
            Ok(TurnReply::Run(instructions)) => self.instructions = instructions,
            _ => interrupt::end(),
        }
    }

    /// The instructions of the command that drives this process.
    pub(super) fn instructions(&self) -> &Instructions {
        &self.instructions
    }

    /// Sends a message and waits for the turn. Ends the run if there is no reply.
    pub(super) fn say(&self, said: &TurnMessage) {
        if !matches!(self.parent.borrow_mut().ask(said), Ok(TurnReply::Go)) {
            interrupt::end();
        }
    }
}
