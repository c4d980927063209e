//! A run: settings, command line, machine and results, and the loop over its benchmarks.

use std::collections::HashSet;
use std::fs::File;
use std::process::ExitCode;
use std::time::Instant;

use criterion::{Bencher, Criterion, Throughput};

use crate::device::kernel::{CompileError, Source, shared};
use crate::model::record::Activity;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::benchmark::{Bench, GroupCache};
use crate::suite::confirm::driver::{Confirming, When};
use crate::suite::criterion_lines::Hidden;
use crate::suite::group::{AnyGroup, Row};
use crate::suite::host::Host;
use crate::suite::instance::{Plots, instance, plots_of, profiled};
use crate::suite::journal::Journal;
use crate::suite::missing::Missing;
use crate::suite::preflight;
use crate::suite::profiles::Profiles;
use crate::suite::progress::Progress;
use crate::suite::sampling_plan::SamplingPlan;
use crate::suite::turns::Turns;
use crate::timing::{CudaTime, catch_panic};
use crate::workload::choose;
use crate::workload::routine::RoutineError;
use crossover_protocol::filter::nearest_id;
use crossover_protocol::settings::{Settings, unknown_variables};
use crossover_protocol::turns::TurnMessage;
use crossover_results::store::whole_file::sweep;
use crossover_system::interrupt;
use crossover_words::text::with_causes;

/// The one owner of a run's state, except for Criterion itself.
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) arguments: Arguments,
    pub(super) sampling: SamplingPlan,
    pub(super) machine: Host,
    /// Where another process takes turns with this one.
    pub(super) turns: Option<Turns>,
    /// The events so far.
    pub(super) journal: Journal,
    pub(super) progress: Progress,
    pub(super) confirming: Confirming,
    pub(super) profiles: Profiles,
    /// Keeps other runs out of the results folder.
    pub(super) _lock: Option<File>,
}

impl Run {
    /// Reads the settings and the command line, and checks that results can be kept. Opens no
    /// device. From here on signals end the run in order.
    ///
    /// # Errors
    /// Why the run does not start, in a sentence. An option that Criterion does not know ends the process
    /// with its own message.
    pub(super) fn from_env() -> Result<(Self, Criterion<CudaTime>), String> {
        let settings = Settings::from_env().map_err(|error| error.to_string())?;
        // The command that drives this process in turns has named them.
        if settings.turns.is_none() {
            for remark in unknown_variables() {
                eprintln!("note: {remark}");
            }
        }
        let arguments = Arguments::from_env();
        preflight::options(&arguments, &settings.results)?;
        let writes = arguments.saves || arguments.mode == Mode::Profile;
        let lock = writes
            .then(|| preflight::results_folder(&settings.results))
            .transpose()?;
        interrupt::catch();
        let turns = settings.turns.as_deref().map(Turns::connect).transpose()?;
        let sampling = match turns {
            Some(_) => SamplingPlan::in_turns(),
            None => SamplingPlan::of(settings.profile),
        };
        let machine = Host::new(&settings);
        let time = &machine.time;
        let mut criterion = instance(&settings.results, &sampling, time, turns.is_some());
        if arguments.mode == Mode::Profile {
            criterion = profiled(criterion, time);
        }
        let run = Self {
            machine,
            journal: Journal::new(&settings, &arguments),
            progress: Progress::new(arguments.is_quiet(), Hidden::start()),
            confirming: Confirming::new(&settings, &arguments),
            profiles: Profiles::default(),
            settings,
            arguments,
            sampling,
            turns,
            _lock: lock,
        };
        Ok((run, criterion))
    }

    /// Runs the groups: each size, each implementation, as far as filter, profile, machine
    /// and memory allow, and names the rest with its reason. Then writes Criterion's summary
    /// pages and the record of the run. Returns whether anything was measured and could be written.
    pub(super) fn measure_all(
        &mut self,
        groups: &[AnyGroup],
        criterion: &mut Criterion<CudaTime>,
    ) -> bool {
        self.announce(groups);
        self.compile_ahead(groups);
        for group in groups {
            self.name_what_is_left_out(group);
            self.check_group(group);
            let mut plots = plots_of(criterion, group.name);
            let mut cache = GroupCache::default();
            for (size, row) in group.plan(self.settings.profile) {
                let bench = Bench::new(self, group, row, size, &mut cache);
                self.benchmark(&mut plots, bench);
            }
            // The child processes need the memory.
            drop(cache);
            (self.journal.spent).on(Activity::Analysis, || plots.finish());
            self.confirm(When::BetweenGroups);
        }
        if let Some(turns) = &self.turns {
            let choices = choose::made();
            turns.say(&TurnMessage::Chose { choices });
        }
        self.confirm(When::AfterGroups);
        let has_room = self.journal.no_room.is_none();
        if has_room && self.turns.is_none() {
            let spent = &mut self.journal.spent;
            spent.on(Activity::Analysis, || criterion.final_summary());
        }
        let is_measured = self.journal.complete() && has_room;
        if !has_room {
            sweep(&self.settings.results);
        }
        self.progress.end();
        is_measured
    }

