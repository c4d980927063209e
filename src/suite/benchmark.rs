//! One benchmark: checked, prepared, verified, sampled, verified again, stored.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, SamplingMode, Throughput};

use crate::model::record::{Activity, SCHEMA, Sidecar};
use crate::model::verified::Verified;
use crate::suite::arguments::Mode;
use crate::suite::group::{AnyGroup, Inputs, Row};
use crate::suite::instance::{Plots, instance, plots_of};
use crate::suite::missing::{Missing, caught};
use crate::suite::progress::Spent;
use crate::suite::run::Run;
use crate::suite::sampler::Timed;
use crate::suite::sampling_plan::{Pace, Sampling};
use crate::suite::verify::{ROUNDS, admits_anything};
use crate::timing::{Clock, CudaError, Doubt};
use crate::workload::choose;
use crate::workload::routine::RoutineError;
use crossover_machine::load::Load;
use crossover_machine::recorded;
use crossover_protocol::turns::TurnMessage;
use crossover_results::statistics::unsteady::unsteady;
use crossover_results::store::attempt::Aside;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::folder::BenchmarkFolder;
use crossover_system::interrupt;
use crossover_words::text::with_causes;
use crossover_words::units;

/// A benchmark that is about to run, with its state so far.
pub(super) struct Bench<'a> {
    pub(super) id: String,
    pub(super) group: &'a AnyGroup,
    pub(super) row: &'a Row,
    pub(super) size: u64,
    /// The cache of earlier benchmarks of the group.
    pub(super) cache: &'a mut GroupCache,
    pub(super) folder: BenchmarkFolder,
    /// When it was begun; `None` in turns with another process, whose work is no background load.
    pub(super) begun: Option<Load>,
    /// The time it took beside its set-up.
    pub(super) spent: Spent,
    /// Reasons not to believe its time.
    pub(super) doubts: Vec<Doubt>,
    /// The result, once it is stored.
    pub(super) result: Option<Benchmark>,
    pub(super) choices: BTreeMap<String, String>,
    pub(super) calibration_time: Duration,
    /// The choices that were made under background load.
    pub(super) disturbed: BTreeSet<String>,
}

/// A benchmark's code, verified, and how it is sampled.
pub(super) struct Prepared {
    pub(super) code: Timed,
    pub(super) sampling: Sampling,
}

/// The cache of a group's benchmarks for later ones.
#[derive(Default)]
pub(super) struct GroupCache {
    pub(super) pace: Pace,
    pub(super) edge_cases: OnceCell<Option<Inputs>>,
    /// Implementations that are right on the inputs that are not timed.
    pub(super) right_untimed: BTreeSet<String>,
    /// The inputs of a size, for all implementations.
    pub(super) inputs: OfLastSize,
    /// Inputs with other values than the timed ones.
    pub(super) other_values: OfLastSize,
}

/// Inputs of the last used size.
#[derive(Default)]
pub(super) struct OfLastSize(Option<(u64, Inputs)>);

impl OfLastSize {
    /// Those of this size, made unless they are there. Those of another size go first: there may be no
    /// memory for both.
    pub(super) fn of(&mut self, size: u64, make: fn(u64) -> Inputs) -> Inputs {
        let known = self.0.take().filter(|known| known.0 == size);
        let known = known.unwrap_or_else(|| (size, make(size)));
        self.0.insert(known).1.clone()
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        run: &Run,
        group: &'a AnyGroup,
        row: &'a Row,
        size: u64,
        cache: &'a mut GroupCache,
    ) -> Self {
        let named = group.id_of(row, size);
        Self {
            id: named.to_string(),
            group,
            row,
            size,
            cache,
            folder: BenchmarkFolder::new(&run.settings.results, named, group.rate.is_some()),
            begun: None,
            spent: Spent::default(),
            doubts: Vec::new(),
            choices: BTreeMap::new(),
            calibration_time: Duration::ZERO,
            disturbed: BTreeSet::new(),
            result: None,
        }
    }

    /// The function and size under which Criterion knows it in its group.
    pub(super) fn criterion_id(&self) -> BenchmarkId {
        BenchmarkId::new(self.row.function(), self.size)
    }
}

