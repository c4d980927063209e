//! A run of groups.

use std::cell::OnceCell;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use criterion::Criterion;

use crate::interrupt;
use crate::model::record::NO_GROUP;
use crate::suite::arguments::{Arguments, Mode};
use crate::suite::confirm::driver::When;
use crate::suite::group::AnyGroup;
use crate::suite::instance::{instance, plots, profiled};
use crate::suite::learnt::Learnt;
use crate::suite::preflight::{self, Refused};
use crate::suite::profiles::Profiles;
use crate::suite::sampling_plan::SamplingPlan;
use crate::suite::session::Session;
use crate::suite::turns::Turns;
use crate::timing::CudaTime;
use crossover_protocol::settings::{Settings, unknown_variables};

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
        // The command that drives this process in turns has named them.
        if settings.turns.is_none() {
            for remark in unknown_variables() {
                eprintln!("note: {remark}");
            }
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
    pub(crate) fn add(&mut self, group: AnyGroup) {
        self.session.list(&group.topic);
        self.session.expect(&group);
        self.groups.push(group);
    }

    /// Runs the groups: each size, each implementation, as far as filter, profile, machine
    /// and memory allow, and names the rest with its reason. Then writes Criterion's summary
    /// pages and the record of the run.
    pub(crate) fn run(mut self) -> Finished {
        self.session.announce();
        for group in std::mem::take(&mut self.groups) {
            self.run_group(&group);
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

    fn run_group(&mut self, group: &AnyGroup) {
        let session = &mut self.session;
        session.name_what_is_left_out(group);
        let mut plots = plots(&mut self.criterion, group.name);
        let mut learnt = Learnt::default();
        for (size, rows) in group.plan(session.profile()) {
            let problem = OnceCell::new();
            for row in rows {
                session.bench(&mut plots, group, row, size, &problem, &mut learnt);
            }
        }
        session.analyse(group.name, || plots.finish());
    }
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
