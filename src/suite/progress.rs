//! Progress: a line for each benchmark, with its time and the remaining time.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::model::record::Activity;
use crate::suite::criterion_instance::FilteredStdout;
use crossover_results::store::curves::Benchmark;
use crossover_words::units;

/// Number of benchmarks after which the time left is estimated from them.
const ENOUGH: usize = 3;

/// Counts benchmarks, and prints the progress.
#[derive(Default)]
pub(super) struct Progress {
    total: usize,
    begun: usize,
    start: Option<Instant>,
    /// Time that went to child processes and not to benchmarks.
    confirming: Duration,
    /// Their expected remaining time.
    to_confirm: Duration,
    is_quiet: bool,
    /// Criterion's lines, where they are kept out of standard output: then each benchmark has a line
    /// here once it is measured, and else one before it begins.
    criterion: Option<FilteredStdout>,
}

impl Progress {
    pub(super) fn new(is_quiet: bool, criterion: Option<FilteredStdout>) -> Self {
        Self {
            is_quiet,
            criterion,
            ..Self::default()
        }
    }

    /// Counts benchmarks that are going to be run.
    pub(super) fn expect(&mut self, benchmarks: usize) {
        self.total += benchmarks;
    }

    /// Notes that a benchmark begins, or is skipped for a reason of its own.
    pub(super) fn begin(&mut self, id: &str) {
        self.start.get_or_insert_with(Instant::now);
        if !self.is_quiet && self.criterion.is_none() {
            eprintln!("{}", self.line(self.begun, id));
        }
        self.begun += 1;
    }

    /// Prints the time of a benchmark.
    pub(super) fn measured(&mut self, id: &str, result: &Benchmark) {
        let unsteady = result.unsteady.as_ref().map_or("", |_| ", unsteady");
        let text = format!("{id}: {}{unsteady}", units::time(result.median_ns));
        let line = if self.is_quiet {
            text
        } else {
            self.line(self.begun.saturating_sub(1), text)
        };
        if let Some(criterion) = &mut self.criterion {
            criterion.print(&line);
        }
    }

    /// Notes what child processes took, and what those that are still to come may take.
    pub(super) fn confirmed(&mut self, took: Duration, to_come: Duration) {
        self.confirming += took;
        self.to_confirm = to_come;
    }

    /// Ends the lines of benchmarks: later output goes to standard output itself.
    pub(super) fn end(&mut self) {
        self.criterion = None;
    }

    /// `[12/181] a/cpu/b/1, about 6 min left`: what the benchmark with the index `at` is said with.
    fn line(&self, at: usize, what: impl Display) -> String {
        let total = self.total.max(at + 1);
        let place = format!("[{}/{total}] {what}", at + 1);
        let elapsed = self.start.map_or(Duration::ZERO, |start| start.elapsed());
        let each = elapsed.saturating_sub(self.confirming) / self.begun.max(1) as u32;
        let left = each * (total - self.begun.min(total)) as u32 + self.to_confirm;
        if self.begun < ENOUGH {
            place
        } else {
            format!("{place}, {}", left_in_words(left))
        }
    }
}

/// `about 40 s left`.
pub(super) fn left_in_words(left: Duration) -> String {
    let seconds = left.as_secs_f64();
    if seconds < 90.0 {
        format!("about {seconds:.0} s left")
    } else {
        format!("about {:.0} min left", seconds / 60.0)
    }
}

/// The time of a run or a benchmark, by activity.
#[derive(Debug, Default)]
pub(super) struct Spent(BTreeMap<Activity, Duration>);

impl Spent {
    pub(super) fn add(&mut self, activity: Activity, took: Duration) {
        if !took.is_zero() {
            *self.0.entry(activity).or_default() += took;
        }
    }

    /// Runs `work`, and adds its time.
    pub(super) fn on<T>(&mut self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let value = work();
        self.add(activity, begun.elapsed());
        value
    }

    /// Adds the remaining time since `begun` as set-up.
    pub(super) fn set_up_since(&mut self, begun: Instant) {
        self.add(
            Activity::SetUp,
            begun.elapsed().saturating_sub(self.whole()),
        );
    }

    pub(super) fn whole(&self) -> Duration {
        self.0.values().sum()
    }

    /// Adds the time of a benchmark.
    pub(super) fn include(&mut self, of: Self) {
        of.0.into_iter()
            .for_each(|(activity, took)| self.add(activity, took));
    }

    pub(super) fn seconds(&self) -> BTreeMap<Activity, f64> {
        let seconds = |(activity, took): (&Activity, &Duration)| (*activity, took.as_secs_f64());
        self.0.iter().map(seconds).collect()
    }

    /// The activities, the longest first.
    pub(super) fn in_words(&self) -> String {
        let mut activities: Vec<(&Activity, &Duration)> = self.0.iter().collect();
        activities.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        let one = |(activity, took): &(&Activity, &Duration)| {
            format!(
                "{} {}",
                activity.words(),
                units::time(took.as_nanos() as f64)
            )
        };
        activities.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_place_and_time_left() {
        let line = |begun: usize, elapsed, confirming, to_confirm| {
            let progress = Progress {
                total: 181,
                begun,
                start: Instant::now().checked_sub(Duration::from_secs(elapsed)),
                confirming: Duration::from_secs(confirming),
                to_confirm: Duration::from_secs(to_confirm),
                ..Progress::default()
            };
            progress.line(begun, "a/cpu/b/1")
        };
        assert_eq!(line(0, 0, 0, 0), "[1/181] a/cpu/b/1");
        assert_eq!(line(11, 22, 0, 0), "[12/181] a/cpu/b/1, about 6 min left");
        assert_eq!(line(11, 33, 11, 60), "[12/181] a/cpu/b/1, about 7 min left");
        assert_eq!(line(180, 360, 0, 0), "[181/181] a/cpu/b/1, about 2 s left");
        assert_eq!(line(200, 400, 0, 0), "[201/201] a/cpu/b/1, about 2 s left");
    }

    #[test]
    fn each_second_is_counted_once() {
        let begun = Instant::now();
        let mut spent = Spent::default();
        let nap = Duration::from_millis(3);
        spent.on(Activity::Samples, || std::thread::sleep(nap));
        spent.set_up_since(begun);
        let whole = begun.elapsed();
        assert!(spent.0[&Activity::Samples] >= nap);
        assert!(spent.0.values().sum::<Duration>() <= whole);
        let mut run = Spent::default();
        run.add(Activity::Samples, Duration::from_secs(90));
        run.include(spent);
        assert!(run.seconds()[&Activity::Samples] >= 90.003);
    }
}
