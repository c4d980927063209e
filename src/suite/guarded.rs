//! What is looked at in a GPU benchmark beside its result, outside of the timed windows: whether the
//! device is idle behind them, whether inputs stay as they are, and whether an iteration that must
//! compute takes as long as the others.

use std::time::{Duration, Instant};

use crate::model::record::Activity;
use crate::suite::group::Inputs;
use crate::suite::missing::{Missing, caught, failed};
use crate::suite::state::{Bench, GroupCache, Prepared, Run};
use crate::suite::verify::passes;
use crate::timing::{BoxError, Claim, Clock, CudaTime, DeviceMemory, Doubt, Guarded};
use crate::workload::routine::{Routine, RoutineError};
use crossover_machine::recorded;
use crossover_results::statistics::median::median;

/// Times of fewer nanoseconds more than another, or of fewer times that, are no reason for doubt: the
/// cache is cold, and the host may be taken off its core.
const LONGER: (f64, f64) = (3.0, 100_000.0);

/// The code of a benchmark, which is set up anew for other values.
struct Anew<'a> {
    first: &'a mut dyn Routine,
    /// Takes the place of the first.
    second: Option<Box<dyn Routine>>,
    make: &'a dyn Fn() -> Result<Box<dyn Routine>, Missing>,
}

impl Anew<'_> {
    fn routine(&mut self) -> &mut dyn Routine {
        match &mut self.second {
            Some(second) => &mut **second,
            None => self.first,
        }
    }

    fn of(&self, memory: fn(&dyn Routine) -> Vec<DeviceMemory>) -> Vec<DeviceMemory> {
        memory(self.second.as_deref().unwrap_or(self.first))
    }
}

impl Guarded for Anew<'_> {
    fn renew(&mut self) -> Result<(), BoxError> {
        self.second = Some((self.make)().map_err(Missing::text)?);
        Ok(())
    }

    fn poison(&mut self) -> Result<(), BoxError> {
        self.routine().restore()?;
        self.routine().poison()
    }

    fn run(&mut self) -> Result<(), BoxError> {
        self.routine().run()
    }

    fn check(&mut self) -> Result<(), BoxError> {
        passes(self.routine(), true)
    }

    fn inputs(&self) -> Vec<DeviceMemory> {
        self.of(|routine| routine.inputs())
    }

    fn output(&self) -> Vec<DeviceMemory> {
        self.of(|routine| routine.outputs())
    }
}

impl Run {
    /// Whether a benchmark is looked at: of one on the GPU whose result is kept. Rows that show wrong
    /// clocks are wrong on purpose.
    pub(super) fn looks(&self, bench: &Bench<'_>) -> bool {
        let is_meant = bench.group.topic.truth.is_none() && bench.row.clock != Clock::Submit;
        bench.row.is_gpu() && self.arguments.saves && self.turns.is_none() && is_meant
    }

    /// Checksums of the memory that it reads.
    pub(super) fn inputs(
        &self,
        bench: &mut Bench<'_>,
        routine: &dyn Routine,
    ) -> Result<Vec<u64>, Missing> {
        match self.looks(bench) {
            true => {
                let checksums = || self.time.checksums(&routine.inputs());
                Ok(bench.spent.on(Activity::Checks, checksums)?)
            }
            false => Ok(Vec::new()),
        }
    }

    /// At the smallest size of a row, runs it on inputs with other values: of what is right there, larger
    /// sizes need no second set of memory.
    pub(super) fn guard_on_other_values(
        &self,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
        cache: &mut GroupCache,
    ) -> Result<(), Missing> {
        let Prepared { routine, sampling } = prepared;
        let sizes = bench.group.sizes_of(bench.row).of(self.settings.profile);
        let is_smallest = sizes.iter().min() == Some(&bench.size);
        let is_guarded = self.looks(bench) && is_smallest;
        // A routine that does not say what it writes keeps state of the process, such as a memory pool.
        let Some(iteration) = sampling.iteration.filter(|_| is_guarded) else {
            return Ok(());
        };
        if routine.outputs().is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let guarded = caught(|| {
            let other_values = cache.other_values(&bench.group.operation, bench.size);
            self.guard(bench, &other_values, &mut **routine, iteration)
        });
        bench.spent.add(Activity::Checks, begun.elapsed());
        guarded
    }

