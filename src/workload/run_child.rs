//! The child's side of [`child_process`](crate::workload::prepare::child_process) and of the trial of links
//! between GPUs.

use std::process::ExitCode;

use crate::workload::lessons::{cold_start, warming_up};
use crate::workload::prepare::{DeviceTask, Task};
use crossover_protocol::child;
use crossover_protocol::further;

/// In a child process of the suite, does what it was started for, sends the result and returns the exit code;
/// `None` in any other process. [`bench`](crate::suite::bench) calls this. Another executable that runs
/// groups calls it first in `main`, because the measured events must be the first of their kind.
pub fn run_child() -> Option<ExitCode> {
    if let Some(code) = further::answer() {
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
