//! One benchmark: checked, prepared, verified, sampled, verified again, stored.

use std::time::{Duration, Instant};

use criterion::{SamplingMode, Throughput};

use crate::model::record::{Activity, SCHEMA, Sidecar};
use crate::model::telemetry::Telemetry;
use crate::model::verified::Verified;
use crate::suite::arguments::Mode;
use crate::suite::instance::{Plots, instance, plots_of};
use crate::suite::missing::{LeftOut, Missing, caught};
use crate::suite::sampler::{Sampler, Timed};
use crate::suite::sampling_plan::Sampling;
use crate::suite::state::{Bench, Prepared, Run};
use crate::timing::{Clock, CudaError, Doubt, TimingError, catch_panic};
use crate::workload::choose;
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
    ) -> Result<(), Missing> {
        if let Some(rate) = &bench.group.rate {
            self.machine.time.set_rate(rate.clone());
        }
        bench.begun = self.turns.is_none().then(Load::now).flatten();
        let looks = self.looks(bench) && !recorded::recorded();
        self.machine.time.ignore_other_streams(!looks);
        self.check_memory(bench)?;
        self.check_duration(bench)?;
        self.measure_limits(bench)?;
        self.verify_edge_cases(bench)?;
        let mut prepared = self.prepare(bench)?;
        self.announce_ready(bench, &prepared)?;
        self.guard_on_other_values(bench, &mut prepared)?;
        self.sample_until_steady(plots, bench, &mut prepared)
    }

    /// Leaves a benchmark out for which there is not enough memory.
    fn check_memory(&self, bench: &Bench<'_>) -> Result<(), LeftOut> {
        // In turns, both sides have their memory at once.
        let sides = 1 + u64::from(self.turns.is_some());
        let operation = &bench.group.operation;
        let device = (bench.row.is_gpu()).then(|| sides * (operation.device_bytes)(bench.size));
        let host = sides * (operation.host_bytes)(bench.size);
        self.machine.has_room_for(host, device)
    }

    /// Leaves a benchmark out if one iteration would take longer than the profile allows.
    fn check_duration(&self, bench: &mut Bench<'_>) -> Result<(), LeftOut> {
        let Some(limit) = self.sampling.longest_iteration_of(&bench.row.role) else {
            return Ok(());
        };
        let sizes = bench.group.sizes_of(bench.row).of(self.settings.profile);
        let smaller = sizes.iter().copied().filter(|other| *other < bench.size);
        let cost = |size| bench.group.cost_of(bench.row, size);
        let pace = &mut bench.cache.pace;
        let expected = pace.expect(&bench.row.function(), bench.size, smaller.max(), cost);
        match expected.filter(|expected| *expected > limit) {
            None => Ok(()),
            Some(expected) => Err(LeftOut(format!(
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
            self.journal.begin(row.is_gpu(), &self.machine)?;
            if let (false, Some(threads)) = (row.is_gpu(), row.role.threads) {
                self.journal.cpu_peak(threads);
            }
            Ok(())
        })
    }

    /// Verifies an implementation on the edge cases of its workload, which are never timed, once for all
    /// sizes.
    fn verify_edge_cases(&self, bench: &mut Bench<'_>) -> Result<(), Missing> {
        let (function, cache) = (bench.row.function(), &mut *bench.cache);
        if !self.verifies() || cache.right_on_edge_cases.contains(&function) {
            return Ok(());
        }
        let edge_cases = bench.group.operation.edge_cases;
        let Some(edge_cases) = cache.edge_cases.get_or_init(edge_cases) else {
            return Ok(());
        };
        let verified = caught(|| {
            let mut code = self.machine.set_up(bench.row, edge_cases)?;
            self.machine.run_once(&mut code)?;
            self.compare(&mut code)
        });
        match verified {
            Err(Missing::Failed { text, context_lost }) => Err(Missing::Failed {
                text: format!("on edge cases: {text}"),
                context_lost,
            }),
            verified => {
                verified?;
                cache.right_on_edge_cases.insert(function);
                Ok(())
            }
        }
    }

    /// Sets an implementation up, runs it once, verifies it, and plans its samples.
    fn prepare(&self, bench: &mut Bench<'_>) -> Result<Prepared, Missing> {
        caught(|| {
            let make = bench.group.operation.inputs;
            let inputs = bench.cache.inputs.of(bench.size, make);
            // Discards the choices of the benchmark before.
            choose::take_recent();
            choose::take_calibration_time();
            let mut code = self.machine.set_up(bench.row, &inputs)?;
            self.machine.run_once(&mut code)?;
            if self.verifies() {
                self.compare(&mut code)?;
            }
            let sampling = self.plan(bench, &mut code)?;
            Ok(Prepared { code, sampling })
        })
    }

    /// Chooses the number of samples and their time by one warm iteration.
    fn plan(&self, bench: &mut Bench<'_>, code: &mut Timed) -> Result<Sampling, Missing> {
        let mut plan = Sampling::OF_ITS_OWN;
        if code.routine.time(1).transpose()?.is_none() {
            let start = Instant::now();
            code.routine.run()?;
            if code.launches > 0 {
                self.machine.wait()?;
            }
            let iteration = start.elapsed();
            let pace = &mut bench.cache.pace;
            pace.note(bench.row.function(), bench.size, iteration);
            // Behind a gate the warm-up's first call runs its one iteration twice, and Criterion
            // takes both for one if it calls no second time.
            let is_doubled =
                code.clock == Clock::EventsGated && 2 * iteration > self.sampling.warm_up;
            let seen = if is_doubled { 2 * iteration } else { iteration };
            plan = self.sampling.for_iteration(seen);
            plan.iteration = Some(iteration);
        }
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

    /// Says to the process that drives this one that the benchmark is set up. Leaves it out of profiles if
    /// it has no part that one could record.
    fn announce_ready(&self, bench: &Bench<'_>, prepared: &Prepared) -> Result<(), LeftOut> {
        let is_profiled = self.arguments.mode == Mode::Profile && bench.row.is_gpu();
        if is_profiled && !prepared.sampling.is_timed_by_a_clock() {
            let reason = "it times itself, so the profiler cannot follow it";
            return Err(LeftOut(reason.to_owned()));
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
        let time = &self.machine.time;
        let mut criterion = instance(&self.settings.results, &self.sampling, time, false);
        let mut again = plots_of(&mut criterion, bench.group.name);
        if bench.group.rate.is_some() {
            again.throughput(Throughput::Elements(bench.size));
        }
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
        if !self.arguments.saves {
            self.sample_and_store(plots, bench, prepared)?;
            return Ok(None);
        }
        let attempt = bench.folder.begin(self.arguments.baseline.as_deref())?;
        // Doubts from before the samples remain when they are taken again.
        let known = bench.doubts.len();
        let outcome = self.sample_and_store(plots, bench, prepared);
        bench.doubts.truncate(known);
        match outcome {
            Err(error) => {
                attempt.undo();
                Err(error)
            }
            // After a signal nothing is measured again: an unsteady result is better than none.
            Ok(Some(why)) if may_repeat && interrupt::signal().is_none() => {
                Ok(Some((why, attempt.set_aside()?)))
            }
            Ok(why) => {
                if let Some(why) = why {
                    eprintln!(
                        "note: {} is still unsteady: {why}; no answer uses it",
                        bench.id
                    );
                }
                attempt.done();
                Ok(None)
            }
        }
    }

    /// Samples and verifies a benchmark, and writes its result with its sidecar. Returns what is unsteady
    /// about it.
    fn sample_and_store(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
    ) -> Result<Option<String>, Missing> {
        let monitor = self.sample(plots, bench, prepared)?;
        // Samples that Criterion could not write are an error when the result is stored.
        let ns = self.arguments.saves.then(|| bench.folder.samples().ok());
        let ns = ns.flatten().unwrap_or_default();
        let verified = self.verify_again(bench, prepared, &ns)?;
        // In turns the spread between processes counts, and a routine that times itself would only repeat
        // what it has measured.
        let is_judged = self.turns.is_none() && prepared.sampling.is_timed_by_a_clock();
        let unsteady = is_judged.then(|| unsteady(ns.clone(), bench.row.clock));
        for doubt in &bench.doubts {
            eprintln!("note: {}: {doubt}", bench.id);
        }
        // A doubt makes a steady result unsteady.
        let first_doubt = || bench.doubts.first().map(Doubt::to_string);
        let unsteady = unsteady.flatten().or_else(first_doubt);
        if self.arguments.saves {
            let sidecar = Sidecar {
                verified,
                monitor,
                unsteady: unsteady.clone(),
                ..self.sidecar(bench, &mut prepared.code)?
            };
            self.check_device()?;
            let baseline = self.arguments.baseline.as_deref();
            let result = bench.folder.finish(ns, sidecar, baseline)?;
            if self.turns.is_none() {
                self.journal.check_limits(&result)?;
            }
            bench.result = Some(result);
        }
        self.check_device()?;
        Ok(unsteady)
    }

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
    fn sample(
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
        // Where the system refuses a thread, missing telemetry is the least problem.
        let watch = monitor.and_then(|monitor| Watch::start(monitor.clone()).ok());
        let inputs = self.inputs(bench, code)?;
        let mut sampler = Sampler {
            run: self,
            id: bench.id.clone(),
            code,
            watch: watch.as_ref(),
            iterations: None,
        };
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
                    if sampler.code.ran > 0 && interrupt::signal().is_some() {
                        // The samples of this benchmark are dropped. A routine that times itself
                        // had measured before Criterion asked.
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

    /// Verifies once more after the last sample: a routine that went wrong under load, or after the first
    /// run, was not worth timing. `None` where nothing is verified.
    fn verify_again(
        &self,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
        ns: &[f64],
    ) -> Result<Option<Verified>, Missing> {
        if !self.verifies() {
            return Ok(None);
        }
        caught(|| {
            self.run_timed(bench, prepared, ns)?;
            self.compare(&mut prepared.code)
        })
    }

    fn sidecar(&self, bench: &mut Bench<'_>, code: &mut Timed) -> Result<Sidecar, Missing> {
        let mut notes = code.routine.notes();
        if bench.row.is_gpu() && recorded::recorded() {
            notes.push("recorded, not measured".to_owned());
        }
        let mut extra = code.routine.extra()?;
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
        Ok(Sidecar {
            schema: SCHEMA,
            id: bench.id.clone(),
            samples_sha256: String::new(),
            clock: self.machine.time.effective_clock(code.clock),
            cost: bench.group.cost_of(bench.row, bench.size),
            role: bench.row.role.clone(),
            verified: None,
            device_state: monitor.map(|monitor| monitor.state()),
            monitor: None,
            unsteady: None,
            extra,
            choices: bench.choices.clone(),
            notes,
            run: self.journal.record.run.clone(),
        })
    }

    fn verifies(&self) -> bool {
        (self.turns.as_ref()).is_none_or(|turns| turns.told().verify)
    }

    /// Compares what it has computed with the reference. `None` where no device has computed it.
    fn compare(&self, code: &mut Timed) -> Result<Option<Verified>, Missing> {
        let verified = code.routine.check()?;
        let on_gpu = code.launches > 0;
        match recorded::failure(&verified, on_gpu) {
            None => Ok(Some(verified).filter(|_| !(on_gpu && recorded::recorded()))),
            Some(wrong) => Err(format!("{wrong}; it is not timed").into()),
        }
    }

    /// Waits for the device: errors of destructors surface on a later call, and must not be those of
    /// the next benchmark.
    pub(super) fn check_device(&self) -> Result<(), Missing> {
        let Some(gpu) = self.machine.opened() else {
            return Ok(());
        };
        let named = |error| CudaError::new("an earlier CUDA call", error);
        Ok(gpu.context().check_err().map_err(named)?)
    }
}
