//! The order in which a benchmark is recorded, apart from the CUDA and CUPTI calls that do it, so
//! that it can be tested without a GPU.

use std::collections::BTreeSet;
use std::time::Duration;

use super::absence::NoProfile;
use crate::error::TimingError;
use crossover_profile::Activity;
use crossover_profile::recording::{Iteration, RangeRecord, Raw, Recording, Window};

/// How long iterations are recorded back to back.
pub(super) const WINDOW: Duration = Duration::from_millis(100);
/// Upper bound on the records of work on the device in that time.
const RECORDS: u64 = 10_000;
/// Iterations that are recorded in any case, if they take no longer than [`ENOUGH`]: the median of
/// fewer is unreliable.
const LEAST: u64 = 10;
/// Single iterations, where they take no longer than [`ENOUGH`].
const SINGLES: u64 = 5;
/// Time that the two may take.
const ENOUGH: Duration = Duration::from_secs(1);
/// Two iterations in a row must have as many kernels, within so many, before an [`activity`] begins.
const WARM_UP: u32 = 50;

/// Pieces of work that an error names.
const NAMED: usize = 5;

/// The number of the range of the marks at both ends of a window.
pub(super) const MARKS: u64 = u64::MAX;

/// Why a recording ended early.
#[derive(Debug)]
pub(super) enum Stop {
    /// The benchmark failed, and ends.
    Benchmark(TimingError),
    /// The recording failed; the benchmark goes on without.
    Recording(NoProfile),
}

impl From<NoProfile> for Stop {
    fn from(reason: NoProfile) -> Self {
        Stop::Recording(reason)
    }
}

/// The steps of a recording, on a benchmark and a device.
pub(super) trait Bench {
    /// Enqueues one iteration.
    fn run(&mut self) -> Result<(), Stop>;
    /// Runs one iteration between two [marks](MARKS), behind the gate where its clock has one. Returns `false` if
    /// the gate could not hold it.
    fn run_marked(&mut self) -> Result<bool, Stop>;
    /// Waits until the device is idle.
    fn synchronize(&mut self) -> Result<(), Stop>;
    /// Evicts the L2 cache.
    fn evict(&mut self) -> Result<(), Stop>;
    /// Now, on the clock of the records.
    fn now(&mut self) -> Result<u64, Stop>;
    /// Switches recording on.
    fn start(&mut self) -> Result<(), Stop>;
    /// Hands over what was recorded since this was last called. The device must be idle.
    fn collect(&mut self) -> Result<Raw, Stop>;
    /// Switches recording off, also after a failure, and returns the ranges that were entered.
    fn stop(&mut self) -> Vec<RangeRecord>;
}

/// How a benchmark is to be recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordingPlan {
    /// How long iterations are recorded back to back.
    pub(super) window: Duration,
    /// Approximate time of an iteration.
    pub(super) expected_ns: f64,
    /// Launches of an iteration.
    pub(super) launches: u32,
    /// Each iteration starts from an idle device and an evicted L2 cache.
    pub(super) cold: bool,
}

/// Records a benchmark: some iterations without recording, so that its cost is known; single
/// iterations from an idle device; and the window of iterations back to back.
pub(super) fn record(bench: &mut impl Bench, plan: &RecordingPlan) -> Result<Recording, Stop> {
    let (recording, ranges) = stopped(bench, |bench| recorded(bench, plan))?;
    Ok(Recording {
        ranges,
        ..recording
    })
}

/// Records by `body`, and returns the ranges that were entered too.
fn stopped<B: Bench, T>(
    bench: &mut B,
    body: impl FnOnce(&mut B) -> Result<T, Stop>,
) -> Result<(T, Vec<RangeRecord>), Stop> {
    let recorded = body(bench);
    let ranges = bench.stop();
    if recorded.is_err() {
        // The device is left idle. The failure that led here is the one to report.
        let _ = bench.synchronize();
    }
    Ok((recorded?, ranges))
}

/// The activity of `iterations` back to back, in batches whose records fit, after a warm-up of single iterations.
pub(super) fn activity(bench: &mut impl Bench, iterations: u64) -> Result<Activity, Stop> {
    let (activity, _) = stopped(bench, |bench| {
        begin(bench)?;
        let mut warm_up = batch(bench, 1)?;
        for _ in 1..WARM_UP {
            let before = std::mem::replace(&mut warm_up, batch(bench, 1)?);
            if before.kernels == warm_up.kernels {
                break;
            }
        }
        let fitting = |batch: &Activity| {
            let records = (batch.kernels + batch.copies).div_ceil(batch.iterations);
            (RECORDS / records).max(1)
        };
        let mut activity = batch(bench, iterations.min(fitting(&warm_up)))?;
        while activity.iterations < iterations {
            let rest = iterations - activity.iterations;
            activity.append(batch(bench, rest.min(fitting(&activity)))?);
        }
        activity.is_steady &= activity.kernels == warm_up.kernels * iterations;
        Ok(activity)
    })?;
    Ok(activity)
}

