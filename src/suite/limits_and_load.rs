//! Measurements of a run beside its benchmarks: the limits of the machine, and the background load.

use crate::limits::{Effort, cpu, gpu};
use crate::model::record::{MeasuredLimit, RunRecord};
use crate::suite::arguments::Arguments;
use crate::suite::group::AnyRow;
use crate::suite::host::Host;
use crate::suite::journal::Missing;
use crossover_machine::load::{Background, Load};
use crossover_protocol::settings::{Settings, SizeSet};
use crossover_words::units;

/// If an earlier run exceeds a limit by this factor, the machine was less busy then.
const LIMIT_EXCEEDED_BY: f64 = 1.5;

/// The limits and the background load of a run so far.
pub(super) struct LimitsAndLoad {
    /// How long the CPU's limits are measured; `None` in turns, of which there is no report.
    effort: Option<Effort>,
    /// Whether the GPU's limits need not be measured any more.
    has_gpu_limits: bool,
    /// When the load was last read; `None` where the system does not tell.
    load: Option<Load>,
    /// The load when the run and its latest benchmarks began, the newest last; none in turns.
    begun: Vec<Load>,
    /// The busiest background so far.
    background: Background,
    /// Only problems are printed, and no progress.
    is_quiet: bool,
}

impl LimitsAndLoad {
    pub(super) fn new(settings: &Settings, arguments: &Arguments) -> Self {
        let in_turns = settings.turns.is_some();
        let effort = match settings.size_set {
            // A build for editing is not for measuring.
            SizeSet::Default | SizeSet::Full if !cfg!(debug_assertions) => Effort::WHOLE,
            _ => Effort::BRIEF,
        };
        // The other side of a comparison stands still while this one measures, so it is no background load.
        let load = if in_turns { None } else { Load::now() };
        Self {
            effort: (!in_turns).then_some(effort),
            has_gpu_limits: in_turns,
            load,
            begun: load.into_iter().collect(),
            background: Background::default(),
            is_quiet: arguments.is_quiet(),
        }
    }

    /// Before the first benchmark: records the environment and the background load, and measures the CPU's
    /// limits.
    pub(super) fn begin(&mut self, record: &mut RunRecord, machine: &Host) {
        record.environment = machine.environment();
        if let Some(load) = self.load {
            load.wait();
        }
        self.record_background(record);
        for disturbance in &record.environment.disturbances {
            eprintln!("note: {disturbance}");
        }
        if let Some(effort) = self.effort {
            self.say("measuring the CPU's limits");
            cpu::measure(effort, record);
        }
    }

    /// Measures the GPU's limits before the first benchmark on the GPU, and the peak of a CPU row's threads
    /// before each. Returns whether the record has the GPU's limits since now.
    pub(super) fn measure_for(
        &mut self,
        row: &AnyRow,
        record: &mut RunRecord,
        machine: &Host,
    ) -> Result<bool, Missing> {
        let is_first_on_gpu = row.is_gpu() && !self.has_gpu_limits;
        if is_first_on_gpu {
            self.has_gpu_limits = true;
            self.say("measuring the GPU's limits");
            let (gpu, time) = (machine.gpu()?, &machine.time);
            time.wake()?;
            if let Some(reason) = time.gate_off_reason() {
                eprintln!("note: the gate is off, gated benchmarks use the events clock: {reason}");
            }
            gpu::measure(&gpu, time, record)?;
        }
        if let (false, Some(threads), Some(effort)) = (row.is_gpu(), row.role.threads, self.effort)
        {
            cpu::peak(threads, effort, record);
        }
        Ok(is_first_on_gpu)
    }

    /// Measures the CPU's limits again, and once more if one of the `earlier` runs exceeds them. Returns
    /// what is left of that, in sentences.
    pub(super) fn measure_again(
        &mut self,
        record: &mut RunRecord,
        earlier: &[RunRecord],
    ) -> Vec<String> {
        let mut found = Vec::new();
        let Some(effort) = self.effort else {
            return found;
        };
        // Other work on a shared host may have lowered them before.
        for why in ["", ", since an earlier run exceeds them"] {
            self.say(&format!("measuring the CPU's limits again{why}"));
            cpu::measure(effort, record);
            found = exceeded(record, earlier);
            if found.is_empty() {
                break;
            }
        }
        found
    }

    /// Notes that a benchmark begins.
    pub(super) fn begin_benchmark(&mut self) {
        if !self.begun.is_empty() {
            self.begun.extend(Load::now());
        }
    }

    /// How many cores other programs used since the benchmark began, where it matters. Of one that is too short to
    /// tell, the time of those before counts too.
    pub(super) fn used_by_others(&mut self, record: &RunRecord) -> Option<f64> {
        let now = Load::now()?;
        let known = |begun: &Load| now.background_since(*begun).is_some();
        let at = self.begun.iter().rposition(known)?;
        self.begun.drain(..at);
        let background = now.background_since(self.begun[0])?;
        (background.is_busy(processors(record))).then_some(background.cores)
    }

    /// Reads the background load since the last time. Returns the disturbances of the busiest time so far,
    /// which the record keeps.
    pub(super) fn record_background(&mut self, record: &mut RunRecord) -> Vec<String> {
        let now = Load::now();
        let since = now.zip(self.load);
        self.load = now.or(self.load);
        let Some(background) = since.and_then(|(now, last)| now.background_since(last)) else {
            return Vec::new();
        };
        let processors = processors(record);
        let known = self.background.disturbances(processors);
        self.background = self.background.max(background);
        let found = self.background.disturbances(processors);
        let disturbances = &mut record.environment.disturbances;
        disturbances.retain(|disturbance| !known.contains(disturbance));
        disturbances.extend_from_slice(&found);
        found
    }

    /// Prints the current activity.
    pub(super) fn say(&self, what: &str) {
        if !self.is_quiet {
            eprintln!("{what}");
        }
    }
}

fn processors(record: &RunRecord) -> usize {
    let cpu = &record.environment.cpu;
    cpu.allowed_cores.unwrap_or(cpu.usable_cores)
}

/// The CPU's limits that an earlier run of this machine exceeds by far, a sentence each.
fn exceeded(record: &RunRecord, earlier: &[RunRecord]) -> Vec<String> {
    let cpu = |run: &RunRecord| {
        let cpu = &run.environment.cpu;
        (cpu.model.clone(), cpu.usable_cores)
    };
    let is_same_cpu = |run: &&RunRecord| cpu(run) == cpu(record);
    let runs: Vec<&RunRecord> = earlier.iter().filter(is_same_cpu).collect();
    let of_cpu = (record.limits.iter()).filter(|(name, _)| name.starts_with("cpu_"));
    let exceeded = of_cpu.filter_map(|(name, MeasuredLimit { value, unit, .. })| {
        let limit = |run: &&RunRecord| Some((run.limits.get(name)?.value, run.run.clone()));
        let earlier = runs.iter().filter_map(limit);
        let (best, run) = earlier.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (best > LIMIT_EXCEEDED_BY * value).then(|| {
            format!(
                "{name} is {} and was {} in the run {run}, so shares of this limit are too high: run again when \
                 the machine is idle",
                units::limit(*value, unit),
                units::limit(best, unit)
            )
        })
    });
    exceeded.collect()
}
