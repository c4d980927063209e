//! Which benchmarks are worth another pair of processes.

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
}
