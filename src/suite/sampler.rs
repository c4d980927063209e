//! An implementation that is set up, and the samples that Criterion asks for.

use std::time::Instant;

use crate::suite::group::{Inputs, Row};
use crate::suite::host::Host;
use crate::suite::state::Run;
use crate::suite::turns::Turns;
use crate::timing::{Clock, TimingError};
use crate::workload::routine::{Routine, RoutineError};
use crossover_machine::monitor::Watch;
use crossover_protocol::turns::TurnMessage;

/// An implementation, set up at a size.
pub(super) struct Timed {
    pub(super) clock: Clock,
    /// Kernel or graph launches of an iteration; 0 on the CPU, whose time must not contain a wait for the
    /// device.
    pub(super) launches: u32,
    pub(super) routine: Box<dyn Routine>,
    /// Iterations that were run. More than are timed: behind a gate, a single iteration is run once before.
    pub(super) ran: u64,
}

impl Host {
    /// Sets an implementation up for these inputs.
    pub(super) fn set_up(&self, row: &Row, inputs: &Inputs) -> Result<Timed, RoutineError> {
        let gpu = || {
            let gpu = self.gpu()?;
            self.time.wake()?;
            Ok(gpu)
        };
        let routine = row.set_up(inputs, gpu)?;
        Ok(Timed {
            clock: row.clock,
            launches: if row.is_gpu() {
                routine.launches().max(1)
            } else {
                0
            },
            routine,
            ran: 0,
        })
    }

    /// Poisons the output, runs once from restored state and waits. This is done also where nothing
    /// is verified: what a routine sets up in its first run must not be timed, and in every process
    /// the threads that poison are the first to touch the output's memory.
    pub(super) fn run_once(&self, code: &mut Timed) -> Result<(), RoutineError> {
        code.routine.restore()?;
        code.routine.poison()?;
        code.routine.run()?;
        self.wait()
    }

    /// Waits for the device, where it is open.
    pub(super) fn wait(&self) -> Result<(), RoutineError> {
        match self.opened() {
            Some(gpu) => Ok(gpu.synchronize()?),
            None => Ok(()),
        }
    }

    /// Times `iterations` from restored state, in nanoseconds.
    pub(super) fn measure(&self, code: &mut Timed, iterations: u64) -> Result<f64, TimingError> {
        code.routine.restore()?;
        if code.launches > 0 {
            // Else the sample would contain it.
            self.wait()?;
        }
        let (clock, launches) = (code.clock, code.launches);
        let mut run = || {
            code.ran += 1;
            code.routine.run()
        };
        if launches > 0 {
            return self.time.measure(clock, iterations, launches, run);
        }
        let mut outcome = Ok(());
        let ns = self.time.measure_cpu(iterations, || {
            if outcome.is_ok() {
                outcome = run();
            }
        });
        outcome?;
        Ok(ns)
    }
}

/// Times an implementation, one sample after the other.
pub(super) struct Sampler<'a> {
    pub(super) run: &'a Run,
    /// Id of the benchmark.
    pub(super) id: String,
    pub(super) code: &'a mut Timed,
    pub(super) watch: Option<&'a Watch>,
    /// In turns: the iterations of a sample, which the warm-up chooses.
    pub(super) iterations: Option<u64>,
}

impl Sampler<'_> {
    /// Nanoseconds of all `iterations` together.
    pub(super) fn sample(&mut self, iterations: u64) -> Result<f64, TimingError> {
        if let Some(own) = self.code.routine.time(iterations) {
            return Ok(plausible(own?, iterations)?);
        }
        self.code.ran = 0;
        let ns = match &self.run.turns {
            None => self.measure(iterations)?,
            // Criterion's count comes from a clock that ran on while the other side had its turn.
            Some(turns) => self.turn(turns)? * iterations as f64,
        };
        if let Some(watch) = self.watch {
            watch.sampled(self.code.ran);
        }
        Ok(ns)
    }

    /// Nanoseconds of an iteration, in this side's turn. The first turn is the warm-up.
    fn turn(&mut self, turns: &Turns) -> Result<f64, TimingError> {
        let ns = match self.iterations {
            None => {
                let ns = self.warm_up()?;
                self.iterations = Some(self.run.sampling.iterations(ns));
                ns
            }
            Some(iterations) => {
                // The other side emptied the caches.
                self.measure(iterations.div_ceil(8))?;
                self.measure(iterations)? / iterations as f64
            }
        };
        // The other side is next.
        self.code.routine.park();
        let id = self.id.clone();
        turns.say(&TurnMessage::Sampled { id });
        Ok(ns)
    }

    /// Nanoseconds of an iteration after the plan's warm-up.
    fn warm_up(&mut self) -> Result<f64, TimingError> {
        let start = Instant::now();
        let mut iterations = 1;
        loop {
            let ns = self.measure(iterations)? / iterations as f64;
            if start.elapsed() >= self.run.sampling.warm_up {
                return Ok(ns);
            }
            iterations *= 2;
        }
    }

    fn measure(&mut self, iterations: u64) -> Result<f64, TimingError> {
        self.run.machine.measure(self.code, iterations)
    }
}

/// Rejects a time that Criterion's statistics and plots would fail on: a routine that times itself
/// may return anything.
fn plausible(ns: f64, iterations: u64) -> Result<f64, RoutineError> {
    const YEARS: f64 = 1e18;
    match ns > 0.0 && ns / iterations as f64 <= YEARS {
        true => Ok(ns),
        false => Err(format!(
            "the routine times itself and returned {ns:e} ns for {iterations} iterations, which is not a \
             valid time; check its `time`"
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_time_is_refused() {
        assert_eq!(plausible(2e9, 4).unwrap(), 2e9);
        for ns in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e308] {
            let error = plausible(ns, 1).unwrap_err().to_string();
            assert!(error.contains("which is not a valid time"), "{error}");
        }
    }
}
