//! The ratio of two benchmarks' times, with the interval in which another run finds it.

use crate::store::curves::Benchmark;

/// A ratio and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Time of the first over that of the second.
    pub value: f64,
    /// The interval of another run, with a probability of 95 %.
    pub interval: (f64, f64),
}

impl Ratio {
    /// Time of `over` divided by that of `under`. The two intervals are of independent measurements, so
    /// their halves add as squares.
    pub fn of(over: &Benchmark, under: &Benchmark) -> Self {
        Self::with(over.median_ns / under.median_ns, &[over, under])
    }

    /// A value computed from these times.
    pub fn with(value: f64, times: &[&Benchmark]) -> Self {
        let half_width = |by: fn(&Benchmark) -> f64| {
            let all = times.iter().map(|b| by(b).ln());
            all.fold(0.0, f64::hypot).exp()
        };
        let low = half_width(|b| b.median_ns / b.low_ns());
        let high = half_width(|b| b.high_ns() / b.median_ns);
        Self {
            value,
            interval: (value / low, value * high),
        }
    }
}
