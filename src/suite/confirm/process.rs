//! The child process that answers.

use std::process::ExitCode;

use crate::child::{self, Say};
use crate::device::kernel::shared;
use crate::suite::confirm::{CHOICES, Order, TaskResult};
use crate::suite::group::AnyGroup;
use crate::suite::host::Host;
use crate::timing::catch_panic;
use crate::workload::choose;
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
    let machine = Host::new(&Settings::from_env()?);
    let choices = order.shared.as_deref().map(|shared| shared.join(CHOICES));
    if let (Some(folder), Some(choices)) = (order.shared, &choices) {
        choose::read_from(choices);
        shared::share_in(folder);
    }
    for task in order.tasks {
        let measured = catch_panic(|| {
            let group = groups.iter().find(|group| group.name() == task.group);
            let group = group.ok_or("there is no such group")?;
            group.medians_in_turns(&task, &machine)
        });
        let text = |error: RoutineError| with_causes(&*error);
        let medians = measured.and_then(|medians| medians.map_err(text));
        // The next process is not to take over what was chosen while other work ran.
        choose::forget_disturbed([]);
        if let Some(choices) = &choices {
            choose::add_to(choices)?;
        }
        say(TaskResult {
            group: task.group,
            size: task.size,
            medians,
        })?;
    }
    Ok(())
}
