//! The steps of one benchmark, in the order in which they happen: checked, set up, verified, sampled by Criterion,
//! verified again, stored.

mod sidecar;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use criterion::BenchmarkId;

use crate::model::Verified;
use crate::model::record::{Activity, Sidecar};
use crate::suite::arguments::Mode;
use crate::suite::group::{AnyGroup, AnyRow, Inputs};
use crate::suite::guarded::{guard, run_again};
use crate::suite::host::Timed;
use crate::suite::journal::{Missing, caught};
use crate::suite::progress::Spent;
use crate::suite::run::Run;
use crate::suite::sampler::{SampleSeries, Sampler};
use crate::suite::sampling_plan::{Pace, Plots, Sampling};
use crate::suite::verify::{ROUNDS, compare, too_wide};
use crate::timing::{Clock, Doubt, LaunchState, catch_panic};
use crate::workload::devices::LaunchRequest;
use crossover_protocol::turns::TurnMessage;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::folder::BenchmarkFolder;
use crossover_words::units;

/// The cache of a group's benchmarks for later ones.
#[derive(Default)]
pub(super) struct GroupCache {
    pub(super) pace: Pace,
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
    /// The inputs of this size, made unless they are there. Inputs of another size are dropped first: there may be no
    /// memory for both.
    pub(super) fn of(&mut self, size: u64, make: impl FnOnce(u64) -> Inputs) -> Inputs {
        let known = self.0.take().filter(|known| known.0 == size);
        let known = known.unwrap_or_else(|| (size, make(size)));
        self.0.insert(known).1.clone()
    }
}

/// A benchmark that is about to run, with its state so far.
pub(super) struct Bench<'a> {
    pub(super) run: &'a mut Run,
    id: String,
    group: &'a AnyGroup,
    row: &'a AnyRow,
    size: u64,
    /// The cache of earlier benchmarks of the group.
    cache: &'a mut GroupCache,
    pub(super) folder: BenchmarkFolder,
    /// The time it took beside its set-up.
    pub(super) spent: Spent,
    /// Reasons from before its samples not to believe its time.
    doubts: Vec<Doubt>,
    /// Remarks on its samples.
    notes: Vec<String>,
}

