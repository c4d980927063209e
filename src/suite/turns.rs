//! Taking turns with another process, so that both meet the same host: `crossover ab` starts two
//! revisions together and lets one run at a time.
//!
//! The process connects to the socket that `CROSSOVER_TURNS` names and says, a line of JSON each,
//! what it is going to run, and then wherever it can stand still: before the first sample of a
//! benchmark, and after each sample. It goes on when it is answered `go`. Whatever it does
//! between, such as analysis and the next set-up, the other side stands still for.

use serde::{Deserialize, Serialize};

/// The version of what is said here.
pub(crate) const PROTOCOL: u32 = 1;

/// What a process says. It waits for `go` after each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// First of all.
    Plan {
        /// [`PROTOCOL`].
        protocol: u32,
        /// What it is going to run, in order.
        ids: Vec<String>,
    },
    /// Set up and verified; the first sample is next.
    Ready {
        /// The benchmark.
        id: String,
    },
    /// A sample was taken.
    Sampled {
        /// The benchmark.
        id: String,
    },
}

/// The answer.
pub(crate) const GO: &str = "go";

/// A process's link to whoever drives it.
pub(super) struct Turns {
    #[cfg(unix)]
    link: std::cell::RefCell<std::io::BufReader<std::os::unix::net::UnixStream>>,
}

#[cfg(unix)]
impl Turns {
    /// Connects to the socket.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn connect(socket: &std::path::Path) -> std::io::Result<Self> {
        let link = std::os::unix::net::UnixStream::connect(socket)?;
        Ok(Self {
            link: std::cell::RefCell::new(std::io::BufReader::new(link)),
        })
    }

    /// Says it and waits for the turn. Once nobody drives any more, the run is over.
    pub(super) fn say(&self, said: &Said) {
        use std::io::{BufRead, Write};

        let mut link = self.link.borrow_mut();
        let mut answer = String::new();
        let asked = serde_json::to_string(said)
            .map_err(std::io::Error::from)
            .and_then(|line| link.get_mut().write_all((line + "\n").as_bytes()))
            .and_then(|()| link.read_line(&mut answer));
        if asked.is_err() || answer.trim_end() != GO {
            crate::suite::interrupt::end();
        }
    }
}

#[cfg(not(unix))]
impl Turns {
    pub(super) fn connect(_socket: &std::path::Path) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub(super) fn say(&self, _said: &Said) {}
}