/// Begins to record. CUPTI sets itself up at the first launches that it sees: their records do not count.
fn begin(bench: &mut impl Bench) -> Result<(), Stop> {
    bench.synchronize()?;
    bench.start()?;
    bench.run()?;
    bench.synchronize()?;
    bench.collect().map(drop)
}

/// Requires that an iteration has no work outside of its window.
pub(super) fn check(bench: &mut impl Bench) -> Result<(), Stop> {
    let (names, _) = stopped(bench, |bench| {
        begin(bench)?;
        let is_held = bench.run_marked()?;
        bench.synchronize()?;
        let raw = bench.collect()?;
        let outside = raw.outside(MARKS).into_iter().filter(|_| is_held);
        let names = outside.map(|record| record.work.to_string());
        Ok(names.collect::<BTreeSet<_>>())
    })?;
    if names.is_empty() {
        return Ok(());
    }
    let more = (names.len() > NAMED).then(|| "others".to_owned());
    let shown: Vec<String> = names.into_iter().take(NAMED).chain(more).collect();
    let work = format!(
        "{} of one iteration by itself began before the timed window or ended after it",
        shown.join(", ")
    );
    Err(Stop::Benchmark(TimingError::WorkElsewhere { work }))
}

/// Runs iterations back to back on idle devices, and waits for them.
fn batch(bench: &mut impl Bench, iterations: u64) -> Result<Activity, Stop> {
    (0..iterations).try_for_each(|_| bench.run())?;
    bench.synchronize()?;
    let raw = bench.collect()?;
    let activity = Activity::of(&raw.work, iterations);
    let (lost, unfinished) = (raw.dropped, raw.untimed);
    if lost + unfinished > 0 {
        let error = TimingError::RecordsLost { lost, unfinished };
        return Err(Stop::Benchmark(error));
    }
    if activity.kernels < iterations {
        return Err(Stop::Benchmark(TimingError::NoKernel));
    }
    Ok(activity)
}

fn recorded(bench: &mut impl Bench, plan: &RecordingPlan) -> Result<Recording, Stop> {
    let count = iterations(plan, plan.expected_ns, u64::from(plan.launches));
    let ns = several(bench, count, plan.cold)?.nanoseconds() / count as f64;
    begin(bench)?;
    let mut singles = Vec::new();
    for _ in 0..fitting(ENOUGH, ns).clamp(1, SINGLES) {
        singles.push(several(bench, 1, plan.cold)?);
    }
    let mut raw = bench.collect()?;
    let of_each = (raw.work.len() / singles.len()) as u64;
    let count = iterations(plan, ns, of_each.max(plan.launches.into()));
    let steady = several(bench, count, plan.cold)?;
    raw.append(bench.collect()?);
    Ok(Recording {
        steady,
        singles,
        raw,
        unrecorded_ns: ns,
        ..Recording::default()
    })
}

/// Runs `count` iterations back to back, from an idle device until it is idle again. Cold ones run
/// each by itself, after the L2 cache was evicted.
fn several(bench: &mut impl Bench, count: u64, cold: bool) -> Result<Window, Stop> {
    let mut iterations = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
    bench.synchronize()?;
    let mut start = bench.now()?;
    for i in 0..count {
        if cold {
            bench.evict()?;
            bench.synchronize()?;
            start = bench.now()?;
        }
        bench.run()?;
        let end = bench.now()?;
        let idle = if cold || i + 1 == count {
            bench.synchronize()?;
            Some(bench.now()?)
        } else {
            None
        };
        iterations.push(Iteration { start, end, idle });
        start = end;
    }
    Ok(Window { iterations })
}

/// How many iterations of `ns` nanoseconds and `records` records each the limits allow.
fn iterations(plan: &RecordingPlan, ns: f64, records: u64) -> u64 {
    let by_time = fitting(plan.window, ns).max(1);
    let by_records = (RECORDS / records.max(1)).max(1);
    let least = if fitting(ENOUGH, ns) >= LEAST {
        LEAST
    } else {
        1
    };
    by_time.min(by_records).max(least)
}

