//! The record of a run, and the lines about benchmarks that were left out or failed.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use crate::machine::ceilings;
use crate::machine::ceilings::measured::Effort;
use crate::model::record::{Activity, Ceiling, Confirmation, Failure, RunRecord, SCHEMA, Skip};
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::criterion_lines;
use crate::suite::group::Row;
use crate::suite::host::Host;
use crate::suite::missing::Missing;
use crate::suite::progress::Spent;
use crossover_machine::load::{Background, Load};
use crossover_protocol::settings::{Profile, Settings};
use crossover_results::analysis::limits;
use crossover_results::store::curves::{Benchmark, Series};
use crossover_results::store::machine::Limits;
use crossover_results::store::runs;
use crossover_results::store::stored_results::StoredResults;
use crossover_system::interrupt;
use crossover_words::text::visible_lines;
use crossover_words::units;

/// The events of a run so far.
#[derive(Default)]
pub(super) struct Journal {
    pub(super) record: RunRecord,
    results: PathBuf,
    /// The results of earlier runs, as they were when this run began.
    earlier: StoredResults,
    /// The results of this run, by id, for its questions and its report.
    pub(super) own: BTreeMap<String, Benchmark>,
    mode: Mode,
    pub(super) spent: Spent,
    /// Whether the record is on disk, since something was measured.
    pub(super) begun: bool,
    /// Whether the GPU's ceilings need not be measured any more.
    gpu_ceilings: bool,
    /// How long the CPU's ceilings are measured; `None` in turns, of which there is no report.
    effort: Option<Effort>,
    /// Whether the filter selected a benchmark that can run here.
    pub(super) selected: bool,
    /// Number of implementations of which the profile leaves out sizes.
    by_profile: usize,
    /// The implementations, benchmarks and kernels that cannot run here, by the reason.
    skipped: BTreeMap<String, Vec<String>>,
    /// How many benchmarks were not run because nothing can be written any more; `None` while it
    /// can.
    pub(super) no_room: Option<usize>,
    /// Whether GPU benchmarks were selected, and the device that was asked for does not work.
    pub(super) device_failed: bool,
    /// Only problems are printed, and no progress.
    is_quiet: bool,
    /// When the load was last read; `None` where the system does not tell.
    load: Option<Load>,
    /// The busiest background so far.
    background: Background,
}

/// An earlier run that exceeds a ceiling by this factor met a machine that was less busy.
const BY_FAR: f64 = 1.5;

impl Journal {
    pub(super) fn new(settings: &Settings, arguments: &Arguments) -> Self {
        let started = SystemTime::now();
        // The other side of a comparison stands still while this one measures, so it is no background
        // load.
        let load = settings.turns.is_none().then(Load::now).flatten();
        Self {
            record: RunRecord {
                schema: SCHEMA,
                run: runs::name(started),
                started: runs::moment(started),
                profile: settings.profile.name().to_owned(),
                arguments: criterion_lines::given(),
                ..RunRecord::default()
            },
            results: settings.results.clone(),
            mode: arguments.mode,
            gpu_ceilings: settings.turns.is_some(),
            effort: match settings.profile {
                _ if settings.turns.is_some() => None,
                Profile::Quick => Some(Effort::BRIEF),
                Profile::Default | Profile::Full => Some(Effort::WHOLE),
            },
            is_quiet: arguments.is_quiet(),
            load,
            ..Self::default()
        }
    }

    /// Records a size that the profile leaves out. These would be too many lines to print: they are in
    /// the record, and the end of the run prints their number.
    pub(super) fn leave_out(&mut self, id: String, reason: String) {
        self.by_profile += 1;
        self.record.skipped.push(Skip { id, reason });
    }

    /// Records a benchmark that cannot run here. The first of each reason is printed at once, the
    /// others are counted at the end of the run.
    pub(super) fn skip(&mut self, id: String, reason: String) {
        let with_reason = self.skipped.entry(reason.clone()).or_default();
        with_reason.push(id.clone());
        if self.mode != Mode::List && with_reason.len() == 1 {
            eprintln!("skipped {id}: {reason}");
        }
        self.record.skipped.push(Skip { id, reason });
        self.keep();
    }

    /// Writes what was left out, in case the run does not reach its end.
    pub(super) fn keep(&self) {
        if self.begun {
            let _ = runs::write(&self.record, &self.results);
        }
    }

    /// Whether this was skipped with this reason before.
    pub(super) fn is_skipped(&self, id: &str, reason: &str) -> bool {
        let mut skipped = self.record.skipped.iter();
        skipped.any(|skip| skip.id == id && skip.reason == reason)
    }

    pub(super) fn fail(&mut self, id: &str, error: String) {
        let earlier = self.record.failed.iter().find(|it| it.error == error);
        match earlier {
            Some(earlier) => eprintln!("FAILED {id}: as {}", earlier.id),
            None => eprintln!("FAILED {id}: {error}"),
        }
        self.record.failed.push(Failure {
            id: id.to_owned(),
            error,
        });
        self.keep();
    }

