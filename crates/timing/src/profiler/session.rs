//! The time between Criterion's `start_profiling` and `stop_profiling`, in which one measurement
//! records the benchmark.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::absence::NoProfile;
use crossover_profile::Profile;
use crossover_profile::recording::Recording;

/// Iterations that run before the recording: by then kernels are loaded and memory is pooled.
const UNRECORDED: u64 = 5;
/// An iteration that takes this long is recorded after the first, because Criterion runs few of them.
const SLOW: Duration = Duration::from_millis(100);

/// The session of a clock, while there is one.
#[derive(Default)]
pub(crate) struct Slot {
    taken: Cell<bool>,
    pub(super) session: RefCell<Option<Session>>,
}

impl Slot {
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.get()
    }

    /// Begins a session, in place of one that a benchmark left behind when it panicked.
    pub(super) fn begin(&self, session: Session) {
        *self.session.borrow_mut() = Some(session);
        self.taken.set(true);
    }

    pub(super) fn end(&self) -> Option<Session> {
        self.taken.set(false);
        self.session.borrow_mut().take()
    }

    /// A measurement of CPU code took place.
    pub(crate) fn nothing_on_device(&self) {
        if let Some(session) = &mut *self.session.borrow_mut() {
            let nothing = Err(NoProfile::NothingOnDevice);
            session.outcome.get_or_insert(nothing);
        }
    }
}

#[derive(Default)]
pub(super) struct Session {
    iterations: u64,
    pub(super) outcome: Option<Result<Recorded, NoProfile>>,
}

/// A recording, and a profile that names the clock and the machine.
pub(super) type Recorded = (Recording, Profile);

impl Session {
    /// The recording, or the reason why there is none.
    pub(super) fn outcome(self, has_device: bool) -> Result<Recorded, NoProfile> {
        self.outcome.unwrap_or(Err(if has_device {
            NoProfile::Uncounted
        } else {
            NoProfile::NoDevice
        }))
    }

    /// Whether to record now, after `iterations` more took `elapsed`.
    pub(super) fn is_ready(&mut self, iterations: u64, elapsed: Duration) -> bool {
        self.iterations += iterations;
        iterations > 0
            && self.outcome.is_none()
            && (self.iterations >= UNRECORDED
                || elapsed >= SLOW * u32::try_from(iterations).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(calls: &[(u64, u64)]) -> Option<usize> {
        let mut session = Session::default();
        (calls.iter()).position(|&(n, ms)| session.is_ready(n, Duration::from_millis(ms)))
    }

    #[test]
    fn recording_begins_when_the_warm_up_has_run_some_iterations() {
        // Criterion's warm-up doubles.
        assert_eq!(ready(&[(1, 40), (2, 1), (4, 1), (8, 1)]), Some(2));
        // Slow ones may come but once.
        assert_eq!(ready(&[(1, 2_000)]), Some(0));
        assert_eq!(ready(&[(1, 90), (2, 150), (2, 150)]), Some(2));
        // Criterion may ask for none.
        assert_eq!(ready(&[(0, 0), (0, 0)]), None);
    }

    #[test]
    fn a_session_without_counted_iterations_says_why() {
        for (has_device, why) in [(true, NoProfile::Uncounted), (false, NoProfile::NoDevice)] {
            assert_eq!(Session::default().outcome(has_device).err(), Some(why));
        }
    }
}
