//! Checks of GPU benchmarks besides their results, outside the timed windows: whether the device is
//! idle after them, whether inputs stay the same, and whether an iteration that must compute takes as
//! long as the others.

use std::time::Duration;

use crate::suite::host::{Host, Timed};
use crate::suite::journal::Missing;
use crate::suite::verify::passes;
use crate::timing::{BoxError, Claim, DeviceMemory, Doubt, Guarded};
use crate::workload::routine::{Routine, RoutineError};
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
        let is_executed = self.first.is_executed;
        passes(self.routine(), is_executed)
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

/// Runs code on inputs with other values, for which `make` sets it up anew. An iteration takes as long as given.
///
/// # Errors
/// Its time cannot be that of its work.
pub(super) fn guard(
    machine: &Host,
    code: &mut Timed,
    iteration: Duration,
    make: &dyn Fn() -> Result<Timed, RoutineError>,
) -> Result<Vec<Doubt>, Missing> {
    let claim = Claim::new(code.clock, code.launches, iteration.as_nanos() as f64);
    let mut doubts = Vec::new();
    let announcer = code.routine.announcer();
    let mut code = Anew {
        first: code,
        second: None,
        make,
    };
    // A host that is taken off its core is late once.
    for _ in 0..3 {
        let guard = || machine.time.guard(&claim, &mut code);
        doubts = machine.time.announcing(announcer.clone(), guard)?;
        if let Some(proof) = doubts.iter().find(|doubt| doubt.is_proof()) {
            return Err(format!("{proof}; it is not timed").into());
        }
        // The spread of equal iterations is judged by the samples.
        doubts.retain(|doubt| !matches!(doubt, Doubt::Disturbed { .. }));
        // No device took these times.
        if !code.first.is_executed {
            doubts.clear();
        }
        if doubts.is_empty() {
            break;
        }
    }
    Ok(doubts)
}

/// Runs once from restored state into a poisoned output, as [`Host::run_once`], and compares the time with
/// these of an iteration, ns.
pub(super) fn run_again(
    machine: &Host,
    code: &mut Timed,
    ns: Option<&[f64]>,
) -> Result<Option<Doubt>, Missing> {
    let Some(again_ns) = ns.and_then(|ns| median(ns.iter().copied())) else {
        machine.run_once(code)?;
        return Ok(None);
    };
    let (factor, more) = LONGER;
    let mut first_ns = f64::INFINITY;
    for _ in 0..3 {
        code.routine.restore()?;
        code.routine.poison()?;
        machine.time.settle()?;
        let announcer = code.routine.announcer();
        let once = || machine.time.once(code.clock, || code.routine.run());
        first_ns = first_ns.min(machine.time.announcing(announcer, once)?);
        if first_ns <= factor * again_ns + more {
            return Ok(None);
        }
    }
    let doubt = Doubt::Replayed { first_ns, again_ns };
    Ok(Some(doubt).filter(|_| code.is_executed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::verify::tests::Adds;
    use crate::timing::Clock;

    #[test]
    fn state_is_restored_before_a_guarded_run() {
        let mut first = Timed {
            clock: Clock::Wall,
            launches: 0,
            is_executed: true,
            routine: Box::new(Adds::restored_by(|| true)),
            ran: 0,
        };
        let mut anew = Anew {
            first: &mut first,
            second: None,
            make: &|| unreachable!("the first is enough"),
        };
        for _ in 0..2 {
            anew.poison().unwrap();
            assert!(anew.check().is_err(), "poison passes");
            anew.run().unwrap();
            anew.check().unwrap();
        }
    }
}