    /// Collects the environment, measures the ceilings that a row refers to, and writes the record, each
    /// before the first benchmark that needs it; the peak of a CPU row's threads right before each.
    pub(super) fn begin(&mut self, row: &Row, machine: &Host) -> Result<(), Missing> {
        if !self.begun {
            self.begun = true;
            self.record.environment = machine.environment();
            if let Some(load) = self.load {
                load.wait();
            }
            self.look_around();
            for disturbance in &self.record.environment.disturbances {
                eprintln!("note: {disturbance}");
            }
            if let Some(effort) = self.effort {
                self.earlier = StoredResults::read(&self.results);
                self.say("measuring the CPU's ceilings");
                ceilings::cpu::measure(effort, &mut self.record);
            }
            runs::write(&self.record, &self.results)?;
        }
        if row.is_gpu() && !self.gpu_ceilings {
            self.gpu_ceilings = true;
            self.say("measuring the GPU's ceilings");
            let (gpu, time) = (machine.gpu()?, &machine.time);
            time.wake()?;
            if let Some(reason) = time.gate_off_reason() {
                eprintln!("note: the gate is off, gated benchmarks use the events clock: {reason}");
            }
            ceilings::gpu::measure(&gpu, time, &mut self.record)?;
            runs::write(&self.record, &self.results)?;
        }
        if let (false, Some(threads), Some(effort)) = (row.is_gpu(), row.role.threads, self.effort)
        {
            ceilings::cpu::peak(threads, effort, &mut self.record);
        }
        Ok(())
    }

    /// Reads the background load since the last time. Returns the disturbances of the busiest time so far,
    /// which the record keeps.
    fn look_around(&mut self) -> Vec<String> {
        let now = Load::now();
        let since = now.zip(self.load);
        self.load = now.or(self.load);
        let Some(background) = since.and_then(|(now, last)| now.background_since(last)) else {
            return Vec::new();
        };
        let processors = self.processors();
        let known = self.background.disturbances(processors);
        self.background = self.background.max(background);
        let found = self.background.disturbances(processors);
        let disturbances = &mut self.record.environment.disturbances;
        disturbances.retain(|disturbance| !known.contains(disturbance));
        disturbances.extend_from_slice(&found);
        found
    }

    fn processors(&self) -> usize {
        let cpu = &self.record.environment.cpu;
        cpu.allowed_cores.unwrap_or(cpu.usable_cores)
    }

    /// How many cores other programs used since `earlier`, where it matters.
    pub(super) fn background_since(&self, earlier: Option<Load>) -> Option<f64> {
        let background = Load::now()?.background_since(earlier?)?;
        (background.is_busy(self.processors())).then_some(background.cores)
    }

    /// The CPU's ceilings that an earlier run of this machine exceeds by far, a sentence each.
    fn exceeded(&self) -> Vec<String> {
        let cpu = |run: &RunRecord| {
            let cpu = &run.environment.cpu;
            (cpu.model.clone(), cpu.usable_cores)
        };
        let is_same_cpu = |run: &&RunRecord| cpu(run) == cpu(&self.record);
        let runs: Vec<&RunRecord> = self.earlier.runs.iter().filter(is_same_cpu).collect();
        let of_cpu = self
            .record
            .ceilings
            .iter()
            .filter(|(name, _)| name.starts_with("cpu_"));
        let exceeded = of_cpu.filter_map(|(name, Ceiling { value, unit, .. })| {
            let of = |run: &&RunRecord| Some((run.ceilings.get(name)?.value, run.run.clone()));
            let earlier = runs.iter().filter_map(of);
            let (best, run) = earlier.max_by(|a, b| a.0.total_cmp(&b.0))?;
            (best > BY_FAR * value).then(|| {
                format!(
                    "{name} is {} and was {} in the run {run}, so shares of this limit are too high: run again when \
                     the machine is idle",
                    units::ceiling(*value, unit),
                    units::ceiling(best, unit)
                )
            })
        });
        exceeded.collect()
    }

    /// Checks a result against the limits.
    ///
    /// # Errors
    /// It is faster than the device can be.
    pub(super) fn check_limits(&self, result: &Benchmark) -> Result<(), Missing> {
        let (series, limits) = (Series::of(vec![result.clone()]), Limits::of(&self.record));
        limits::impossible(&series, &limits).map_or(Ok(()), |sentence| Err(sentence.into()))
    }

    /// All results so far, of this run and of earlier ones.
    pub(super) fn results(&self) -> StoredResults {
        self.earlier.with_run(&self.record, &self.own)
    }

    /// The results that exceed a limit as it was measured at last, one sentence for each limit.
    fn named_above_limits(&self) -> Vec<String> {
        let limits = Limits::of(&self.record);
        let mut above: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (id, result) in &self.own {
            if let Some(share) = limits::exceeded(&Series::of(vec![result.clone()]), &limits) {
                above.entry(share.words()).or_default().push(id);
            }
        }
        let sentence = |(words, ids): (&String, &Vec<&str>)| above_a_limit(ids, words);
        above.iter().map(sentence).collect()
    }

