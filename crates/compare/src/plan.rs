//! Which benchmarks are worth another pair of processes, and what the time is worth.

use crossover_results::statistics::median::median;

/// A benchmark that is not decided.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// Its id.
    pub id: &'a str,
    /// Pairs of processes that it still needs; infinite where none would help.
    pub pairs: f64,
    /// Seconds that it takes in one.
    pub seconds: f64,
}

/// Those that can all be decided in the time that is left, as many as can be, when a pair of
/// processes takes `start` seconds to start and end. Each is run until it is decided; the hopeless
/// ones take no time from the others.
pub fn worth_it<'a>(mut open: Vec<Open<'a>>, start: f64, seconds_left: f64) -> Vec<&'a str> {
    // Those that one pair decides share its start, so what counts is what each needs of its own.
    let needs = |open: &Open<'_>| open.pairs * (open.seconds + start / 10.0);
    open.sort_by(|a, b| needs(a).total_cmp(&needs(b)));
    let (mut seconds, mut most) = (0.0, 0.0_f64);
    let fits = |open: &&Open<'_>| {
        seconds += open.pairs * open.seconds;
        most = most.max(open.pairs);
        seconds + most * start <= seconds_left
    };
    open.iter().take_while(fits).map(|open| open.id).collect()
}

/// What the rest of the time is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Seconds after which changes of the threshold are found in all benchmarks where that can be;
    /// infinite where it cannot in half of them.
    pub seconds: f64,
    /// The change that is found in the typical benchmark in the time that is left, as a multiple of
    /// the threshold.
    pub finds: f64,
}

/// What `seconds_left` are worth, after `pairs` of each benchmark: `benchmarks` has the number of
/// pairs in all from which on changes of the threshold are found, and the seconds of one. `None`
/// without any.
pub fn outlook(
    benchmarks: &[(f64, f64)],
    pairs: f64,
    start: f64,
    seconds_left: f64,
) -> Option<Outlook> {
    let typical = median(benchmarks.iter().map(|(needed, _)| *needed))?;
    let round = benchmarks.iter().map(|(_, seconds)| seconds).sum::<f64>() + start;
    let more = |needed: f64| (needed - pairs).max(0.0);
    let finite = benchmarks.iter().filter(|(needed, _)| needed.is_finite());
    let all: f64 = finite
        .map(|(needed, seconds)| more(*needed) * (seconds + start))
        .sum();
    // What is found falls with the root of the number of pairs.
    let within = (seconds_left.max(0.0) / round + pairs).max(1.0);
    Some(Outlook {
        seconds: if typical.is_finite() {
            all
        } else {
            f64::INFINITY
        },
        finds: (typical / within).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_fit_together_go_on() {
        let open = [
            ("five", 5.0, 1.0),
            ("never", f64::INFINITY, 1.0),
            ("two", 2.0, 1.0),
            ("nine", 9.0, 1.0),
        ];
        let open = open.map(|(id, pairs, seconds)| Open { id, pairs, seconds });
        let worth_it = |left| worth_it(open.to_vec(), 1.0, left);
        // Nine pairs are started, and sixteen times a benchmark is run.
        assert_eq!(worth_it(25.0), ["two", "five", "nine"]);
        assert_eq!(worth_it(24.0), ["two", "five"]);
        assert_eq!(worth_it(12.0), ["two", "five"]);
        assert_eq!(worth_it(11.0), ["two"]);
        assert_eq!(worth_it(3.0), [""; 0]);
    }

    #[test]
    fn a_slow_one_gives_way_to_many_quick_ones() {
        let slow = Open {
            id: "slow",
            pairs: 2.0,
            seconds: 10.0,
        };
        let quick = Open {
            id: "quick",
            pairs: 9.0,
            seconds: 0.1,
        };
        assert_eq!(worth_it(vec![slow, quick], 1.0, 15.0), ["quick"]);
    }

    #[test]
    fn the_time_that_a_threshold_takes_is_told_beforehand() {
        // Ten pairs were run, of 3 s each with both benchmarks.
        let benchmarks = [(40.0, 1.0), (40.0, 2.0)];
        let told = outlook(&benchmarks, 10.0, 0.0, 90.0).unwrap();
        assert_eq!((told.seconds, told.finds), (90.0, 1.0));
        let told = outlook(&benchmarks, 10.0, 0.0, 0.0).unwrap();
        assert_eq!((told.seconds, told.finds), (90.0, 2.0));
        let never = [(f64::INFINITY, 1.0), (f64::INFINITY, 1.0), (20.0, 1.0)];
        assert_eq!(
            outlook(&never, 10.0, 0.0, 60.0).unwrap().seconds,
            f64::INFINITY
        );
        assert_eq!(outlook(&[], 10.0, 0.0, 60.0), None);
    }
}