/// A benchmark's code, verified, and how it is sampled.
struct Prepared {
    code: Timed,
    sampling: Sampling,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        run: &'a mut Run,
        group: &'a AnyGroup,
        row: &'a AnyRow,
        size: u64,
        cache: &'a mut GroupCache,
    ) -> Self {
        let id = group.id_of(row, size);
        run.limits_and_load.begin_benchmark();
        Self {
            id: id.to_string(),
            group,
            row,
            size,
            cache,
            folder: BenchmarkFolder::new(&run.settings.results, id, group.rate.is_some()),
            spent: Spent::default(),
            doubts: Vec::new(),
            notes: Vec::new(),
            run,
        }
    }

    /// Measures the benchmark. Returns its result if results are stored; undoes what was written where a step
    /// fails.
    pub(super) fn measure(&mut self, plots: &mut Plots<'_>) -> Result<Option<Benchmark>, Missing> {
        let rate = self.group.rate.clone();
        let _rate = rate.map(|rate| self.run.machine.time.set_rate(rate));
        let is_guarded = self.is_guarded() && self.row.is_executed();
        self.run.machine.time.ignore_other_streams(!is_guarded);
        self.check_memory()?;
        self.check_duration()?;
        if self.run.arguments.saves {
            (self.spent).on(Activity::Limits, || self.run.measure_limits(self.row))?;
        }
        self.verify_untimed()?;
        let mut prepared = self.prepare()?;
        self.announce_ready(&prepared)?;
        self.guard_on_other_values(&mut prepared)?;
        if !self.run.arguments.saves {
            let mut series = self.sample(plots, &mut prepared)?;
            self.verify_again(&mut prepared, &mut series)?;
            self.run.check_device()?;
            return Ok(None);
        }
        let attempt = self.folder.begin(self.run.arguments.baseline.as_deref())?;
        match self.sample_and_store(plots, &mut prepared) {
            Ok(result) => {
                attempt.done();
                Ok(Some(result))
            }
            Err(missing) => {
                attempt.undo();
                Err(missing)
            }
        }
    }

    /// Leaves a benchmark out for which there is not enough memory.
    fn check_memory(&self) -> Result<(), Missing> {
        // In turns, both sides have memory at the same time.
        let sides = 1 + u64::from(self.run.turns.is_some());
        let operation = &self.group.operation;
        let device = (self.row.is_gpu()).then(|| sides * (operation.device_bytes)(self.size));
        let host = sides * (operation.host_bytes)(self.size);
        self.run.machine.has_room_for(host, device)
    }

    /// Leaves a benchmark out if one iteration would take longer than the size set allows.
    fn check_duration(&mut self) -> Result<(), Missing> {
        let Some(limit) = self.run.sampling.longest_iteration_of(&self.row.role) else {
            return Ok(());
        };
        let sizes = self.group.sizes_of(self.row).of(self.run.settings.size_set);
        let smaller = sizes.iter().copied().filter(|other| *other < self.size);
        let cost = |size| self.group.cost_of(self.row, size);
        let pace = &mut self.cache.pace;
        let expected = pace.expect(&self.row.function(), self.size, smaller.max(), cost);
        match expected.filter(|expected| *expected > limit) {
            None => Ok(()),
            Some(expected) => {
                let reason = format!(
                    "one iteration would take about {}, but CROSSOVER_SIZES={} allows {}; a filter that \
                     selects only this size runs it",
                    units::time(expected.as_nanos() as f64),
                    self.run.settings.size_set.name(),
                    units::time(limit.as_nanos() as f64)
                );
                Err(Missing::Absent(reason.into()))
            }
        }
    }

    /// Verifies an implementation on the inputs that are never timed, once for all sizes: the edge cases
    /// of its workload, and the odd sizes.
    fn verify_untimed(&mut self) -> Result<(), Missing> {
        let (run, group, row) = (&*self.run, self.group, self.row);
        let (function, cache) = (row.function(), &mut *self.cache);
        if !run.verifies() || cache.right_untimed.contains(&function) {
            return Ok(());
        }
        let is_test = run.arguments.mode == Mode::Test;
        let measures = run.arguments.saves && run.turns.is_none();
        let odd = row.is_executed() && (is_test || measures && !group.verified_by_tests);
        let rounds = if is_test { ROUNDS } else { 1 };
        let mut rejects = None;
        for (place, size, inputs) in group.untimed(row, odd) {
            let verified = caught(|| {
                let mut code = run.machine.set_up(row, &inputs)?;
                let gpu = run.machine.opened().filter(|_| row.is_gpu());
                Ok(group.verify_routine(row, &mut *code.routine, size, gpu, rounds)?)
            });
            match verified {
                Ok(rejected) => rejects = rejected.max(rejects),
                // What cannot run at a timed size either is skipped there.
                Err(Missing::Absent(_)) => {}
                Err(missing) => return Err(missing.at(&place)),
            }
        }
        // Edge cases alone may have no value that another format lacks.
        if let Some(fault) = too_wide(rejects).filter(|_| odd) {
            return Err(fault.into());
        }
        cache.right_untimed.insert(function);
        Ok(())
    }

    /// Sets an implementation up, runs it once, verifies it, and plans its samples.
    fn prepare(&mut self) -> Result<Prepared, Missing> {
        caught(|| {
            let make = self.group.operation.inputs;
            let inputs = self.cache.inputs.of(self.size, make);
            let machine = &self.run.machine;
            // Those of the benchmark before.
            machine.choices.take_needed();
            let mut code = machine.set_up(self.row, &inputs)?;
            machine.run_once(&mut code)?;
            if self.run.verifies() {
                compare(&mut code)?;
            }
            if self.run.arguments.mode == Mode::Test && !code.is_executed {
                let reason = "the recording driver runs no kernel, so no result was verified";
                return Err(Missing::Absent(reason.into()));
            }
            let sampling = self.plan(&mut code)?;
            Ok(Prepared { code, sampling })
        })
    }

    /// Chooses the number of samples and their time by one warm iteration.
    fn plan(&mut self, code: &mut Timed) -> Result<Sampling, Missing> {
        let (mut plan, mut measured) = (Sampling::OF_ITS_OWN, None);
        if code.routine.time(1).transpose()?.is_none() {
            let start = Instant::now();
            code.routine.run()?;
            if code.launches > 0 {
                self.run.machine.wait()?;
            }
            let iteration = start.elapsed();
            (self.cache.pace).note(self.row.function(), self.size, iteration);
            // Behind a gate the warm-up's first call runs its one iteration twice, which Criterion
            // counts as one if it makes no second call.
            let sampling = self.run.sampling_of(code);
            let is_doubled = code.clock == Clock::EventsGated && 2 * iteration > sampling.warm_up;
            let seen = if is_doubled { 2 * iteration } else { iteration };
            plan = sampling.for_iteration(seen);
            measured = Some(iteration);
        }
        plan = plan.as_given(&self.run.arguments);
        plan.iteration = measured;
        Ok(match self.run.turns {
            Some(_) => plan.in_turns(),
            None => plan,
        })
    }

    /// Tells the driving process that the benchmark is set up. Leaves it out of profiles if it has no
    /// part that could be recorded.
    fn announce_ready(&self, prepared: &Prepared) -> Result<(), Missing> {
        let is_profiled = self.run.arguments.mode == Mode::Profile && self.row.is_gpu();
        if is_profiled && !prepared.sampling.is_timed_by_a_clock() {
            let reason = "it times itself, so the profiler cannot follow it";
            return Err(Missing::Absent(reason.into()));
        }
        if let Some(turns) = &self.run.turns {
            let id = self.id.clone();
            turns.say(&TurnMessage::Ready { id });
        }
        Ok(())
    }

    /// Whether a benchmark is checked beside its results: one on the GPU whose result is stored. Rows that show
    /// wrong clocks are wrong on purpose.
    fn is_guarded(&self) -> bool {
        let is_meant = self.group.topic.truth.is_none() && self.row.clock != Clock::Submit;
        self.row.is_gpu() && self.run.arguments.saves && self.run.turns.is_none() && is_meant
    }

    /// At the smallest size of a row, runs it on inputs with other values. Larger sizes are not
    /// checked, which would need a second set of memory.
    fn guard_on_other_values(&mut self, prepared: &mut Prepared) -> Result<(), Missing> {
        let sizes = self.group.sizes_of(self.row).of(self.run.settings.size_set);
        let is_smallest = sizes.iter().min() == Some(&self.size);
        // A routine without declared outputs keeps state of the process, such as a memory pool.
        let writes = !prepared.code.routine.outputs().is_empty();
        let is_guarded = self.is_guarded() && is_smallest && writes;
        let Some(iteration) = prepared.sampling.iteration.filter(|_| is_guarded) else {
            return Ok(());
        };
        let begun = Instant::now();
        let machine = &self.run.machine;
        let doubts = caught(|| {
            let operation = &self.group.operation;
            let make = |size| operation.other_values(size);
            let known = Cell::new(Some(self.cache.other_values.of(self.size, make)));
            guard(machine, &mut prepared.code, iteration, &|| {
                // Code that stores results must not have seen the values.
                let values = known.take().unwrap_or_else(|| make(self.size));
                machine.set_up(self.row, &values)
            })
        });
        self.spent.add(Activity::Checks, begun.elapsed());
        self.doubts = doubts?;
        for doubt in &self.doubts {
            eprintln!("note: {}: {doubt}", self.id);
        }
        Ok(())
    }

    /// Samples, verifies and stores a benchmark.
    fn sample_and_store(
        &mut self,
        plots: &mut Plots<'_>,
        prepared: &mut Prepared,
    ) -> Result<Benchmark, Missing> {
        let mut series = self.sample(plots, prepared)?;
        let verified = self.verify_again(prepared, &mut series)?;
        let sidecar = Sidecar {
            verified,
            monitor: series.telemetry.take(),
            unsteady: series.unsteady.take(),
            ..self.sidecar(&mut prepared.code, &mut series)?
        };
        let baseline = self.run.arguments.baseline.as_deref();
        let result = self.folder.finish(sidecar, baseline)?;
        if self.run.turns.is_none() {
            self.run.journal.check_limits(&result)?;
        }
        Ok(result)
    }

    /// Has Criterion take the samples, while the device is watched. The inputs must be the same before and
    /// after.
    fn sample(
        &mut self,
        plots: &mut Plots<'_>,
        prepared: &mut Prepared,
    ) -> Result<SampleSeries, Missing> {
        let (saves, plan) = (self.run.arguments.saves, prepared.sampling);
        plan.apply(plots);
        let inputs = self.checksums(&prepared.code)?;
        let several = self.group.on_several;
        let probes = (self.row.is_gpu() && saves && plan.is_timed_by_a_clock()).then_some(several);
        let shortened = || (self.run.machine).probe_launches(several, LaunchRequest::Shorten);
        let launches =
            probes.map_or(Ok(None), |_| (self.spent).on(Activity::Launches, shortened))?;
        let empty_before_ns = self.launch_constant(prepared.code.clock);
        let sampled_before = self.folder.sampled_at();
        let mut sampler = self.sampler(&mut prepared.code, plan, probes, launches);
        let begun = Instant::now();
        let sampled = self.run_criterion(plots, &mut sampler);
        let analysis = begun.elapsed().saturating_sub(sampler.called);
        let (series, mut spent) = sampler.end();
        spent.add(Activity::Analysis, analysis);
        self.spent.include(spent);
        if let Some(panic) = sampled? {
            self.rescue(&panic, sampled_before)?;
        }
        let mut series = series?;
        series.empty_before_ns = empty_before_ns;
        if self.checksums(&prepared.code)? == inputs {
            Ok(series)
        } else {
            Err("an iteration changed its inputs, so later ones computed something else".into())
        }
    }

    /// The sampler of this benchmark, which watches the device from now on.
    fn sampler<'s>(
        &'s self,
        code: &'s mut Timed,
        plan: Sampling,
        probes: Option<bool>,
        launches: Option<LaunchState>,
    ) -> Sampler<'s> {
        let (run, is_timed) = (&*self.run, plan.is_timed_by_a_clock());
        let saves = run.arguments.saves;
        let is_watched = is_timed && self.row.is_gpu() && saves && run.settings.monitor;
        let mut sampler = Sampler {
            run,
            id: &self.id,
            code,
            plan,
            // In turns the spread between processes counts. A routine that times itself would only return
            // the same times again.
            retakes: saves && run.turns.is_none() && is_timed && !run.arguments.is_quick(),
            probes,
            launches,
            not_again: None,
            spent: Spent::default(),
            called: Duration::ZERO,
            is_guarded: self.is_guarded() && is_timed,
            doubt: self.doubts.first().map(Doubt::to_string),
            monitor: is_watched.then(|| run.machine.monitor()).flatten(),
            watch: None,
            series: None,
            given: Vec::new(),
            iterations: None,
        };
        sampler.watch();
        sampler
    }

    /// Has Criterion warm up, sample and analyse. Returns the panic with which Criterion ended.
    fn run_criterion(
        &self,
        plots: &mut Plots<'_>,
        sampler: &mut Sampler<'_>,
    ) -> Result<Option<String>, Missing> {
        // Threads of a routine that several threads drive start here too, and would all be kept on one
        // core.
        let is_kept = self.row.role.is_driven_by_one_thread();
        let _core = is_kept.then(|| match &self.run.turns {
            Some(turns) => turns.on_one_core(),
            None if self.row.is_gpu() => self.run.machine.opened()?.keep_near(),
            None => None,
        });
        // Only a panic can leave Criterion's closure; the error is kept here.
        let mut failure = None;
        let id = BenchmarkId::new(self.row.function(), self.size);
        let ended = catch_panic(|| {
            plots.bench_function(id, |b| {
                b.iter_custom(|iterations| {
                    sampler.next(iterations).unwrap_or_else(|missing| {
                        failure = Some(missing);
                        panic!("there is no sample")
                    })
                });
            });
        });
        match failure {
            Some(missing) => Err(missing),
            None => Ok(ended.err()),
        }
    }

    /// Keeps samples that were written before Criterion's analysis failed on them.
    fn rescue(&self, panic: &str, sampled_before: Option<SystemTime>) -> Result<(), Missing> {
        if !self.run.arguments.saves || self.folder.sampled_at() == sampled_before {
            return Err(panic.into());
        }
        self.folder.rescue()?;
        eprintln!(
            "note: {} was measured and saved; Criterion could not compare it with the run before ({})",
            self.id,
            panic.lines().next().unwrap_or_default()
        );
        Ok(())
    }

    /// Checksums of the memory that a guarded benchmark reads.
    fn checksums(&mut self, code: &Timed) -> Result<Vec<u64>, Missing> {
        if !self.is_guarded() {
            return Ok(Vec::new());
        }
        let checksums = || self.run.machine.time.checksums(&code.routine.inputs());
        Ok((self.spent).on(Activity::Checks, checksums)?)
    }

    /// Compares the result of a run after the samples with the reference.
    fn verify_again(
        &self,
        prepared: &mut Prepared,
        series: &mut SampleSeries,
    ) -> Result<Option<Verified>, Missing> {
        if !self.run.verifies() {
            return Ok(None);
        }
        caught(|| {
            if !series.is_run_again {
                let is_timed = prepared.sampling.is_timed_by_a_clock();
                let ns = (self.is_guarded() && is_timed).then(|| series.ns());
                let doubt = run_again(&self.run.machine, &mut prepared.code, ns.as_deref())?;
                let earlier = series.unsteady.take();
                series.unsteady = earlier.or_else(|| Some(doubt?.to_string()));
            }
            compare(&mut prepared.code)
        })
    }
}
