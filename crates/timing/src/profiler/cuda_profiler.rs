//! The profiler that Criterion drives.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use criterion::profiler::Profiler;

use super::absence::NoProfile;
use super::recorder::WINDOW;
use super::session::{Recorded, Session};
use super::version;
use crate::cuda_time::CudaTime;
use crate::on_criterion::write::write;
use crossover_profile::{About, Profile, analyse, trace};
use crossover_words::Clock;

/// Records where the time of a benchmark goes when Criterion runs with `--profile-time`.
///
/// Of each benchmark that a method of [`CudaBencherExt`](crate::CudaBencherExt), or
/// [`CudaTime::measure`], times, some iterations are recorded once the benchmark has warmed up:
/// back to back as the benchmark queues them, and a few one by one from an idle device. The gate
/// is off from then until the benchmark ends. The profile is printed, and written to
/// `profile.json` and `trace.json` in the folder that Criterion names.
///
/// Where nothing can be recorded, one line says why ([`NoProfile`]), and the benchmark runs on.
///
/// ```no_run
/// use crossover_timing::criterion::Criterion;
/// use crossover_timing::{CudaTime, profiler::CudaProfiler};
///
/// let (time, _) = CudaTime::new_or_host_only(0);
/// let criterion = Criterion::default()
///     .with_measurement(time.clone())
///     .with_profiler(CudaProfiler::new(&time))
///     .configure_from_args();
/// ```
pub struct CudaProfiler {
    time: CudaTime,
    window: Duration,
    quiet: bool,
    on_profile: Vec<OnProfile>,
    on_none: Vec<OnNone>,
}

type OnProfile = Box<dyn FnMut(&Profile, &Path)>;
type OnNone = Box<dyn FnMut(&str, &NoProfile)>;

impl fmt::Debug for CudaProfiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaProfiler")
            .field("time", &self.time)
            .field("window", &self.window)
            .field("quiet", &self.quiet)
            .finish_non_exhaustive()
    }
}

impl CudaProfiler {
    /// Profiles the benchmarks that `time`, or a clone of it, times.
    pub fn new(time: &CudaTime) -> Self {
        Self {
            time: time.clone(),
            window: WINDOW,
            quiet: false,
            on_profile: Vec::new(),
            on_none: Vec::new(),
        }
    }

    /// For how long iterations are recorded back to back; 100 ms unless set. They are recorded
    /// whole: at least one, and at least ten where ten take no more than a second.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Does not print profiles. What keeps a benchmark from having one is still printed.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Calls `act` with each profile and the folder that it was written to.
    pub fn on_profile(mut self, act: impl FnMut(&Profile, &Path) + 'static) -> Self {
        self.on_profile.push(Box::new(act));
        self
    }

    /// Calls `act` with the id of each benchmark that has no profile and the reason, which is then
    /// not printed.
    pub fn on_no_profile(mut self, act: impl FnMut(&str, &NoProfile) + 'static) -> Self {
        self.on_none.push(Box::new(act));
        self
    }

    fn deliver(&mut self, benchmark: &str, folder: &Path, recorded: Recorded) {
        let (profile, trace) = made_of(benchmark, recorded);
        if !self.quiet {
            // Criterion has printed a line without its end.
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
        for act in &mut self.on_profile {
            act(&profile, folder);
        }
    }
}

/// The profile of what was recorded, and its trace.
fn made_of(benchmark: &str, recorded: Recorded) -> (Profile, String) {
    let Recorded {
        recording,
        clock,
        gpu,
        cupti,
    } = recorded;
    let about = About {
        benchmark: benchmark.to_owned(),
        clock: clock.name().to_owned(),
        gpu,
        cupti: version::name(cupti),
        recorded: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        notes: notes(clock),
    };
    let profile = analyse(&recording, about);
    let trace = trace(&recording, &profile);
    (profile, trace)
}

/// How what is profiled differs from what the clock measures.
fn notes(clock: Clock) -> Vec<String> {
    let notes: &[&str] = match clock {
        Clock::Wall | Clock::Events => &[],
        Clock::EventsGated => &[
            "the gate is off while profiling: launches follow each other as the host makes them, so the device may \
             idle where behind the gate it does not",
        ],
        Clock::EventsCold => &[
            "each iteration was recorded by itself, from an idle device with the L2 cache evicted; the gate is off \
             while profiling, so the time until its first launch arrives is part of it",
        ],
        Clock::Submit => &[
            "the submit clock measures what queueing takes; this profile has the work on the device too",
        ],
    };
    notes.iter().map(|n| (*n).to_owned()).collect()
}

impl Profiler for CudaProfiler {
    fn start_profiling(&mut self, _benchmark_id: &str, _benchmark_dir: &Path) {
        // A benchmark that failed may have left its session behind.
        drop(self.time.session().end());
        let session = Session::new(self.window);
        self.time.session().begin(session);
    }

