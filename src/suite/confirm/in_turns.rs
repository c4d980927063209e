//! Implementations of one operation that take turns in one process.

use crossover_words::text::with_causes;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::suite::confirm::Task;
use crate::suite::group::AnyGroup;
use crate::suite::host::Host;
use crate::suite::sampler::on_cpu;
use crate::suite::verify::passes;
use crate::timing::{Clock, CudaTime};
use crate::workload::routine::{Routine, RoutineError};
use crossover_protocol::settings::Settings;
use crossover_results::statistics::median::median;

/// A sample takes at least this long, so that occasional work of the host is spread over all of
/// them.
const SAMPLE: Duration = Duration::from_millis(2);
/// Samples of each implementation: few, since processes differ by more than the samples of one.
const SAMPLES: usize = 5;
/// Samples of an implementation whose iterations are long.
const FEWEST_SAMPLES: usize = 3;
/// An implementation whose samples together take longer than this gets fewer.
const LONGEST: Duration = Duration::from_millis(150);
/// What the other sides left in the caches is replaced within a small part of an iteration of this
/// length, which needs no other one before it.
const WARMS_ITSELF: Duration = Duration::from_millis(10);

/// What implementations that take turns need.
pub(crate) struct TakingTurns {
    machine: Host,
    time: CudaTime,
}

/// An implementation that takes turns.
struct Side {
    function: String,
    clock: Clock,
    /// Of an iteration; 0 on the CPU.
    launches: u32,
    routine: Box<dyn Routine>,
    /// Iterations of a sample.
    iterations: u64,
    /// Samples to take.
    wanted: usize,
    /// Iterations before each sample, of which the caches are warm.
    warm_up: u64,
    /// Nanoseconds of an iteration, by sample.
    samples: Vec<f64>,
}

impl AnyGroup {
    /// Sets up a task's implementations, lets them take turns, and gives the median time of an
    /// iteration of each, ns.
    pub(in crate::suite) fn medians_in_turns(
        &self,
        task: &Task,
        with: &TakingTurns,
    ) -> Result<BTreeMap<String, f64>, RoutineError> {
        let size = task.size;
        let rows: Vec<_> = (self.rows.iter())
            .filter(|row| task.functions.contains(&row.function()))
            .collect();
        if rows.len() < task.functions.len() {
            return Err("an implementation is not there".into());
        }
        // All of them are set up at once, and need memory together.
        let on_gpu = rows.iter().filter(|row| row.is_gpu()).count() as u64;
        let host = (self.operation.host_bytes)(size).saturating_mul(rows.len() as u64);
        let device =
            (on_gpu > 0).then(|| (self.operation.device_bytes)(size).saturating_mul(on_gpu));
        if let Some(reason) = with.machine.too_small_for(host, device) {
            return Err(reason.into());
        }
        let inputs = (self.operation.inputs)(size);
        let mut sides = Vec::with_capacity(rows.len());
        for row in rows {
            let routine = row.set_up(&inputs, || Ok(with.machine.gpu(&with.time)?))?;
            let launches = row.launches_of(&*routine);
            let mut side = Side {
                function: row.function(),
                clock: row.clock,
                launches,
                routine,
                iterations: 1,
                wanted: SAMPLES,
                warm_up: 0,
                samples: Vec::new(),
            };
            with.prepare(&mut side, task.verify)?;
            sides.push(side);
        }
        with.take_turns(&mut sides)?;
        Ok(sides
            .into_iter()
            .filter_map(|side| Some((side.function, median(side.samples)?)))
            .collect())
    }
}