impl Run {
    /// Measures a benchmark. In turns, its driver says whether it is verified.
    pub(super) fn measure(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
    ) -> Result<(), Missing> {
        let rate = bench.group.rate.clone();
        let _rate = rate.map(|rate| self.machine.time.set_rate(rate));
        bench.begun = self.turns.is_none().then(Load::now).flatten();
        let looks = self.looks(bench) && !recorded::recorded();
        self.machine.time.ignore_other_streams(!looks);
        self.check_memory(bench)?;
        self.check_duration(bench)?;
        self.measure_limits(bench)?;
        self.verify_untimed(bench)?;
        let mut prepared = self.prepare(bench)?;
        self.announce_ready(bench, &prepared)?;
        self.guard_on_other_values(bench, &mut prepared)?;
        self.sample_until_steady(plots, bench, &mut prepared)
    }

    /// Leaves a benchmark out for which there is not enough memory.
    fn check_memory(&self, bench: &Bench<'_>) -> Result<(), Missing> {
        // In turns, both sides have memory at the same time.
        let sides = 1 + u64::from(self.turns.is_some());
        let operation = &bench.group.operation;
        let device = (bench.row.is_gpu()).then(|| sides * (operation.device_bytes)(bench.size));
        let host = sides * (operation.host_bytes)(bench.size);
        self.machine.has_room_for(host, device)
    }