/// How many iterations of `ns` nanoseconds fit in `time`.
fn fitting(time: Duration, ns: f64) -> u64 {
    (time.as_nanos() as f64 / ns.max(1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_profile::recording::planted::{call, kernel, work};

    /// A benchmark of two kernels of 1,000 ns each that takes 100 ns to queue, and a device that
    /// runs them one after the other.
    #[derive(Default)]
    struct Fake {
        now: u64,
        busy_until: u64,
        recording: bool,
        recorded: Raw,
        steps: Vec<&'static str>,
        fail_at: Option<usize>,
        correlation: u32,
        /// A kernel between marks is on another stream and begins before them, and whether the gate held it.
        beside: Option<bool>,
        /// Its iterations are the host's alone.
        is_on_host: bool,
        /// Further kernels of the next iteration; each iteration has one less.
        tuning: u32,
    }

    impl Fake {
        fn step(&mut self, name: &'static str) -> Result<(), Stop> {
            self.steps.push(name);
            if self.fail_at == Some(self.steps.len() - 1) {
                return Err(Stop::Benchmark(TimingError::NotANumber));
            }
            Ok(())
        }

        fn count(&self, name: &str) -> usize {
            self.steps.iter().filter(|s| **s == name).count()
        }
    }

    impl Bench for Fake {
        fn run(&mut self) -> Result<(), Stop> {
            self.step("run")?;
            self.now += 100 * u64::from(self.is_on_host);
            let kernels = 2 + self.tuning;
            self.tuning = self.tuning.saturating_sub(1);
            for _ in 0..if self.is_on_host { 0 } else { kernels } {
                let called = self.now;
                self.now += 50;
                self.correlation += 1;
                let start = self.busy_until.max(self.now);
                self.busy_until = start + 1_000;
                if self.recording {
                    let call = call("cuLaunchKernel", called, self.now, self.correlation);
                    self.recorded.calls.push(call);
                    let kernel = work(kernel("k"), start, start + 1_000, self.correlation);
                    self.recorded.work.push(kernel);
                }
            }
            Ok(())
        }
        fn run_marked(&mut self) -> Result<bool, Stop> {
            self.run()?;
            if let (Some(is_held), Some(beside)) = (self.beside, self.recorded.work.last_mut()) {
                beside.stream += 1;
                for (start, correlation) in [(beside.start + 1, 1_001), (beside.end, 1_002)] {
                    let mark = work(kernel("mark"), start, start + 1, correlation);
                    self.recorded.work.push(mark);
                    self.recorded.in_range.push((correlation, MARKS));
                }
                return Ok(is_held);
            }
            Ok(true)
        }
        fn synchronize(&mut self) -> Result<(), Stop> {
            self.step("synchronize")?;
            let called = self.now + 1;
            self.now = self.now.max(self.busy_until) + 5;
            if self.recording {
                self.correlation += 1;
                let call = call("cuCtxSynchronize", called, self.now, self.correlation);
                self.recorded.calls.push(call);
            }
            Ok(())
        }
        fn evict(&mut self) -> Result<(), Stop> {
            self.step("evict")?;
            self.busy_until = self.busy_until.max(self.now) + 500;
            Ok(())
        }
        fn now(&mut self) -> Result<u64, Stop> {
            self.step("now")?;
            Ok(self.now)
        }
        fn start(&mut self) -> Result<(), Stop> {
            self.step("start")?;
            self.recording = true;
            Ok(())
        }
        fn collect(&mut self) -> Result<Raw, Stop> {
            assert!(self.now >= self.busy_until, "collected from a busy device");
            self.step("collect")?;
            Ok(std::mem::take(&mut self.recorded))
        }
        fn stop(&mut self) -> Vec<RangeRecord> {
            self.steps.push("stop");
            self.recording = false;
            Vec::new()
        }
    }

    fn plan(window_ns: u64) -> RecordingPlan {
        RecordingPlan {
            window: Duration::from_nanos(window_ns),
            expected_ns: 2_000.0,
            launches: 2,
            cold: false,
        }
    }

    #[test]
    fn a_window_of_whole_iterations_back_to_back_and_five_single_ones() {
        let mut bench = Fake::default();
        let recording = record(&mut bench, &plan(100_000)).unwrap();
        // 100,000 ns of 2,001 ns each.
        assert_eq!(recording.steady.iterations.len(), 49);
        assert_eq!(recording.singles.len(), 5);
        let part = recording.part(&recording.steady);
        assert_eq!((part.work.len(), part.calls.len()), (98, 98));
        assert_eq!(part.spans.len(), 1);
        assert_eq!(part.spans[0].1 - part.spans[0].0, 98 * 1_000 + 50);
        for single in &recording.singles {
            assert_eq!(recording.part(single).work.len(), 2);
        }
        // 50 iterations without recording, 1 to settle, 5 single ones, the window.
        assert_eq!(bench.count("run"), 50 + 1 + 5 + 49);
        assert!(
            (recording.unrecorded_ns - 2_001.1).abs() < 0.01,
            "{}",
            recording.unrecorded_ns
        );
        // Nothing waits between iterations of the window.
        let last = bench.steps.iter().rposition(|s| *s == "collect").unwrap();
        let end = bench.steps[last - 6..].join(" ");
        assert_eq!(end, "run now run now synchronize now collect stop");
        assert!(!bench.recording);
    }

    #[test]
    fn the_waits_of_the_recorder_are_not_the_benchmarks() {
        let mut bench = Fake {
            is_on_host: true,
            ..Fake::default()
        };
        let recording = record(&mut bench, &plan(10_000)).unwrap();
        assert!(!recording.raw.calls.is_empty());
        assert!(recording.has_nothing());
        let with_kernels = record(&mut Fake::default(), &plan(10_000)).unwrap();
        assert!(!with_kernels.has_nothing());
    }

    #[test]
    fn records_limit_the_window_by_what_came() {
        let mut bench = Fake::default();
        let few_launches = RecordingPlan {
            launches: 1,
            ..plan(100_000_000)
        };
        let recording = record(&mut bench, &few_launches).unwrap();
        assert_eq!(recording.steady.iterations.len(), 5_000);
    }

    #[test]
    fn slow_iterations_are_few() {
        let of = |ns: f64| {
            let plan = RecordingPlan {
                expected_ns: ns,
                ..plan(100_000_000)
            };
            iterations(&plan, ns, 2)
        };
        assert_eq!(of(1e3), 5_000);
        assert_eq!(of(1e6), 100);
        assert_eq!(of(5e7), 10, "at least ten within a second");
        assert_eq!(of(3e8), 1);
        assert_eq!(of(9e9), 1);
    }

    #[test]
    fn cold_iterations_stand_alone_and_the_eviction_is_outside() {
        let mut bench = Fake::default();
        let cold = RecordingPlan {
            cold: true,
            ..plan(40_000)
        };
        let recording = record(&mut bench, &cold).unwrap();
        let part = recording.part(&recording.steady);
        assert_eq!(part.spans.len(), recording.steady.iterations.len());
        assert!(part.spans.iter().all(|(start, end)| end - start == 2_050));
        // But for the one at which CUPTI sets itself up.
        assert_eq!(bench.count("evict"), bench.count("run") - 1);
    }

    #[test]
    fn an_activity_is_of_batches_that_fit_after_two_iterations_alike() {
        let mut bench = Fake {
            tuning: 3,
            ..Fake::default()
        };
        let recorded = activity(&mut bench, 6_000).unwrap();
        assert_eq!((recorded.kernels, recorded.copies), (12_000, 0));
        assert_eq!((recorded.busy_ns, recorded.overlap_ns), (12_000_000, 0));
        assert!(recorded.is_steady);
        let runs: Vec<usize> = (bench.steps.split(|step| *step == "collect"))
            .map(|batch| batch.iter().filter(|step| **step == "run").count())
            .collect();
        // Iterations with five, four, three, two and two kernels, and 10,000 records in a batch.
        assert_eq!(runs, [1, 1, 1, 1, 1, 5_000, 1_000, 0]);
        let first = ["synchronize", "start", "run", "synchronize", "collect"];
        assert!(bench.steps.starts_with(&first) && bench.steps.ends_with(&["collect", "stop"]));

        let mut tunes = Fake {
            tuning: 60,
            ..Fake::default()
        };
        assert!(!activity(&mut tunes, 3).unwrap().is_steady);
    }

    #[test]
    fn what_the_gate_could_not_hold_is_not_judged() {
        for is_held in [true, false] {
            let mut bench = Fake {
                beside: Some(is_held),
                ..Fake::default()
            };
            assert_eq!(check(&mut bench).is_err(), is_held);
        }
    }

    #[test]
    fn a_failure_anywhere_switches_recording_off_and_leaves_the_device_idle() {
        type Run = fn(&mut Fake) -> Result<(), Stop>;
        let runs: [Run; 3] = [
            check,
            |bench| record(bench, &plan(20_000)).map(drop),
            |bench| activity(bench, 3).map(drop),
        ];
        for run in runs {
            let mut clean = Fake::default();
            run(&mut clean).unwrap();
            let stop = clean.steps.len() - 1;
            for at in 0..stop {
                let mut bench = Fake {
                    fail_at: Some(at),
                    ..Fake::default()
                };
                run(&mut bench).unwrap_err();
                assert!(!bench.recording);
                assert_eq!(&bench.steps[at + 1..], ["stop", "synchronize"]);
            }
        }
    }
}
