//! The child process that answers.

use std::process::ExitCode;
use std::time::Instant;

use crate::child::{self, Say};
use crate::device::kernel::shared;
use crate::suite::confirm::in_turns::TakingTurns;
use crate::suite::confirm::{Order, TaskResult};
use crate::suite::group::AnyGroup;
use crate::timing::catch_panic;
use crate::workload::calibrate;
use crate::workload::routine::RoutineError;
use crossover_protocol::settings::Settings;
use crossover_words::text::with_causes;

/// Carries out the order of this process; `None` in a process without one.
pub(crate) fn answer(groups: impl FnOnce() -> Vec<AnyGroup>) -> Option<ExitCode> {
    child::answer(|order, say| carry_out(order, &groups(), say))
}

fn carry_out(
    order: Order,
    groups: &[AnyGroup],
    say: Say<'_, TaskResult>,
) -> Result<(), RoutineError> {
    let settings = Settings::from_env()?;
    calibrate::hand_over(order.choices);
    if let Some(folder) = order.kernels {
        shared::share_in(folder);
    }
    let taking_turns = TakingTurns::new(&settings);
    for task in order.tasks {
        let group = groups.iter().find(|group| group.name() == task.group);
        let begun = Instant::now();
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
        say(TaskResult {
            group: task.group,
            size: task.size,
            medians,
            choices,
            took: begun.elapsed(),
        })?;
    }
    Ok(())
}