    fn guard(
        &self,
        bench: &mut Bench<'_>,
        other_values: &Inputs,
        routine: &mut dyn Routine,
        iteration: Duration,
    ) -> Result<(), Missing> {
        let claim = Claim {
            clock: bench.row.clock,
            launches: bench.row.launches_of(routine),
            ns: iteration.as_nanos() as f64,
            bytes: None,
        };
        let mut doubts = Vec::new();
        let mut code = Anew {
            first: routine,
            second: None,
            make: &|| self.make(bench, other_values),
        };
        // A host that is taken off its core is late once.
        for _ in 0..3 {
            doubts = self.time.guard(&claim, &mut code)?;
            if let Some(proof) = doubts.iter().find(|doubt| doubt.is_proof()) {
                return Err(failed(format!("{proof}; it is not timed")));
            }
            // How far equal iterations differ is judged by the samples.
            doubts.retain(|doubt| !matches!(doubt, Doubt::Disturbed { .. }));
            if doubts.is_empty() || recorded::recorded() {
                break;
            }
        }
        doubt(bench, doubts);
        Ok(())
    }

    /// Runs once from restored state into a poisoned output, as [`run_once`](Self::run_once), and
    /// compares the time with those of the samples.
    pub(super) fn run_timed(
        &self,
        bench: &mut Bench<'_>,
        routine: &mut dyn Routine,
        ns: &[f64],
    ) -> Result<(), Missing> {
        let again_ns = median(ns.iter().copied()).filter(|_| self.looks(bench));
        let Some(again_ns) = again_ns else {
            return self.run_once(routine);
        };
        let (factor, more) = LONGER;
        let mut first_ns = f64::INFINITY;
        for _ in 0..3 {
            routine.restore()?;
            routine.poison()?;
            self.time
                .settle()
                .map_err(crate::timing::TimingError::from)?;
            first_ns = first_ns.min(once(&self.time, bench.row.clock, routine)?);
            if first_ns <= factor * again_ns + more {
                return Ok(());
            }
        }
        doubt(bench, [Doubt::Replayed { first_ns, again_ns }]);
        Ok(())
    }
}

/// Keeps doubts; none that rest on times which no device took.
fn doubt(bench: &mut Bench<'_>, doubts: impl IntoIterator<Item = Doubt>) {
    if !recorded::recorded() {
        bench.doubts.extend(doubts);
    }
}

fn once(time: &CudaTime, clock: Clock, routine: &mut dyn Routine) -> Result<f64, Missing> {
    Ok(time.once(clock, || -> Result<(), RoutineError> { routine.run() })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::verified::Verified;

    /// Notes what is asked of it.
    struct Noted(Vec<&'static str>);

    impl Routine for Noted {
        fn poison(&mut self) -> Result<(), RoutineError> {
            self.0.push("poison");
            Ok(())
        }

        fn restore(&mut self) -> Result<(), RoutineError> {
            self.0.push("restore");
            Ok(())
        }

        fn run(&mut self) -> Result<(), RoutineError> {
            Ok(())
        }

        fn check(&mut self) -> Result<Verified, RoutineError> {
            Err("nothing is compared".into())
        }
    }

    #[test]
    fn state_is_restored_before_a_guarded_run() {
        let mut noted = Noted(Vec::new());
        let mut anew = Anew {
            first: &mut noted,
            second: None,
            make: &|| unreachable!("the first is enough"),
        };
        anew.poison().unwrap();
        assert_eq!(noted.0, ["restore", "poison"]);
    }
}
