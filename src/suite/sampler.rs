//! The samples of a benchmark, as Criterion asks for them. An unsteady series of samples is taken again before
//! Criterion gets the first of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::Telemetry;
use crate::model::record::Activity;
use crate::suite::guarded::run_again;
use crate::suite::host::{NotAgain, Timed, long_launches};
use crate::suite::journal::Missing;
use crate::suite::progress::Spent;
use crate::suite::run::{Run, Turns};
use crate::suite::sampling_plan::{Sampling, warm_up_in_turns};
use crate::timing::LaunchState;
use crate::workload::devices::LaunchRequest;
use crate::workload::routine::RoutineError;
use crossover_machine::monitor::Watch;
use crossover_machine::nvml::Monitor;
use crossover_protocol::turns::TurnMessage;
use crossover_results::statistics::unsteady::unsteady;
use crossover_system::interrupt;

/// If an iteration on a GPU takes this long, an unsteady series is not taken again. In a default run on an H100
/// (5d9f35a6) the second series of six such benchmarks took 7 s, and one was steady.
const LONG: Duration = Duration::from_millis(25);

/// Samples that were taken one after the other.
#[derive(Default)]
pub(super) struct SampleSeries {
    /// Iterations of each sample, and their time together, ns.
    samples: Vec<(u64, f64)>,
    pub(super) telemetry: Option<Telemetry>,
    /// Why its median cannot be trusted, in words.
    pub(super) unsteady: Option<String>,
    /// Whether the code has run once more, into a poisoned output.
    pub(super) is_run_again: bool,
    /// The constant of a launch before them, ns.
    pub(super) empty_before_ns: Option<f64>,
    /// Launches before and after them, where they were probed.
    pub(super) launches: [Option<LaunchState>; 2],
    /// That launches became long, in words.
    pub(super) launch_note: Option<String>,
}

impl SampleSeries {
    /// Times of an iteration, ns.
    pub(super) fn ns(&self) -> Vec<f64> {
        let of_iteration = |(iterations, ns): &(u64, f64)| ns / *iterations as f64;
        self.samples.iter().map(of_iteration).collect()
    }
}

/// Times an implementation, one sample after the other.
pub(super) struct Sampler<'a> {
    pub(super) run: &'a Run,
    /// Id of the benchmark.
    pub(super) id: &'a str,
    pub(super) code: &'a mut Timed,
    pub(super) plan: Sampling,
    /// Whether an unsteady series is taken again.
    pub(super) retakes: bool,
    /// Whether launches are probed after the samples; `Some(true)` on all devices.
    pub(super) probes: Option<bool>,
    /// Launches before the samples.
    pub(super) launches: Option<LaunchState>,
    /// Why launches that became long are no reason for a second series.
    pub(super) not_again: Option<NotAgain>,
    /// The time so far, by activity.
    pub(super) spent: Spent,
    /// Time of Criterion's calls.
    pub(super) called: Duration,
    /// Whether the time of a single run is compared with the samples.
    pub(super) is_guarded: bool,
    /// A reason from before the samples not to trust them.
    pub(super) doubt: Option<String>,
    /// The device's readings, where they are stored.
    pub(super) monitor: Option<&'a Arc<Monitor>>,
    pub(super) watch: Option<Watch>,
    /// The samples for Criterion, taken before it asks for them.
    pub(super) series: Option<SampleSeries>,
    /// The samples that Criterion was given.
    pub(super) given: Vec<(u64, f64)>,
    /// In turns: the iterations before a sample and of a sample, which the warm-up chooses.
    pub(super) iterations: Option<[u64; 2]>,
}

