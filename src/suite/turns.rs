//! Taking turns with another process, so that both meet the same host: `crossover ab` starts two
//! revisions together and lets one run at a time.
//!
//! The process connects to the socket that `CROSSOVER_TURNS` names and says, a line of JSON each,
//! what it is going to run, and then wherever it can stand still: before the first sample of a
//! benchmark, and after each sample. It goes on when it is answered `go`. Whatever it does
//! between, such as analysis and the next set-up, the other side stands still for.
//!
//! The answer may name a core of the host, `go 5`. What one thread drives is sampled there,
//! on both sides: a core whose sibling is busy is slow for as long as that lasts, and two
//! processes on two cores would differ by it.

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

/// The answer; a core may follow.
pub(crate) const GO: &str = "go";

/// A process's link to whoever drives it.
pub(super) struct Turns {
    #[cfg(unix)]
    link: std::cell::RefCell<std::io::BufReader<std::os::unix::net::UnixStream>>,
    core: std::cell::Cell<Option<usize>>,
}

/// The thread is back on the cores that it had when this is dropped.
#[cfg(target_os = "linux")]
pub(super) struct OnOneCore(nix::sched::CpuSet);

#[cfg(target_os = "linux")]
impl Drop for OnOneCore {
    fn drop(&mut self) {
        let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &self.0);
    }
}

impl Turns {
    /// Keeps this thread on the core that both sides share, where there is one.
    #[cfg(target_os = "linux")]
    pub(super) fn on_one_core(&self) -> Option<OnOneCore> {
        use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};

        let this_thread = nix::unistd::Pid::from_raw(0);
        let before = sched_getaffinity(this_thread).ok()?;
        let mut one = CpuSet::new();
        one.set(self.core.get()?).ok()?;
        sched_setaffinity(this_thread, &one).ok()?;
        Some(OnOneCore(before))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn on_one_core(&self) -> Option<()> {
        None
    }
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
            core: std::cell::Cell::new(None),
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
        let mut words = answer.split_whitespace();
        if asked.is_err() || words.next() != Some(GO) {
            crate::suite::interrupt::end();
        }
        if let Some(core) = words.next().and_then(|core| core.parse().ok()) {
            self.core.set(Some(core));
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
