//! Two processes that take turns, so that both meet the same load: `crossover ab` starts two revisions
//! together and lets one run at a time.
//!
//! The process connects to the channel that `CROSSOVER_TURNS` names ([`child`](crate::child)). It sends a
//! [`TurnMessage`], a line of JSON, first with the benchmarks that it could run, and then at each point where it can
//! pause: before the first sample of a benchmark, after each sample, and at its end. It continues when it gets a
//! [`TurnReply`], also a line of JSON.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The environment variable that offers turns, and names the channel.
pub const TURNS: &str = "CROSSOVER_TURNS";

/// Version of the protocol. A process can be driven only by its own version.
pub const PROTOCOL: u32 = 2;

/// A message of the process, which waits for the reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMessage {
    /// The first message.
    Plan {
        /// [`PROTOCOL`].
        protocol: u32,
        /// The benchmarks that it could run, in order, before it is told to run only some of them.
        ids: Vec<String>,
    },
    /// A benchmark is set up, and verified if that was asked for; the first sample is next.
    Ready {
        /// The benchmark.
        id: String,
    },
    /// A sample was taken.
    Sampled {
        /// The benchmark.
        id: String,
    },
    /// The last message.
    Chose {
        /// The choices of calibrations, or from [`Instructions::choices`], by their names.
        choices: BTreeMap<String, String>,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnReply {
    /// The reply to [`TurnMessage::Plan`].
    Run(Instructions),
    /// The reply to every other message: continue.
    Go,
}

/// How a process is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// The core for benchmarks of one host thread, the same for both sides. A core whose sibling is
    /// busy is slow for as long as that lasts, and two processes on two cores would differ by it.
    pub core: Option<usize>,
    /// The benchmarks to run; nothing else is set up, timed or recorded. `None` runs everything.
    pub only: Option<BTreeSet<String>>,
    /// Compare with float64 before and after the samples. Needed once per executable, not in
    /// each of its processes.
    pub verify: bool,
    /// Choices of an earlier process, used instead of calibrating again.
    pub choices: BTreeMap<String, String>,
}

impl Default for Instructions {
    /// Runs everything, as without turns.
    fn default() -> Self {
        Self {
            core: None,
            only: None,
            verify: true,
            choices: BTreeMap::new(),
        }
    }
}

impl Instructions {
    /// Whether this benchmark is to be run.
    pub fn wants(&self, id: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(id))
    }
}
