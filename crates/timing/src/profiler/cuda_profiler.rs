//! The profiler that Criterion drives.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use criterion::profiler::Profiler;

use super::absence::NoProfile;
use super::on_device::OnDevice;
use super::recorder::{RecordingPlan, Stop, WINDOW, record};
use super::records::KINDS;
use super::session::{Recorded, Session};
use super::version;
use crate::cuda_time::CudaTime;
use crate::device::{Routine, Sample};
use crate::error::TimingError;
use crate::on_criterion::write;
use crossover_profile::{Profile, analyse, trace};
use crossover_words::Clock;

/// Records where the time of a benchmark goes when Criterion runs with `--profile-time`.
///
/// Of each benchmark that a method of [`CudaBencherExt`](crate::CudaBencherExt), or
/// [`CudaTime::measure`], times, some iterations are recorded once the benchmark has warmed up:
/// for 100 ms back to back as the benchmark queues them, and a few one by one from an idle device. The gate
/// is off from then until the benchmark ends. The profile is printed, and written to
/// `profile.json` and `trace.json` in the folder that Criterion names.
///
/// If nothing can be recorded, one line gives the reason, and the benchmark runs on.
///
/// ```no_run
/// use crossover_timing::criterion::Criterion;
/// use crossover_timing::{CudaTime, profiler::CudaProfiler};
///
/// // SAFETY: it is the only stream of the program.
/// let (time, _) = unsafe { CudaTime::new_or_host_only(0) };
/// let criterion = Criterion::default()
///     .with_measurement(time.clone())
///     .with_profiler(CudaProfiler::new(&time))
///     .configure_from_args();
/// ```
#[derive(Debug)]
pub struct CudaProfiler {
    time: CudaTime,
    quiet: bool,
}

impl CudaProfiler {
    /// Profiles the benchmarks that `time`, or a clone of it, times.
    pub fn new(time: &CudaTime) -> Self {
        Self {
            time: time.clone(),
            quiet: false,
        }
    }

    /// Does not print profiles. The reason why a benchmark has none is still printed.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    fn deliver(&self, benchmark: &str, folder: &Path, recorded: Recorded) {
        let (recording, described) = recorded;
        let profile = Profile {
            benchmark: benchmark.to_owned(),
            recorded: humantime::format_rfc3339_seconds(
                SystemTime::now().max(SystemTime::UNIX_EPOCH),
            )
            .to_string(),
            ..described
        };
        let profile = analyse(&recording, profile);
        let trace = trace(&recording, &profile);
        if !self.quiet {
            // Criterion has printed a line without a line break.
            println!("\n{profile}");
        }
        let json = serde_json::to_string(&profile).map_err(|e| e.to_string());
        let written = json.and_then(|json| {
            write(folder, "profile.json", &json)?;
            write(folder, "trace.json", &trace)
        });
        if let Err(message) = written {
            eprintln!(
                "note: the profile of {benchmark} is not kept: {message}; free space, or make the folder writable"
            );
        }
    }
}

impl Profiler for CudaProfiler {
    fn start_profiling(&mut self, _benchmark_id: &str, _benchmark_dir: &Path) {
        // A benchmark that failed may have left its session behind.
        drop(self.time.inner.session.end());
        self.time.inner.session.begin(Session::default());
    }

    fn stop_profiling(&mut self, benchmark_id: &str, benchmark_dir: &Path) {
        let Some(session) = self.time.inner.session.end() else {
            return;
        };
        match session.outcome(self.time.device().is_some()) {
            Ok(recorded) => self.deliver(benchmark_id, benchmark_dir, recorded),
            Err(reason) => say(benchmark_id, &reason),
        }
    }
}

impl Drop for CudaProfiler {
    fn drop(&mut self) {
        // A benchmark that failed may have left its session behind, which keeps the gate off.
        drop(self.time.inner.session.end());
    }
}

