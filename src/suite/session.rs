//! One benchmark from its declaration to its files.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkGroup, BenchmarkId, SamplingMode, Throughput};

use super::arguments::{Arguments, Mode};
use super::effort::{Effort, FEWEST_SAMPLES};
use super::extra::{self, ExtraSizes};
use super::group::{Group, Implementation, Make};
use super::machine::Machine;
use super::missing::{Missing, failed, skipped};
use super::progress::Progress;
use super::results::BenchmarkFolder;
use crate::ceilings;
use crate::device::environment::Environment;
use crate::device::monitor::Watch;
use crate::device::nvml::Monitor;
use crate::device::{CudaError, present};
use crate::record::{Cost, Failure, RunRecord, SCHEMA, Sidecar, Skip, Verified};
use crate::settings::{Profile, Settings};
use crate::timing::{CudaTime, TimingError};
use crate::workload::{Routine, Workload};

/// Everything of a run but Criterion itself.
pub(super) struct Session {
    settings: Settings,
    arguments: Arguments,
    effort: Effort,
    time: CudaTime,
    machine: Machine,
    monitor: OnceCell<Option<Arc<Monitor>>>,
    environment: OnceCell<Environment>,
    extra_sizes: OnceCell<ExtraSizes>,
    progress: Progress,
    record: RunRecord,
    /// The record is on disk, because something was measured.
    recorded: bool,
    gpu_ceilings: bool,
}

/// How long an iteration of each implementation took at the size before, to leave out sizes
/// that would exceed the limit of the `full` profile without running them.
#[derive(Default)]
pub(super) struct Pace(HashMap<String, (f64, Duration)>);

/// Who times a routine.
enum Timing {
    Clock,
    /// The routine itself: it has measured before Criterion asks.
    Own,
}

type Plots<'a> = BenchmarkGroup<'a, CudaTime>;

impl Session {
    pub(super) fn new(
        settings: Settings,
        arguments: Arguments,
        effort: Effort,
        time: CudaTime,
    ) -> Self {
        let started = jiff::Timestamp::now();
        let record = RunRecord {
            schema: SCHEMA,
            run: format!(
                "{}-{}",
                started.strftime("%Y%m%dT%H%M%SZ"),
                std::process::id()
            ),
            started: format!("{started:.0}"),
            finished: None,
            profile: settings.profile.name().to_owned(),
            arguments: std::env::args().skip(1).collect(),
            environment: Environment::default(),
            ceilings: BTreeMap::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
        };
        Self {
            machine: Machine::new(&settings),
            settings,
            arguments,
            effort,
            time,
            monitor: OnceCell::new(),
            environment: OnceCell::new(),
            extra_sizes: OnceCell::new(),
            progress: Progress::default(),
            record,
            recorded: false,
            gpu_ceilings: false,
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// Counts the benchmarks of a group that are going to be run.
    pub(super) fn expect<W: Workload>(&mut self, group: &Group<W>) {
        if self.arguments.mode == Mode::List {
            return;
        }
        let no_gpu = self.machine.gpu_missing().is_some();
        let expected = (self.sizes_and_rows(group).iter())
            .flat_map(|(size, rows)| rows.iter().map(move |row| (size, row)))
            .filter(|(_, row)| !(row.is_gpu() && no_gpu))
            .map(|(size, row)| format!("{}/{}/{size}", group.name, row.function()))
            .filter(|id| self.arguments.selects(id))
            .count();
        self.progress.expect(expected);
    }

    /// What a group runs: its profile's sizes, and those around crossings that an earlier run
    /// found.
    pub(super) fn sizes_and_rows<'a, W: Workload>(
        &self,
        group: &'a Group<W>,
    ) -> BTreeMap<u64, Vec<&'a Implementation<W>>> {
        let extra = self.extra_sizes.get_or_init(|| {
            ExtraSizes::read(&self.settings.results, || self.environment().clone())
        });
        group.plan(self.profile(), |row| extra.of(group.name, row))
    }

    fn environment(&self) -> &Environment {
        self.environment
            .get_or_init(|| Environment::collect(self.machine.device()))
    }

