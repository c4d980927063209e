//! The child process that answers.

use crossover_words::text::with_causes;
use std::io::Write;
use std::process::ExitCode;

use crate::device::compiled;
use crate::suite::confirm::in_turns::TakingTurns;
use crate::suite::confirm::{ORDER, Order, TaskResult};
use crate::suite::runner::AnyGroup;
use crate::timing::catch_panic;
use crate::workload::calibrate;
use crate::workload::routine::RoutineError;
use crossover_protocol::settings::Settings;

/// Carries out the order in the environment, and prints the answer; `None` in a process without an
/// order.
pub(crate) fn answer(groups: impl FnOnce() -> Vec<AnyGroup>) -> Option<ExitCode> {
    let order = std::env::var(ORDER).ok()?;
    Some(match carry_out(&order, &groups()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", with_causes(&*error));
            ExitCode::FAILURE
        }
    })
}

fn carry_out(order: &str, groups: &[AnyGroup]) -> Result<(), RoutineError> {
    let order: Order = serde_json::from_str(order)?;
    let settings = Settings::from_env()?;
    calibrate::hand_over(order.choices);
    if let Some(folder) = order.kernels {
        compiled::share_in(folder);
    }
    let taking_turns = TakingTurns::new(&settings);
    for task in order.tasks {
        let group = groups.iter().find(|group| group.name() == task.group);
        let medians = match group {
            Some(group) => {
                let measure = || group.medians_in_turns(&task, &taking_turns);
                let measured = catch_panic(measure);
                measured.and_then(|medians| medians.map_err(|error| with_causes(&*error)))
            }
            None => Err("there is no such group".to_owned()),
        };
        // The next process is not to take over what was chosen while other work ran.
        let disturbed = calibrate::forget_disturbed([]);
        let mut choices = calibrate::take_recent();
        choices.retain(|choice, _| !disturbed.contains(choice));
        let said = TaskResult {
            group: task.group,
            size: task.size,
            medians,
            choices,
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&said)?)?;
        out.flush()?;
    }
    Ok(())
}
