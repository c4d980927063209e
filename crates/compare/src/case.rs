//! One benchmark with the medians of both sides, and the class that it drifts with.

use std::fmt;

use crate::median::Median;
use crossover_results::model::id::{self, Device};
use crossover_results::statistics::spread::SHORT_NS;
use crossover_words::Clock;

/// Benchmarks whose drift is learnt together: one clock, one device, short or long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The clock, `None` for results without a sidecar.
    pub clock: Option<Clock>,
    /// Second part of the id; `None` where it names no device.
    pub device: Option<Device>,
    /// The median lies under [`SHORT_NS`] per launch.
    pub short: bool,
}

impl Class {
    /// Class of the benchmark `id` with that median, divided by its launches, on that clock.
    pub fn of(id: &str, clock: Option<Clock>, ns_per_launch: f64) -> Self {
        Self {
            clock,
            device: id::device(id),
            short: ns_per_launch < SHORT_NS,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device {
            write!(f, "{device} ")?;
        }
        match self.clock {
            Some(clock) => write!(f, "{clock}")?,
            None => f.write_str("unknown clock")?,
        }
        let limit = match self.clock {
            // Its numbers have no unit.
            None => "20,000",
            Some(Clock::Wall) => "20 µs",
            Some(_) => "20 µs per launch",
        };
        let duration = if self.short { "under" } else { "from" };
        write!(f, " {duration} {limit}")
    }
}

/// The medians of one benchmark in two runs that belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Which pair of runs, from 0.
    pub round: usize,
    /// The old code.
    pub base: Median,
    /// The new code.
    pub new: Median,
}

impl Pair {
    /// Logarithm of new over base.
    pub(super) fn change(&self) -> f64 {
        (self.new.ns / self.base.ns).ln()
    }
}

/// One benchmark, measured on both sides on the same clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// Its class.
    pub class: Class,
    /// At least one pair.
    pub pairs: Vec<Pair>,
}

impl Case {
    pub(super) fn mean_change(&self) -> f64 {
        self.pairs.iter().map(Pair::change).sum::<f64>() / self.pairs.len() as f64
    }

    /// Mean variance of one pair's change from the noise of its two medians.
    pub(super) fn pair_noise(&self) -> f64 {
        let sum: f64 = self
            .pairs
            .iter()
            .map(|p| p.base.variance + p.new.variance)
            .sum();
        sum / self.pairs.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_says_its_device_its_clock_and_its_duration() {
        let name = |id, clock, ns| Class::of(id, clock, ns).to_string();
        let short = name("g/gpu/i/1", Some(Clock::Events), 19_999.0);
        assert_eq!(short, "gpu events under 20 µs per launch");
        let long = name("g/f/1", None, 20_000.0);
        assert_eq!(long, "unknown clock from 20,000");
    }
}
