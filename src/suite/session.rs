//! A run: which benchmarks there are, what is left out, and what becomes of each.

use std::cell::OnceCell;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Throughput};

use crate::interrupt;
use crate::model::group_info::GroupInfo;
use crate::model::record::Activity;
use crate::suite::account::Spent;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::confirm::RunResults;
use crate::suite::confirm::driver::{Confirming, When};
use crate::suite::criterion_lines::Hidden;
use crate::suite::group::{AnyGroup, Inputs, Row};
use crate::suite::host::Host;
use crate::suite::instance::Plots;
use crate::suite::journal::Journal;
use crate::suite::learnt::Learnt;
use crate::suite::measure::{Bench, Calibrated, Measuring};
use crate::suite::missing::Missing;
use crate::suite::profiles::Profiles;
use crate::suite::progress::Progress;
use crate::suite::sampling_plan::SamplingPlan;
use crate::suite::turns::Turns;
use crate::timing::{CudaTime, catch_panic};
use crate::workload::calibrate;
use crossover_machine::load::Load;
use crossover_protocol::nearest::nearest_id;
use crossover_protocol::settings::{Profile, Settings};
use crossover_protocol::turns::TurnMessage;
use crossover_results::store::folder::BenchmarkFolder;
use crossover_results::store::machine_record::MACHINES;
use crossover_results::store::whole_file::sweep;

/// A run, except for Criterion itself.
pub(super) struct Session {
    settings: Settings,
    arguments: Arguments,
    sampling: SamplingPlan,
    time: CudaTime,
    machine: Host,
    progress: Progress,
    journal: Journal,
    confirming: Confirming,
    turns: Option<Turns>,
    /// The ids of all groups, in every profile.
    known: Vec<String>,
    /// The ids of what could be run, until they are announced.
    expected: Vec<String>,
    profiles: Profiles,
}