    /// Leaves a benchmark out if one iteration would take longer than the profile allows.
    fn check_duration(&self, bench: &mut Bench<'_>) -> Result<(), Missing> {
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
            Some(expected) => {
                let reason = format!(
                    "one iteration would take about {}, but this profile allows {}; a filter that \
                     selects only this size runs it",
                    units::time(expected.as_nanos() as f64),
                    units::time(limit.as_nanos() as f64)
                );
                Err(Missing::Absent(reason.into()))
            }
        }
    }

    /// Measures the limits that the result is compared with, before the first benchmark that needs them.
    fn measure_limits(&mut self, bench: &mut Bench<'_>) -> Result<(), Missing> {
        if !self.arguments.saves {
            return Ok(());
        }
        let begin = || self.journal.begin(bench.row, &self.machine);
        bench.spent.on(Activity::Ceilings, begin)
    }

    /// Verifies an implementation on the inputs that are never timed, once for all sizes: the edge cases
    /// of its workload, and the odd sizes.
    fn verify_untimed(&self, bench: &mut Bench<'_>) -> Result<(), Missing> {
        let (group, row, cache) = (bench.group, bench.row, &mut *bench.cache);
        let function = row.function();
        if !self.verifies() || cache.right_untimed.contains(&function) {
            return Ok(());
        }
        let is_test = self.arguments.mode == Mode::Test;
        let measures = self.arguments.saves && self.turns.is_none();
        let is_verified = !(row.is_gpu() && recorded::recorded());
        let odd = is_verified && (is_test || measures && !group.verified_by_tests);
        let rounds = if is_test { ROUNDS } else { 1 };
        let edge_cases = cache.edge_cases.get_or_init(group.operation.edge_cases);
        let mut rejects = None;
        for (place, size, inputs) in group.untimed(row, edge_cases.clone(), odd) {
            let verified = caught(|| {
                let mut code = self.machine.set_up(row, &inputs)?;
                let gpu = self.machine.opened().filter(|_| row.is_gpu());
                Ok(group.verify_routine(row, &mut *code.routine, size, gpu, rounds)?)
            });
            let named = |error: RoutineError| -> RoutineError {
                format!("{place}: {}; it is not timed", with_causes(&*error)).into()
            };
            match verified {
                Ok(rejected) => rejects = rejected.or(rejects),
                // What cannot run at a timed size either is skipped there.
                Err(Missing::Absent(_)) => {}
                Err(Missing::Failed(error)) => return Err(Missing::Failed(named(error))),
                Err(Missing::ContextLost(error)) => return Err(Missing::ContextLost(named(error))),
                Err(no_space) => return Err(no_space),
            }
        }
        // Edge cases alone may have no value that another format lacks.
        if let Some(fault) = admits_anything(rejects).filter(|_| odd) {
            return Err(fault.into());
        }
        cache.right_untimed.insert(function);
        Ok(())
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
            if self.arguments.mode == Mode::Test && bench.row.is_gpu() && recorded::recorded() {
                let reason = "the recording driver runs no kernel, so no result was verified";
                return Err(Missing::Absent(reason.into()));
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
            // Behind a gate the warm-up's first call runs its one iteration twice, which Criterion
            // counts as one if it makes no second call.
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

    /// Tells the driving process that the benchmark is set up. Leaves it out of profiles if it has no
    /// part that could be recorded.
    fn announce_ready(&self, bench: &Bench<'_>, prepared: &Prepared) -> Result<(), Missing> {
        let is_profiled = self.arguments.mode == Mode::Profile && bench.row.is_gpu();
        if is_profiled && !prepared.sampling.is_timed_by_a_clock() {
            let reason = "it times itself, so the profiler cannot follow it";
            return Err(Missing::Absent(reason.into()));
        }
        if let Some(turns) = &self.turns {
            let id = bench.id.clone();
            turns.say(&TurnMessage::Ready { id });
        }
        Ok(())
    }

    /// Samples, verifies and stores a benchmark, and once more if the result is unsteady. Undoes what was
    /// written where that fails.
    fn sample_until_steady(
        &mut self,
        plots: &mut Plots<'_>,
        bench: &mut Bench<'_>,
        prepared: &mut Prepared,
    ) -> Result<(), Missing> {
        if !self.arguments.saves {
            return self.sample_and_store(plots, bench, prepared).map(drop);
        }
        // Doubts from before the samples remain valid for new samples.
        let known = bench.doubts.len();
        let mut first: Option<(Aside, Option<Benchmark>)> = None;
        // After a signal an unsteady result is better than none.
        let fall_back = |bench: &mut Bench<'_>, first: Option<(Aside, Option<Benchmark>)>| {
            bench.result = None;
            if let Some((aside, result)) = first.filter(|_| interrupt::signal().is_some()) {
                aside.put_back()?;
                bench.result = result;
            }
            Ok::<(), Missing>(())
        };
        loop {
            let attempt = match bench.folder.begin(self.arguments.baseline.as_deref()) {
                Ok(attempt) => attempt,
                Err(error) => {
                    fall_back(bench, first)?;
                    return Err(error.into());
                }
            };
            let outcome = match first {
                None => self.sample_and_store(plots, bench, prepared),
                Some(_) => {
                    let (settings, time) = (&self.settings, &self.machine.time);
                    let mut criterion = instance(&settings.results, &self.sampling, time, false);
                    let mut again = plots_of(&mut criterion, bench.group.name);
                    if bench.group.rate.is_some() {
                        again.throughput(Throughput::Elements(bench.size));
                    }
                    self.sample_and_store(&mut again, bench, prepared)
                }
            };
            bench.doubts.truncate(known);
            let is_over = interrupt::signal().is_some();
            match (outcome, first) {
                (Err(error), first) => {
                    attempt.undo();
                    fall_back(bench, first)?;
                    return Err(error);
                }
                (Ok(Some(why)), None) if !is_over => {
                    first = Some((attempt.set_aside()?, bench.result.take()));
                    let id = &bench.id;
                    eprintln!("note: {id} is unsteady and is measured again: {why}");
                }
                (Ok(why), _) => {
                    attempt.done();
                    if let Some(why) = why {
                        let id = &bench.id;
                        eprintln!("note: {id} is still unsteady: {why}; no answer uses it");
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Samples and verifies a benchmark, and writes its result with its sidecar. Returns why it is
    /// unsteady.
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
        // A routine that went wrong under load, or after the first run, was not worth timing.
        let verified = match self.verifies() {
            true => caught(|| {
                self.run_timed(bench, prepared, &ns)?;
                self.compare(&mut prepared.code)
            })?,
            false => None,
        };
        // In turns the spread between processes counts. A routine that times itself would only return
        // the same times again.
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
                "calibrated under background load, so another process calibrates again: {}",
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

    /// Compares the output with the reference. `None` if no device has computed it.
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
