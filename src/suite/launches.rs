//! Keeps the launches of a process short. Kernels on many streams make all of them longer until a second context was
//! made, and a row must not depend on the rows before it.

use crate::suite::host::{Host, Timed};
use crate::timing::{CudaTime, LaunchState, TimingError};
use crate::workload::devices::launches_of_ranks;
use crate::workload::routine::RoutineError;
use crossover_words::units::time;

/// Why a series whose launches became long is not taken again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAgain {
    /// The benchmark does so by itself, as any program with its streams.
    OwnStreams,
    /// A restoration had no effect.
    Stuck,
}

impl Host {
    /// Probes the launches, of `several` devices those of all, and restores long ones before.
    pub(super) fn shorten_launches(
        &self,
        several: bool,
    ) -> Result<Option<LaunchState>, RoutineError> {
        self.launches(several, true)
    }

    /// Probes the launches, of `several` devices those of all.
    pub(super) fn launch_state(&self, several: bool) -> Result<Option<LaunchState>, RoutineError> {
        self.launches(several, false)
    }

    /// Restores launches that became long during the samples of a benchmark, and runs it once. Returns why it need not
    /// be sampled again.
    pub(super) fn restore_after(
        &self,
        code: &mut Timed,
        several: bool,
    ) -> Result<Option<NotAgain>, RoutineError> {
        let restored = self.shorten_launches(several)?;
        if restored.is_none_or(|state| state.is_long) {
            return Ok(Some(NotAgain::Stuck));
        }
        self.run_once(code)?;
        let after = self.launch_state(several)?;
        Ok((after.is_none_or(|state| state.is_long)).then_some(NotAgain::OwnStreams))
    }

    fn launches(&self, several: bool, shortens: bool) -> Result<Option<LaunchState>, RoutineError> {
        let probe = |time: &CudaTime| {
            let state = match shortens {
                true => time.shorten_launches(),
                false => time.launch_state(),
            };
            self.known_launches(state)
        };
        let mut worst = probe(&self.time)?;
        let gpu = self.opened().filter(|_| several);
        let (Some(gpu), Some(worst_state)) = (gpu, &mut worst) else {
            return Ok(worst);
        };
        for time in self.clocks_beside(gpu)?.iter() {
            if let Some(state) = probe(time)? {
                worst_state.is_long |= state.is_long;
                worst_state.is_restored |= state.is_restored;
            }
        }
        gpu.bind()?;
        worst_state.is_long |= launches_of_ranks(gpu, shortens)?;
        Ok(worst)
    }

    /// A state; without one the benchmark is measured all the same. Says once why there is none, and that no
    /// restoration is tried any more.
    pub(super) fn known_launches(
        &self,
        state: Result<Option<LaunchState>, TimingError>,
    ) -> Result<Option<LaunchState>, TimingError> {
        match state {
            Err(error) if !error.is_sticky() => {
                if !self.launches_noted.replace(true) {
                    eprintln!(
                        "note: it is not known whether launches take longer than in a new process: {error}"
                    );
                }
                Ok(None)
            }
            Ok(Some(state)) if state.gives_up => {
                eprintln!("note: {STUCK}");
                Ok(Some(state))
            }
            known => known,
        }
    }
}

/// The note if launches stay long.
const STUCK: &str = "two restorations in a row did not make launches shorter, so this run tries no more; its short \
    kernels and graphs take longer than in a new process";

/// The note on a benchmark during whose samples launches were long.
pub(super) fn long_launches(state: LaunchState, not_again: Option<NotAgain>) -> String {
    let LaunchState {
        probe_ns, short_ns, ..
    } = state;
    let why = match not_again {
        Some(NotAgain::OwnStreams) => {
            "it runs kernels on many streams itself, which makes launches longer in every program"
        }
        Some(NotAgain::Stuck) => "a second context did not make them shorter",
        None => "kernels on many streams make them longer",
    };
    format!(
        "launches took longer after its samples (a graph of 32 small kernels {} instead of {}): {why}",
        time(probe_ns),
        time(short_ns)
    )
}
