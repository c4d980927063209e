//! Groups that show what one technique is worth, or what a call costs: launching, waiting, copying,
//! overlapping, allocating, the first call of a process, and ways of timing.

pub mod cold_start;
pub mod graph_replay;
pub mod host_sync;
pub mod loader;
pub mod memory;
pub mod product_chain;
pub mod streams;
pub mod timing_methods;
pub mod transfer;
pub mod warming_up;

use std::process::ExitCode;

use crossover_machine::peers;
use crossover_protocol::child;

use crate::workload::prepare::{DeviceTask, Task};

/// In a child process of the suite, does what it was started for, sends the result and returns the exit code;
/// `None` in any other process. [`bench`](crate::suite::bench) calls this. Another executable that runs
/// groups calls it first in `main`, because the measured events must be the first of their kind.
pub fn run_child() -> Option<ExitCode> {
    if let Some(code) = peers::answer() {
        return Some(code);
    }
    child::answer(|DeviceTask { device, task }, say| {
        let report = match task {
            Task::ColdStart => cold_start::measure(device)?,
            Task::LargeGemm => cold_start::measure_large_gemm(device)?,
            Task::Transformer => cold_start::measure_transformer(device)?,
            Task::WarmingUp => warming_up::measure(device)?,
        };
        Ok(say(report)?)
    })
}
