//! From Criterion's `start_profiling` to its `stop_profiling`: one of the measurements in between
//! records the benchmark.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use super::absence::NoProfile;
use super::library::Cupti;
use super::on_device::{OnDevice, gpu_name};
use super::recorder::{Plan, Stop, WINDOW, record};
use crate::device::{Device, Routine};
use crate::error::TimingError;
use crossover_profile::recording::Recording;
use crossover_words::Clock;

/// Iterations that run before any are recorded: by then kernels are loaded and memory is pooled.
const UNRECORDED: u64 = 5;
/// An iteration that takes this long is recorded after the first: Criterion runs few of them.
const SLOW: Duration = Duration::from_millis(100);

/// The session of a clock, while there is one.
#[derive(Default)]
pub(crate) struct Slot {
    taken: Cell<bool>,
    session: RefCell<Option<Session>>,
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
}

#[derive(Default)]
pub(super) struct Session {
    iterations: u64,
    outcome: Option<Result<Recorded, NoProfile>>,
}

/// What was recorded, and of what.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) recording: Recording,
    pub(super) clock: Clock,
    pub(super) gpu: String,
    pub(super) cupti: u32,
}

impl Session {
    /// What was recorded, or why nothing was.
    pub(super) fn outcome(self, has_device: bool) -> Result<Recorded, NoProfile> {
        self.outcome.unwrap_or(Err(match has_device {
            true => NoProfile::Uncounted,
            false => NoProfile::NoDevice,
        }))
    }

    /// Whether it is time to record, now that `iterations` more took `elapsed`.
    fn is_ready(&mut self, iterations: u64, elapsed: Duration) -> bool {
        self.iterations += iterations;
        iterations > 0
            && self.outcome.is_none()
            && (self.iterations >= UNRECORDED
                || elapsed >= SLOW * u32::try_from(iterations).unwrap_or(u32::MAX))
    }
}

impl Slot {
    /// A measurement of CPU code took place.
    pub(crate) fn nothing_on_device(&self) {
        if let Some(session) = &mut *self.session.borrow_mut() {
            let nothing = Err(NoProfile::NothingOnDevice);
            session.outcome.get_or_insert(nothing);
        }
    }
}

/// The arguments of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) clock: Clock,
    pub(crate) iterations: u64,
    pub(crate) launches: u32,
}

impl Slot {
    /// A measurement within a session: measures as `plainly` does, and once, when the benchmark
    /// has warmed up, records it as well.
    pub(crate) fn measure(
        &self,
        device: Option<&Device>,
        asked: Asked,
        routine: Routine<'_>,
        plainly: impl FnOnce(Routine<'_>) -> Result<f64, TimingError>,
    ) -> Result<f64, TimingError> {
        let before = Instant::now();
        let measured = plainly(routine);
        let elapsed = before.elapsed();
        // Taken out of its cell while the routine runs, since the routine may measure too.
        let Some(mut session) = self.session.borrow_mut().take() else {
            return measured;
        };
        let failed = match &measured {
            Err(error) => {
                let message = error.to_string();
                session
                    .outcome
                    .get_or_insert(Err(NoProfile::BenchmarkFailed { message }));
                None
            }
            Ok(_) if session.is_ready(asked.iterations, elapsed) => {
                let expected_ns = elapsed.as_nanos() as f64 / asked.iterations as f64;
                session.record(device, asked, expected_ns, routine).err()
            }
            Ok(_) => None,
        };
        *self.session.borrow_mut() = Some(session);
        match failed {
            Some(error) => Err(error),
            None => measured,
        }
    }
}

impl Session {
    /// Records. An error is the benchmark's own.
    fn record(
        &mut self,
        device: Option<&Device>,
        asked: Asked,
        expected_ns: f64,
        routine: Routine<'_>,
    ) -> Result<(), TimingError> {
        let Some(device) = device else {
            self.outcome = Some(Err(NoProfile::NoDevice));
            return Ok(());
        };
        let cupti = match Cupti::get() {
            Ok(cupti) => cupti,
            Err(reason) => {
                self.outcome = Some(Err(reason));
                return Ok(());
            }
        };
        let plan = Plan {
            window: WINDOW,
            expected_ns,
            launches: asked.launches,
            cold: asked.clock == Clock::EventsCold,
        };
        let mut bench = OnDevice::new(cupti, device, routine)?;
        let recorded = match record(&mut bench, &plan) {
            Ok(recording) if recording.has_nothing() => Err(NoProfile::NothingOnDevice),
            Ok(recording) => Ok(Recorded {
                recording,
                clock: asked.clock,
                gpu: gpu_name(device),
                cupti: cupti.version,
            }),
            Err(Stop::Recording(reason)) => Err(reason),
            Err(Stop::Benchmark(error)) => {
                let message = error.to_string();
                self.outcome = Some(Err(NoProfile::BenchmarkFailed { message }));
                return Err(error);
            }
        };
        self.outcome = Some(recorded);
        Ok(())
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
        let outcome = |has_device| {
            let session = Session::default();
            session.outcome(has_device).map(|_| ()).unwrap_err()
        };
        assert_eq!(outcome(true), NoProfile::Uncounted);
        assert_eq!(outcome(false), NoProfile::NoDevice);
    }
}
