//! The samples that Criterion asks for.

use std::time::Instant;

use crate::suite::state::{Bench, Run};
use crate::suite::turns::Turns;
use crate::timing::{Clock, CudaTime, TimingError};
use crate::workload::routine::{Routine, RoutineError};
use crossover_machine::monitor::Watch;
use crossover_protocol::turns::TurnMessage;

/// Times a routine, one sample after the other.
pub(super) struct Sampler<'a> {
    run: &'a Run,
    /// Id of the benchmark.
    id: String,
    clock: Clock,
    /// Of an iteration; 0 on the CPU.
    launches: u32,
    routine: &'a mut dyn Routine,
    watch: Option<&'a Watch>,
    /// In turns: the iterations of a sample, which the warm-up chooses.
    iterations: Option<u64>,
    /// Iterations that were run for this sample. More than are timed: behind a gate, a single
    /// iteration is run once before.
    pub(super) ran: u64,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(
        run: &'a Run,
        bench: &Bench<'_>,
        routine: &'a mut dyn Routine,
        watch: Option<&'a Watch>,
    ) -> Self {
        Self {
            run,
            id: bench.id.clone(),
            clock: bench.row.clock,
            launches: bench.row.launches_of(routine),
            routine,
            watch,
            iterations: None,
            ran: 0,
        }
    }

    /// Nanoseconds of all `iterations` together.
    pub(super) fn sample(&mut self, iterations: u64) -> Result<f64, TimingError> {
        if let Some(own) = self.routine.time(iterations) {
            return Ok(plausible(own?, iterations)?);
        }
        self.ran = 0;
        let ns = match &self.run.turns {
            None => self.measure(iterations)?,
            // Criterion's count comes from a clock that ran on while the other side had its turn.
            Some(turns) => self.turn(turns)? * iterations as f64,
        };
        if let Some(watch) = self.watch {
            watch.sampled(self.ran);
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
        self.routine.park();
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

    /// Times `iterations` from restored state, in nanoseconds.
    fn measure(&mut self, iterations: u64) -> Result<f64, TimingError> {
        self.routine.restore()?;
        if let (Some(gpu), 1..) = (self.run.machine.opened(), self.launches) {
            // Else the sample would contain it.
            gpu.synchronize()?;
        }
        let (routine, ran) = (&mut *self.routine, &mut self.ran);
        let counted = || {
            *ran += 1;
            routine.run()
        };
        match self.launches {
            0 => on_cpu(&self.run.time, iterations, counted),
            launches => (self.run.time).measure(self.clock, iterations, launches, counted),
        }
    }
}

/// Times code on the CPU, up to its first error.
pub(super) fn on_cpu(
    time: &CudaTime,
    iterations: u64,
    mut run: impl FnMut() -> Result<(), RoutineError>,
) -> Result<f64, TimingError> {
    let mut failed = None;
    let ns = time.measure_cpu(iterations, || {
        if failed.is_none()
            && let Err(error) = run()
        {
            failed = Some(error);
        }
    });
    failed.map_or(Ok(ns), |error| Err(error.into()))
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
