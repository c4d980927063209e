//! Checks of GPU benchmarks besides their results, outside the timed windows: whether the device is
//! idle after them, whether inputs stay the same, and whether an iteration that must compute takes as
//! long as the others.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::model::record::Activity;
use crate::suite::benchmark::{Bench, Prepared};
use crate::suite::missing::{Missing, caught};
use crate::suite::run::Run;
use crate::suite::sampler::Timed;
use crate::suite::verify::passes;
use crate::timing::{BoxError, Claim, Clock, DeviceMemory, Doubt, Guarded};
use crate::workload::routine::{Routine, RoutineError};
use crossover_machine::recorded;
use crossover_results::statistics::median::median;

/// Times that exceed another by less than this factor, or by fewer nanoseconds, are no reason for
/// doubt: the cache may be cold, and the host may be taken off its core.
const LONGER: (f64, f64) = (3.0, 100_000.0);

/// The code of a benchmark, which is set up anew for other values.
struct Anew<'a> {
    first: &'a mut Timed,
    /// Takes the place of the first.
    second: Option<Timed>,
    make: &'a dyn Fn() -> Result<Timed, RoutineError>,
}

impl Anew<'_> {
    fn routine(&mut self) -> &mut dyn Routine {
        &mut *self.second.as_mut().unwrap_or(self.first).routine
    }
}

impl Guarded for Anew<'_> {
    fn renew(&mut self) -> Result<(), BoxError> {
        self.second = Some((self.make)()?);
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

    fn inputs(&self) -> Vec<DeviceMemory<'_>> {
        let code = self.second.as_ref().unwrap_or(self.first);
        code.routine.inputs()
    }

    fn output(&self) -> Vec<DeviceMemory<'_>> {
        let code = self.second.as_ref().unwrap_or(self.first);
        code.routine.outputs()
    }
}

impl Run {
    /// Whether a benchmark is checked: one on the GPU whose result is stored. Rows that show wrong
    /// clocks are wrong on purpose.
    pub(super) fn looks(&self, bench: &Bench<'_>) -> bool {
        let is_meant = bench.group.topic.truth.is_none() && bench.row.clock != Clock::Submit;
        bench.row.is_gpu() && self.arguments.saves && self.turns.is_none() && is_meant
    }

    /// Checksums of the memory that it reads.
    pub(super) fn inputs(&self, bench: &mut Bench<'_>, code: &Timed) -> Result<Vec<u64>, Missing> {
        if !self.looks(bench) {
            return Ok(Vec::new());
        }
        let checksums = || self.machine.time.checksums(&code.routine.inputs());
        Ok(bench.spent.on(Activity::Checks, checksums)?)
    }

    /// At the smallest size of a row, runs it on inputs with other values. Larger sizes are not
    /// checked, which would need a second set of memory.
    pub(super) fn guard_on_other_values(
        &self,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
    ) -> Result<(), Missing> {
        let sizes = bench.group.sizes_of(bench.row).of(self.settings.profile);
        let is_smallest = sizes.iter().min() == Some(&bench.size);
        // A routine without declared outputs keeps state of the process, such as a memory pool.
        let writes = !prepared.code.routine.outputs().is_empty();
        let is_guarded = self.looks(bench) && is_smallest && writes;
        let Some(iteration) = prepared.sampling.iteration.filter(|_| is_guarded) else {
            return Ok(());
        };
        let begun = Instant::now();
        let guarded = caught(|| self.guard(bench, &mut prepared.code, iteration));
        bench.spent.add(Activity::Checks, begun.elapsed());
        guarded
    }

    fn guard(
        &self,
        bench: &mut Bench<'_>,
        code: &mut Timed,
        iteration: Duration,
    ) -> Result<(), Missing> {
        let make = bench.group.operation.other_values;
        let known = Cell::new(Some(bench.cache.other_values.of(bench.size, make)));
        let claim = Claim::new(code.clock, code.launches, iteration.as_nanos() as f64);
        let mut doubts = Vec::new();
        let mut code = Anew {
            first: code,
            second: None,
            make: &|| {
                // Code that stores results must not have seen the values.
                let values = known.take().unwrap_or_else(|| make(bench.size));
                self.machine.set_up(bench.row, &values)
            },
        };
        // A host that is taken off its core is late once.
        for _ in 0..3 {
            doubts = self.machine.time.guard(&claim, &mut code)?;
            if let Some(proof) = doubts.iter().find(|doubt| doubt.is_proof()) {
                return Err(format!("{proof}; it is not timed").into());
            }
            // The spread of equal iterations is judged by the samples.
            doubts.retain(|doubt| !matches!(doubt, Doubt::Disturbed { .. }));
            if doubts.is_empty() || recorded::recorded() {
                break;
            }
        }
        doubt(bench, doubts);
        Ok(())
    }

    /// Runs once from restored state into a poisoned output, as [`run_once`](Host::run_once), and compares
    /// the time with those of the samples.
    pub(super) fn run_timed(
        &self,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
        ns: &[f64],
    ) -> Result<(), Missing> {
        let is_compared = self.looks(bench) && prepared.sampling.is_timed_by_a_clock();
        let code = &mut prepared.code;
        let Some(again_ns) = median(ns.iter().copied()).filter(|_| is_compared) else {
            return Ok(self.machine.run_once(code)?);
        };
        let time = &self.machine.time;
        let (factor, more) = LONGER;
        let mut first_ns = f64::INFINITY;
        for _ in 0..3 {
            code.routine.restore()?;
            code.routine.poison()?;
            time.settle()?;
            first_ns = first_ns.min(time.once(code.clock, || code.routine.run())?);
            if first_ns <= factor * again_ns + more {
                return Ok(());
            }
        }
        doubt(bench, [Doubt::Replayed { first_ns, again_ns }]);
        Ok(())
    }
}

/// Keeps doubts, except those about times that no device took.
fn doubt(bench: &mut Bench<'_>, doubts: impl IntoIterator<Item = Doubt>) {
    if !recorded::recorded() {
        bench.doubts.extend(doubts);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;
    use crate::model::verified::Verified;

    /// Notes what is asked of it.
    struct Noted(Rc<RefCell<Vec<&'static str>>>);

    impl Routine for Noted {
        fn poison(&mut self) -> Result<(), RoutineError> {
            self.0.borrow_mut().push("poison");
            Ok(())
        }

        fn restore(&mut self) -> Result<(), RoutineError> {
            self.0.borrow_mut().push("restore");
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
        let noted = Rc::new(RefCell::new(Vec::new()));
        let mut first = Timed {
            clock: Clock::Wall,
            launches: 0,
            routine: Box::new(Noted(noted.clone())),
            ran: 0,
        };
        let mut anew = Anew {
            first: &mut first,
            second: None,
            make: &|| unreachable!("the first is enough"),
        };
        anew.poison().unwrap();
        assert_eq!(*noted.borrow(), ["restore", "poison"]);
    }
}