impl TakingTurns {
    /// On the device that the settings name.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            machine: Host::new(settings),
            time: CudaTime::host_only(),
        }
    }

    fn wait(&self) -> Result<(), RoutineError> {
        match self.machine.opened() {
            Some(gpu) => Ok(gpu.synchronize()?),
            None => Ok(()),
        }
    }

    /// Runs a side once from restored state, verifies it if `verify`, and chooses how many samples it
    /// gets and of how many iterations.
    fn prepare(&self, side: &mut Side, verify: bool) -> Result<(), RoutineError> {
        side.routine.restore()?;
        side.routine.poison()?;
        side.routine.run()?;
        self.wait()?;
        if verify {
            let named =
                |error: RoutineError| format!("{}: {}", side.function, with_causes(&*error));
            passes(&mut *side.routine, side.launches > 0).map_err(named)?;
        }
        // Until a measurement is long enough to be trusted.
        loop {
            let iterations = side.iterations;
            let ns = self.measure(side, iterations)?;
            side.routine.park();
            let enough = SAMPLE.as_nanos() as f64;
            if ns >= enough / 2.0 || side.iterations >= 1 << 30 {
                let iteration = ns / side.iterations as f64;
                side.iterations = (enough / iteration).ceil().max(1.0) as u64;
                let sample = side.iterations as f64 * iteration;
                let fit = LONGEST.as_nanos() as f64 / sample;
                side.wanted = (fit as usize).clamp(FEWEST_SAMPLES, SAMPLES);
                let is_warm_soon = sample >= WARMS_ITSELF.as_nanos() as f64;
                side.warm_up = match is_warm_soon {
                    true => 0,
                    false => side.iterations.div_ceil(8),
                };
                if is_warm_soon && side.iterations == iterations {
                    // It is a sample like those that follow.
                    side.samples.push(iteration);
                }
                return Ok(());
            }
            side.iterations *= 4;
        }
    }

    /// Times `iterations` from restored state, in nanoseconds.
    fn measure(&self, side: &mut Side, iterations: u64) -> Result<f64, RoutineError> {
        if side.launches > 0 {
            // The CPU may have had a long turn, and the device's clock has come down meanwhile.
            self.time.wake()?;
        }
        let routine = &mut side.routine;
        routine.restore()?;
        if side.launches > 0 {
            // Restoring must have ended before the sample begins.
            self.wait()?;
        }
        let run = || routine.run();
        Ok(match side.launches {
            0 => on_cpu(&self.time, iterations, run),
            launches => (self.time).measure(side.clock, iterations, launches, run),
        }?)
    }

    /// Samples all sides in turn, alternately forwards and backwards through them.
    fn take_turns(&self, sides: &mut [Side]) -> Result<(), RoutineError> {
        for round in 0..SAMPLES {
            for at in 0..sides.len() {
                let at = match round % 2 {
                    0 => at,
                    _ => sides.len() - 1 - at,
                };
                let side = &mut sides[at];
                if side.samples.len() == side.wanted {
                    continue;
                }
                // The other sides emptied the caches.
                if side.warm_up > 0 {
                    self.measure(side, side.warm_up)?;
                }
                let ns = self.measure(side, side.iterations)?;
                side.routine.park();
                side.samples.push(ns / side.iterations as f64);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::model::cost::Cost;
    use crate::model::verified::Verified;
    use crate::suite::group::{Group, Implementation, Sizes};
    use crate::workload::routine::Workload;

    struct Nothing;

    impl Workload for Nothing {
        fn new(_: u64) -> Self {
            Self
        }
        fn host_bytes(_: u64) -> u64 {
            0
        }
        fn device_bytes(_: u64) -> u64 {
            0
        }
    }

    /// Right after one run from restored state, and counts how often it was restored.
    struct Stateful {
        runs: Option<u32>,
        restored: Rc<Cell<usize>>,
    }

    impl Routine for Stateful {
        fn poison(&mut self) -> Result<(), RoutineError> {
            Ok(())
        }
        fn restore(&mut self) -> Result<(), RoutineError> {
            self.runs = Some(0);
            self.restored.set(self.restored.get() + 1);
            Ok(())
        }
        fn run(&mut self) -> Result<(), RoutineError> {
            *self.runs.as_mut().ok_or("it was never restored")? += 1;
            std::thread::sleep(SAMPLE);
            Ok(())
        }
        fn check(&mut self) -> Result<Verified, RoutineError> {
            Ok(Verified {
                error: f64::from(u8::from(self.runs != Some(1))),
                bound: 0.0,
                method: "whether it ran once".to_owned(),
            })
        }
    }

    #[test]
    fn state_is_restored_before_each_measurement() {
        let restored = Rc::new(Cell::new(0));
        let counted = restored.clone();
        let row = Implementation::cpu("steps", move |_: &Rc<Nothing>| {
            Ok(Box::new(Stateful {
                runs: None,
                restored: counted.clone(),
            }))
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
        let medians = AnyGroup::from(group).medians_in_turns(&task, &TakingTurns::new(&settings));
        assert_eq!(medians.unwrap().len(), 1);
        // Before the verified run, before the first measurement, and before each sample. How many samples
        // fit depends on the machine.
        assert!(restored.get() >= 2 + FEWEST_SAMPLES);
    }
}