impl Session {
    pub(super) fn new(
        settings: Settings,
        arguments: Arguments,
        sampling: SamplingPlan,
        time: CudaTime,
        turns: Option<Turns>,
    ) -> Self {
        let progress = Progress::new(arguments.is_quiet(), Hidden::start());
        Self {
            machine: Host::new(&settings),
            journal: Journal::new(&settings, &arguments),
            confirming: Confirming::new(settings.processes, arguments.is_quiet()),
            settings,
            arguments,
            sampling,
            time,
            known: Vec::new(),
            progress,
            turns,
            expected: Vec::new(),
            profiles: Profiles::default(),
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.settings.profile
    }

    /// Lists a group in the record of the run.
    pub(super) fn list(&mut self, topic: &GroupInfo) {
        self.journal.list(topic);
    }

    /// Notes the benchmarks of a group that could be run.
    pub(super) fn expect(&mut self, group: &AnyGroup) {
        if self.arguments.mode == Mode::List {
            return;
        }
        let known = (group.rows.iter()).flat_map(|row| {
            let id = move |size| group.id_of(row, size).to_string();
            group.sizes_of(row).all().into_iter().map(id)
        });
        self.known.extend(known);
        let no_gpu = self.machine.gpu_missing().is_some();
        let expected: Vec<String> = (group.plan(self.profile()).iter())
            .flat_map(|(size, rows)| rows.iter().map(move |row| (size, row)))
            .filter(|(_, row)| !(row.is_gpu() && no_gpu || self.leaves_untried(row)))
            .map(|(size, row)| group.id_of(row, *size).to_string())
            .filter(|id| self.arguments.selects(id))
            .collect();
        self.expected.extend(expected);
    }

    /// Tells the process that drives this one what it could run, and learns how it is to run.
    pub(super) fn announce(&mut self) {
        let ids = std::mem::take(&mut self.expected);
        if let Some(turns) = &mut self.turns {
            turns.announce(ids.clone());
            let told = turns.told();
            calibrate::hand_over(told.choices.clone());
            // Where none of them is this process's, the filter is not at fault.
            self.journal.selected |= told.only.is_some();
        }
        let wanted: Vec<String> = ids.into_iter().filter(|id| self.is_wanted(id)).collect();
        self.progress.expect(wanted.len());
        self.journal.plan(wanted);
    }

    /// Tells the process that drives this one what its calibrations chose.
    pub(super) fn tell_choices(&self) {
        if let Some(turns) = &self.turns {
            let choices = calibrate::made();
            turns.say(&TurnMessage::Chose { choices });
        }
    }

    /// Whether the filter, and the process that drives this one, select this benchmark.
    fn is_wanted(&self, id: &str) -> bool {
        let told = self.turns.as_ref().map(Turns::told);
        self.arguments.selects(id) && told.is_none_or(|told| told.wants(id))
    }

    /// Whether another process takes turns with this one.
    pub(super) fn takes_turns(&self) -> bool {
        self.turns.is_some()
    }

    /// Whether it is left out because no device has run it yet.
    fn leaves_untried(&self, row: &Row) -> bool {
        row.untried && !self.settings.untried
    }

    /// Names, in one line per implementation, the sizes that the profile leaves out and the
    /// implementations that need a GPU where there is none, or that no device has run yet.
    pub(super) fn name_what_is_left_out(&mut self, group: &AnyGroup) {
        let profile = self.profile();
        let mut untried = Vec::new();
        for row in &group.rows {
            let function = row.function();
            let wanted = |size: &u64| self.is_wanted(&group.id_of(row, *size).to_string());
            let sizes = group.sizes_of(row);
            let left_out: Vec<String> = sizes
                .all()
                .iter()
                .filter(|size| !sizes.of(profile).contains(size) && wanted(size))
                .map(u64::to_string)
                .collect();
            let in_profile = sizes.of(profile).iter().any(wanted);
            let prefix = format!("{}/{function}", group.name);
            if self.leaves_untried(row) {
                untried.extend(in_profile.then_some(prefix));
            } else if row.is_gpu()
                && in_profile
                && let Some(reason) = self.machine.gpu_missing()
            {
                self.journal.skip(prefix, reason);
                self.journal.device_failed |= self.machine.device_failed();
            } else if !left_out.is_empty() {
                let reason = format!(
                    "sizes {} are not in profile {}; CROSSOVER_PROFILE=full runs them",
                    left_out.join(", "),
                    profile.name()
                );
                self.journal.leave_out(prefix, reason);
            }
        }
        self.journal.skip_untried(untried);
        self.journal.keep();
    }

    /// Sets up, verifies, times and verifies again one implementation at one size.
    pub(super) fn bench(
        &mut self,
        plots: &mut Plots<'_>,
        group: &AnyGroup,
        row: &Row,
        size: u64,
        problem: &OnceCell<Inputs>,
        learnt: &mut Learnt,
    ) {
        if interrupt::signal().is_some() {
            return;
        }
        let function = row.function();
        let named = group.id_of(row, size);
        let id = named.to_string();
        if self.arguments.selects(&id) && !self.is_wanted(&id) {
            // Another process measures it, so Criterion need not keep it in its plots.
            return;
        }
        if self.leaves_untried(row) && self.arguments.mode != Mode::List {
            return;
        }
        if row.is_gpu()
            && self.arguments.mode != Mode::List
            && let Some(reason) = self.machine.gpu_missing()
        {
            let named = self
                .journal
                .is_skipped(&format!("{}/{function}", group.name), &reason);
            if !named && self.arguments.selects(&id) {
                self.journal.skip(id, reason);
                self.journal.keep();
            }
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
        if let Some(not_run) = &mut self.journal.no_room {
            *not_run += 1;
            return;
        }
        self.journal.selected = true;
        self.progress.begin(&id);
        let folder = BenchmarkFolder::new(&self.settings.results, named, group.rate.is_some());
        if self.arguments.value("load-baseline").is_some() {
            self.load(plots, criterion_id, &id, &folder);
            return;
        }
        let bench = Bench {
            id: &id,
            criterion_id,
            group,
            row,
            size,
            cost: group.cost_of(row, size),
            folder,
            begun: self.turns.is_none().then(Load::now).flatten(),
        };
        if let Some(rate) = &group.rate {
            self.time.set_rate(rate.clone());
        }
        let mut measuring = Measuring {
            settings: &self.settings,
            arguments: &self.arguments,
            sampling: &self.sampling,
            time: &self.time,
            machine: &self.machine,
            journal: &mut self.journal,
            turns: self.turns.as_ref(),
            doubts: Vec::new(),
            warm_up: Duration::ZERO,
            spent: Spent::default(),
            calibrated: Calibrated::default(),
        };
        let profiled_before = bench.folder.profiled_at();
        let begun = Instant::now();
        let measured = measuring.measure(plots, &bench, problem, learnt);
        // The next benchmark is not to blame for what this one's routine could not give back.
        let measured = measured.and(measuring.check_device());
        let mut spent = measuring.spent;
        spent.set_up_since(begun);
        self.journal.spent(group.name, spent);
        match measured {
            Ok(()) if self.arguments.mode == Mode::Profile => {
                self.profiles
                    .add(&id, row.is_gpu(), &bench.folder, profiled_before);
            }
            Ok(()) => {
                let result = bench.folder.result();
                if let Some(result) = result.filter(|_| self.arguments.saves) {
                    self.progress.measured(&id, &result);
                }
            }
            // What fails after a signal, such as a child process that got it too, fails by it.
            Err(_) if interrupt::signal().is_some() => {}
            Err(missing) => self.note(id, row.is_gpu(), missing),
        }
    }

    /// Notes why a benchmark has no result.
    fn note(&mut self, id: String, is_gpu: bool, missing: Missing) {
        match missing {
            Missing::Skipped(reason) => {
                self.journal.device_failed |= is_gpu && self.machine.device_failed();
                self.journal.skip(id, self.machine.explain(reason));
                self.journal.keep();
            }
            Missing::NoRoom(text) => {
                self.journal.fail(&id, text);
                self.journal.no_room = Some(0);
            }
            Missing::Failed { text, context_lost } => {
                self.journal.fail(&id, self.machine.explain(text));
                // A context that does not answer is lost, whatever the error's name.
                let dead = || {
                    let opened = self.machine.opened();
                    opened.is_some_and(|gpu| gpu.synchronize().is_err())
                };
                if context_lost || is_gpu && dead() {
                    self.machine.lose_gpu(&id);
                }
            }
        }
    }

    /// Lets Criterion compare two saved results; nothing is run.
    fn load(
        &mut self,
        plots: &mut Plots<'_>,
        criterion_id: BenchmarkId,
        id: &str,
        folder: &BenchmarkFolder,
    ) {
        let needed = ["load-baseline", "baseline"].map(|option| self.arguments.value(option));
        if let Some(lacks) = needed.into_iter().flatten().find(|name| !folder.has(name)) {
            let reason = format!("baseline {lacks} has no result of it");
            self.journal.skip(id.to_owned(), reason);
            return;
        }
        let never = |_: &mut criterion::Bencher<'_, CudaTime>| {};
        let loaded = catch_panic(|| {
            plots.bench_function(criterion_id, never);
        });
        if let Err(panic) = loaded {
            self.journal.fail(id, panic);
        }
    }

    /// Puts the questions that the results so far answer to child processes.
    pub(super) fn confirm(&mut self, when: When) {
        let over = self.no_room() || interrupt::signal().is_some();
        if !self.journal.begun || self.takes_turns() || over {
            return;
        }
        let run = self.journal.run().to_owned();
        let of = RunResults {
            results: &self.settings.results,
            references: &self.settings.report_folder().join(MACHINES),
            run: &run,
            is_whole: self.arguments.filter_text().is_none(),
        };
        let start = Instant::now();
        let keep = |said| self.journal.confirm(said);
        self.confirming.confirm(when, of, keep);
        let to_come = self.confirming.to_come();
        self.progress.confirmed(start.elapsed(), to_come);
        for (group, took) in self.confirming.take_spent() {
            let mut spent = Spent::default();
            spent.add(Activity::Confirming, took);
            self.journal.spent(&group, spent);
        }
    }

    /// Runs what Criterion does at the end of a group or of all, and enters its time.
    pub(super) fn analyse(&mut self, group: &str, work: impl FnOnce()) {
        let mut spent = Spent::default();
        spent.on(Activity::Analysis, work);
        self.journal.spent(group, spent);
    }

    /// Whether nothing can be written any more.
    pub(super) fn no_room(&self) -> bool {
        self.journal.no_room.is_some()
    }

    /// Ends the lines of benchmarks.
    pub(super) fn end_lines(&mut self) {
        self.progress.end();
    }

    /// Completes the record; false where nothing was measured, or nothing can be written any more.
    pub(super) fn complete(&mut self) -> bool {
        let measured = self.journal.complete() && !self.no_room();
        if self.no_room() {
            sweep(&self.settings.results);
        }
        measured
    }

    /// What became of the benchmarks that were profiled, in that mode.
    pub(super) fn profiles(&self) -> Option<&Profiles> {
        (self.arguments.mode == Mode::Profile).then_some(&self.profiles)
    }

    /// The results, and the folder for a report on them.
    pub(super) fn folders(&self) -> (&Path, &Path) {
        (&self.settings.results, self.settings.report_folder())
    }

    /// Prints what was left out and what failed. Returns the exit code.
    pub(super) fn close(&self) -> ExitCode {
        let filter = self.arguments.filter_text();
        let meant = filter.and_then(|filter| {
            let known = self.known.iter().map(String::as_str);
            nearest_id(filter, known).map(str::to_owned)
        });
        self.journal.close(filter, meant)
    }
}
