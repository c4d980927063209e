//! One benchmark with the medians of both sides, and the class that it drifts with.

use crate::median::Median;
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::mean;

/// The medians of one benchmark in two runs that belong together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunPair {
    /// Which pair of runs, from 0.
    pub round: usize,
    /// The old code.
    pub base: Median,
    /// The new code.
    pub new: Median,
}

impl RunPair {
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
    pub pairs: Vec<RunPair>,
}

impl Case {
    pub(super) fn mean_change(&self) -> f64 {
        mean(self.pairs.iter().map(RunPair::change))
    }

    /// Mean variance of one pair's change from the noise of its two medians.
    pub(super) fn pair_noise(&self) -> f64 {
        mean(self.pairs.iter().map(|p| p.base.variance + p.new.variance))
    }
}