impl CudaTime {
    /// Measures by `plainly` within a session, and records once, when the benchmark has warmed up.
    pub(crate) fn measure_in_session(
        &self,
        sample: Sample,
        routine: Routine<'_>,
        plainly: impl FnOnce(Routine<'_>) -> Result<f64, TimingError>,
    ) -> Result<f64, TimingError> {
        let before = Instant::now();
        let measured = plainly(&mut *routine);
        let elapsed = before.elapsed();
        let slot = &self.inner.session.session;
        // Taken out of its cell while the routine runs, since the routine may measure too.
        let Some(mut session) = slot.borrow_mut().take() else {
            return measured;
        };
        let measured = measured.and_then(|ns| {
            if session.is_ready(sample.iterations, elapsed) {
                let expected_ns = elapsed.as_nanos() as f64 / sample.iterations as f64;
                session.outcome = Some(match self.recorded(sample, expected_ns, routine) {
                    Ok(recorded) => Ok(recorded),
                    Err(Stop::Recording(reason)) => Err(reason),
                    // The benchmark's own.
                    Err(Stop::Benchmark(error)) => return Err(error),
                });
            }
            Ok(ns)
        });
        if let Err(error) = &measured {
            let message = error.to_string();
            let failed = NoProfile::BenchmarkFailed { message };
            session.outcome.get_or_insert(Err(failed));
        }
        *slot.borrow_mut() = Some(session);
        measured
    }

    fn recorded(
        &self,
        sample: Sample,
        expected_ns: f64,
        routine: Routine<'_>,
    ) -> Result<Recorded, Stop> {
        let plan = RecordingPlan {
            window: WINDOW,
            expected_ns,
            launches: sample.iteration.launches(),
            cold: sample.clock == Clock::EventsCold,
        };
        let mut bench = OnDevice::new(self, &KINDS, sample.clock, routine)?;
        let recording = record(&mut bench, &plan)?;
        if recording.has_nothing() {
            return Err(NoProfile::NothingOnDevice.into());
        }
        let described = described(sample.clock, bench.gpu_name(), bench.cupti.version);
        Ok((recording, described))
    }
}

/// A profile that names the clock and the machine, with a note if it differs from what the clock
/// measures.
fn described(clock: Clock, gpu: String, cupti: u32) -> Profile {
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

/// Prints why there is no profile, only once if the reason concerns every benchmark.
fn say(benchmark: &str, reason: &NoProfile) {
    static PRINTED: Mutex<Vec<NoProfile>> = Mutex::new(Vec::new());
    if !reason.concerns_every_benchmark() {
        eprintln!("\nnote: no profile of {benchmark}: {reason}");
        return;
    }
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !printed.contains(reason) {
        eprintln!("\nnote: no profile of any benchmark: {reason}");
        printed.push(reason.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_in_a_session_measures_and_says_what_there_is_to_record() {
        type Never = std::convert::Infallible;
        let time = CudaTime::host_only();
        let of = |on_cpu| {
            time.inner.session.begin(Session::default());
            for n in [1, 2, 4] {
                let ns = if on_cpu {
                    time.measure_cpu(n, || ())
                } else {
                    (time.measure(Clock::Wall, n, || Ok::<(), Never>(()))).unwrap()
                };
                assert!(ns > 0.0);
            }
            let session = time.inner.session.end().unwrap();
            assert!(!time.inner.session.is_taken());
            session.outcome(false).map(|_| ()).unwrap_err()
        };
        assert_eq!(of(true), NoProfile::NothingOnDevice);
        assert_eq!(of(false), NoProfile::NoDevice);

        time.inner.session.begin(Session::default());
        let failed = time.measure(Clock::Wall, 1, || Err("no memory"));
        assert_eq!(
            failed.unwrap_err().to_string(),
            "the routine failed: no memory"
        );
        let reason = time.inner.session.end().unwrap().outcome(false).map(|_| ());
        let message = "the routine failed: no memory".to_owned();
        assert_eq!(reason.unwrap_err(), NoProfile::BenchmarkFailed { message });
    }
}