impl<'a> Sampler<'a> {
    /// The time of these iterations, ns, for Criterion.
    pub(super) fn next(&mut self, iterations: u64) -> Result<f64, Missing> {
        // Criterion's own rule: it does not tell which of its calls warm up.
        let is_warm_up = self.called <= self.plan.warm_up;
        let (begun, known) = (Instant::now(), self.spent.whole());
        let (activity, sample) = if is_warm_up {
            (Activity::WarmUp, self.sample(iterations))
        } else {
            (Activity::Samples, self.planned(iterations))
        };
        let took = begun.elapsed();
        self.called += took;
        let on_launches = self.spent.whole() - known;
        self.spent.add(activity, took.saturating_sub(on_launches));
        sample
    }

    /// The next sample of the series, which is taken at the first call.
    fn planned(&mut self, iterations: u64) -> Result<f64, Missing> {
        if self.retakes && self.series.is_none() {
            self.series = Some(self.steady_series(iterations)?);
        }
        let taken = (self.series.as_ref()).and_then(|series| series.samples.get(self.given.len()));
        let ns = match taken.copied() {
            Some((planned, ns)) if planned == iterations => ns,
            _ => self.sample(iterations)?,
        };
        self.given.push((iterations, ns));
        Ok(ns)
    }

    /// The samples that Criterion was given, and the time by activity.
    pub(super) fn end(mut self) -> (Result<SampleSeries, Missing>, Spent) {
        let given = self.given_series();
        (given, self.spent)
    }

    fn given_series(&mut self) -> Result<SampleSeries, Missing> {
        let series = self.series.take();
        let given = std::mem::take(&mut self.given);
        if let Some(taken) = series.filter(|series| series.samples == given) {
            return Ok(taken);
        }
        let launches = self.launches_after()?;
        let is_long = launches[1].filter(|state| state.is_long);
        Ok(SampleSeries {
            telemetry: self.watch.take().map(Watch::finish),
            samples: given,
            unsteady: self.doubt.take(),
            launches,
            launch_note: is_long.map(|state| long_launches(state, None)),
            ..SampleSeries::default()
        })
    }

    /// Launches before and after the samples.
    fn launches_after(&mut self) -> Result<[Option<LaunchState>; 2], RoutineError> {
        let run = self.run;
        let after = match self.probes {
            Some(several) => (self.spent).on(Activity::Launches, || {
                run.machine.probe_launches(several, LaunchRequest::Probe)
            })?,
            None => None,
        };
        Ok([self.launches, after])
    }

    /// Starts to read the device. If the system refuses a thread, missing telemetry is the least problem.
    pub(super) fn watch(&mut self) {
        let monitor = self.monitor.filter(|_| self.watch.is_none());
        if let Some(monitor) = monitor {
            self.watch = Watch::start(monitor.clone()).ok();
        }
    }

    /// Takes all samples, the first of these iterations. Takes them again if the series is unsteady or launches became
    /// long during it, unless it [`is_long`].
    fn steady_series(&mut self, iterations: u64) -> Result<SampleSeries, Missing> {
        let first = self.series(iterations)?;
        let is_over = || interrupt::signal().is_some();
        let is_again = !is_long(self.code.launches, self.plan.iteration) && !is_over();
        let mut series = if is_again && self.wants_another(&first)? {
            match self.series(iterations) {
                // After a signal an unsteady result is better than none.
                Err(_) if is_over() => first,
                second => second?,
            }
        } else {
            first
        };
        let is_long = series.launches[1].filter(|state| state.is_long);
        series.launch_note = is_long.map(|state| long_launches(state, self.not_again));
        Ok(series)
    }

    /// Whether a second series is to be taken after the first. Long launches are restored before.
    fn wants_another(&mut self, first: &SampleSeries) -> Result<bool, Missing> {
        let is_unsteady = first.unsteady.is_some();
        let after = first.launches[1].filter(|state| state.is_long);
        let Some((state, several)) = after.zip(self.probes) else {
            return Ok(is_unsteady);
        };
        let begun = Instant::now();
        self.not_again = self.run.machine.restore_after(self.code, several)?;
        self.launches = self
            .run
            .machine
            .probe_launches(several, LaunchRequest::Probe)?;
        self.spent.add(Activity::Launches, begun.elapsed());
        if self.not_again.is_none() {
            let why = long_launches(state, None);
            eprintln!("note: {} is measured again: {why}", self.id);
        }
        Ok(is_unsteady || self.not_again.is_none())
    }

