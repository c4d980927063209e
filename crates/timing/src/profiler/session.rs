//! The time between Criterion's `start_profiling` and `stop_profiling`, in which one measurement
//! records the benchmark.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use super::absence::NoProfile;
use super::on_device::OnDevice;
use super::recorder::{RecordingPlan, Stop, WINDOW, record};
use super::records::KINDS;
use super::version;
use crate::cuda_time::CudaTime;
use crate::device::{Routine, Sample};
use crate::error::TimingError;
use crossover_profile::Profile;
use crossover_profile::recording::Recording;
use crossover_words::Clock;

/// Iterations that run before the recording: by then kernels are loaded and memory is pooled.
const UNRECORDED: u64 = 5;
/// An iteration that takes this long is recorded after the first, because Criterion runs few of them.
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

    /// A measurement of CPU code took place.
    pub(crate) fn nothing_on_device(&self) {
        if let Some(session) = &mut *self.session.borrow_mut() {
            let nothing = Err(NoProfile::NothingOnDevice);
            session.outcome.get_or_insert(nothing);
        }
    }

    /// Measures by `plainly` within a session, and records once, when the benchmark has warmed up.
    pub(crate) fn measure(
        &self,
        time: &CudaTime,
        sample: Sample,
        routine: Routine<'_>,
        plainly: impl FnOnce(Routine<'_>) -> Result<f64, TimingError>,
    ) -> Result<f64, TimingError> {
        let before = Instant::now();
        let measured = plainly(&mut *routine);
        let elapsed = before.elapsed();
        // Taken out of its cell while the routine runs, since the routine may measure too.
        let Some(mut session) = self.session.borrow_mut().take() else {
            return measured;
        };
        let measured = measured.and_then(|ns| session.take_in(ns, time, sample, elapsed, routine));
        if let Err(error) = &measured {
            let message = error.to_string();
            let failed = NoProfile::BenchmarkFailed { message };
            session.outcome.get_or_insert(Err(failed));
        }
        *self.session.borrow_mut() = Some(session);
        measured
    }
}

#[derive(Default)]
pub(super) struct Session {
    iterations: u64,
    outcome: Option<Result<Recorded, NoProfile>>,
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
    fn is_ready(&mut self, iterations: u64, elapsed: Duration) -> bool {
        self.iterations += iterations;
        iterations > 0
            && self.outcome.is_none()
            && (self.iterations >= UNRECORDED
                || elapsed >= SLOW * u32::try_from(iterations).unwrap_or(u32::MAX))
    }

    /// Records the benchmark if it has warmed up with this measurement. An error is the benchmark's own.
    fn take_in(
        &mut self,
        ns: f64,
        time: &CudaTime,
        sample: Sample,
        elapsed: Duration,
        routine: Routine<'_>,
    ) -> Result<f64, TimingError> {
        if self.is_ready(sample.iterations, elapsed) {
            let expected_ns = elapsed.as_nanos() as f64 / sample.iterations as f64;
            self.outcome = Some(match recorded(time, sample, expected_ns, routine) {
                Ok(recorded) => Ok(recorded),
                Err(Stop::Recording(reason)) => Err(reason),
                Err(Stop::Benchmark(error)) => return Err(error),
            });
        }
        Ok(ns)
    }
}

fn recorded(
    time: &CudaTime,
    sample: Sample,
    expected_ns: f64,
    routine: Routine<'_>,
) -> Result<Recorded, Stop> {
    let plan = RecordingPlan {
        window: WINDOW,
        expected_ns,
        launches: sample.iteration.launches(),
        cold: sample.clock == Clock::EventsCold,
        alone: time.works_alone(),
    };
    let mut bench = OnDevice::new(time, &KINDS, sample.clock, routine)?;
    let recording = record(&mut bench, &plan)?;
    if recording.has_nothing() {
        return Err(NoProfile::NothingOnDevice.into());
    }
    let described = described(sample.clock, bench.gpu_name(), bench.cupti.version);
    Ok((recording, described))
}

/// A profile that names the clock and the machine, with a note if it differs from what the clock
/// measures.
pub(super) fn described(clock: Clock, gpu: String, cupti: u32) -> Profile {
    let note = match clock {
        Clock::EventsGated => Some(
            "the gate is off while profiling: the device may wait for launches, which a gated time excludes",
        ),
        Clock::EventsCold => Some(
            "each iteration was recorded by itself, from an idle device with the L2 cache evicted; the gate is off \
             while profiling, so it includes the time until its first launch arrives",
        ),
        Clock::Submit => Some(
            "the submit clock measures queueing alone; this profile has the work on the device too",
        ),
        _ => None,
    };
    Profile {
        clock: clock.name().to_owned(),
        gpu,
        cupti: version::name(cupti),
        notes: note.into_iter().map(str::to_owned).collect(),
        ..Profile::default()
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
