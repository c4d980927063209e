//! The child process that answers: implementations of one operation take turns in it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use crate::device::Gpu;
use crate::device::kernel::SharedKernels;
use crate::suite::confirm::{Task, TaskReply, Tasks};
use crate::suite::group::{AnyGroup, AnyRow, Inputs};
use crate::suite::host::{Host, Timed};
use crate::suite::sampling_plan::warm_up_in_turns;
use crate::suite::verify::passes;
use crate::timing::{LaunchState, catch_panic};
use crate::workload::devices::LaunchRequest;
use crate::workload::routine::RoutineError;
use crossover_advice::turns::{Side, take_turns};
use crossover_protocol::child::{self, Say};
use crossover_protocol::settings::Settings;
use crossover_results::statistics::median::median;
use crossover_words::text::with_causes;

/// A sample takes at least this long, so that occasional work of the host affects all implementations
/// alike.
const SAMPLE: Duration = Duration::from_millis(2);
/// Samples of each implementation: few, because processes differ by more than the samples of one.
const SAMPLES: usize = 5;
/// Samples of an implementation whose iterations are long.
const FEWEST_SAMPLES: usize = 3;
/// An implementation whose samples together take longer than this gets fewer.
const LONGEST: Duration = Duration::from_millis(150);

/// Carries out the order of this process; `None` in a process without one.
pub(crate) fn answer(groups: impl FnOnce() -> Vec<AnyGroup>) -> Option<ExitCode> {
    child::answer(|order, say| carry_out(order, &groups(), say))
}

fn carry_out(
    order: Tasks,
    groups: &[AnyGroup],
    say: Say<'_, TaskReply>,
) -> Result<(), RoutineError> {
    let mut machine = Host::new(&Settings::from_env()?);
    // The recording driver works only when it is waited for.
    machine.time.ignore_other_streams(!Gpu::executes_kernels());
    machine.opens_short = true;
    machine.kernels = SharedKernels(order.kernels);
    machine.choices.hand_over(order.choices);
    for task in order.tasks {
        let medians_of = |task: &Task| {
            let group = groups.iter().find(|group| group.name() == task.group);
            let group = group.ok_or("there is no such group")?;
            group.medians_in_turns(task, &machine)
        };
        let measured = catch_panic(|| machine.choices.during(|| medians_of(&task)));
        let text = |error: RoutineError| with_causes(&*error);
        let medians = measured.and_then(|medians| medians.map_err(text));
        // The next process must not use choices that were made under background load.
        machine.choices.forget_disturbed([]);
        let choices = machine.choices.made();
        say(TaskReply { medians, choices })?;
    }
    Ok(())
}

/// An implementation that takes turns.
struct Contender<'a> {
    code: Timed,
    machine: &'a Host,
    /// Iterations of a sample.
    iterations: u64,
    /// Samples of a series, and those of it that are still to take.
    samples: usize,
    left: usize,
    /// Iterations before each sample, to warm the caches.
    warm_up: u64,
    /// Seconds of a warm-up as long as the samples that follow.
    first: Option<f64>,
}

impl AnyGroup {
    /// Sets up a task's implementations, lets them take turns, and gives the median time of an
    /// iteration of each, ns.
    fn medians_in_turns(
        &self,
        task: &Task,
        machine: &Host,
    ) -> Result<BTreeMap<String, f64>, RoutineError> {
        let size = task.size;
        let rows: Vec<_> = (self.rows.iter())
            .filter(|row| task.functions.contains(&row.function()))
            .collect();
        if rows.len() < task.functions.len() {
            return Err("an implementation is not there".into());
        }
        // All of them are set up at the same time, and need memory together.
        let on_gpu = rows.iter().filter(|row| row.is_gpu()).count() as u64;
        let host = (self.operation.host_bytes)(size).saturating_mul(rows.len() as u64);
        let device =
            (on_gpu > 0).then(|| (self.operation.device_bytes)(size).saturating_mul(on_gpu));
        machine.has_room_for(host, device)?;
        let inputs = (self.operation.inputs)(size);
        let contenders = rows
            .iter()
            .map(|row| Contender::new(row, &inputs, machine, task.verify));
        let mut contenders = contenders.collect::<Result<Vec<_>, _>>()?;
        let several = self.on_several;
        let is_long = |state: Option<LaunchState>| state.is_some_and(|state| state.is_long);
        let before = machine.probe_launches(several, LaunchRequest::Shorten)?;
        let mut samples = in_turns(&mut contenders)?;
        let is_longer =
            !is_long(before) && is_long(machine.probe_launches(several, LaunchRequest::Probe)?);
        if is_longer && !is_long(machine.probe_launches(several, LaunchRequest::Shorten)?) {
            samples = in_turns(&mut contenders)?;
        }
        let medians = rows
            .iter()
            .zip(samples)
            .filter_map(|(row, samples)| Some((row.function(), 1e9 * median(samples)?)));
        Ok(medians.collect())
    }
}