    /// Prints the current activity.
    fn say(&self, what: &str) {
        if !self.is_quiet {
            eprintln!("{what}");
        }
    }

    /// Records the answers of child processes so far.
    pub(super) fn confirm(&mut self, said: Vec<Confirmation>) {
        self.record.confirmations = said;
        if let Err(error) = runs::write(&self.record, &self.results) {
            eprintln!("note: the times of the child processes could not be stored: {error}");
        }
    }

    /// Completes the record; `false` where nothing was measured and there is none.
    pub(super) fn complete(&mut self) -> bool {
        if !self.begun {
            return false;
        }
        let begun = Instant::now();
        // A run that a signal ended has no end in its record, as one that was killed.
        let reached_end = interrupt::signal().is_none();
        let is_whole = reached_end && self.no_room.is_none();
        if let Some(effort) = self.effort.filter(|_| is_whole) {
            self.look_around();
            let mut found = Vec::new();
            // Other work on a shared host may have lowered them before.
            for why in ["", ", since an earlier run exceeds them"] {
                self.say(&format!("measuring the CPU's ceilings again{why}"));
                ceilings::cpu::measure(effort, &mut self.record);
                found = self.exceeded();
                if found.is_empty() {
                    break;
                }
            }
            found.extend(self.named_above_limits());
            let disturbances = &mut self.record.environment.disturbances;
            disturbances.extend_from_slice(&found);
            found.extend(self.look_around());
            for disturbance in found {
                eprintln!("note: {disturbance}");
            }
        }
        self.spent.add(Activity::Ceilings, begun.elapsed());
        self.say(&format!("time: {}", self.spent.in_words()));
        self.record.activities = self.spent.seconds();
        self.record.finished = reached_end.then(|| runs::moment(SystemTime::now()));
        if is_whole {
            self.record.planned.clear();
        }
        let written = runs::write(&self.record, &self.results);
        if let Err(error) = written
            && self.no_room.is_none()
        {
            self.fail("the run's record", error.to_string());
        }
        true
    }

    /// Prints skips and failures, and for a filter without a match a similar id. Returns the exit code.
    pub(super) fn close(&self, filter: Option<&str>, meant: Option<String>) -> ExitCode {
        if self.mode != Mode::List {
            for (reason, ids) in self.skipped.iter().filter(|(_, ids)| ids.len() > 1) {
                eprintln!("left out {}: {reason}", some(ids));
            }
            let nothing = !self.selected && self.record.skipped.is_empty();
            if nothing && interrupt::signal().is_none() {
                let filter = filter.map_or(String::new(), |f| format!(" {}", visible_lines(f)));
                let meant = meant.map_or(String::new(), |id| format!("is {id} meant? "));
                eprintln!(
                    "error: no benchmark was selected: no id matches{filter}; \
                     {meant}--list shows the ids"
                );
                return ExitCode::from(2);
            }
        }
        if matches!(self.mode, Mode::Bench | Mode::Profile) && self.by_profile > 0 {
            eprintln!(
                "left out sizes of {}: they are not in profile {}; CROSSOVER_PROFILE=full runs them",
                units::counted(self.by_profile, "implementation"),
                self.record.profile
            );
        }
        if let Some(signal) = interrupt::signal() {
            eprintln!(
                "interrupted: the results so far are kept in {}; `crossover report` shows them",
                self.results.display()
            );
            return ExitCode::from(128 + signal as u8);
        }
        if self.record.failed.is_empty() && self.device_failed {
            eprintln!("error: the selected GPU could not be used; see the lines above");
            return ExitCode::FAILURE;
        }
        if let Some(not_run) = self.no_room {
            eprintln!(
                "error: no more results can be written to {}, and {} were not run. Free space there, or \
                 raise the limit named above, and run again; the results so far are kept",
                self.results.display(),
                units::counted(not_run, "benchmark")
            );
        }
        if self.record.failed.is_empty() {
            return ExitCode::SUCCESS;
        }
        let failed = self.record.failed.iter().map(|failure| &*failure.id);
        let failed: Vec<&str> = failed.collect();
        eprintln!("\n{} failed, see above: {}", failed.len(), some(&failed));
        ExitCode::FAILURE
    }
}

/// Says that these results exceed a limit.
fn above_a_limit(ids: &[impl Borrow<str>], words: &str) -> String {
    let is = if ids.len() == 1 { "is" } else { "are" };
    format!(
        "{} {is} {words}: either the limit is higher than measured, or the work is less than declared",
        some(ids)
    )
}

/// Ids that a line shows.
const SHOWN: usize = 8;

/// The first few ids, and the number of the others.
fn some(ids: &[impl Borrow<str>]) -> String {
    match ids.split_at_checked(SHOWN) {
        Some((shown, [_, ..])) => format!("{} and {} more", shown.join(", "), ids.len() - SHOWN),
        _ => ids.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_that_are_too_low_are_named_with_what_exceeds_them() {
        let above = above_a_limit(&["a", "b"], "above the FMA peak, so no share");
        assert!(above.starts_with("a, b are above the FMA peak, so no share: either"));
    }
}
