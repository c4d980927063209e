//! One benchmark: set up, verified, timed, verified again, written down.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use crate::interrupt;
use crate::model::cost::Cost;
use crate::model::record::{Activity, SCHEMA, Sidecar};
use crate::model::verified::Verified;
use crate::suite::account::Spent;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::group::{AnyGroup, Inputs, Row};
use crate::suite::host::Host;
use crate::suite::instance::{Plots, instance, plots};
use crate::suite::journal::Journal;
use crate::suite::learnt::Learnt;
use crate::suite::missing::{Missing, caught, failed};
use crate::suite::sampler::{Progress, Sampler};
use crate::suite::sampling_plan::{Samples, Sampling, SamplingPlan, Timing};
use crate::suite::turns::Turns;
use crate::timing::{CudaTime, Doubt, TimingError, catch_panic};
use crate::workload::calibrate::{self, Calibration};
use crate::workload::routine::Routine;
use crossover_machine::load::Load;
use crossover_machine::monitor::watch::Watch;
use crossover_machine::recorded;
use crossover_protocol::settings::Settings;
use crossover_protocol::turns::TurnMessage;
use crossover_results::store::attempt::Aside;
use crossover_results::store::folder::BenchmarkFolder;

/// The parts of a run that one benchmark needs.
pub(super) struct Measuring<'s> {
    pub(super) settings: &'s Settings,
    pub(super) arguments: &'s Arguments,
    pub(super) sampling: &'s SamplingPlan,
    pub(super) time: &'s CudaTime,
    pub(super) machine: &'s Host,
    pub(super) journal: &'s mut Journal,
    pub(super) turns: Option<&'s Turns>,
    /// Reasons not to believe its time.
    pub(super) doubts: Vec<Doubt>,
    /// How long Criterion warms it up.
    pub(super) warm_up: Duration,
    /// What it took beside its set-up.
    pub(super) spent: Spent,
    /// What its calibrations did, which are not made again where it is measured again.
    pub(super) calibrated: Calibrated,
}

/// What the calibrations of one benchmark did.
#[derive(Default)]
pub(super) struct Calibrated {
    choices: BTreeMap<String, String>,
    calibrations: Vec<Calibration>,
    /// The choices that were made while other work ran.
    disturbed: BTreeSet<String>,
}

/// A benchmark that is about to be run.
pub(super) struct Bench<'a> {
    pub(super) id: &'a str,
    pub(super) criterion_id: BenchmarkId,
    pub(super) group: &'a AnyGroup,
    pub(super) row: &'a Row,
    pub(super) size: u64,
    pub(super) cost: Cost,
    pub(super) folder: BenchmarkFolder,
    /// When it was begun; `None` in turns with another process, whose work is none of others.
    pub(super) begun: Option<Load>,
}

/// What becomes of an unsteady result.
#[derive(Clone, Copy, PartialEq)]
enum IfUnsteady {
    /// It is undone and measured once more.
    Again,
    /// It is kept, with what is unsteady about it.
    Kept,
    /// It is not judged: of processes that take turns the spread between them counts, and a routine
    /// that times itself would only repeat what it has measured.
    Unjudged,
}