    /// Prints skips and failures. The exit code is 1 if a benchmark or the device failed, 2 if nothing
    /// was selected, 128 plus the signal's number if one ended the run, else 0.
    pub(super) fn close(&self, groups: &[AnyGroup]) -> ExitCode {
        let filter = self.arguments.filter_text();
        let meant = filter.and_then(|filter| {
            let known: Vec<String> = groups.iter().flat_map(ids).collect();
            nearest_id(filter, known.iter().map(String::as_str)).map(str::to_owned)
        });
        self.journal.close(filter, meant)
    }

    /// Plans what could be run. A process that takes turns says it to its driver, and learns how it is
    /// to run.
    fn announce(&mut self, groups: &[AnyGroup]) {
        let no_gpu = self.machine.gpu_missing().is_some();
        let mut ids = Vec::new();
        for group in groups.iter().filter(|_| self.arguments.mode != Mode::List) {
            let plan = group.plan(self.settings.profile).into_iter();
            let runs = plan.filter(|(_, row)| !(row.is_gpu() && no_gpu));
            ids.extend(runs.map(|(size, row)| group.id_of(row, size).to_string()));
        }
        ids.retain(|id| self.arguments.selects(id));
        if let Some(turns) = &mut self.turns {
            turns.announce(ids.clone());
            let told = turns.told();
            choose::hand_over(told.choices.clone());
            // Where none of them is this process's, the filter is not at fault.
            self.journal.selected |= told.only.is_some();
        }
        ids.retain(|id| self.is_wanted(id));
        self.progress.expect(ids.len());
        self.journal.record.planned = ids;
    }

    /// Compiles the kernels of the groups that are to run, while nothing is timed.
    fn compile_ahead(&self, groups: &[AnyGroup]) {
        let Ok(device) = self.machine.device() else {
            return;
        };
        let planned = &self.journal.record.planned;
        let runs = |group: &&AnyGroup| {
            let of_gpu = format!("{}/gpu/", group.name);
            planned.iter().any(|id| id.starts_with(&of_gpu))
        };
        let sources = groups.iter().filter(runs).flat_map(AnyGroup::kernels);
        let sources: HashSet<&Source> = sources.copied().collect();
        let sources: Vec<&Source> = sources.into_iter().collect();
        shared::compile_ahead(&sources, device.compute_capability);
    }

    /// Whether the filter, and the process that drives this one, select this benchmark.
    fn is_wanted(&self, id: &str) -> bool {
        let told = self.turns.as_ref().map(Turns::told);
        self.arguments.selects(id) && told.is_none_or(|told| told.wants(id))
    }

