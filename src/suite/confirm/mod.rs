//! The answers of a run put to processes of their own: one process is not the machine.
//!
//! Between its groups and after them a run starts its executable again, several times. Each process
//! sets up, for each question, the best CPU code and the GPU's at sizes around the crossing and at
//! the largest, lets them take turns, and prints their medians (`process`). The run asks
//! around where the processes so far saw the crossing (`questions`), decides how many to ask
//! (`driver`), starts each (`child`), and keeps what they said in its record. What
//! follows from it is in
//! [`analysis::answer::estimate`](crossover_results::analysis::answer::estimate).

pub(super) mod driver;
pub(crate) mod process;
mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::child;

/// What a process is to measure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Order {
    /// The folder in which the processes of the run share compiled kernels and a file of calibrated
    /// choices.
    shared: Option<PathBuf>,
    tasks: Vec<Task>,
}

/// The file of choices in the shared folder.
const CHOICES: &str = "choices.json";

impl child::Order for Order {
    const VARIABLE: &'static str = "CROSSOVER_CONFIRMS";
    type Reply = Medians;
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

/// What a process says of each task, in their order: the median time of an iteration of each
/// implementation, ns, or why there is none.
type Medians = Result<BTreeMap<String, f64>, String>;
