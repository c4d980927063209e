//! A run: settings, command line, machine and results.
//!
//! A run may take turns with another process, so that both meet the same load: `crossover ab` starts two
//! revisions together and lets one run at a time. The protocol is in [`crossover_protocol::turns`]. While
//! this process analyses or sets up, the other one stands still.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Instant;

use criterion::Criterion;

use crossover_machine::peers::is_only;
use crossover_protocol::child::{ChildError, Parent, START};
use crossover_protocol::filter::nearest_id;
use crossover_protocol::rank::Rank;
use crossover_protocol::ranks::OtherRanks;
use crossover_protocol::settings::{FurtherDevices, Settings, SizeSet, unknown_variables};
use crossover_protocol::turns::{Instructions, PROTOCOL, TURNS, TurnMessage, TurnReply};
use crossover_results::store::stored_results::StoredResults;
use crossover_system::{OnCores, interrupt};
use crossover_words::text::with_causes;

use crate::Package;
use crate::device::kernel::{CompileError, Source};
use crate::model::record::Activity;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::confirm::driver::{Confirming, When};
use crate::suite::criterion_instance::{FilteredStdout, instance};
use crate::suite::group::{AnyGroup, AnyRow};
use crate::suite::host::{Host, Timed};
use crate::suite::journal::{Journal, Missing};
use crate::suite::limits_and_load::LimitsAndLoad;
use crate::suite::preflight;
use crate::suite::profiles::Profiles;
use crate::suite::progress::Progress;
use crate::suite::sampling_plan::SamplingPlan;
use crate::timing::{BoxError, Clock, CudaTime};
use crate::workload::routine::RoutineError;

