//! The facts that are stored beside Criterion's files: launches and their constant, background load, choices.

use std::collections::{BTreeMap, BTreeSet};

use super::Bench;
use crate::model::record::{Activity, Sidecar};
use crate::suite::host::Timed;
use crate::suite::journal::Missing;
use crate::suite::sampler::SampleSeries;
use crate::timing::{Clock, TimingError};
use crossover_words::sidecar::{
    EMPTY_KERNEL, EVENT_STEP, GRAPHS, LAUNCH_PROBE, LAUNCHES, LONG_LAUNCHES, LaunchConstant,
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
        extra.extend(self.launches(code, series));
        notes.append(&mut self.notes);
        let run = &mut *self.run;
        let background_load = run.limits_and_load.used_by_others(&run.journal.record);
        let (machine, in_turns) = (&run.machine, run.turns.is_some());
        let needed = machine.choices.take_needed();
        let mut disturbed = BTreeSet::new();
        if !in_turns {
            let meanwhile = background_load.map(|_| needed.names.keys().cloned());
            disturbed = (machine.choices).forget_disturbed(meanwhile.into_iter().flatten());
        }
        if !needed.calibration_time.is_zero() {
            let took = needed.calibration_time.as_nanos() as f64;
            extra.insert("calibration_ns".to_owned(), took);
        }
        extra.extend(background_load.map(|it| ("processors_busy_with_other_work".to_owned(), it)));
        if !disturbed.is_empty() {
            let disturbed = Vec::from_iter(disturbed);
            notes.push(format!(
                "calibrated under background load, so another process calibrates again: {}",
                disturbed.join(", ")
            ));
        }
        let monitor = machine.monitor().filter(|_| self.row.is_gpu());
        Ok(Sidecar {
            cost: self.group.cost_of(self.row, self.size),
            role: self.row.role.clone(),
            device_state: monitor.map(|monitor| monitor.state()),
            extra,
            choices: needed.names,
            notes,
            run: run.journal.record.run.clone(),
            ..Sidecar::of(&self.id, machine.time.effective_clock(code.clock))
        })
    }

    /// The figures of the launches of an iteration and of their constant. Notes that launches became longer.
    fn launches(&mut self, code: &mut Timed, series: &mut SampleSeries) -> BTreeMap<String, f64> {
        let mut figures = BTreeMap::new();
        let mut add = |key: &str, figure: f64| figures.extend([(key.to_owned(), figure)]);
        let is_gated = matches!(code.clock, Clock::EventsGated | Clock::EventsCold);
        // Not every driver describes copies between devices that it has captured.
        if is_gated && !self.group.on_several {
            let time = &self.run.machine.time;
            let counted = time.count_launches(|| code.routine.run());
            if let Some(counted) = self.if_known("the number of launches", counted) {
                add(LAUNCHES, counted.launches.into());
                if counted.graphs > 0 {
                    add(GRAPHS, counted.graphs.into());
                }
            }
        }
        let empty_after_ns = self.launch_constant(code.clock);
        let empty_ns = series.empty_before_ns.zip(empty_after_ns);
        let mut moved = None;
        if let Some(empty_ns) = empty_ns.map(<[f64; 2]>::from) {
            EMPTY_KERNEL
                .into_iter()
                .zip(empty_ns)
                .for_each(|(key, ns)| add(key, ns));
            moved = LaunchConstant::moved(empty_ns);
        }
        if let Some(step_ns) = self.run.machine.time.event_step_ns(code.clock) {
            add(EVENT_STEP, step_ns);
        }
        for (key, state) in LAUNCH_PROBE.into_iter().zip(series.launches) {
            state.into_iter().for_each(|state| add(key, state.probe_ns));
        }
        if series.launches[1].is_some_and(|state| state.is_long) {
            add(LONG_LAUNCHES, 1.0);
        }
        for note in moved.into_iter().chain(series.launch_note.take()) {
            eprintln!("note: {}: {note}", self.id);
            self.notes.push(note);
        }
        figures
    }
}
