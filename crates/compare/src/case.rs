//! One benchmark with the samples of both sides.

use crate::class::Class;
use crate::median::Median;

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
    /// What it drifts with.
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