/// Lets implementations take turns, and returns the samples of each, s.
fn in_turns(contenders: &mut [Contender<'_>]) -> Result<Vec<Vec<f64>>, RoutineError> {
    for contender in contenders.iter_mut() {
        contender.left = contender.samples;
    }
    let mut sides: Vec<_> = contenders.iter_mut().collect();
    take_turns(&mut sides, Duration::MAX, |_| false)
}

impl<'a> Contender<'a> {
    /// Sets an implementation up, runs it once from restored state, verifies if `verify`, and chooses how
    /// many samples it gets and of how many iterations.
    fn new(
        row: &AnyRow,
        inputs: &Inputs,
        machine: &'a Host,
        verify: bool,
    ) -> Result<Self, RoutineError> {
        let mut code = machine.set_up(row, inputs)?;
        machine.run_once(&mut code)?;
        if verify {
            let wrong = passes(&mut *code.routine, code.is_executed).err();
            if let Some(error) = wrong {
                return Err(format!("{}: {}", row.function(), with_causes(&*error)).into());
            }
        }
        machine.wake(&code)?;
        // Half a sample is long enough to be trusted.
        let iteration = machine.warm_up(&mut code, SAMPLE, SAMPLE / 2)?.ns;
        code.routine.park();
        let iterations = (SAMPLE.as_nanos() as f64 / iteration).ceil().max(1.0) as u64;
        let sample = iterations as f64 * iteration;
        let fit = LONGEST.as_nanos() as f64 / sample;
        let warm_up = warm_up_in_turns(iterations, iteration);
        Ok(Self {
            code,
            machine,
            iterations,
            samples: (fit as usize).clamp(FEWEST_SAMPLES, SAMPLES),
            left: 0,
            warm_up,
            first: (warm_up == 0).then_some(1e-9 * iteration),
        })
    }
}

impl Side for Contender<'_> {
    type Error = RoutineError;

    fn sample(&mut self) -> Result<Option<f64>, RoutineError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if self.first.is_some() {
            return Ok(self.first.take());
        }
        self.machine.wake(&self.code)?;
        if self.warm_up > 0 {
            self.machine.measure(&mut self.code, self.warm_up)?;
        }
        let ns = self.machine.measure(&mut self.code, self.iterations)?;
        self.code.routine.park();
        Ok(Some(1e-9 * ns / self.iterations as f64))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::model::cost::Cost;
    use crate::suite::group::{Group, Implementation};
    use crate::suite::sizes::Sizes;
    use crate::suite::verify::tests::{Adds, Ones};

    #[test]
    fn state_is_restored_before_each_measurement() {
        let restored = Rc::new(Cell::new(0));
        let counted = restored.clone();
        let row = Implementation::cpu("steps", move |_: &Rc<Ones>| {
            let counted = counted.clone();
            Ok(Box::new(Adds::restored_by(move || {
                counted.set(counted.get() + 1);
                std::thread::sleep(SAMPLE);
                true
            })))
        });
        let sizes = Sizes::new([1], [1], [1]);
        let group = Group::new("stateful", sizes, None, |_| Cost::default()).with(row);
        let task = Task {
            group: "stateful".to_owned(),
            size: 1,
            functions: ["cpu/steps".to_owned()].into(),
            verify: true,
        };
        let settings = Settings::from_env().unwrap();
        let (group, host) = (AnyGroup::from(group), Host::new(&settings));
        let medians = group.medians_in_turns(&task, &host).unwrap();
        // Of an iteration, of which a sample has thousands.
        let is_of_one = |ns: f64| ns < 0.05 * SAMPLE.as_nanos() as f64;
        assert!(is_of_one(medians["cpu/steps"]), "{medians:?}");
        // Before the verified run, before the first measurement, and before each sample. How many samples
        // fit depends on the machine.
        assert!(restored.get() >= 2 + FEWEST_SAMPLES);

        // The restoring takes as long as a sample, and is no part of one.
        let inputs = (group.operation.inputs)(1);
        let mut code = host.set_up(&group.rows[0], &inputs).unwrap();
        let iteration = host.warm_up(&mut code, SAMPLE, SAMPLE / 2).unwrap().ns;
        let last = code.ran.div_ceil(2) as f64;
        assert!(iteration * last >= 0.4 * SAMPLE.as_nanos() as f64);
    }
}