impl Measuring<'_> {
    /// Sets a benchmark up, verifies it, times it, verifies it again and writes its sidecar. Does not
    /// verify where the process that drives this one says so.
    pub(super) fn measure(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_>,
        inputs: &OnceCell<Inputs>,
        learnt: &mut Learnt,
    ) -> Result<(), Missing> {
        let looks = self.looks(bench) && !recorded::recorded();
        self.time.ignore_other_streams(!looks);
        self.require_room(bench)?;
        self.require_short_iterations(bench, &mut learnt.pace)?;
        self.measure_ceilings(bench.row)?;
        self.verify_edge_cases(bench, learnt)?;
        let (mut routine, sampling) = caught(|| {
            let inputs = inputs.get_or_init(|| (bench.group.operation.inputs)(bench.size));
            self.set_up(bench, inputs, &mut learnt.pace)
        })?;
        self.announce(bench, &sampling)?;
        self.guard_on_other_values(bench, &mut *routine, &sampling, learnt)?;
        self.sample_until_steady(plots, bench, &mut *routine, &sampling)
    }

    /// Measures what the result is held against, where that is due.
    fn measure_ceilings(&mut self, row: &Row) -> Result<(), Missing> {
        if !self.arguments.saves {
            return Ok(());
        }
        let (journal, machine, time) = (&mut *self.journal, self.machine, self.time);
        self.spent.on(Activity::Ceilings, || {
            journal.begin(row.is_gpu(), machine, time)?;
            if let (false, Some(threads)) = (row.is_gpu(), row.role.threads) {
                journal.cpu_peak(threads);
            }
            Ok(())
        })
    }

    /// Says that it is set up to the process that drives this one. Leaves it out of profiles if it has no
    /// part that one could record.
    fn announce(&self, bench: &Bench<'_>, sampling: &Sampling) -> Result<(), Missing> {
        let is_profiled = self.arguments.mode == Mode::Profile && bench.row.is_gpu();
        if is_profiled && sampling.timing == Timing::Own {
            let reason = "it times itself, and no clock that a profile follows runs it";
            return Err(Missing::Skipped(reason.to_owned()));
        }
        if let Some(turns) = self.turns {
            let id = bench.id.to_owned();
            turns.say(&TurnMessage::Ready { id });
        }
        Ok(())
    }

    /// Times a benchmark, and once more if the result is unsteady.
    fn sample_until_steady(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        sampling: &Sampling,
    ) -> Result<(), Missing> {
        let judged = self.arguments.saves && self.turns.is_none();
        let unsteady = match sampling.timing {
            Timing::Clock if judged => IfUnsteady::Again,
            _ => IfUnsteady::Unjudged,
        };
        let Some((why, first)) = self.attempt(plots, bench, routine, sampling, unsteady)? else {
            return Ok(());
        };
        eprintln!(
            "note: {} is unsteady and is measured again: {why}",
            bench.id
        );
        let takes_turns = self.turns.is_some();
        let results = &self.settings.results;
        let mut criterion = instance(results, self.sampling, self.time, takes_turns);
        let mut again = plots_of(&mut criterion, bench);
        let kept = IfUnsteady::Kept;
        let second = self.attempt(&mut again, bench, routine, sampling, kept);
        if second.is_err() && interrupt::signal().is_some() {
            first.put_back()?;
        }
        second.map(drop)
    }

    /// Times a benchmark and keeps the result, or undoes what was written. A result that is to be
    /// measured again is set aside, and returned with what is unsteady about it.
    fn attempt(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        sampling: &Sampling,
        unsteady: IfUnsteady,
    ) -> Result<Option<(String, Aside)>, Missing> {
        self.configure(plots, sampling);
        let watch = match sampling.timing {
            Timing::Clock if bench.row.is_gpu() && self.arguments.saves => self.watch(),
            _ => None,
        };
        let baseline = self.arguments.baseline.as_deref();
        let attempt = match self.arguments.saves {
            true => Some(bench.folder.begin(baseline)?),
            false => None,
        };
        let timed = self.time(plots, bench, routine, watch, unsteady);
        match (timed, attempt) {
            // After a signal nothing is measured again: an unsteady result is better than none.
            (Ok(Some(why)), Some(attempt))
                if unsteady == IfUnsteady::Again && interrupt::signal().is_none() =>
            {
                Ok(Some((why, attempt.set_aside()?)))
            }
            (Ok(why), attempt) => {
                if let Some(why) = why {
                    eprintln!(
                        "note: {} is still unsteady: {why}; no answer uses it",
                        bench.id
                    );
                }
                if let Some(attempt) = attempt {
                    attempt.done();
                }
                Ok(None)
            }
            (Err(error), attempt) => {
                if let Some(attempt) = attempt {
                    attempt.undo();
                }
                Err(error)
            }
        }
    }

    /// Times a benchmark, verifies it again and writes its sidecar, with what is unsteady about it.
    fn time(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        watch: Option<Watch>,
        unsteady: IfUnsteady,
    ) -> Result<Option<String>, Missing> {
        let known = self.doubts.len();
        let inputs = self.inputs(bench, routine)?;
        self.sample(plots, bench, routine, watch.as_ref())?;
        let telemetry = watch.map(Watch::finish);
        self.require_unchanged(bench, routine, &inputs)?;
        let mut why = match unsteady {
            IfUnsteady::Unjudged => None,
            IfUnsteady::Again | IfUnsteady::Kept => bench.folder.unsteady(bench.row.clock),
        };
        let is_timed = unsteady != IfUnsteady::Unjudged;
        let verified = self.verify_again(bench, routine, is_timed)?;
        for doubt in &self.doubts {
            eprintln!("note: {}: {doubt}", bench.id);
            why.get_or_insert_with(|| doubt.to_string());
        }
        self.doubts.truncate(known);
        if self.arguments.saves {
            let mut sidecar = self.sidecar(bench, routine, verified);
            sidecar.monitor = telemetry;
            sidecar.unsteady.clone_from(&why);
            self.write_down(bench, routine, sidecar)?;
        }
        self.check_device().map(|()| why)
    }

    /// Completes a sidecar, writes it, and checks the result against its limits.
    fn write_down(
        &mut self,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        mut sidecar: Sidecar,
    ) -> Result<(), Missing> {
        if let Some(own) = routine.telemetry() {
            // What the device does now is not what it did when the routine timed itself.
            sidecar.device_state = None;
            sidecar.monitor = Some(own);
        }
        sidecar.extra.extend(routine.extra()?);
        self.check_device()?;
        let baseline = self.arguments.baseline.as_deref();
        bench.folder.finish(&mut sidecar, baseline)?;
        let result = bench.folder.result().filter(|_| self.turns.is_none());
        let Some(result) = result else {
            return Ok(());
        };
        self.journal.check_limits(result)
    }

    /// Makes Criterion sample as planned, unless the command line says otherwise.
    fn configure(&mut self, plots: &mut Plots<'_>, plan: &Sampling) {
        self.warm_up = self.arguments.warm_up(plan.warm_up);
        let Samples {
            count,
            measurement,
            mode,
        } = plan.samples;
        let is_planned = self.turns.is_some()
            || !(self.arguments.gave("sample-size") || self.arguments.gave("measurement-time"));
        plots.sampling_mode(if is_planned { mode } else { SamplingMode::Auto });
        if !self.arguments.gave("sample-size") {
            plots.sample_size(count);
        }
        if self.turns.is_some() || !self.arguments.gave("measurement-time") {
            plots.measurement_time(measurement);
        }
        if self.turns.is_some() || !self.arguments.gave("warm-up-time") {
            plots.warm_up_time(plan.warm_up);
        }
    }

    /// Has Criterion take the samples.
    fn sample(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
        watch: Option<&Watch>,
    ) -> Result<(), Missing> {
        let mut sampler = Sampler {
            id: bench.id,
            time: self.time,
            machine: self.machine,
            clock: bench.row.clock,
            launches: bench.row.launches_of(routine),
            routine,
            watch,
            turns: self.turns,
            plan: self.sampling,
            progress: Progress::default(),
        };
        let sampled_before = bench.folder.sampled_at();
        // The threads of what several drive start here too, and would all be kept.
        let is_kept = bench.row.role.is_driven_by_one_thread();
        let _core = is_kept.then(|| match self.turns {
            Some(turns) => turns.on_one_core(),
            None if bench.row.is_gpu() => self.machine.opened()?.keep_near(),
            None => None,
        });
        // A panic is the only way out of Criterion's closure: it leaves its error here.
        let mut failure: Option<TimingError> = None;
        let (spent, warm_up) = (&mut self.spent, self.warm_up);
        let mut called = Duration::ZERO;
        let begun = Instant::now();
        let outcome = catch_panic(|| {
            plots.bench_function(bench.criterion_id.clone(), |b| {
                b.iter_custom(|iterations| {
                    // Criterion's own rule, which does not say which of its calls warm up.
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
                    if sampler.progress.ran > 0 && interrupt::signal().is_some() {
                        // The samples of this benchmark are dropped. A routine that times itself
                        // had measured before Criterion asked.
                        panic!("interrupted");
                    }
                    ns
                });
            });
        });
        let analysed = begun.elapsed().saturating_sub(called);
        self.spent.add(Activity::Analysis, analysed);
        let Err(panic) = outcome else {
            return Ok(());
        };
        if let Some(error) = failure {
            return Err(error.into());
        }
        if self.arguments.saves && bench.folder.sampled_at() != sampled_before {
            // The samples were written before Criterion's analysis failed on them.
            bench.folder.rescue()?;
            eprintln!(
                "note: {} was measured and saved; Criterion could not compare it with the run before ({})",
                bench.id,
                panic.lines().next().unwrap_or_default()
            );
            return Ok(());
        }
        Err(failed(panic))
    }

    fn sidecar(
        &mut self,
        bench: &Bench<'_>,
        routine: &dyn Routine,
        verified: Option<Verified>,
    ) -> Sidecar {
        let mut notes = routine.notes();
        if bench.row.is_gpu() && recorded::recorded() {
            notes.push("recorded, not measured".to_owned());
        }
        let others = self.journal.others_since(bench.begun);
        let calibrated = &mut self.calibrated;
        calibrated.choices.extend(calibrate::take_recent());
        calibrated
            .calibrations
            .extend(calibrate::take_calibrations());
        if self.turns.is_none() {
            let asked_for = others.map(|_| calibrated.choices.keys().cloned());
            let disturbed = calibrate::forget_disturbed(asked_for.into_iter().flatten());
            calibrated.disturbed.extend(disturbed);
        }
        let mut extra = BTreeMap::new();
        if !calibrated.calibrations.is_empty() {
            let spent: Duration = calibrated.calibrations.iter().map(|of| of.took).sum();
            extra.insert("calibration_ns".to_owned(), spent.as_nanos() as f64);
        }
        // With several it is not known how often an iteration uses each.
        if let [only] = &calibrated.calibrations[..] {
            let saves = only.saves.as_nanos() as f64;
            extra.insert("calibration_saves_ns".to_owned(), saves);
        }
        extra.extend(others.map(|it| ("processors_busy_with_other_work".to_owned(), it)));
        let disturbed: Vec<&str> = calibrated.disturbed.iter().map(String::as_str).collect();
        if !disturbed.is_empty() {
            notes.push(format!(
                "chosen while other work kept processors busy, so another process chooses again: {}",
                disturbed.join(", ")
            ));
        }
        let choices = calibrated.choices.clone();
        Sidecar {
            schema: SCHEMA,
            id: bench.id.to_owned(),
            samples_sha256: String::new(),
            clock: self.time.effective_clock(bench.row.clock),
            cost: bench.cost,
            role: bench.row.role.clone(),
            verified,
            device_state: bench
                .row
                .is_gpu()
                .then(|| self.machine.monitor())
                .flatten()
                .map(|monitor| monitor.state()),
            monitor: None,
            unsteady: None,
            extra,
            choices,
            notes,
            run: self.journal.run().to_owned(),
        }
    }

    /// Starts the telemetry of the device, where it is wanted and possible.
    fn watch(&self) -> Option<Watch> {
        if !self.settings.monitor {
            return None;
        }
        // Where the system refuses a thread, missing telemetry is the least problem.
        Watch::start(self.machine.monitor()?.clone()).ok()
    }
}

/// The group of a benchmark in another instance of Criterion.
fn plots_of<'a>(criterion: &'a mut Criterion<CudaTime>, bench: &Bench<'_>) -> Plots<'a> {
    let mut plots = plots(criterion, bench.group.name);
    if bench.group.rate.is_some() {
        plots.throughput(Throughput::Elements(bench.size));
    }
    plots
}
