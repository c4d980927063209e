//! A run of groups of any operations.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use criterion::Criterion;

use crate::device::gpu::Gpu;
use crate::device::kernel::Source;
use crate::interrupt;
use crate::model::group_info::GroupInfo;
use crate::model::record::NO_GROUP;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::confirm::Task;
use crate::suite::confirm::driver::When;
use crate::suite::confirm::in_turns::TakingTurns;
use crate::suite::group::Group;
use crate::suite::instance::{instance, plots, profiled};
use crate::suite::learnt::Learnt;
use crate::suite::plan::Planned;
use crate::suite::preflight::{self, Refused};
use crate::suite::profiles::Profiles;
use crate::suite::sampling_plan::SamplingPlan;
use crate::suite::session::Session;
use crate::suite::turns::Turns;
use crate::timing::CudaTime;
use crate::workload::{RoutineError, Workload};
use crossover_machine::numa::{Misplaced, Nodes, Placement};
use crossover_protocol::settings::{Profile, Settings, unknown_variables};

/// A run of benchmark groups: settings, command line, machine and results.
pub(crate) struct Suite {
    // Apart from the session, because a group borrows it while the session works.
    criterion: Criterion<CudaTime>,
    session: Session,
    /// In the order in which they were added.
    groups: Vec<AnyGroup>,
    /// Keeps other runs out of the results folder.
    _lock: Option<File>,
}

impl Suite {
    /// Reads the settings and the command line, and sees that results can be kept. Opens no
    /// device. From here on signals end the run in order.
    ///
    /// # Errors
    /// What [`Refused`] names. An option that Criterion does not know ends the process with its
    /// own message.
    pub(crate) fn from_env() -> Result<Self, Refused> {
        let settings = Settings::from_env()?;
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for remark in unknown_variables(variables) {
            eprintln!("note: {remark}");
        }
        if let Some(placement) = settings.numa
            && let Some(remark) = place(placement, &settings)?
        {
            eprintln!("note: {remark}");
        }
        let arguments = Arguments::from_env();
        preflight::options(&arguments, &settings.results)?;
        let lock = match arguments.saves || arguments.mode == Mode::Profile {
            true => Some(preflight::results_folder(&settings.results)?),
            false => None,
        };
        interrupt::catch();
        let turns = match &settings.turns {
            Some(socket) => Some(Turns::connect(socket).map_err(|source| Refused::Turns {
                socket: socket.clone(),
                source,
            })?),
            None => None,
        };
        let sampling = match turns {
            Some(_) => SamplingPlan::in_turns(),
            None => SamplingPlan::of(settings.profile),
        };
        let time = CudaTime::host_only();
        let mut criterion = instance(&settings.results, &sampling, &time, turns.is_some());
        if arguments.mode == Mode::Profile {
            criterion = profiled(criterion, &time);
        }
        Ok(Self {
            criterion,
            session: Session::new(settings, arguments, sampling, time, turns),
            groups: Vec::new(),
            _lock: lock,
        })
    }

    /// Adds a group to the run.
    pub(crate) fn add(&mut self, group: impl Into<AnyGroup>) {
        let group = group.into();
        self.session.list(group.topic());
        group.0.expect(self);
        self.groups.push(group);
    }

    /// Runs the groups: each size, each implementation, as far as filter, profile, machine
    /// and memory allow, and names the rest with its reason. Then writes Criterion's summary
    /// pages and the record of the run.
    pub(crate) fn run(mut self) -> Finished {
        self.session.announce();
        for group in std::mem::take(&mut self.groups) {
            group.0.run(&mut self);
            self.session.confirm(When::BetweenGroups);
        }
        self.session.tell_choices();
        self.session.confirm(When::AfterGroups);
        if !self.session.no_room() && !self.session.takes_turns() {
            (self.session).analyse(NO_GROUP, || self.criterion.final_summary());
        }
        let measured = self.session.complete();
        self.session.end_lines();
        Finished {
            session: self.session,
            measured,
            _lock: self._lock,
        }
    }

