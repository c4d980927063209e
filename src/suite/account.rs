//! Where the time of a run goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::model::record::Activity;
use crossover_words::units;

/// Seconds by group and activity, as a run's record keeps them.
pub(super) type Account = BTreeMap<String, BTreeMap<Activity, f64>>;

/// The time of one group or benchmark, by activity.
#[derive(Debug, Default)]
pub(super) struct Spent(BTreeMap<Activity, Duration>);

impl Spent {
    pub(super) fn add(&mut self, activity: Activity, took: Duration) {
        *self.0.entry(activity).or_default() += took;
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

    /// Adds it to a group's.
    pub(super) fn enter(self, group: &str, account: &mut Account) {
        // Less is the end of a group of which nothing was measured.
        const COUNTS: Duration = Duration::from_micros(10);
        for (activity, took) in self.0.into_iter().filter(|(_, took)| *took >= COUNTS) {
            let of_group = account.entry(group.to_owned()).or_default();
            *of_group.entry(activity).or_default() += took.as_secs_f64();
        }
    }
}

/// The sums over all groups, the largest first.
pub(super) fn in_words(account: &Account) -> String {
    let mut sums: BTreeMap<Activity, f64> = BTreeMap::new();
    for (activity, seconds) in account.values().flatten() {
        *sums.entry(*activity).or_default() += seconds;
    }
    let mut sums: Vec<(Activity, f64)> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sum = |(activity, seconds): &(Activity, f64)| {
        format!("{} {}", activity.words(), units::time(seconds * 1e9))
    };
    sums.iter().map(sum).collect::<Vec<_>>().join(", ")
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
        spent.add(Activity::Analysis, Duration::ZERO);
        spent.set_up_since(begun);
        let whole = begun.elapsed().as_secs_f64();
        let mut account = Account::new();
        spent.enter("a", &mut account);
        let sum: f64 = account["a"].values().sum();
        assert!(account["a"][&Activity::Samples] >= nap.as_secs_f64());
        assert!(sum <= whole, "{sum} of {whole} s");
        account.insert("b".to_owned(), [(Activity::Samples, 90.0)].into());
        account.insert("c".to_owned(), [(Activity::Confirming, 200.0)].into());
        let words = in_words(&account);
        assert!(
            words.starts_with("confirming 200 s, samples 90.0 s"),
            "{words}"
        );
    }
}
