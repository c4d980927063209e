//! One benchmark: checked, prepared, verified, sampled, verified again, stored.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput};

use crate::model::record::{Activity, SCHEMA, Sidecar};
use crate::model::telemetry::Telemetry;
use crate::model::verified::Verified;
use crate::suite::arguments::Mode;
use crate::suite::group::Inputs;
use crate::suite::instance::{Plots, instance, plots};
use crate::suite::missing::{Missing, caught, failed};
use crate::suite::pace::Pace;
use crate::suite::sampler::Sampler;
use crate::suite::sampling_plan::Sampling;
use crate::suite::state::{Bench, GroupCache, Prepared, Run};
use crate::timing::{Clock, CudaError, CudaTime, Doubt, TimingError, catch_panic};
use crate::workload::choose;
use crate::workload::routine::Routine;
use crossover_machine::load::Load;
use crossover_machine::monitor::Watch;
use crossover_machine::recorded;
use crossover_protocol::turns::TurnMessage;
use crossover_results::statistics::unsteady::unsteady;
use crossover_results::store::attempt::Aside;
use crossover_system::interrupt;
use crossover_words::units;

impl Run {
    /// Measures a benchmark. In turns, its driver says whether it is verified.
    pub(super) fn measure(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        inputs: &OnceCell<Inputs>,
        cache: &mut GroupCache,
    ) -> Result<(), Missing> {
        bench.begun = self.turns.is_none().then(Load::now).flatten();
        let looks = self.looks(bench) && !recorded::recorded();
        self.time.ignore_other_streams(!looks);
        self.check_memory(bench)?;
        self.check_duration(bench, &mut cache.pace)?;
        self.measure_limits(bench)?;
        self.verify_edge_cases(bench, cache)?;
        let mut prepared = self.prepare(bench, inputs, &mut cache.pace)?;
        self.announce_ready(bench, &prepared.sampling)?;
        self.guard_on_other_values(bench, &mut prepared, cache)?;
        self.sample_until_steady(plots, bench, &mut prepared)
    }

    /// Leaves a benchmark out for which there is not enough memory.
    fn check_memory(&self, bench: &Bench<'_>) -> Result<(), Missing> {
        // In turns, both sides have their memory at once.
        let sides = 1 + u64::from(self.turns.is_some());
        let operation = &bench.group.operation;
        let device = (bench.row.is_gpu()).then(|| sides * (operation.device_bytes)(bench.size));
        let host = sides * (operation.host_bytes)(bench.size);
        match self.machine.too_small_for(host, device) {
            Some(reason) => Err(Missing::Skipped(reason)),
            None => Ok(()),
        }
    }

    /// Leaves a benchmark out if one iteration would take longer than the profile allows.
    fn check_duration(&self, bench: &Bench<'_>, pace: &mut Pace) -> Result<(), Missing> {
        let Bench {
            group, row, size, ..
        } = *bench;
        let Some(limit) = self.sampling.longest_iteration_of(&row.role) else {
            return Ok(());
        };
        let sizes = group.sizes_of(row).of(self.settings.profile).iter();
        let before = sizes.copied().filter(|other| *other < size).max();
        let cost = |size| group.cost_of(row, size);
        let expected = pace.expect(&row.function(), size, before, cost);
        match expected.filter(|expected| *expected > limit) {
            None => Ok(()),
            Some(expected) => Err(Missing::Skipped(format!(
                "one iteration would take about {}, more than the {} that a benchmark may; a faster machine \
                 runs it, and so does a filter that selects this size alone",
                units::time(expected.as_nanos() as f64),
                units::time(limit.as_nanos() as f64)
            ))),
        }
    }

    /// Measures the limits that the result is compared with, before the first benchmark that needs them.
    fn measure_limits(&mut self, bench: &mut Bench<'_>) -> Result<(), Missing> {
        if !self.arguments.saves {
            return Ok(());
        }
        let row = bench.row;
        bench.spent.on(Activity::Ceilings, || {
            (self.journal).begin(row.is_gpu(), &self.machine, &self.time)?;
            if let (false, Some(threads)) = (row.is_gpu(), row.role.threads) {
                self.journal.cpu_peak(threads);
            }
            Ok(())
        })
    }

