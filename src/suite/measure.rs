//! One benchmark: set up, verified, timed, verified again, written down.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput};

use crate::model::cost::Cost;
use crate::model::record::{SCHEMA, Sidecar};
use crate::model::verified::Verified;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::group::{Group, Implementation, Make};
use crate::suite::host::Host;
use crate::suite::instance::{Plots, instance, plots};
use crate::suite::interrupt;
use crate::suite::journal::Journal;
use crate::suite::missing::{Missing, failed, skipped};
use crate::suite::pace::{Forecast, Pace};
use crate::suite::sampler::{Progress, Sampler};
use crate::suite::sampling_plan::{FEWEST_SAMPLES, Samples, SamplingPlan};
use crate::suite::turns::Turns;
use crate::timing::{Clock, CudaError, CudaTime, Doubt, TimingError, catch_panic};
use crate::workload::calibrate;
use crate::workload::routine::{Routine, Workload};
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
}

/// A benchmark that is about to be run.
pub(super) struct Bench<'a, W> {
    pub(super) id: &'a str,
    pub(super) group: &'a Group<W>,
    pub(super) row: &'a Implementation<W>,
    pub(super) size: u64,
    pub(super) cost: Cost,
    pub(super) folder: BenchmarkFolder,
    /// When it was begun; `None` in turns with another process, whose work is none of others.
    pub(super) begun: Option<Load>,
}

/// What times a routine.
#[derive(Clone, Copy, PartialEq)]
enum Timing {
    Clock,
    /// The routine itself, which has measured before Criterion asks.
    Own,
}

/// How a routine is sampled.
struct Sampling {
    timing: Timing,
    warm_up: Duration,
    samples: Samples,
    /// A warm iteration.
    iteration: Duration,
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
    pub(super) fn measure<W: Workload>(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
        problem: &OnceCell<Rc<W>>,
        pace: &mut Pace,
    ) -> Result<(), Missing> {
        let Bench { row, size, .. } = *bench;
        // Both sides have their memory at once.
        let sides = 1 + u64::from(self.turns.is_some());
        let device_bytes = row.is_gpu().then(|| sides * W::device_bytes(size));
        let host_bytes = sides * W::host_bytes(size);
        if let Some(reason) = self.machine.too_small_for(host_bytes, device_bytes) {
            return Err(Missing::Skipped(reason));
        }
        if let Some(limit) = self.sampling.longest_iteration_of(&row.role) {
            self.leave_out_if_longer(limit, bench, pace)?;
        }
        if self.arguments.saves {
            self.journal.begin(row.is_gpu(), self.machine, self.time)?;
            if let (false, Some(threads)) = (row.is_gpu(), row.role.threads) {
                self.journal.cpu_peak(threads);
            }
        }

        let problem = || problem.get_or_init(|| Rc::new(W::new(size)));
        // A panic here is this benchmark's failure and not the run's end.
        let set_up = || -> Result<_, Missing> {
            let mut routine = self.make(bench, problem())?;
            match self.verifies() {
                true => self.verify(bench, &mut *routine).map(drop)?,
                false => self.run_once(&mut *routine)?,
            }
            let sampling = self.plan(bench, pace, &mut *routine)?;
            Ok((routine, sampling))
        };
        if self.verifies()
            && let Some(edge_cases) = W::edge_cases()
        {
            let on_edge_cases = || self.verify_on(bench, &Rc::new(edge_cases));
            catch_panic(on_edge_cases).map_err(failed)??;
        }
        // Discards the choices of the benchmark before.
        calibrate::take_recent();
        calibrate::take_calibrations();
        let (mut routine, sampling) = catch_panic(set_up).map_err(failed)??;
        if self.arguments.mode == Mode::Profile && row.is_gpu() && sampling.timing == Timing::Own {
            let reason = "it times itself, and no clock that a profile follows runs it";
            return Err(Missing::Skipped(reason.to_owned()));
        }
        if let Some(turns) = self.turns {
            let id = bench.id.to_owned();
            turns.say(&TurnMessage::Ready { id });
        }
        if sampling.timing == Timing::Clock {
            let guarded = || self.guard(bench, problem(), &mut *routine, sampling.iteration);
            catch_panic(guarded).map_err(failed)??;
        }
        let judged = self.arguments.saves && self.turns.is_none();
        let unsteady = match sampling.timing {
            Timing::Clock if judged => IfUnsteady::Again,
            _ => IfUnsteady::Unjudged,
        };
        let id = criterion_id.clone();
        let first = self.attempt(plots, id, bench, &mut *routine, &sampling, unsteady)?;
        let Some((why, first)) = first else {
            return Ok(());
        };
        eprintln!(
            "note: {} is unsteady and is measured again: {why}",
            bench.id
        );
        let takes_turns = self.turns.is_some();
        let settings = self.settings;
        let mut criterion = instance(&settings.results, self.sampling, self.time, takes_turns);
        let mut again = plots_of(&mut criterion, bench);
        let kept = IfUnsteady::Kept;
        let second = self.attempt(
            &mut again,
            criterion_id,
            bench,
            &mut *routine,
            &sampling,
            kept,
        );
        if second.is_err() && interrupt::signal().is_some() {
            first.put_back()?;
        }
        second.map(drop)
    }