    /// Names, a line an implementation, the sizes that the profile leaves out and the
    /// implementations that need a GPU where there is none.
    pub(super) fn name_what_is_left_out<W: Workload>(&mut self, group: &Group<W>) {
        let profile = self.profile();
        for row in &group.rows {
            let function = row.function();
            let id = |size: &u64| format!("{}/{function}/{size}", group.name);
            let wanted = |size: &u64| self.arguments.selects(&id(size));
            let sizes = group.sizes_of(row);
            let left_out: Vec<String> = sizes
                .all()
                .iter()
                .filter(|size| !sizes.of(profile).contains(size) && wanted(size))
                .map(u64::to_string)
                .collect();
            let in_profile = sizes.of(profile).iter().any(wanted);
            let prefix = format!("{}/{function}", group.name);
            if row.is_gpu()
                && in_profile
                && let Some(reason) = self.machine.gpu_missing()
            {
                self.skip(prefix, reason);
            } else if !left_out.is_empty() {
                let reason = format!(
                    "sizes {} are not in profile {}; CROSSOVER_PROFILE=full runs them",
                    left_out.join(", "),
                    profile.name()
                );
                // Too many lines to print at every run: they are in the run's record, and
                // the end of the run says how many.
                self.record.skipped.push(Skip { id: prefix, reason });
            }
        }
    }

    fn skip(&mut self, id: String, reason: String) {
        if self.arguments.mode != Mode::List {
            eprintln!("skipped {id}: {reason}");
        }
        self.record.skipped.push(Skip { id, reason });
    }

    /// Sets up, verifies, times and verifies again one implementation at one size.
    pub(super) fn bench<W: Workload>(
        &mut self,
        plots: &mut Plots<'_>,
        group: &Group<W>,
        row: &Implementation<W>,
        size: u64,
        problem: &OnceCell<Rc<W>>,
        pace: &mut Pace,
    ) {
        let function = row.function();
        let id = format!("{}/{function}/{size}", group.name);
        if row.is_gpu() && self.machine.gpu_missing().is_some() {
            return;
        }
        if group.rate.is_some() {
            plots.throughput(Throughput::Elements(size));
        }
        let criterion_id = BenchmarkId::new(&function, size);
        if !self.arguments.selects(&id) || self.arguments.mode == Mode::List {
            // Criterion lists it, or keeps an earlier result of it in the group's plots; the
            // closure is never called.
            plots.bench_function(criterion_id, |_| {});
            return;
        }
        self.progress.begin(&id);
        let bench = Bench {
            id: &id,
            row,
            size,
            cost: row.cost.unwrap_or(group.cost)(size),
            folder: BenchmarkFolder::new(
                &self.settings.results,
                group.name,
                &function,
                size,
                group.rate.is_some(),
            ),
        };
        if let Some(rate) = group.rate {
            self.time.set_rate(rate);
        }
        match self.measure(plots, criterion_id, &bench, problem, pace) {
            Ok(()) => {}
            Err(Missing::Skipped(reason)) => self.skip(id, reason),
            Err(Missing::Failed { text, context_lost }) => {
                eprintln!("FAILED {id}: {text}");
                if context_lost {
                    self.machine.lose_gpu(&id);
                    eprintln!("the remaining GPU benchmarks are skipped: the CUDA context is lost");
                }
                self.record.failed.push(Failure { id, error: text });
            }
        }
    }

    fn measure<W: Workload>(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
        problem: &OnceCell<Rc<W>>,
        pace: &mut Pace,
    ) -> Result<(), Missing> {
        let Bench { row, size, .. } = *bench;
        let device_bytes = row.is_gpu().then(|| W::device_bytes(size));
        if let Some(reason) = self
            .machine
            .too_small_for(W::host_bytes(size), device_bytes)
        {
            return Err(Missing::Skipped(reason));
        }
        self.check_pace(bench, pace)?;
        self.begin_record(row.is_gpu())?;

        let problem = || problem.get_or_init(|| Rc::new(W::new(size)));
        let mut routine = match &row.make {
            Make::Cpu(make) => make(problem())?,
            Make::Gpu(make) => {
                let gpu = self.machine.gpu(&self.time).map_err(skipped)?;
                self.time.wake().map_err(TimingError::from)?;
                make(&gpu, problem())?
            }
        };
        self.verify(&mut *routine)?;
        let timing = self.plan(plots, bench, pace, &mut *routine)?;
        let watch = match timing {
            Timing::Clock if row.is_gpu() && self.arguments.saves => self.watch(),
            _ => None,
        };
        self.sample(plots, criterion_id, bench, &mut *routine, watch.as_ref())?;
        let strip = watch.map(Watch::finish);
        // Once more after the last sample: a routine that went wrong under load, or after
        // the first run, was not worth timing.
        let verified = self.verify(&mut *routine)?;
        if self.arguments.saves {
            let mut sidecar = self.sidecar(bench, &*routine, verified);
            sidecar.monitor = strip;
            sidecar.extra = routine.extra()?;
            self.check_device()?;
            bench
                .folder
                .write_sidecar(&mut sidecar, self.arguments.baseline.as_deref())
                .map_err(|e| failed(e.to_string()))?;
        }
        self.check_device()
    }