    /// Verifies an implementation on the edge cases of its workload, which are never timed, once for all
    /// sizes.
    fn verify_edge_cases(&self, bench: &Bench<'_>, cache: &mut GroupCache) -> Result<(), Missing> {
        let function = bench.row.function();
        if !self.verifies() || cache.right_on_edge_cases.contains(&function) {
            return Ok(());
        }
        let edge_cases = bench.group.operation.edge_cases;
        let Some(edge_cases) = cache.edge_cases.get_or_init(edge_cases) else {
            return Ok(());
        };
        let verified = caught(|| {
            let mut routine = self.make(bench, edge_cases)?;
            self.run_once(&mut *routine)?;
            self.compare(bench, &mut *routine)
        });
        match verified {
            Ok(_) => {
                cache.right_on_edge_cases.insert(function);
                Ok(())
            }
            Err(Missing::Failed { text, context_lost }) => Err(Missing::Failed {
                text: format!("on edge cases: {text}"),
                context_lost,
            }),
            Err(other) => Err(other),
        }
    }

    /// Makes a routine, runs it once, verifies it, and plans its samples.
    fn prepare(
        &self,
        bench: &Bench<'_>,
        inputs: &OnceCell<Inputs>,
        pace: &mut Pace,
    ) -> Result<Prepared, Missing> {
        caught(|| {
            let inputs = inputs.get_or_init(|| (bench.group.operation.inputs)(bench.size));
            // Discards the choices of the benchmark before.
            choose::take_recent();
            choose::take_calibration_time();
            let mut routine = self.make(bench, inputs)?;
            self.run_once(&mut *routine)?;
            if self.verifies() {
                self.compare(bench, &mut *routine)?;
            }
            let sampling = self.plan(bench, pace, &mut *routine)?;
            Ok(Prepared { routine, sampling })
        })
    }

    /// Says to the process that drives this one that the benchmark is set up. Leaves it out of profiles if
    /// it has no part that one could record.
    fn announce_ready(&self, bench: &Bench<'_>, sampling: &Sampling) -> Result<(), Missing> {
        let is_profiled = self.arguments.mode == Mode::Profile && bench.row.is_gpu();
        if is_profiled && !sampling.is_timed_by_a_clock() {
            let reason = "it times itself, so the profiler cannot follow it";
            return Err(Missing::Skipped(reason.to_owned()));
        }
        if let Some(turns) = &self.turns {
            let id = bench.id.clone();
            turns.say(&TurnMessage::Ready { id });
        }
        Ok(())
    }

    /// Times a benchmark, and once more if the result is unsteady.
    fn sample_until_steady(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
    ) -> Result<(), Missing> {
        let Some((why, first)) = self.attempt(plots, bench, prepared, true)? else {
            return Ok(());
        };
        eprintln!(
            "note: {} is unsteady and is measured again: {why}",
            bench.id
        );
        let mut criterion = instance(&self.settings.results, &self.sampling, &self.time, false);
        let mut again = plots_of_group(&mut criterion, bench);
        let second = self.attempt(&mut again, bench, prepared, false);
        if second.is_err() {
            let first_result = bench.result.take();
            if interrupt::signal().is_some() {
                first.put_back()?;
                bench.result = first_result;
            }
        }
        second.map(drop)
    }

