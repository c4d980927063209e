//! Where the time of a run goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::model::record::Activity;
use crossover_words::units;

/// The time of a run or a benchmark, by activity.
#[derive(Debug, Default)]
pub(super) struct Spent(BTreeMap<Activity, Duration>);

impl Spent {
    pub(super) fn add(&mut self, activity: Activity, took: Duration) {
        if !took.is_zero() {
            *self.0.entry(activity).or_default() += took;
        }
    }

    /// Runs it, and adds its time.
    pub(super) fn on<T>(&mut self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let value = work();
        self.add(activity, begun.elapsed());
        value
    }

    /// The rest of what was begun then is set-up.
    pub(super) fn set_up_since(&mut self, begun: Instant) {
        let known = self.0.values().sum();
        self.add(Activity::SetUp, begun.elapsed().saturating_sub(known));
    }

    /// Adds that of a benchmark.
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
        let mut all: Vec<(&Activity, &Duration)> = self.0.iter().collect();
        all.sort_by_key(|(_, took)| std::cmp::Reverse(*took));
        let one = |(activity, took): &(&Activity, &Duration)| {
            format!(
                "{} {}",
                activity.words(),
                units::time(took.as_nanos() as f64)
            )
        };
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        run.add(Activity::Confirming, Duration::from_secs(200));
        run.add(Activity::Samples, Duration::from_secs(90));
        assert_eq!(run.in_words(), "confirming 200 s, samples 90.0 s");
        run.include(spent);
        assert!(run.seconds()[&Activity::Samples] >= 90.003);
    }
}
