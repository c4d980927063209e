//! Which benchmarks are worth another pair of processes.

/// What a pair of processes costs, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    /// To start and end both.
    pub start: f64,
    /// Of each benchmark.
    pub each: f64,
}

impl Price {
    /// From how many benchmarks each pair had and the seconds that it took: the straight line of
    /// least squares, or all of it to the benchmarks where there were always as many.
    pub(crate) fn of(took: &[(usize, f64)]) -> Self {
        let n = took.len().max(1) as f64;
        let mean = |of: &dyn Fn(&(usize, f64)) -> f64| took.iter().map(of).sum::<f64>() / n;
        let (benchmarks, seconds) = (mean(&|t| t.0 as f64), mean(&|t| t.1));
        let spread = mean(&|t| (t.0 as f64 - benchmarks).powi(2));
        let together = mean(&|t| (t.0 as f64 - benchmarks) * (t.1 - seconds));
        let most = seconds / benchmarks.max(1.0);
        let each = match spread > 0.0 {
            true => (together / spread).clamp(0.0, most),
            false => most,
        };
        Self {
            start: seconds - each * benchmarks,
            each,
        }
    }
}

/// Of the benchmarks that need so many more pairs each, those that can all be decided in the time
/// that is left, as many as can be: their indices. The hopeless ones take no time from the others.
pub(crate) fn worth_it(needed: &[f64], price: Price, seconds_left: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needed.len()).collect();
    order.sort_by(|a, b| needed[*a].total_cmp(&needed[*b]));
    let fits = |&count: &usize| {
        let pair = price.start + price.each * count as f64;
        needed[order[count - 1]] * pair <= seconds_left
    };
    let most = (1..=order.len()).rev().find(fits).unwrap_or(0);
    order.truncate(most);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_a_straight_line() {
        let of = |took: &[(usize, f64)]| {
            let price = Price::of(took);
            (price.start, price.each)
        };
        assert_eq!(of(&[(100, 50.0)]), (0.0, 0.5));
        assert_eq!(of(&[(100, 50.0), (100, 52.0)]), (0.0, 0.51));
        assert_eq!(of(&[(100, 54.0), (20, 14.0)]), (4.0, 0.5));
        // A host that grew slower.
        assert_eq!(of(&[(100, 10.0), (20, 20.0)]), (15.0, 0.0));
        assert_eq!(of(&[]), (0.0, 0.0));
    }

    #[test]
    fn those_that_fit_together_go_on() {
        let price = Price {
            start: 1.0,
            each: 1.0,
        };
        // Two take 3 seconds a pair, three take 4.
        let needed = [5.0, f64::INFINITY, 2.0, 9.0];
        assert_eq!(worth_it(&needed, price, 1000.0), [0, 2, 3]);
        assert_eq!(worth_it(&needed, price, 36.0), [0, 2, 3]);
        assert_eq!(worth_it(&needed, price, 35.0), [0, 2]);
        assert_eq!(worth_it(&needed, price, 10.0), [2]);
        assert_eq!(worth_it(&needed, price, 3.0), [0; 0]);
        assert_eq!(worth_it(&[], price, 3.0), [0; 0]);
    }
}