    /// Times a benchmark and keeps the result, or undoes what was written. A result that is to be
    /// measured again is set aside, and returned with what is unsteady about it.
    fn attempt<W>(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
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
        let timed = self.time(plots, criterion_id, bench, routine, watch, unsteady);
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
    fn time<W>(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
        routine: &mut dyn Routine,
        watch: Option<Watch>,
        unsteady: IfUnsteady,
    ) -> Result<Option<String>, Missing> {
        let known = self.doubts.len();
        let inputs = self.inputs(bench, routine)?;
        self.sample(plots, criterion_id, bench, routine, watch.as_ref())?;
        let telemetry = watch.map(Watch::finish);
        if self.inputs(bench, routine)? != inputs {
            return Err(failed(
                "an iteration changed its inputs, so later ones computed something else".into(),
            ));
        }
        let mut why = match unsteady {
            IfUnsteady::Unjudged => None,
            IfUnsteady::Again | IfUnsteady::Kept => bench.folder.unsteady(bench.row.clock),
        };
        // Once more after the last sample: a routine that went wrong under load, or after
        // the first run, was not worth timing.
        let verified = match self.verifies() {
            true => {
                let verify = || {
                    match unsteady {
                        IfUnsteady::Unjudged => self.run_once(routine)?,
                        _ => self.run_timed(bench, routine)?,
                    }
                    self.judge(bench, routine)
                };
                catch_panic(verify).map_err(failed)??
            }
            false => None,
        };
        for doubt in &self.doubts {
            eprintln!("note: {}: {doubt}", bench.id);
            why.get_or_insert_with(|| doubt.to_string());
        }
        self.doubts.truncate(known);
        if self.arguments.saves {
            let mut sidecar = self.sidecar(bench, routine, verified);
            sidecar.monitor = telemetry;
            if let Some(own) = routine.telemetry() {
                // What the device does now is not what it did when the routine timed itself.
                sidecar.device_state = None;
                sidecar.monitor = Some(own);
            }
            sidecar.unsteady.clone_from(&why);
            sidecar.extra.extend(routine.extra()?);
            self.check_device()?;
            let baseline = self.arguments.baseline.as_deref();
            bench.folder.finish(&mut sidecar, baseline)?;
            if self.turns.is_none()
                && let Some(result) = bench.folder.result()
            {
                self.journal.hold(result, self.machine, self.time)?;
            }
        }
        self.check_device().map(|()| why)
    }

    /// Sets up an implementation for these inputs.
    pub(super) fn make<W: Workload>(
        &self,
        bench: &Bench<'_, W>,
        problem: &Rc<W>,
    ) -> Result<Box<dyn Routine>, Missing> {
        Ok(match &bench.row.make {
            Make::Cpu(make) => make(problem)?,
            Make::Gpu(make) => {
                let gpu = self.machine.gpu(self.time).map_err(skipped)?;
                self.time.wake().map_err(TimingError::from)?;
                make(&gpu, problem)?
            }
        })
    }

    /// Verifies an implementation on inputs that are never timed.
    fn verify_on<W: Workload>(&self, bench: &Bench<'_, W>, problem: &Rc<W>) -> Result<(), Missing> {
        let mut routine = self.make(bench, problem)?;
        match self.verify(bench, &mut *routine) {
            Err(Missing::Failed { text, context_lost }) => Err(Missing::Failed {
                text: format!("on edge cases: {text}"),
                context_lost,
            }),
            other => other.map(drop),
        }
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
    fn verify<W>(
        &self,
        bench: &Bench<'_, W>,
        routine: &mut dyn Routine,
    ) -> Result<Option<Verified>, Missing> {
        self.run_once(routine)?;
        self.judge(bench, routine)
    }

    /// Compares what it has computed with the reference.
    fn judge<W>(
        &self,
        bench: &Bench<'_, W>,
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

    /// Leaves a benchmark out if one iteration takes longer than `limit`. To know that, it may run
    /// some smaller sizes once.
    fn leave_out_if_longer<W: Workload>(
        &self,
        limit: Duration,
        bench: &Bench<'_, W>,
        pace: &mut Pace,
    ) -> Result<(), Missing> {
        let Bench { group, row, .. } = *bench;
        let sizes = group.sizes_of(row).of(self.settings.profile).iter();
        let smaller: Vec<u64> = sizes.copied().filter(|size| *size < bench.size).collect();
        let cost = |size| group.cost_of(row, size);
        loop {
            match pace.forecast(&row.function(), bench.size, &smaller, cost, limit) {
                Forecast::Runs => return Ok(()),
                Forecast::TooLong(reason) => return Err(Missing::Skipped(reason)),
                Forecast::RunFirst(size) => {
                    let run = || -> Result<(), Missing> {
                        let mut routine = self.make(bench, &Rc::new(W::new(size)))?;
                        self.run_once(&mut *routine)?;
                        self.iteration(bench, size, pace, &mut *routine).map(drop)
                    };
                    catch_panic(run).map_err(failed)??;
                }
            }
        }
    }

    /// Runs a warm iteration at a size, and keeps how long it took; `None` of a routine that times
    /// itself.
    fn iteration<W: Workload>(
        &self,
        bench: &Bench<'_, W>,
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
    fn plan<W: Workload>(
        &self,
        bench: &Bench<'_, W>,
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

    /// Makes Criterion sample as planned, unless the command line says otherwise.
    fn configure(&self, plots: &mut Plots<'_>, plan: &Sampling) {
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
    fn sample<W>(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
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
            settled: self.looks(bench).then(Vec::new),
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
        let outcome = catch_panic(|| {
            plots.bench_function(criterion_id, |b| {
                b.iter_custom(|iterations| {
                    let ns = sampler.sample(iterations).unwrap_or_else(|error| {
                        let text = error.to_string();
                        failure = Some(error);
                        panic!("{text}")
                    });
                    if sampler.has_run() && interrupt::signal().is_some() {
                        // The samples of this benchmark are dropped. A routine that times itself
                        // had measured before Criterion asked.
                        panic!("interrupted");
                    }
                    ns
                });
            });
        });
        let Err(panic) = outcome else {
            let doubt = sampler.worked_elsewhere();
            self.doubts.extend(doubt);
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

    fn sidecar<W>(
        &self,
        bench: &Bench<'_, W>,
        routine: &dyn Routine,
        verified: Option<Verified>,
    ) -> Sidecar {
        let mut notes = routine.notes();
        if bench.row.is_gpu() && recorded::recorded() {
            notes.push("recorded, not measured".to_owned());
        }
        let choices = calibrate::take_recent();
        let mut extra = BTreeMap::new();
        let calibrations = calibrate::take_calibrations();
        if !calibrations.is_empty() {
            let spent: Duration = calibrations.iter().map(|of| of.took).sum();
            extra.insert("calibration_ns".to_owned(), spent.as_nanos() as f64);
        }
        // With several it is not known how often an iteration uses each.
        if let [only] = &calibrations[..] {
            let saves = only.saves.as_nanos() as f64;
            extra.insert("calibration_saves_ns".to_owned(), saves);
        }
        if let Some(others) = self.journal.others_since(bench.begun) {
            extra.insert("processors_busy_with_other_work".to_owned(), others);
            // The next process chooses again.
            calibrate::forget(&choices);
        }
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
fn plots_of<'a, W>(criterion: &'a mut Criterion<CudaTime>, bench: &Bench<'_, W>) -> Plots<'a> {
    let mut plots = plots(criterion, bench.group.name);
    if bench.group.rate.is_some() {
        plots.throughput(Throughput::Elements(bench.size));
    }
    plots
}
