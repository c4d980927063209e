//! The facts that are stored beside Criterion's files: launches and their constant, background load, choices.

use std::collections::BTreeSet;

use super::Bench;
use crate::model::record::{Activity, SCHEMA, Sidecar};
use crate::suite::host::Timed;
use crate::suite::missing::Missing;
use crate::suite::sampler::SampleSeries;
use crate::timing::{Clock, TimingError};
use crossover_words::sidecar::{
    EMPTY_KERNEL, GRAPHS, LAUNCH_PROBE, LAUNCHES, LONG_LAUNCHES, LaunchConstant,
};

impl Bench<'_> {
    /// The constant of a launch on the clock of a stored result, ns.
    pub(super) fn launch_constant(&mut self, clock: Clock) -> Option<f64> {
        if !(self.row.is_gpu() && self.run.arguments.saves) {
            return None;
        }
        let constant = || self.run.machine.time.launch_constant(clock);
        let constant = (self.spent).on(Activity::Checks, constant);
        self.if_known("the launch constant", constant)
    }

    /// A figure that comparisons correct samples by; an error is no reason to lose the samples.
    fn if_known<T>(&mut self, what: &str, figure: Result<Option<T>, TimingError>) -> Option<T> {
        figure.unwrap_or_else(|error| {
            let note =
                format!("{what} is unknown, so it is compared without a correction: {error}");
            eprintln!("note: {}: {note}", self.id);
            self.notes.push(note);
            None
        })
    }

    /// The facts that Criterion's files lack.
    pub(super) fn sidecar(
        &mut self,
        code: &mut Timed,
        series: &mut SampleSeries,
    ) -> Result<Sidecar, Missing> {
        let mut notes = code.routine.notes();
        if !code.is_executed {
            notes.push("recorded, not measured".to_owned());
        }
        let mut extra = code.routine.extra()?;
        self.run.check_device()?;
        // From here on a lost device is no reason to lose the samples.
        let is_gated = matches!(code.clock, Clock::EventsGated | Clock::EventsCold);
        // Not every driver describes copies between devices that it has captured.
        if is_gated && !self.group.on_several {
            let time = &self.run.machine.time;
            let counted = time.count_launches(|| code.routine.run());
            if let Some(counted) = self.if_known("the number of launches", counted) {
                extra.insert(LAUNCHES.to_owned(), counted.launches.into());
                if counted.graphs > 0 {
                    extra.insert(GRAPHS.to_owned(), counted.graphs.into());
                }
            }
        }
        let empty_after_ns = self.launch_constant(code.clock);
        if let Some(empty_ns) = series
            .empty_before_ns
            .zip(empty_after_ns)
            .map(<[f64; 2]>::from)
        {
            extra.extend(EMPTY_KERNEL.map(str::to_owned).into_iter().zip(empty_ns));
            if let Some(note) = LaunchConstant::moved(empty_ns) {
                eprintln!("note: {}: {note}", self.id);
                notes.push(note);
            }
        }
        for (key, state) in LAUNCH_PROBE.into_iter().zip(series.launches) {
            extra.extend(state.map(|state| (key.to_owned(), state.probe_ns)));
        }
        if series.launches[1].is_some_and(|state| state.is_long) {
            extra.insert(LONG_LAUNCHES.to_owned(), 1.0);
        }
        if let Some(note) = series.launch_note.take() {
            eprintln!("note: {}: {note}", self.id);
            notes.push(note);
        }
        notes.append(&mut self.notes);
        let run = &mut *self.run;
        let others = run.surroundings.used_by_others(&run.journal.record);
        let (machine, in_turns) = (&run.machine, run.turns.is_some());
        let needed = machine.choices.take_needed();
        let mut disturbed = BTreeSet::new();
        if !in_turns {
            let meanwhile = others.map(|_| needed.names.keys().cloned());
            disturbed = (machine.choices).forget_disturbed(meanwhile.into_iter().flatten());
        }
        if !needed.calibration_time.is_zero() {
            let took = needed.calibration_time.as_nanos() as f64;
            extra.insert("calibration_ns".to_owned(), took);
        }
        extra.extend(others.map(|it| ("processors_busy_with_other_work".to_owned(), it)));
        if !disturbed.is_empty() {
            let disturbed = Vec::from_iter(disturbed);
            notes.push(format!(
                "calibrated under background load, so another process calibrates again: {}",
                disturbed.join(", ")
            ));
        }
        let monitor = machine.monitor().filter(|_| self.row.is_gpu());
        Ok(Sidecar {
            schema: SCHEMA,
            id: self.id.clone(),
            samples: String::new(),
            clock: machine.time.effective_clock(code.clock),
            cost: self.group.cost_of(self.row, self.size),
            role: self.row.role.clone(),
            verified: None,
            device_state: monitor.map(|monitor| monitor.state()),
            monitor: None,
            unsteady: None,
            extra,
            choices: needed.names,
            notes,
            run: self.run.journal.record.run.clone(),
        })
    }
}