    /// Names, in one line per implementation, the sizes that the profile leaves out and the
    /// implementations that need a GPU where there is none.
    fn name_what_is_left_out(&mut self, group: &AnyGroup) {
        let profile = self.settings.profile;
        for row in &group.rows {
            let wanted = |size: &u64| self.is_wanted(&group.id_of(row, *size).to_string());
            let sizes = group.sizes_of(row);
            let left_out: Vec<String> = (sizes.all().iter())
                .filter(|size| !sizes.of(profile).contains(size) && wanted(size))
                .map(u64::to_string)
                .collect();
            let in_profile = sizes.of(profile).iter().any(wanted);
            let prefix = format!("{}/{}", group.name, row.function());
            if row.is_gpu()
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
        self.journal.keep();
    }

    /// Checks the parts of a group that no benchmark shows: its inputs, and with `--test` the kernels that no
    /// device compiles.
    fn check_group(&mut self, group: &AnyGroup) {
        let is_test = self.arguments.mode == Mode::Test;
        let measures = self.arguments.saves && self.turns.is_none() && !group.verified_by_tests;
        let plan = group.plan(self.settings.profile).into_iter();
        let is_wanted =
            |(size, row): &(u64, &Row)| self.is_wanted(&group.id_of(row, *size).to_string());
        let rows: Vec<&Row> = plan.filter(is_wanted).map(|(_, row)| row).collect();
        if rows.is_empty() || !(is_test || measures) {
            return;
        }
        match group.doubtful_inputs() {
            Some(doubt) if is_test => self.journal.fail(group.name, doubt),
            Some(doubt) => eprintln!("note: {doubt}"),
            None => {}
        }
        let uncompiled = is_test && self.machine.device().is_err();
        let sources = group.kernels().iter();
        for source in sources.filter(|_| uncompiled && rows.iter().any(|row| row.is_gpu())) {
            let id = format!("{}/{}", group.name, source.name);
            match source.compile(source.oldest) {
                Ok(_) => {}
                Err(CompileError::Absent(absence)) => self.journal.skip(id, absence.to_string()),
                Err(error) => self.journal.fail(&id, error.to_string()),
            }
        }
    }

    /// Measures one implementation at one size, if it is selected and can run here.
    fn benchmark(&mut self, plots: &mut Plots<'_>, mut bench: Bench<'_>) {
        let lists = self.arguments.mode == Mode::List;
        let is_selected = self.arguments.selects(&bench.id);
        // Criterion need not keep another process's benchmarks in its plots.
        let is_of_another = is_selected && !self.is_wanted(&bench.id);
        if interrupt::signal().is_some() || is_of_another {
            return;
        }
        if !lists && self.lacks_gpu(&bench) {
            return;
        }
        if bench.group.rate.is_some() {
            plots.throughput(Throughput::Elements(bench.size));
        }
        if lists || !is_selected {
            // Criterion lists it, or keeps an earlier result of it in the group's plots; the
            // closure is never called.
            plots.bench_function(bench.criterion_id(), |_| {});
            return;
        }
        if let Some(not_run) = &mut self.journal.no_room {
            *not_run += 1;
            return;
        }
        self.journal.selected = true;
        self.progress.begin(&bench.id);
        let profiled_before = bench.folder.profiled_at();
        let begun = Instant::now();
        let measured = match self.arguments.gave("load-baseline") {
            true => self.load(plots, &bench),
            false => self.measure(plots, &mut bench),
        };
        // Errors of this benchmark's destructors must not be attributed to the next one.
        let measured = measured.and(self.check_device());
        bench.spent.set_up_since(begun);
        self.journal.spent.include(std::mem::take(&mut bench.spent));
        if let Some(result) = bench.result.take() {
            self.progress.measured(&bench.id, &result);
            self.journal.own.insert(bench.id.clone(), result);
        }
        let is_gpu = bench.row.is_gpu();
        match measured {
            Ok(()) if self.arguments.mode == Mode::Profile => {
                let (id, folder) = (&bench.id, &bench.folder);
                self.profiles.add(id, is_gpu, folder, profiled_before);
            }
            Ok(()) => {}
            // After a signal any failure is due to it, such as that of a child process that got it too.
            Err(_) if interrupt::signal().is_some() => {}
            Err(missing) => self.note(bench.id, is_gpu, missing),
        }
    }

    /// Whether it needs a GPU where there is none, which is noted once for each implementation.
    fn lacks_gpu(&mut self, bench: &Bench<'_>) -> bool {
        let missing = self.machine.gpu_missing();
        let Some(reason) = missing.filter(|_| bench.row.is_gpu()) else {
            return false;
        };
        let of_all = format!("{}/{}", bench.group.name, bench.row.function());
        let is_named = self.journal.is_skipped(&of_all, &reason);
        if !is_named && self.arguments.selects(&bench.id) {
            self.journal.skip(bench.id.clone(), reason);
        }
        true
    }

    /// Notes why a benchmark has no result.
    fn note(&mut self, id: String, is_gpu: bool, missing: Missing) {
        match missing {
            Missing::Absent(reason) => {
                self.journal.device_failed |= is_gpu && self.machine.device_failed();
                self.journal
                    .skip(id, self.machine.explain(reason.to_string()));
            }
            Missing::NoSpace(error) => {
                self.journal.fail(&id, error.to_string());
                self.journal.no_room = Some(0);
            }
            Missing::Failed(error) => {
                self.fail(&id, &error);
                // A context that does not respond is lost, whatever the error's name.
                if is_gpu && self.machine.wait().is_err() {
                    self.machine.lose_gpu(&id);
                }
            }
            Missing::ContextLost(error) => {
                self.fail(&id, &error);
                self.machine.lose_gpu(&id);
            }
        }
    }

    fn fail(&mut self, id: &str, error: &RoutineError) {
        let text = self.machine.explain(with_causes(&**error));
        self.journal.fail(id, text);
    }

    /// Lets Criterion compare two saved results; nothing is run.
    fn load(&self, plots: &mut Plots<'_>, bench: &Bench<'_>) -> Result<(), Missing> {
        let needed = ["load-baseline", "baseline"].map(|option| self.arguments.value(option));
        let lacks = (needed.into_iter().flatten()).find(|name| !bench.folder.has(name));
        if let Some(lacks) = lacks {
            let reason = format!("baseline {lacks} has no result of it");
            return Err(Missing::Absent(reason.into()));
        }
        let never = |_: &mut Bencher<'_, CudaTime>| {};
        Ok(catch_panic(|| {
            plots.bench_function(bench.criterion_id(), never);
        })?)
    }

    /// Confirms the answers of the results so far in child processes.
    fn confirm(&mut self, when: When) {
        let over = self.journal.no_room.is_some() || interrupt::signal().is_some();
        if !self.journal.begun || self.turns.is_some() || over {
            return;
        }
        let took = self.confirming.confirm(when, &mut self.journal);
        self.progress.confirmed(took, self.confirming.to_come());
        self.journal.spent.add(Activity::Confirming, took);
    }
}

/// The ids of a group in every profile.
fn ids(group: &AnyGroup) -> impl Iterator<Item = String> {
    group.rows.iter().flat_map(move |row| {
        let sizes = group.sizes_of(row).all().into_iter();
        sizes.map(move |size| group.id_of(row, size).to_string())
    })
}
