//! The other end of [`child_process`](crate::workload::prepare::child_process): what the child does.

use std::process::ExitCode;

use crate::workload::prepare::{ORDER, Order, Task};
use crate::workload::routine::RoutineError;
use crate::workload::{cold_start, timing_methods, warming_up};

/// In a process that was started to measure the start of a process, measures it, prints the result
/// and returns the exit code; `None` in any other. [`bench`](crate::suite::bench) calls this
/// itself; another executable that runs groups calls it first in `main`, since what it measures
/// must be the first of its kind.
pub fn run_child() -> Option<ExitCode> {
    let order = std::env::var(ORDER).ok()?;
    Some(match carry_out(&order) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn carry_out(order: &str) -> Result<String, RoutineError> {
    let Order { device, task } = serde_json::from_str(order)?;
    let report = match task {
        Task::ColdStart => cold_start::measure(device)?,
        Task::FirstSpin { nanoseconds } => timing_methods::time_first_spin(device, nanoseconds)?,
        Task::FirstProduct { n } => timing_methods::time_first_product(device, n)?,
        Task::WarmingUp => warming_up::measure(device)?,
    };
    Ok(serde_json::to_string(&report)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_none_is_refused() {
        assert!(carry_out("{}").is_err());
    }
}
