//! The other end of [`child_process`](crate::workload::prepare::child_process): what the child does.

use std::process::ExitCode;

use crate::child;
use crate::workload::lessons::{cold_start, warming_up};
use crate::workload::prepare::{Order, Task};

/// In a process that was started to measure the start of a process, measures it, prints the result
/// and returns the exit code; `None` in any other. [`bench`](crate::suite::bench) calls this
/// itself; another executable that runs groups calls it first in `main`, since what it measures
/// must be the first of its kind.
pub fn run_child() -> Option<ExitCode> {
    child::answer(|Order { device, task }, say| {
        let report = match task {
            Task::ColdStart => cold_start::measure(device)?,
            Task::WarmingUp => warming_up::measure(device)?,
        };
        Ok(say(report)?)
    })
}
