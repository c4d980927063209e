//! Which sizes would take too long, without running them.

use std::collections::HashMap;
use std::time::Duration;

use crate::model::cost::Cost;
use crossover_words::units;

/// How long an iteration of each implementation of a group took, at the largest size so far. The
/// profile `full` leaves sizes out by it.
#[derive(Default)]
pub(super) struct Pace(HashMap<String, Seen>);

enum Seen {
    /// An iteration with so much work took so long.
    Iteration {
        work: f64,
        took: Duration,
    },
    TimesItself,
}

/// What is expected of a size.
#[derive(Debug, PartialEq)]
pub(super) enum Forecast {
    /// It can be run.
    Runs,
    /// It cannot, for this reason, which is a sentence.
    TooLong(String),
    /// What was run is too small to tell. An iteration at this size is not too long: after it, more
    /// is known.
    RunFirst(u64),
}

impl Pace {
    /// Keeps how long an iteration of `function` took.
    pub(super) fn note(&mut self, function: String, cost: &Cost, size: u64, took: Duration) {
        let work = work(cost, size);
        self.0.insert(function, Seen::Iteration { work, took });
    }

    /// Keeps that `function` times itself: how long that takes does not follow from its cost.
    pub(super) fn note_times_itself(&mut self, function: String) {
        self.0.insert(function, Seen::TimesItself);
    }

    /// Whether an iteration of `function` at `size` takes longer than `limit`.
    ///
    /// Time is taken to grow as fast as the work, which is too fast where an iteration is mostly
    /// launches: a product of order 24 takes a GPU 6 µs, one of order 16384 by that 1,900 s, and not
    /// 0.17. So where the expected time is too long, the largest of `smaller` that is not too long
    /// is run first.
    pub(super) fn forecast(
        &self,
        function: &str,
        size: u64,
        smaller: &[u64],
        cost: impl Fn(u64) -> Cost,
        limit: Duration,
    ) -> Forecast {
        let (seen, took) = match self.0.get(function) {
            Some(Seen::TimesItself) => return Forecast::Runs,
            Some(Seen::Iteration { work, took }) => (*work, *took),
            // Where the first size that a filter selects is a large one.
            None => {
                let smallest = smaller.iter().min();
                return smallest.map_or(Forecast::Runs, |size| Forecast::RunFirst(*size));
            }
        };
        let work = |size| work(&cost(size), size);
        let expected = |size| took.mul_f64(work(size) / seen);
        if expected(size) <= limit {
            return Forecast::Runs;
        }
        let larger_than_seen = smaller.iter().copied().filter(|size| work(*size) > seen);
        match larger_than_seen
            .filter(|size| expected(*size) <= limit)
            .max()
        {
            Some(step) => Forecast::RunFirst(step),
            None => Forecast::TooLong(format!(
                "one iteration would take about {}, more than the {} that a benchmark may; \
                 a faster machine runs it",
                units::time(expected(size).as_nanos() as f64),
                units::time(limit.as_nanos() as f64)
            )),
        }
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

    const LIMIT: Duration = Duration::from_secs(1);
    const FUNCTION: &str = "gpu/product";

    fn cost(n: u64) -> Cost {
        Cost {
            flop: Some(2.0 * (n as f64).powi(3)),
            ..Cost::default()
        }
    }

    /// Asks for a size as a run does; returns whether it is run, and the sizes run before it.
    fn ask(pace: &mut Pace, size: u64, took: impl Fn(u64) -> Duration) -> (bool, Vec<u64>) {
        let smaller: Vec<u64> = (0..16).map(|k| 1 << k).filter(|n| *n < size).collect();
        let mut before = Vec::new();
        loop {
            match pace.forecast(FUNCTION, size, &smaller, cost, LIMIT) {
                Forecast::Runs => return (true, before),
                Forecast::TooLong(_) => return (false, before),
                Forecast::RunFirst(step) => {
                    pace.note(FUNCTION.to_owned(), &cost(step), step, took(step));
                    before.push(step);
                }
            }
        }
    }

    #[test]
    fn a_size_that_would_take_too_long_is_named() {
        let mut pace = Pace::default();
        pace.note(FUNCTION.to_owned(), &cost(512), 512, LIMIT / 8);
        let forecast = |n| pace.forecast(FUNCTION, n, &[256, 512, 1024], cost, LIMIT);
        assert_eq!(forecast(1024), Forecast::Runs);
        // By the size before, not by one that is much smaller.
        assert_eq!(forecast(2048), Forecast::RunFirst(1024));
        pace.note(FUNCTION.to_owned(), &cost(1024), 1024, LIMIT);
        let Forecast::TooLong(reason) =
            pace.forecast(FUNCTION, 2048, &[256, 512, 1024], cost, LIMIT)
        else {
            panic!("8 s are not too long");
        };
        assert!(reason.contains("about 8.00 s"), "{reason}");
    }

    /// Launches take 6 µs, arithmetic 50 TFLOP/s or 0.5 GFLOP/s. Only sizes that a filter names are
    /// asked for.
    #[test]
    fn a_left_out_size_is_too_long_in_any_order() {
        for (rate, longest) in [(50e12, 16_384), (0.5e9, 512)] {
            let took = |n: u64| Duration::from_secs_f64(6e-6 + 2.0 * (n as f64).powi(3) / rate);
            assert!(took(longest) <= LIMIT && took(2 * longest) > LIMIT);
            for asked in [
                &[longest][..],
                &[8, longest],
                &[8, 64, longest / 2, longest],
            ] {
                let mut pace = Pace::default();
                for size in asked {
                    let (runs, before) = ask(&mut pace, *size, took);
                    assert!(runs, "{size} is left out");
                    assert!(before.iter().all(|n| took(*n) <= LIMIT), "{before:?}");
                    pace.note(FUNCTION.to_owned(), &cost(*size), *size, took(*size));
                }
                for too_long in [2 * longest, 4 * longest] {
                    assert_eq!(ask(&mut pace, too_long, took), (false, vec![]));
                }
            }
            let (runs, before) = ask(&mut Pace::default(), 2 * longest, took);
            assert!(
                !runs && before.iter().all(|n| took(*n) <= LIMIT),
                "{before:?}"
            );
        }
    }

    #[test]
    fn a_routine_that_times_itself_is_run() {
        let mut pace = Pace::default();
        pace.note_times_itself(FUNCTION.to_owned());
        let forecast = pace.forecast(FUNCTION, 1 << 40, &[1], cost, LIMIT);
        assert_eq!(forecast, Forecast::Runs);
    }
}