    fn run_group<W: Workload>(&mut self, group: &Group<W>) {
        let session = &mut self.session;
        session.name_what_is_left_out(group);
        let mut plots = plots(&mut self.criterion, group.name);
        let mut learnt = Learnt::nothing();
        for (size, rows) in group.plan(session.profile()) {
            let problem = OnceCell::new();
            for row in rows {
                session.bench(&mut plots, group, row, size, &problem, &mut learnt);
            }
        }
        session.analyse(group.name, || plots.finish());
    }
}

/// Keeps this process at a NUMA node, before it starts threads. Its child processes inherit that.
fn place(placement: Placement, settings: &Settings) -> Result<Option<String>, Misplaced> {
    let device = match placement {
        Placement::Gpu => settings.probe().ok(),
        Placement::Node(_) => None,
    };
    Nodes::of_this_machine(device.as_ref().map(|device| device.pci_bus_id.as_str()))
        .ok_or(Misplaced::Unknown)?
        .place(placement)
}

/// A run whose benchmarks are over.
pub(crate) struct Finished {
    session: Session,
    measured: bool,
    _lock: Option<File>,
}

impl Finished {
    /// The results and the folder for a report on them; `None` where nothing was measured, as
    /// with `--list` and `--test`, and where `ab` reports.
    pub(crate) fn results(&self) -> Option<(&Path, &Path)> {
        let wanted = self.measured && !self.session.takes_turns();
        wanted.then(|| self.session.folders())
    }

    /// What became of the benchmarks that were profiled, with the same folders; `None` where
    /// nothing is profiled.
    pub(crate) fn profiles(&self) -> Option<(&Profiles, (&Path, &Path))> {
        let profiles = self.session.profiles()?;
        Some((profiles, self.session.folders()))
    }

    /// Prints what was left out and what failed. The exit code is 1 if a benchmark or the device
    /// failed, 2 if nothing was selected, 128 plus the signal's number if one ended the run, else
    /// 0.
    pub(crate) fn close(&self) -> ExitCode {
        self.session.close()
    }
}

/// A [`Group`] of any operation, for lists of groups: `group.into()`.
pub struct AnyGroup(Box<dyn Erased>);

/// What can be done with a group without knowing its operation.
trait Erased {
    fn name(&self) -> &'static str;
    fn topic(&self) -> &GroupInfo;
    fn planned(&self, profile: Profile) -> Vec<Planned>;
    fn visit_inputs(&self, size: u64, visit: &mut dyn FnMut(&[u8]));
    fn functions(&self) -> Vec<String>;
    fn kernels(&self) -> &'static [&'static Source];
    fn verify(&self, function: &str, gpu: Option<&Rc<Gpu>>) -> Result<Vec<String>, RoutineError>;
    fn in_phases(
        &self,
        function: &str,
        size: u64,
        gpu: &Rc<Gpu>,
        choices: BTreeMap<String, String>,
        begin: &mut dyn FnMut(&'static str),
    ) -> Result<BTreeMap<String, String>, RoutineError>;
    fn contradictions(&self) -> Vec<String>;
    fn medians_in_turns(
        &self,
        task: &Task,
        with: &TakingTurns,
    ) -> Result<BTreeMap<String, f64>, RoutineError>;
    fn expect(&self, suite: &mut Suite);
    fn run(&self, suite: &mut Suite);
}

