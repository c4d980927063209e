//! An implementation that is set up, and the samples that Criterion asks for.

use std::time::{Duration, Instant};

use criterion::SamplingMode;

use crate::model::record::Activity;
use crate::model::telemetry::Telemetry;
use crate::suite::benchmark::{Bench, Prepared};
use crate::suite::group::{Inputs, Row};
use crate::suite::host::Host;
use crate::suite::instance::Plots;
use crate::suite::missing::Missing;
use crate::suite::run::Run;
use crate::suite::sampling_plan::Sampling;
use crate::suite::turns::Turns;
use crate::timing::{Clock, TimingError, catch_panic};
use crate::workload::routine::{Routine, RoutineError};
use crossover_machine::monitor::Watch;
use crossover_protocol::turns::TurnMessage;
use crossover_system::interrupt;

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

    /// Poisons the output, runs once from restored state and waits. This happens even if nothing is
    /// verified: set-up in a routine's first run must not be timed, and in every process the poisoning
    /// threads must be the first to touch the output's memory.
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
            // Otherwise the sample would contain it.
            self.wait()?;
        }
        let (clock, launches) = (code.clock, code.launches);
        let mut run = || {
            code.ran += 1;
            code.routine.run()
        };
        if launches > 0 {
            // Rows on this clock wait for their work themselves.
            return match clock {
                Clock::Wall => self.time.measure_awaited(iterations, run),
                _ => self.time.measure_launches(clock, iterations, launches, run),
            };
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

    /// Runs twice as many iterations each time until so much time has passed, and the last time took at least
    /// `last` on its clock. Returns the nanoseconds of an iteration of the last time.
    pub(super) fn warm_up(
        &self,
        code: &mut Timed,
        time: Duration,
        last: Duration,
    ) -> Result<f64, TimingError> {
        let start = Instant::now();
        let mut iterations = 1;
        loop {
            let ns = self.measure(code, iterations)?;
            if start.elapsed() >= time && ns >= last.as_nanos() as f64 {
                return Ok(ns / iterations as f64);
            }
            iterations *= 2;
        }
    }
}

impl Run {
    /// Makes Criterion sample as planned, unless the command line says otherwise. Returns how long
    /// Criterion warms up.
    fn configure(&self, plots: &mut Plots<'_>, plan: &Sampling) -> Duration {
        let in_turns = self.turns.is_some();
        let gave = |option| self.arguments.gave(option);
        let is_planned = in_turns || !(gave("sample-size") || gave("measurement-time"));
        let mode = Some(plan.mode).filter(|_| is_planned);
        plots.sampling_mode(mode.unwrap_or(SamplingMode::Auto));
        if !gave("sample-size") {
            plots.sample_size(plan.samples);
        }
        if in_turns || !gave("measurement-time") {
            plots.measurement_time(plan.measurement);
        }
        if in_turns || !gave("warm-up-time") {
            plots.warm_up_time(plan.warm_up);
        }
        self.arguments.warm_up(plan.warm_up)
    }

    /// Has Criterion take the samples, while the device is watched. The inputs must be the same before and
    /// after.
    pub(super) fn sample(
        &self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<Telemetry>, Missing> {
        let Prepared {
            code,
            sampling: plan,
        } = prepared;
        let warm_up = self.configure(plots, plan);
        let is_timed = plan.is_timed_by_a_clock() && bench.row.is_gpu();
        let is_watched = is_timed && self.arguments.saves && self.settings.monitor;
        let monitor = is_watched.then(|| self.machine.monitor()).flatten();
        // If the system refuses a thread, missing telemetry is the least problem.
        let mut watch = monitor.and_then(|monitor| Watch::start(monitor.clone()).ok());
        let inputs = self.inputs(bench, code)?;
        let mut sampler = Sampler {
            run: self,
            id: bench.id.clone(),
            code,
            watch: watch.as_mut(),
            iterations: None,
        };
        let sampled_before = bench.folder.sampled_at();
        // Threads of a routine that several threads drive start here too, and would all be kept on one
        // core.
        let is_kept = bench.row.role.is_driven_by_one_thread();
        let _core = is_kept.then(|| match &self.turns {
            Some(turns) => turns.on_one_core(),
            None if bench.row.is_gpu() => self.machine.opened()?.keep_near(),
            None => None,
        });
        // Only a panic can leave Criterion's closure; the error is kept here.
        let mut failure: Option<TimingError> = None;
        let (criterion_id, spent) = (bench.criterion_id(), &mut bench.spent);
        let mut called = Duration::ZERO;
        let begun = Instant::now();
        let outcome = catch_panic(|| {
            plots.bench_function(criterion_id, |b| {
                b.iter_custom(|iterations| {
                    // Criterion's own rule: it does not tell which of its calls warm up.
                    let activity = match begun.elapsed() <= warm_up {
                        true => Activity::WarmUp,
                        false => Activity::Samples,
                    };
                    let call = Instant::now();
                    let sample = sampler.sample(iterations);
                    spent.add(activity, call.elapsed());
                    called += call.elapsed();
                    let ns = sample.unwrap_or_else(|error| {
                        let text = error.to_string();
                        failure = Some(error);
                        panic!("{text}")
                    });
                    if sampler.code.ran > 0 && interrupt::signal().is_some() {
                        // The samples of this benchmark are dropped. A routine that times itself has
                        // already measured.
                        panic!("interrupted");
                    }
                    ns
                });
            });
        });
        spent.add(Activity::Analysis, begun.elapsed().saturating_sub(called));
        if let Err(panic) = outcome {
            if let Some(error) = failure {
                return Err(error.into());
            }
            if !self.arguments.saves || bench.folder.sampled_at() == sampled_before {
                return Err(panic.into());
            }
            // The samples were written before Criterion's analysis failed on them.
            bench.folder.rescue()?;
            eprintln!(
                "note: {} was measured and saved; Criterion could not compare it with the run before ({})",
                bench.id,
                panic.lines().next().unwrap_or_default()
            );
        }
        let telemetry = watch.map(Watch::finish);
        match self.inputs(bench, code)? == inputs {
            true => Ok(telemetry),
            false => {
                Err("an iteration changed its inputs, so later ones computed something else".into())
            }
        }
    }
}

/// Times an implementation, one sample after the other.
struct Sampler<'a> {
    run: &'a Run,
    /// Id of the benchmark.
    id: String,
    code: &'a mut Timed,
    watch: Option<&'a mut Watch>,
    /// In turns: the iterations of a sample, which the warm-up chooses.
    iterations: Option<u64>,
}

impl Sampler<'_> {
    /// Nanoseconds of all `iterations` together.
    fn sample(&mut self, iterations: u64) -> Result<f64, TimingError> {
        if let Some(own) = self.code.routine.time(iterations) {
            return Ok(plausible(own?, iterations)?);
        }
        self.code.ran = 0;
        let ns = match &self.run.turns {
            None => self.measure(iterations)?,
            // Criterion's count comes from a clock that ran on while the other side had its turn.
            Some(turns) => self.turn(turns)? * iterations as f64,
        };
        if let Some(watch) = &mut self.watch {
            watch.sampled(self.code.ran);
        }
        Ok(ns)
    }

    /// Nanoseconds of an iteration, in this side's turn. The first turn is the warm-up.
    fn turn(&mut self, turns: &Turns) -> Result<f64, TimingError> {
        let ns = match self.iterations {
            None => {
                let warm_up = self.run.sampling.warm_up;
                let ns = self
                    .run
                    .machine
                    .warm_up(self.code, warm_up, Duration::ZERO)?;
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