    /// Samples, verifies and stores a benchmark, or undoes what was written. With `may_repeat`, an unsteady
    /// result is set aside and returned with what is unsteady about it.
    fn attempt(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
        may_repeat: bool,
    ) -> Result<Option<(String, Aside)>, Missing> {
        // In turns the spread between processes counts, and a routine that times itself would only repeat
        // what it has measured.
        let judged = self.judges(&prepared.sampling);
        let baseline = self.arguments.baseline.as_deref();
        let attempt = match self.arguments.saves {
            true => Some(bench.folder.begin(baseline)?),
            false => None,
        };
        let routine = &mut *prepared.routine;
        // Doubts from before the samples remain when they are taken again.
        let known = bench.doubts.len();
        let outcome = self
            .sample(plots, bench, routine, &prepared.sampling)
            .and_then(|telemetry| {
                // Samples that Criterion could not write are an error when the result is stored.
                let ns = match self.arguments.saves {
                    true => bench.folder.samples().unwrap_or_default(),
                    false => Vec::new(),
                };
                let clock = bench.row.clock;
                let unsteady = judged.then(|| unsteady(ns.clone(), clock)).flatten();
                let verified = self.verify_again(bench, routine, &ns, judged)?;
                let unsteady = self.tell_doubts(bench, unsteady);
                self.store(bench, routine, ns, verified, telemetry, unsteady.clone())?;
                Ok(unsteady)
            });
        bench.doubts.truncate(known);
        match (outcome, attempt) {
            // After a signal nothing is measured again: an unsteady result is better than none.
            (Ok(Some(why)), Some(attempt))
                if judged && may_repeat && interrupt::signal().is_none() =>
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

    /// Whether a result is judged by how steady it is.
    fn judges(&self, sampling: &Sampling) -> bool {
        self.arguments.saves && self.turns.is_none() && sampling.is_timed_by_a_clock()
    }

    /// Prints each doubt; the first makes a steady result unsteady.
    fn tell_doubts(&self, bench: &Bench<'_>, unsteady: Option<String>) -> Option<String> {
        for doubt in &bench.doubts {
            eprintln!("note: {}: {doubt}", bench.id);
        }
        unsteady.or_else(|| bench.doubts.first().map(Doubt::to_string))
    }

    /// Makes Criterion sample as planned, unless the command line says otherwise. Returns how long
    /// Criterion warms up.
    fn configure(&self, plots: &mut Plots<'_>, plan: &Sampling) -> Duration {
        let in_turns = self.turns.is_some();
        let gave = |option| self.arguments.gave(option);
        let is_planned = in_turns || !(gave("sample-size") || gave("measurement-time"));
        plots.sampling_mode(if is_planned {
            plan.mode
        } else {
            SamplingMode::Auto
        });
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
    fn sample(
        &self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        routine: &mut dyn Routine,
        plan: &Sampling,
    ) -> Result<Option<Telemetry>, Missing> {
        let warm_up = self.configure(plots, plan);
        let is_watched = plan.is_timed_by_a_clock() && bench.row.is_gpu() && self.arguments.saves;
        let watch = is_watched.then(|| self.watch()).flatten();
        let inputs = self.inputs(bench, routine)?;
        let mut sampler = Sampler::new(self, bench, routine, watch.as_ref());
        let sampled_before = bench.folder.sampled_at();
        // The threads of what several drive start here too, and would all be kept.
        let is_kept = bench.row.role.is_driven_by_one_thread();
        let _core = is_kept.then(|| match &self.turns {
            Some(turns) => turns.on_one_core(),
            None if bench.row.is_gpu() => self.machine.opened()?.keep_near(),
            None => None,
        });
        // A panic is the only way out of Criterion's closure: it leaves its error here.
        let mut failure: Option<TimingError> = None;
        let (criterion_id, spent) = (bench.criterion_id(), &mut bench.spent);
        let mut called = Duration::ZERO;
        let begun = Instant::now();
        let outcome = catch_panic(|| {
            plots.bench_function(criterion_id, |b| {
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
                    if sampler.ran > 0 && interrupt::signal().is_some() {
                        // The samples of this benchmark are dropped. A routine that times itself
                        // had measured before Criterion asked.
                        panic!("interrupted");
                    }
                    ns
                });
            });
        });
        spent.add(Activity::Analysis, begun.elapsed().saturating_sub(called));
        match outcome {
            Ok(()) => {}
            Err(panic) => {
                if let Some(error) = failure {
                    return Err(error.into());
                }
                if !self.arguments.saves || bench.folder.sampled_at() == sampled_before {
                    return Err(failed(panic));
                }
                // The samples were written before Criterion's analysis failed on them.
                bench.folder.rescue()?;
                eprintln!(
                    "note: {} was measured and saved; Criterion could not compare it with the run before ({})",
                    bench.id,
                    panic.lines().next().unwrap_or_default()
                );
            }
        }
        let telemetry = watch.map(Watch::finish);
        match self.inputs(bench, routine)? == inputs {
            true => Ok(telemetry),
            false => Err(failed(
                "an iteration changed its inputs, so later ones computed something else".into(),
            )),
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

    /// Verifies once more after the last sample: a routine that went wrong under load, or after the first
    /// run, was not worth timing. `None` where nothing is verified.
    fn verify_again(
        &self,
        bench: &mut Bench<'_>,
        routine: &mut dyn Routine,
        ns: &[f64],
        is_timed: bool,
    ) -> Result<Option<Verified>, Missing> {
        if !self.verifies() {
            return Ok(None);
        }
        caught(|| {
            match is_timed {
                true => self.run_timed(bench, routine, ns)?,
                false => self.run_once(routine)?,
            }
            self.compare(bench, routine)
        })
    }

    /// Writes the sidecar of a result, and compares the result with its limits.
    fn store(
        &mut self,
        bench: &mut Bench<'_>,
        routine: &mut dyn Routine,
        ns: Vec<f64>,
        verified: Option<Verified>,
        telemetry: Option<Telemetry>,
        unsteady: Option<String>,
    ) -> Result<(), Missing> {
        if self.arguments.saves {
            let mut sidecar = self.sidecar(bench, routine, verified);
            sidecar.monitor = telemetry;
            sidecar.unsteady = unsteady;
            sidecar.extra.extend(routine.extra()?);
            self.check_device()?;
            let baseline = self.arguments.baseline.as_deref();
            let result = bench.folder.finish(ns, sidecar, baseline)?;
            if self.turns.is_none() {
                self.journal.check_limits(&result)?;
            }
            bench.result = Some(result);
        }
        self.check_device()
    }

    fn sidecar(
        &self,
        bench: &mut Bench<'_>,
        routine: &dyn Routine,
        verified: Option<Verified>,
    ) -> Sidecar {
        let mut notes = routine.notes();
        if bench.row.is_gpu() && recorded::recorded() {
            notes.push("recorded, not measured".to_owned());
        }
        let mut extra = BTreeMap::new();
        let others = self.journal.background_since(bench.begun);
        bench.choices.extend(choose::take_recent());
        bench.calibration_time += choose::take_calibration_time();
        if self.turns.is_none() {
            let asked_for = others.map(|_| bench.choices.keys().cloned());
            let disturbed = choose::forget_disturbed(asked_for.into_iter().flatten());
            bench.disturbed.extend(disturbed);
        }
        if !bench.calibration_time.is_zero() {
            let took = bench.calibration_time.as_nanos() as f64;
            extra.insert("calibration_ns".to_owned(), took);
        }
        extra.extend(others.map(|it| ("processors_busy_with_other_work".to_owned(), it)));
        if !bench.disturbed.is_empty() {
            let disturbed: Vec<&str> = bench.disturbed.iter().map(String::as_str).collect();
            notes.push(format!(
                "chosen while other work kept processors busy, so another process chooses again: {}",
                disturbed.join(", ")
            ));
        }
        let monitor = self.machine.monitor().filter(|_| bench.row.is_gpu());
        Sidecar {
            schema: SCHEMA,
            id: bench.id.clone(),
            samples_sha256: String::new(),
            clock: self.time.effective_clock(bench.row.clock),
            cost: bench.cost,
            role: bench.row.role.clone(),
            verified,
            device_state: monitor.map(|monitor| monitor.state()),
            monitor: None,
            unsteady: None,
            extra,
            choices: bench.choices.clone(),
            notes,
            run: self.journal.run().to_owned(),
        }
    }

    /// Sets up an implementation for these inputs.
    pub(super) fn make(
        &self,
        bench: &Bench<'_>,
        inputs: &Inputs,
    ) -> Result<Box<dyn Routine>, Missing> {
        let gpu = || {
            let gpu = self.machine.gpu(&self.time)?;
            self.time.wake()?;
            Ok(gpu)
        };
        Ok(bench.row.set_up(inputs, gpu)?)
    }

    fn verifies(&self) -> bool {
        (self.turns.as_ref()).is_none_or(|turns| turns.told().verify)
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

    /// Compares what it has computed with the reference. `None` where no device has computed it.
    fn compare(
        &self,
        bench: &Bench<'_>,
        routine: &mut dyn Routine,
    ) -> Result<Option<Verified>, Missing> {
        let verified = routine.check()?;
        let on_gpu = bench.row.is_gpu();
        match recorded::failure(&verified, on_gpu) {
            None => Ok(Some(verified).filter(|_| !(on_gpu && recorded::recorded()))),
            Some(wrong) => Err(failed(format!("{wrong}; it is not timed"))),
        }
    }

    fn wait(&self) -> Result<(), Missing> {
        match self.machine.opened() {
            Some(gpu) => Ok(gpu.synchronize().map_err(TimingError::from)?),
            None => Ok(()),
        }
    }

    /// Waits for the device: errors of destructors surface on a later call, and must not be those of
    /// the next benchmark.
    pub(super) fn check_device(&self) -> Result<(), Missing> {
        let Some(gpu) = self.machine.opened() else {
            return Ok(());
        };
        let named = |error| CudaError::new("an earlier CUDA call", error);
        let checked = gpu.context().check_err().map_err(named);
        Ok(checked.map_err(TimingError::from)?)
    }

    /// Runs a warm iteration, and keeps how long it took; `None` of a routine that times itself.
    fn iteration(
        &self,
        bench: &Bench<'_>,
        pace: &mut Pace,
        routine: &mut dyn Routine,
    ) -> Result<Option<Duration>, Missing> {
        if routine.time(1).transpose()?.is_some() {
            return Ok(None);
        }
        let start = Instant::now();
        routine.run()?;
        if bench.row.is_gpu() {
            self.wait()?;
        }
        let iteration = start.elapsed();
        pace.note(bench.row.function(), bench.size, iteration);
        Ok(Some(iteration))
    }

    /// Chooses the number of samples and their time by one warm iteration.
    fn plan(
        &self,
        bench: &Bench<'_>,
        pace: &mut Pace,
        routine: &mut dyn Routine,
    ) -> Result<Sampling, Missing> {
        let mut plan = match self.iteration(bench, pace, routine)? {
            None => Sampling::OF_ITS_OWN,
            Some(iteration) => {
                // Behind a gate the warm-up's first call runs its one iteration twice, and Criterion
                // takes both for one if it calls no second time.
                let is_doubled =
                    bench.row.clock == Clock::EventsGated && 2 * iteration > self.sampling.warm_up;
                let seen = if is_doubled { 2 * iteration } else { iteration };
                Sampling {
                    iteration: Some(iteration),
                    ..self.sampling.for_iteration(seen)
                }
            }
        };
        if self.turns.is_some() {
            // The first call is all of Criterion's warm-up: the suite warms up in it. And Criterion
            // must not warn that the samples, with the other side's turns between them, take longer
            // than planned.
            plan.warm_up = Duration::from_nanos(1);
            plan.measurement = Duration::from_secs(1_000);
            plan.mode = SamplingMode::Flat;
        }
        Ok(plan)
    }
}

/// The group of a benchmark in another instance of Criterion.
fn plots_of_group<'a>(criterion: &'a mut Criterion<CudaTime>, bench: &Bench<'_>) -> Plots<'a> {
    let mut plots = plots(criterion, bench.group.name);
    if bench.group.rate.is_some() {
        plots.throughput(Throughput::Elements(bench.size));
    }
    plots
}
