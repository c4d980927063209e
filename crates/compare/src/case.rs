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
    /// The empty kernel beside the base and the new side, ns.
    pub empty_ns: Option<[f64; 2]>,
    /// The part of the change that comes from another launch constant, as a logarithm.
    pub correction: f64,
}

impl RunPair {
    pub(super) fn of(round: usize, base: Median, new: Median) -> Self {
        Self {
            round,
            base,
            new,
            empty_ns: None,
            correction: 0.0,
        }
    }

    /// Logarithm of new over base, without the correction.
    pub(super) fn change(&self) -> f64 {
        (self.new.ns / self.base.ns).ln() - self.correction
    }
}

/// Whether the times of a benchmark depend on the launch constant as those of other benchmarks do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Launching {
    /// It is not on a clock with a gate.
    #[default]
    Hidden,
    /// So many kernels of an iteration each take longer if the empty kernel does.
    Kernels(f64),
    /// It cannot be corrected, for this reason.
    Uncorrected(&'static str),
}

/// The nanoseconds per launch that the benchmarks of a clock take longer if its empty kernel takes one
/// longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchSlope {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub(crate) freedom: f64,
    /// The degrees of freedom that its fit takes from what is left of the shifts: 0 if it is the expected one.
    pub(crate) fitted: f64,
    /// Benchmarks that it was learnt from.
    pub benchmarks: usize,
}

/// One benchmark, measured on both sides on the same clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// Its class.
    pub class: Class,
    /// At least one pair.
    pub pairs: Vec<RunPair>,
    pub launching: Launching,
    /// Variance of a change between two processes of the same code, as far as it is known of such code: of one
    /// pair the least that counts.
    pub known_variance: f64,
    /// Whether it gets no verdict, because the samples of its only pair are unsteady.
    pub is_unsteady: bool,
    /// The step of its samples if they take few values, as a fraction: no change is known better.
    pub step: f64,
    /// By which a corrected benchmark is corrected.
    pub slope: Option<LaunchSlope>,
    /// The factor that makes its changes as large as those of the typical benchmark of its class.
    pub scale: f64,
}

impl Case {
    pub(super) fn of(class: Class, pairs: Vec<RunPair>) -> Self {
        Self {
            class,
            pairs,
            launching: Launching::Hidden,
            known_variance: 0.0,
            is_unsteady: false,
            step: 0.0,
            slope: None,
            scale: 1.0,
        }
    }

    pub(super) fn mean_change(&self) -> f64 {
        mean(self.pairs.iter().map(RunPair::change))
    }

    /// A change of one pair, in the scale of the class.
    pub(super) fn scaled(&self, pair: &RunPair) -> f64 {
        self.scale * pair.change()
    }

    /// Mean variance of one pair's change from the noise of its two medians.
    pub(super) fn pair_noise(&self) -> f64 {
        mean(self.pairs.iter().map(|p| p.base.variance + p.new.variance))
    }
}