    /// Takes a series, and runs the code once more into a poisoned output.
    fn series(&mut self, iterations: u64) -> Result<SampleSeries, Missing> {
        self.watch();
        let mut series = SampleSeries::default();
        for iterations in self.plan.counts(iterations) {
            let ns = self.sample(iterations)?;
            series.samples.push((iterations, ns));
        }
        series.telemetry = self.watch.take().map(Watch::finish);
        series.launches = self.launches_after()?;
        let ns = series.ns();
        // A routine that went wrong under load, or after the first run, was not worth timing.
        let doubt = run_again(
            &self.run.machine,
            self.code,
            self.is_guarded.then_some(&ns[..]),
        )?;
        series.is_run_again = true;
        // A doubt makes a steady result unsteady, and is the graver reason.
        series.unsteady = (doubt.map(|doubt| doubt.to_string()))
            .or_else(|| unsteady(ns, self.code.clock))
            .or_else(|| self.doubt.clone());
        Ok(series)
    }

    /// Nanoseconds of all `iterations` together.
    fn sample(&mut self, iterations: u64) -> Result<f64, Missing> {
        if let Some(own) = self.code.routine.time(iterations) {
            return Ok(plausible(own?, iterations)?);
        }
        self.code.ran = 0;
        let ns = match &self.run.turns {
            None => self.run.machine.measure(self.code, iterations)?,
            // Criterion's count comes from a clock that ran on while the other side had its turn.
            Some(turns) => self.turn(turns)? * iterations as f64,
        };
        if let Some(watch) = &mut self.watch {
            watch.sampled(self.code.ran);
        }
        if interrupt::signal().is_some() {
            // The samples of this benchmark are dropped. A routine that times itself has already measured.
            return Err("interrupted".into());
        }
        Ok(ns)
    }

    /// Nanoseconds of an iteration, in this side's turn. The first turn is the warm-up.
    fn turn(&mut self, turns: &Turns) -> Result<f64, Missing> {
        let ns = match self.iterations {
            None => {
                let sampling = self.run.sampling_of(self.code);
                let (machine, least) = (&self.run.machine, Duration::ZERO);
                let iteration = machine.warm_up(self.code, sampling.warm_up, least)?;
                let iterations = sampling.iterations(iteration.wall_ns);
                // Of code on the CPU always, so that both sides do, however long they take.
                let before = match self.code.launches {
                    0 => iterations.div_ceil(8),
                    _ => warm_up_in_turns(iterations, iteration.wall_ns),
                };
                self.iterations = Some([before, iterations]);
                iteration.ns
            }
            Some([before, iterations]) => {
                if before > 0 {
                    self.run.machine.measure(self.code, before)?;
                }
                self.run.machine.measure(self.code, iterations)? / iterations as f64
            }
        };
        // The other side is next.
        self.code.routine.park();
        let id = self.id.to_owned();
        turns.say(&TurnMessage::Sampled { id });
        Ok(ns)
    }
}

/// Whether iterations on the GPU are too long for a second series.
fn is_long(launches: u32, iteration: Option<Duration>) -> bool {
    launches > 0 && iteration.is_some_and(|it| it >= LONG)
}

/// Rejects a time that Criterion's statistics and plots would fail on: a routine that times itself
/// may return anything.
fn plausible(ns: f64, iterations: u64) -> Result<f64, RoutineError> {
    const YEARS: f64 = 1e18;
    if ns > 0.0 && ns / iterations as f64 <= YEARS {
        Ok(ns)
    } else {
        Err(format!(
            "the routine times itself and returned {ns:e} ns for {iterations} iterations, which is not a \
             valid time; check its `time`"
        )
        .into())
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