    fn stop_profiling(&mut self, benchmark_id: &str, benchmark_dir: &Path) {
        let Some(session) = self.time.session().end() else {
            return;
        };
        match session.outcome(self.time.device().is_some()) {
            Ok(recorded) => self.deliver(benchmark_id, benchmark_dir, recorded),
            Err(reason) if self.on_none.is_empty() => say(benchmark_id, &reason),
            Err(reason) => {
                for act in &mut self.on_none {
                    act(benchmark_id, &reason);
                }
            }
        }
    }
}

impl Drop for CudaProfiler {
    fn drop(&mut self) {
        // A benchmark that failed may have left its session behind, which keeps the gate off.
        drop(self.time.session().end());
    }
}

/// Prints why there is no profile; once in a process where that concerns every benchmark.
fn say(benchmark: &str, reason: &NoProfile) {
    static SAID: Mutex<Vec<NoProfile>> = Mutex::new(Vec::new());
    if !reason.concerns_every_benchmark() {
        eprintln!("\nnote: no profile of {benchmark}: {reason}");
        return;
    }
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(reason) {
        eprintln!("\nnote: no profile of any benchmark: {reason}");
        said.push(reason.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_profile::recording::planted::{call, kernel, window, work};
    use crossover_profile::recording::{Raw, Recording};

    #[test]
    fn a_recording_becomes_a_profile_and_two_files() {
        let recorded = Recorded {
            recording: Recording {
                steady: window(&[(0, 10, Some(400))]),
                singles: vec![window(&[(500, 510, Some(900))])],
                raw: Raw {
                    calls: vec![
                        call("cuLaunchKernel", 1, 5, 1),
                        call("cuLaunchKernel", 501, 505, 2),
                    ],
                    work: vec![
                        work(kernel("k"), 10, 390, 1),
                        work(kernel("k"), 510, 890, 2),
                    ],
                    ..Raw::default()
                },
                unrecorded_ns: 390.0,
                ..Recording::default()
            },
            clock: Clock::EventsGated,
            gpu: "NVIDIA H200".to_owned(),
            cupti: 130_001,
        };
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("profile");
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let heard = seen.clone();
        let mut profiler = CudaProfiler::new(&CudaTime::host_only())
            .quiet()
            .on_profile(move |profile, folder| {
                heard
                    .borrow_mut()
                    .push((profile.clone(), folder.to_owned()));
            });
        profiler.deliver("group/gpu/k/1", &folder, recorded);
        let seen = seen.borrow();
        let (profile, at) = &seen[0];
        assert_eq!(at, &folder);
        assert_eq!(profile.summary.sentence, "one kernel, 100 %");
        assert_eq!(
            (profile.clock.as_str(), profile.cupti.as_str()),
            ("events-gated", "13.0")
        );
        assert!(
            profile.notes[0].contains("the gate is off"),
            "{:?}",
            profile.notes
        );
        assert!(
            profile.recorded.ends_with('Z') && profile.recorded.len() == 20,
            "{}",
            profile.recorded
        );
        let text = std::fs::read_to_string(folder.join("profile.json")).unwrap();
        assert_eq!(&serde_json::from_str::<Profile>(&text).unwrap(), profile);
        let trace = std::fs::read_to_string(folder.join("trace.json")).unwrap();
        assert!(trace.contains("traceEvents"), "{trace}");
    }

    #[test]
    fn a_measurement_in_a_session_measures_and_says_what_there_is_to_record() {
        type Never = std::convert::Infallible;
        let time = CudaTime::host_only();
        let of = |on_cpu| {
            time.session().begin(Session::new(WINDOW));
            for n in [1, 2, 4] {
                let ns = match on_cpu {
                    true => time.measure_cpu(n, || ()),
                    false => (time.measure(Clock::Wall, n, 1, || Ok::<(), Never>(()))).unwrap(),
                };
                assert!(ns > 0.0);
            }
            let session = time.session().end().unwrap();
            assert!(!time.session().is_taken());
            session.outcome(false).map(|_| ()).unwrap_err()
        };
        assert_eq!(of(true), NoProfile::NothingOnDevice);
        assert_eq!(of(false), NoProfile::NoDevice);

        time.session().begin(Session::new(WINDOW));
        let failed = time.measure(Clock::Wall, 1, 1, || Err("no memory"));
        assert_eq!(failed.unwrap_err().to_string(), "no memory");
        let reason = time.session().end().unwrap().outcome(false).map(|_| ());
        let message = "no memory".to_owned();
        assert_eq!(reason.unwrap_err(), NoProfile::BenchmarkFailed { message });
    }
}
