//! Which sizes of the profile `full` would take too long.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::cost::Cost;

/// How long an iteration of each implementation of a group takes, by size: measured, or expected.
#[derive(Default)]
pub(super) struct Pace(HashMap<(String, u64), Duration>);

impl Pace {
    pub(super) fn note(&mut self, function: String, size: u64, took: Duration) {
        self.0.insert((function, size), took);
    }

    /// How long an iteration at `size` takes by the one at the size `before`; `None` where that was not
    /// run, as when a filter selects one size.
    ///
    /// Time is taken to grow as fast as the work. An iteration that is mostly launches grows more slowly,
    /// so only the next smaller size tells enough: by a product of order 24, which takes a GPU 6 µs, one of
    /// order 16384 would take 1,900 s, and it takes 0.17.
    pub(super) fn expect(
        &mut self,
        function: &str,
        size: u64,
        before: Option<u64>,
        cost: impl Fn(u64) -> Cost,
    ) -> Option<Duration> {
        let before = before?;
        let took = self.0.get(&(function.to_owned(), before))?;
        let work = |size| work(&cost(size), size);
        let expected = took.mul_f64(work(size) / work(before));
        self.note(function.to_owned(), size, expected);
        Some(expected)
    }
}

/// What an iteration's time is taken to grow with: the larger of its operations and its bytes.
fn work(cost: &Cost, size: u64) -> f64 {
    let known = [cost.flop, cost.bytes].into_iter().flatten();
    known.fold(size as f64, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_grows_with_work_from_the_size_before() {
        let cost = |n: u64| Cost {
            flop: Some(2.0 * (n as f64).powi(3)),
            ..Cost::default()
        };
        let mut pace = Pace::default();
        let ms = Duration::from_millis;
        pace.note("cpu/product".to_owned(), 64, ms(10));
        let mut expect = |size, before| pace.expect("cpu/product", size, before, cost);
        assert_eq!(expect(128, Some(64)), Some(ms(80)));
        // One that was left out tells of the next.
        assert_eq!(expect(256, Some(128)), Some(ms(640)));
        assert_eq!(expect(2048, Some(1024)), None, "it was not run");
        assert_eq!(expect(8, None), None, "the smallest size");
    }
}
