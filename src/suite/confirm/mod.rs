//! Confirms the answers of a run in further processes, because processes of the same code differ.
//!
//! Between its groups and after them, a run starts its executable again several times. Each process
//! sets up, for each question, the best CPU code and the GPU code at sizes around the crossing and at
//! the largest size, lets them take turns, and sends their medians (`process`). The run
//! measures around the crossing of the processes so far (`questions`), decides how many to start
//! (`driver`), and stores their times in its record. The estimates are made in
//! [`analysis::answer::estimate`](crossover_results::analysis::answer::estimate).

pub(super) mod driver;
pub(crate) mod process;
mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crossover_protocol::child;

/// The measurements of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tasks {
    /// The folder in which the processes of the run share compiled kernels.
    kernels: Option<PathBuf>,
    /// The calibrated choices of the run and of earlier processes.
    choices: BTreeMap<String, String>,
    tasks: Vec<Task>,
}

impl child::Request for Tasks {
    const VARIABLE: &'static str = child::CONFIRMS;
    type Reply = TaskReply;
}

/// Implementations that take turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    group: String,
    size: u64,
    /// Device and name of each, such as `gpu/cublas`.
    functions: BTreeSet<String>,
    /// Whether to compare with float64 before timing: needed once, not in each process.
    verify: bool,
}

/// The reply to each task, in their order.
#[derive(Serialize, Deserialize)]
struct TaskReply {
    /// The median time of an iteration of each implementation, ns, or why there is none.
    medians: Result<BTreeMap<String, f64>, String>,
    /// The calibrated choices of the process so far.
    choices: BTreeMap<String, String>,
}