impl<W: Workload> Erased for Group<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn topic(&self) -> &GroupInfo {
        &self.topic
    }

    fn planned(&self, profile: Profile) -> Vec<Planned> {
        self.planned(profile)
    }

    fn visit_inputs(&self, size: u64, visit: &mut dyn FnMut(&[u8])) {
        W::new(size).visit_inputs(visit);
    }

    fn functions(&self) -> Vec<String> {
        self.rows.iter().map(|row| row.function()).collect()
    }

    fn kernels(&self) -> &'static [&'static Source] {
        W::kernels()
    }

    fn verify(&self, function: &str, gpu: Option<&Rc<Gpu>>) -> Result<Vec<String>, RoutineError> {
        let row = self.rows.iter().find(|row| row.function() == function);
        self.verify(row.ok_or("there is no such implementation")?, gpu)
    }

    fn in_phases(
        &self,
        function: &str,
        size: u64,
        gpu: &Rc<Gpu>,
        choices: BTreeMap<String, String>,
        begin: &mut dyn FnMut(&'static str),
    ) -> Result<BTreeMap<String, String>, RoutineError> {
        let row = self.rows.iter().find(|row| row.function() == function);
        self.in_phases(
            row.ok_or("there is no such implementation")?,
            size,
            gpu,
            choices,
            begin,
        )
    }

    fn contradictions(&self) -> Vec<String> {
        self.contradictions()
    }

    fn medians_in_turns(
        &self,
        task: &Task,
        with: &TakingTurns,
    ) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.medians_in_turns(task, with)
    }

    fn expect(&self, suite: &mut Suite) {
        suite.session.expect(self);
    }

    fn run(&self, suite: &mut Suite) {
        suite.run_group(self);
    }
}

impl<W: Workload + 'static> From<Group<W>> for AnyGroup {
    fn from(group: Group<W>) -> Self {
        Self(Box::new(group))
    }
}

impl AnyGroup {
    /// The group's name, the first part of its ids.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// What the group says of itself.
    pub fn topic(&self) -> &GroupInfo {
        self.0.topic()
    }

    /// Every benchmark of a profile, by size and then in the order of the table.
    pub fn planned(&self, profile: Profile) -> Vec<Planned> {
        self.0.planned(profile)
    }

    /// Device and name of each implementation, such as `gpu/cublas`, in the order of the table.
    pub fn functions(&self) -> Vec<String> {
        self.0.functions()
    }

    /// The kernel sources of its GPU implementations.
    pub fn kernels(&self) -> &'static [&'static Source] {
        self.0.kernels()
    }

    /// Verifies one implementation, such as `gpu/cublas`, at small and odd sizes
    /// ([`Sizes::odd`](crate::suite::Sizes::odd)): an output that was never written must fail the
    /// check against float64, one run must pass it, and so must several in a row. Returns the sizes
    /// that the device or the library does not take, each with the reason.
    ///
    /// # Errors
    /// A wrong result, an implementation that fails or does not exist, a library that is not
    /// installed, and a GPU implementation where `gpu` is `None`.
    pub fn verify(
        &self,
        function: &str,
        gpu: Option<&Rc<Gpu>>,
    ) -> Result<Vec<String>, RoutineError> {
        self.0.verify(function, gpu)
    }

    /// Runs one GPU implementation at one size as a benchmark does, without a clock, and calls
    /// `begin` with the name of each phase: `set-up`, `first run` (which poisons), `iteration`,
    /// `verification` and `drop`. For tests that look at what each of them asks of the driver.
    ///
    /// What it would calibrate it takes from `choices`, by name, where that candidate exists. Returns
    /// the choices that it asked for: handed over again, nothing is calibrated.
    ///
    /// # Errors
    /// An implementation that fails or does not exist. A wrong result is none.
    pub fn in_phases(
        &self,
        function: &str,
        size: u64,
        gpu: &Rc<Gpu>,
        choices: BTreeMap<String, String>,
        begin: &mut dyn FnMut(&'static str),
    ) -> Result<BTreeMap<String, String>, RoutineError> {
        self.0.in_phases(function, size, gpu, choices, begin)
    }

    /// The median time of an iteration of each of these implementations, ns, taking turns.
    pub(super) fn medians_in_turns(
        &self,
        task: &Task,
        with: &TakingTurns,
    ) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.0.medians_in_turns(task, with)
    }

    /// Contradictions in what the group declares, in sentences; a run refuses such a group.
    pub fn contradictions(&self) -> Vec<String> {
        self.0.contradictions()
    }

    /// Makes the inputs of a size and calls `visit` with their bytes, in pieces, for a digest.
    pub fn visit_inputs(&self, size: u64, visit: &mut dyn FnMut(&[u8])) {
        self.0.visit_inputs(size, visit);
    }
}
