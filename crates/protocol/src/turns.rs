//! Two processes that take turns, so that both meet the same host: `crossover ab` starts two
//! revisions together and lets one run at a time.
//!
//! The process connects to the socket that `CROSSOVER_TURNS` names and says ([`TurnMessage`]), a line
//! of JSON each, what it could run, and then wherever it can stand still: before the first sample of
//! a benchmark, after each sample, and at its end. It goes on when it is answered ([`TurnReply`], a
//! line of JSON too).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// Version of the protocol. A process can be driven only by its own version.
pub const PROTOCOL: u32 = 2;

/// What a process says. It waits for the answer to each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnMessage {
    /// First of all.
    Plan {
        /// [`PROTOCOL`].
        protocol: u32,
        /// What it could run, in order, before it is told to run only some of it.
        ids: Vec<String>,
    },
    /// A benchmark is set up, and verified where it is told to; the first sample is next.
    Ready {
        /// The benchmark.
        id: String,
    },
    /// A sample was taken.
    Sampled {
        /// The benchmark.
        id: String,
    },
    /// Last of all.
    Chose {
        /// What calibrations chose, or took from [`Instructions::choices`], by the name of the
        /// choice.
        choices: BTreeMap<String, String>,
    },
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnReply {
    /// To [`TurnMessage::Plan`]: go on, in this way.
    Run(Instructions),
    /// To everything else: go on.
    Go,
}

/// How a process is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instructions {
    /// Where what one thread drives is sampled, on both sides: a core whose sibling is busy is
    /// slow for as long as that lasts, and two processes on two cores would differ by it.
    pub core: Option<usize>,
    /// The benchmarks to run; nothing else is set up, timed or recorded. `None` runs everything.
    pub only: Option<BTreeSet<String>>,
    /// Compare with float64 before and after the samples. Needed once per executable, not in
    /// each of its processes.
    pub verify: bool,
    /// Choices of an earlier process, which are taken instead of calibrating again.
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