/// The one owner of a run's state, except for Criterion itself: what it was asked, the machine, and what happened so
/// far. Its methods are all here; `bench.rs` has the loop over its benchmarks.
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) arguments: Arguments,
    pub(super) sampling: SamplingPlan,
    pub(super) machine: Host,
    /// Where another process takes turns with this one.
    pub(super) turns: Option<Turns>,
    pub(super) limits_and_load: LimitsAndLoad,
    /// The events so far.
    pub(super) journal: Journal,
    pub(super) progress: Progress,
    confirming: Confirming,
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
    pub(super) fn from_env(
        package: Package,
        rank: Option<&Rank>,
    ) -> Result<(Self, Criterion<CudaTime>), BoxError> {
        let mut settings = Settings::from_env()?;
        // First, because the other processes wait for it.
        let ranks = rank
            .map(|rank| OtherRanks::accept(rank, START))
            .transpose()?;
        if let Some(rank) = rank {
            rank.choose_device(&mut settings, is_only)?;
        }
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
            None => SamplingPlan::of(settings.size_set),
        };
        let mut machine = Host::new(&settings);
        let time = &machine.time;
        let profiles = arguments.mode == Mode::Profile;
        let criterion = instance(
            &settings.results,
            &sampling,
            time,
            turns.is_some(),
            profiles,
        );
        let confirming = Confirming::new(&settings, &arguments, machine.choices.clone());
        machine.kernels = confirming.kernels();
        machine.package = package.other();
        machine.ranks = ranks.map(Rc::new);
        let run = Self {
            machine,
            limits_and_load: LimitsAndLoad::new(&settings, &arguments),
            journal: Journal::new(&settings, &arguments),
            progress: Progress::new(arguments.is_quiet(), FilteredStdout::start()),
            confirming,
            profiles: Profiles::default(),
            settings,
            arguments,
            sampling,
            turns,
            _lock: lock,
        };
        Ok((run, criterion))
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

    /// Whether there are enough devices for a group. A group that lacks some is skipped where the settings name
    /// several or the filter selects it, and otherwise is not in the run.
    pub(super) fn has_devices_for(&mut self, group: &AnyGroup) -> bool {
        let lists = self.arguments.mode == Mode::List;
        let are_named = self.settings.further != FurtherDevices::Listed(Vec::new());
        let is_of_ranks = self.machine.ranks.is_some();
        if lists && (are_named || is_of_ranks) {
            return true;
        }
        let reason = if is_of_ranks && !group.in_processes {
            Some("it runs in one process; start it without torchrun, mpirun or srun".to_owned())
        } else {
            (group.on_several.then(|| self.machine.lacks_devices())).flatten()
        };
        let Some(reason) = reason else {
            return true;
        };
        let is_filtered = self.arguments.filter_text().is_some();
        let is_meant = is_of_ranks || are_named || is_filtered;
        if is_meant && ids(group).any(|id| self.arguments.selects(&id)) {
            self.journal.skip(group.name.to_owned(), reason);
            self.journal.device_failed |= self.machine.device_failed();
        }
        false
    }

    /// Plans what could be run. A process that takes turns says it to its driver, and learns how it is
    /// to run.
    pub(super) fn announce(&mut self, groups: &[AnyGroup]) {
        let no_gpu = self.machine.gpu_missing().is_some();
        let mut ids = Vec::new();
        for group in groups.iter().filter(|_| self.arguments.mode != Mode::List) {
            let plan = group.plan(self.settings.size_set).into_iter();
            let runs = plan.filter(|(_, row)| !(row.is_gpu() && no_gpu));
            ids.extend(runs.map(|(size, row)| group.id_of(row, size).to_string()));
        }
        ids.retain(|id| self.arguments.selects(id));
        if let Some(turns) = &mut self.turns {
            turns.announce(ids.clone());
            let instructions = &turns.instructions;
            self.machine.choices.hand_over(instructions.choices.clone());
            // Where none of them is this process's, the filter is not at fault.
            self.journal.selected |= instructions.only.is_some();
        }
        ids.retain(|id| self.is_wanted(id));
        self.progress.expect(ids.len());
        self.journal.record.planned = ids;
    }

    /// Compiles the kernels of the groups that are to run, while nothing is timed.
    pub(super) fn compile_ahead(&self, groups: &[AnyGroup]) {
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
        (self.machine.kernels).compile_ahead(&sources, device.compute_capability);
    }

    /// How long and how often this code is sampled: on a GPU, in turns and in a default run, shorter than the size set
    /// has it, because two processes differ by more than longer samples would show. In a default run on an H100
    /// (5d9f35a6) the intervals of ten samples are narrower than 1.6 % in 19 of 20 benchmarks behind a gate; of every
    /// tenth on another clock they are too wide.
    pub(super) fn sampling_of(&self, code: &Timed) -> SamplingPlan {
        let is_on_gpu = code.launches > 0;
        let is_default = self.settings.size_set == SizeSet::Default;
        let short = SamplingPlan::on_gpu_in_turns();
        match self.turns {
            Some(_) if is_on_gpu => short,
            None if is_default && code.clock == Clock::EventsGated => short,
            None if is_default && is_on_gpu => {
                let mut plan = self.sampling;
                plan.warm_up = short.warm_up;
                plan
            }
            _ => self.sampling,
        }
    }

    /// Whether the filter, and the process that drives this one, select this benchmark.
    pub(super) fn is_wanted(&self, id: &str) -> bool {
        let instructions = self.turns.as_ref().map(|turns| &turns.instructions);
        self.arguments.selects(id) && instructions.is_none_or(|instructions| instructions.wants(id))
    }

    /// Names, in one line per implementation, the sizes that the size set leaves out and the
    /// implementations that need a GPU where there is none.
    pub(super) fn name_what_is_left_out(&mut self, group: &AnyGroup) {
        let set = self.settings.size_set;
        for row in &group.rows {
            let wanted = |size: &u64| self.is_wanted(&group.id_of(row, *size).to_string());
            let sizes = group.sizes_of(row);
            let left_out: Vec<String> = (sizes.all().iter())
                .filter(|size| !sizes.of(set).contains(size) && wanted(size))
                .map(u64::to_string)
                .collect();
            let in_set = sizes.of(set).iter().any(wanted);
            let prefix = format!("{}/{}", group.name, row.function());
            if row.is_gpu()
                && in_set
                && let Some(reason) = self.machine.gpu_missing()
            {
                self.journal.skip(prefix, reason);
                self.journal.device_failed |= self.machine.device_failed();
            } else if !left_out.is_empty() {
                let reason = format!(
                    "sizes {} are not in the set {}; CROSSOVER_SIZES=full runs them",
                    left_out.join(", "),
                    set.name()
                );
                self.journal.leave_out(prefix, reason);
            }
        }
        self.journal.keep();
    }

    /// Checks the parts of a group that no benchmark shows: its inputs, and with `--test` the kernels that no
    /// device compiles.
    pub(super) fn check_group(&mut self, group: &AnyGroup) {
        let is_test = self.arguments.mode == Mode::Test;
        let measures = self.arguments.saves && self.turns.is_none() && !group.verified_by_tests;
        let plan = group.plan(self.settings.size_set).into_iter();
        let is_wanted =
            |(size, row): &(u64, &AnyRow)| self.is_wanted(&group.id_of(row, *size).to_string());
        let rows: Vec<&AnyRow> = plan.filter(is_wanted).map(|(_, row)| row).collect();
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

    /// Whether a benchmark needs a GPU where there is none, which is noted once for each implementation.
    pub(super) fn lacks_gpu(&mut self, id: &str, group: &AnyGroup, row: &AnyRow) -> bool {
        let missing = self.machine.gpu_missing();
        let Some(reason) = missing.filter(|_| row.is_gpu()) else {
            return false;
        };
        let of_all = format!("{}/{}", group.name, row.function());
        let is_named = self.journal.is_skipped(&of_all, &reason);
        if !is_named && self.arguments.selects(id) {
            self.journal.skip(id.to_owned(), reason);
        }
        true
    }

    /// Measures the limits that a row's results are compared with, before the first benchmark that needs them,
    /// and writes the record of the run.
    pub(super) fn measure_limits(&mut self, row: &AnyRow) -> Result<(), Missing> {
        let (machine, journal) = (&self.machine, &mut self.journal);
        if !journal.begun {
            journal.begun = true;
            self.limits_and_load.begin(&mut journal.record, machine);
            if self.turns.is_none() {
                journal.earlier = StoredResults::read(&self.settings.results);
            }
            journal.write()?;
        }
        if (self.limits_and_load).measure_for(row, &mut journal.record, machine)? {
            journal.write()?;
        }
        Ok(())
    }

    /// Whether results are compared with float64. In turns, the driver decides.
    pub(super) fn verifies(&self) -> bool {
        (self.turns.as_ref()).is_none_or(|turns| turns.instructions.verify)
    }

    /// Errors of destructors surface on a later call, and must not be those of the next benchmark.
    pub(super) fn check_device(&self) -> Result<(), Missing> {
        let opened = self.machine.opened();
        Ok(opened.map_or(Ok(()), |gpu| gpu.check_earlier())?)
    }

    /// Notes why a benchmark has no result.
    pub(super) fn note(&mut self, id: String, is_gpu: bool, missing: Missing) {
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

    /// Confirms the answers of the results so far in child processes.
    pub(super) fn confirm(&mut self, when: When) {
        let over = self.journal.no_room.is_some() || interrupt::signal().is_some();
        if !self.journal.begun || self.turns.is_some() || over {
            return;
        }
        let took = self.confirming.confirm(when, &mut self.journal);
        self.progress.confirmed(took, self.confirming.to_come());
        self.journal.spent.add(Activity::Confirming, took);
    }

    /// Measures the CPU's limits again, and completes the record; `false` where nothing was measured and there
    /// is none.
    pub(super) fn complete(&mut self) -> bool {
        let (limits_and_load, journal) = (&mut self.limits_and_load, &mut self.journal);
        if !journal.begun {
            return false;
        }
        let begun = Instant::now();
        let is_whole = interrupt::signal().is_none() && journal.no_room.is_none();
        if is_whole && self.turns.is_none() {
            limits_and_load.record_background(&mut journal.record);
            let mut found =
                limits_and_load.measure_again(&mut journal.record, &journal.earlier.runs);
            found.extend(journal.named_above_limits());
            let disturbances = &mut journal.record.environment.disturbances;
            disturbances.extend_from_slice(&found);
            found.extend(limits_and_load.record_background(&mut journal.record));
            for disturbance in found {
                eprintln!("note: {disturbance}");
            }
        }
        journal.spent.add(Activity::Limits, begun.elapsed());
        limits_and_load.say(&format!("time: {}", journal.spent.in_words()));
        journal.complete();
        true
    }
}

/// The ids of a group in every profile.
fn ids(group: &AnyGroup) -> impl Iterator<Item = String> {
    group.rows.iter().flat_map(move |row| {
        let sizes = group.sizes_of(row).all().into_iter();
        sizes.map(move |size| group.id_of(row, size).to_string())
    })
}

/// A process's link to the command that drives it.
pub(super) struct Turns {
    parent: RefCell<Parent>,
    instructions: Instructions,
}

impl Turns {
    /// Connects to the socket.
    ///
    /// # Errors
    /// The system's error, with the remedy.
    pub(super) fn connect(socket: &Path) -> Result<Self, ChildError> {
        let parent = Parent::connect(socket).map_err(|error| {
            let named = format!("{TURNS}={} is no channel", socket.display());
            let remedy = "`crossover ab` sets it, unset it otherwise";
            ChildError::System(format!("{named}: {remedy}"), error)
        })?;
        Ok(Self {
            parent: RefCell::new(parent),
            instructions: Instructions::default(),
        })
    }

    /// Keeps this thread on the core that both sides share, where one is named.
    pub(super) fn on_one_core(&self) -> Option<OnCores> {
        OnCores::new(&[self.instructions.core?])
    }

    /// Sends the benchmarks that it could run, and waits for instructions.
    pub(super) fn announce(&mut self, ids: Vec<String>) {
        let protocol = PROTOCOL;
        match self
            .parent
            .borrow_mut()
            .ask(&TurnMessage::Plan { protocol, ids })
        {
            Ok(TurnReply::Run(instructions)) => self.instructions = instructions,
            _ => interrupt::end(),
        }
    }

    /// Sends a message and waits for the turn. Ends the run if there is no reply.
    pub(super) fn say(&self, message: &TurnMessage) {
        if !matches!(self.parent.borrow_mut().ask(message), Ok(TurnReply::Go)) {
            interrupt::end();
        }
    }
}