    fn check_pace<W>(&self, bench: &Bench<'_, W>, pace: &Pace) -> Result<(), Missing> {
        let Some(limit) = self.effort.longest_iteration else {
            return Ok(());
        };
        let Some((before, took)) = pace.0.get(&bench.row.function()) else {
            return Ok(());
        };
        let expected = took.mul_f64(work(&bench.cost, bench.size) / before);
        if expected <= limit {
            return Ok(());
        }
        Err(Missing::Skipped(format!(
            "one iteration would take about {:.0} s, more than the {:.0} s that a benchmark may; \
             a faster machine runs it",
            expected.as_secs_f64(),
            limit.as_secs_f64()
        )))
    }

    /// Poisons the output, runs once, waits, and compares with the reference.
    fn verify(&self, routine: &mut dyn Routine) -> Result<Verified, Missing> {
        routine.poison()?;
        routine.run()?;
        self.wait()?;
        let verified = routine.check()?;
        if verified.passed() {
            Ok(verified)
        } else {
            Err(Missing::Failed {
                text: format!(
                    "wrong result: error {:.3e} is over the bound {:.3e} ({}); it is not timed",
                    verified.error, verified.bound, verified.method
                ),
                context_lost: false,
            })
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

    /// Errors of destructors surface on a later call: nothing may blame the next benchmark.
    fn check_device(&self) -> Result<(), Missing> {
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

    /// Chooses the number of samples and their time by one warm iteration.
    fn plan<W>(
        &self,
        plots: &mut Plots<'_>,
        bench: &Bench<'_, W>,
        pace: &mut Pace,
        routine: &mut dyn Routine,
    ) -> Result<Timing, Missing> {
        let (mut samples, mut measurement) = (FEWEST_SAMPLES, Duration::from_nanos(1));
        let mut warm_up = measurement;
        let timing;
        // A routine that times itself has measured already: Criterion's planning by the host
        // clock would ask it for billions of iterations.
        if routine.time(1).transpose()?.is_some() {
            timing = Timing::Own;
            plots.sampling_mode(SamplingMode::Flat);
        } else {
            timing = Timing::Clock;
            let start = Instant::now();
            routine.run()?;
            if bench.row.is_gpu() {
                self.wait()?;
            }
            let iteration = start.elapsed();
            pace.0.insert(
                bench.row.function(),
                (work(&bench.cost, bench.size), iteration),
            );
            (samples, measurement) = self.effort.for_iteration(iteration);
            warm_up = self.effort.warm_up;
            plots.sampling_mode(SamplingMode::Auto);
        }
        if !self.arguments.gave("sample-size") {
            plots.sample_size(samples);
        }
        if !self.arguments.gave("measurement-time") {
            plots.measurement_time(measurement);
        }
        if !self.arguments.gave("warm-up-time") {
            plots.warm_up_time(warm_up);
        }
        Ok(timing)
    }

    fn sample<W>(
        &self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        bench: &Bench<'_, W>,
        routine: &mut dyn Routine,
        watch: Option<&Watch>,
    ) -> Result<(), Missing> {
        let clock = bench.row.clock;
        let launches = if bench.row.is_gpu() {
            routine.launches().max(1)
        } else {
            0
        };
        let sampled_before = bench.folder.sampled_at();
        let outcome = present::guarded(AssertUnwindSafe(|| {
            plots.bench_function(criterion_id, |b| {
                b.iter_custom(|iterations| match routine.time(iterations) {
                    Some(own) => own.unwrap_or_else(|e| self.time.fail(e)),
                    None => {
                        let ns = self
                            .time
                            .measure(clock, iterations, launches, || routine.run())
                            .unwrap_or_else(|e| self.time.fail(e));
                        if let Some(watch) = watch {
                            watch.sampled(iterations);
                        }
                        ns
                    }
                });
            });
        }));
        let Err(panic) = outcome else {
            return Ok(());
        };
        if let Some(error) = self.time.take_failure() {
            return Err(error.into());
        }
        if self.arguments.saves && bench.folder.sampled_at() != sampled_before {
            // The samples were written before Criterion's analysis failed on them.
            bench
                .folder
                .rescue(self.arguments.baseline.as_deref())
                .map_err(|e| failed(e.to_string()))?;
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
        verified: Verified,
    ) -> Sidecar {
        Sidecar {
            schema: SCHEMA,
            id: bench.id.to_owned(),
            samples_sha256: String::new(),
            clock: self.time.effective(bench.row.clock),
            size: bench.size,
            cost: bench.cost,
            verified: Some(verified),
            device_state: bench
                .row
                .is_gpu()
                .then(|| self.monitor())
                .flatten()
                .map(|monitor| monitor.state()),
            monitor: None,
            extra: BTreeMap::new(),
            notes: routine.notes(),
            run: self.record.run.clone(),
        }
    }

    fn monitor(&self) -> Option<&Arc<Monitor>> {
        self.monitor
            .get_or_init(|| Monitor::open(self.machine.device().ok()?).map(Arc::new))
            .as_ref()
    }

    /// Looks at the device from now on, where that is wanted and possible.
    fn watch(&self) -> Option<Watch> {
        if !self.settings.monitor {
            return None;
        }
        // A system that has no thread to give has worse to tell than a missing strip.
        Watch::start(self.monitor()?.clone()).ok()
    }

    /// Collects the environment, measures the ceilings that a benchmark on this device
    /// refers to, and writes the run's record, each before the first benchmark that needs it.
    fn begin_record(&mut self, gpu: bool) -> Result<(), Missing> {
        if !self.arguments.saves {
            return Ok(());
        }
        if !self.recorded {
            self.recorded = true;
            self.record.environment = self.environment().clone();
            for disturbance in &self.record.environment.disturbances {
                eprintln!("note: {disturbance}");
            }
            eprintln!("measuring the CPU's ceilings");
            self.record.ceilings.append(&mut ceilings::cpu());
            self.write_record()?;
        }
        if gpu && !self.gpu_ceilings {
            self.gpu_ceilings = true;
            eprintln!("measuring the GPU's ceilings");
            let gpu = self.machine.gpu(&self.time).map_err(skipped)?;
            self.time.wake().map_err(TimingError::from)?;
            if let Some(reason) = self.time.gate_off() {
                eprintln!("note: the gate is off, gated benchmarks use the events clock: {reason}");
            }
            self.record
                .ceilings
                .append(&mut ceilings::gpu(&gpu, &self.time)?);
            self.write_record()?;
        }
        Ok(())
    }

    fn write_record(&self) -> Result<(), Missing> {
        self.record
            .write(&self.settings.results)
            .map_err(|e| failed(e.to_string()))
    }

    /// Completes the record and says what was left out and what failed.
    pub(super) fn finish(mut self) -> ExitCode {
        if self.recorded {
            self.record.finished = Some(format!("{:.0}", jiff::Timestamp::now()));
            if let Err(Missing::Failed { text, .. }) = self.write_record() {
                self.record.failed.push(Failure {
                    id: "the run's record".to_owned(),
                    error: text,
                });
            }
        }
        if self.recorded {
            self.report();
        }
        if self.arguments.mode == Mode::Bench {
            let by_profile = self
                .record
                .skipped
                .iter()
                .filter(|s| s.reason.contains("CROSSOVER_PROFILE"))
                .count();
            if by_profile > 0 {
                eprintln!(
                    "sizes of {by_profile} implementation(s) left out by the profile; CROSSOVER_PROFILE=full runs them"
                );
            }
        }
        if self.record.failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        eprintln!("\n{} failed:", self.record.failed.len());
        for Failure { id, error } in &self.record.failed {
            eprintln!("  {id}: {error}");
        }
        ExitCode::FAILURE
    }
}

impl Session {
    /// Refreshes the page and keeps the crossings found for the next run to measure. Results
    /// are on disk already: what fails here is said and loses nothing.
    fn report(&self) {
        let (results, out) = (&self.settings.results, self.settings.report_folder());
        if let Err(error) = extra::keep(results, out, self.environment()) {
            eprintln!("note: the crossings are not kept for the next run: {error}");
        }
        match crate::report::refresh(results, out, &crate::report::Options::default()) {
            Ok(written) => println!("\n{written}"),
            Err(error) => eprintln!("note: no report was written: {error}"),
        }
    }
}

/// A benchmark that is about to be run.
struct Bench<'a, W> {
    id: &'a str,
    row: &'a Implementation<W>,
    size: u64,
    cost: Cost,
    folder: BenchmarkFolder,
}

/// What an iteration's time grows with: the larger of its operations and its bytes.
fn work(cost: &Cost, size: u64) -> f64 {
    let known = [cost.flop, cost.bytes].into_iter().flatten();
    known.fold(size as f64, f64::max)
}
