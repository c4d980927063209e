//! How a benchmark comes to be ready for its samples: what does not fit is left out, its routine is made and
//! verified, and its samples are planned.

use std::time::{Duration, Instant};

use criterion::SamplingMode;

use crate::model::verified::Verified;
use crate::suite::group::{Inputs, Make};
use crate::suite::learnt::Learnt;
use crate::suite::measure::{Bench, Measuring};
use crate::suite::missing::{Missing, caught, skipped};
use crate::suite::pace::{Forecast, Pace};
use crate::suite::sampling_plan::{FEWEST_SAMPLES, Samples, Sampling, Timing};
use crate::timing::{Clock, CudaError, TimingError};
use crate::workload::calibrate;
use crate::workload::routine::Routine;
use crossover_machine::recorded;

impl Measuring<'_> {
    /// Leaves a benchmark out for which there is not enough memory.
    pub(super) fn require_room(&self, bench: &Bench<'_>) -> Result<(), Missing> {
        // Both sides have their memory at once.
        let sides = 1 + u64::from(self.turns.is_some());
        let on_gpu = bench.row.is_gpu();
        let operation = &bench.group.operation;
        let device_bytes = on_gpu.then(|| sides * (operation.device_bytes)(bench.size));
        let host_bytes = sides * (operation.host_bytes)(bench.size);
        match self.machine.too_small_for(host_bytes, device_bytes) {
            Some(reason) => Err(Missing::Skipped(reason)),
            None => Ok(()),
        }
    }

    /// Sets up an implementation for these inputs.
    pub(super) fn make(
        &self,
        bench: &Bench<'_>,
        inputs: &Inputs,
    ) -> Result<Box<dyn Routine>, Missing> {
        Ok(match &bench.row.make {
            Make::Cpu(make) => make(inputs)?,
            Make::Gpu(make) => {
                let gpu = self.machine.gpu(self.time).map_err(skipped)?;
                self.time.wake().map_err(TimingError::from)?;
                make(&gpu, inputs)?
            }
        })
    }

    /// Verifies an implementation on inputs that are never timed.
    fn verify_on(&self, bench: &Bench<'_>, inputs: &Inputs) -> Result<(), Missing> {
        let mut routine = self.make(bench, inputs)?;
        match self.verify(bench, &mut *routine) {
            Err(Missing::Failed { text, context_lost }) => Err(Missing::Failed {
                text: format!("on edge cases: {text}"),
                context_lost,
            }),
            other => other.map(drop),
        }
    }

    /// Verifies an implementation on the edge cases of its workload, once for all sizes.
    pub(super) fn verify_edge_cases(
        &self,
        bench: &Bench<'_>,
        learnt: &mut Learnt,
    ) -> Result<(), Missing> {
        let function = bench.row.function();
        if !self.verifies() || learnt.right_on_edge_cases.contains(&function) {
            return Ok(());
        }
        let edge_cases = bench.group.operation.edge_cases;
        if let Some(edge_cases) = learnt.edge_cases.get_or_init(edge_cases) {
            caught(|| self.verify_on(bench, edge_cases))?;
            learnt.right_on_edge_cases.insert(function);
        }
        Ok(())
    }

    /// Makes a routine, runs it once, with the comparison where it is to be verified, and plans its samples.
    pub(super) fn set_up(
        &self,
        bench: &Bench<'_>,
        inputs: &Inputs,
        pace: &mut Pace,
    ) -> Result<(Box<dyn Routine>, Sampling), Missing> {
        // Discards the choices of the benchmark before.
        calibrate::take_recent();
        calibrate::take_calibrations();
        let mut routine = self.make(bench, inputs)?;
        match self.verifies() {
            true => self.verify(bench, &mut *routine).map(drop)?,
            false => self.run_once(&mut *routine)?,
        }
        let sampling = self.plan(bench, pace, &mut *routine)?;
        Ok((routine, sampling))
    }

    /// Verifies once more after the last sample: a routine that went wrong under load, or after the first
    /// run, was not worth timing. `None` where nothing is verified.
    pub(super) fn verify_again(
        &mut self,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        is_timed: bool,
    ) -> Result<Option<Verified>, Missing> {
        if !self.verifies() {
            return Ok(None);
        }
        caught(|| {
            match is_timed {
                true => self.run_timed(bench, routine)?,
                false => self.run_once(routine)?,
            }
            self.judge(bench, routine)
        })
    }

    fn verifies(&self) -> bool {
        self.turns.is_none_or(|turns| turns.told().verify)
    }

    /// Poisons the output, runs once from restored state and waits. This is done also where nothing
    /// is verified: what a routine sets up in its first run must not be timed, and in every process
    /// the threads that poison are the first to touch the output's memory.
    pub(super) fn run_once(&self, routine: &mut dyn Routine) -> Result<(), Missing> {
        routine.restore()?;
        routine.poison()?;
        routine.run()?;
        self.wait()
    }

    /// Runs once, from restored state and on a poisoned output, and compares with the reference.
    /// `None` where no device has computed what was compared.
    fn verify(
        &self,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
    ) -> Result<Option<Verified>, Missing> {
        self.run_once(routine)?;
        self.judge(bench, routine)
    }

    /// Compares what it has computed with the reference.
    fn judge(
        &self,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
    ) -> Result<Option<Verified>, Missing> {
        let verified = routine.check()?;
        let on_gpu = bench.row.is_gpu();
        match recorded::failure(&verified, on_gpu) {
            None => Ok(Some(verified).filter(|_| !(on_gpu && recorded::recorded()))),
            Some(wrong) => Err(Missing::Failed {
                text: format!("{wrong}; it is not timed"),
                context_lost: false,
            }),
        }
    }

    fn wait(&self) -> Result<(), Missing> {
        if let Some(gpu) = self.machine.opened() {
            gpu.synchronize().map_err(|e| Missing::Failed {
                context_lost: e.sticky,
                text: e.to_string(),
            })?;
        }
        Ok(())
    }

    /// Waits for the device: errors of destructors surface on a later call, and must not be those of
    /// the next benchmark.
    pub(super) fn check_device(&self) -> Result<(), Missing> {
        if let Some(gpu) = self.machine.opened() {
            gpu.context().check_err().map_err(|e| {
                let error = CudaError::new("an earlier CUDA call", e);
                Missing::Failed {
                    context_lost: error.sticky,
                    text: error.to_string(),
                }
            })?;
        }
        Ok(())
    }

    /// Leaves a benchmark out if one iteration takes longer than the profile allows. To know that, it may
    /// run some smaller sizes once.
    pub(super) fn require_short_iterations(
        &self,
        bench: &Bench<'_>,
        pace: &mut Pace,
    ) -> Result<(), Missing> {
        let Bench { group, row, .. } = *bench;
        let Some(limit) = self.sampling.longest_iteration_of(&row.role) else {
            return Ok(());
        };
        let sizes = group.sizes_of(row).of(self.settings.profile).iter();
        let smaller: Vec<u64> = sizes.copied().filter(|size| *size < bench.size).collect();
        let cost = |size| group.cost_of(row, size);
        loop {
            match pace.forecast(&row.function(), bench.size, &smaller, cost, limit) {
                Forecast::Runs => return Ok(()),
                Forecast::TooLong(reason) => return Err(Missing::Skipped(reason)),
                Forecast::RunFirst(size) => {
                    let run = || -> Result<(), Missing> {
                        let mut routine = self.make(bench, &(group.operation.inputs)(size))?;
                        self.run_once(&mut *routine)?;
                        self.iteration(bench, size, pace, &mut *routine).map(drop)
                    };
                    caught(run)?;
                }
            }
        }
    }

    /// Runs a warm iteration at a size, and keeps how long it took; `None` of a routine that times
    /// itself.
    fn iteration(
        &self,
        bench: &Bench<'_>,
        size: u64,
        pace: &mut Pace,
        routine: &mut dyn Routine,
    ) -> Result<Option<Duration>, Missing> {
        let function = bench.row.function();
        if routine.time(1).transpose()?.is_some() {
            pace.note_times_itself(function);
            return Ok(None);
        }
        let start = Instant::now();
        routine.run()?;
        if bench.row.is_gpu() {
            self.wait()?;
        }
        let iteration = start.elapsed();
        let cost = bench.group.cost_of(bench.row, size);
        pace.note(function, &cost, size, iteration);
        Ok(Some(iteration))
    }

    /// Chooses the number of samples and their time by one warm iteration.
    fn plan(
        &self,
        bench: &Bench<'_>,
        pace: &mut Pace,
        routine: &mut dyn Routine,
    ) -> Result<Sampling, Missing> {
        let nothing = Duration::from_nanos(1);
        // A routine that times itself has measured already, and returns at once: in more time
        // Criterion would plan billions of iterations, in less it would print a warning.
        let mut plan = Sampling {
            timing: Timing::Own,
            warm_up: nothing,
            iteration: nothing,
            samples: Samples {
                count: FEWEST_SAMPLES,
                measurement: Duration::from_micros(100),
                mode: SamplingMode::Flat,
            },
        };
        if let Some(iteration) = self.iteration(bench, bench.size, pace, routine)? {
            let warm_up = self.sampling.warm_up;
            // Behind a gate the warm-up's first call runs its one iteration twice, and Criterion
            // takes both for one if it calls no second time.
            let is_doubled = bench.row.clock == Clock::EventsGated && 2 * iteration > warm_up;
            let seen = if is_doubled { 2 * iteration } else { iteration };
            plan = Sampling {
                timing: Timing::Clock,
                warm_up,
                samples: self.sampling.for_iteration(seen),
                iteration,
            };
        }
        if self.turns.is_some() {
            // The first call is all of Criterion's warm-up: the suite warms up in it. And Criterion
            // must not warn that the samples, with the other side's turns between them, take longer
            // than planned.
            plan.warm_up = nothing;
            plan.samples.measurement = Duration::from_secs(1_000);
            plan.samples.mode = SamplingMode::Flat;
        }
        Ok(plan)
    }
}
