//! The options of a comparison, its verdicts and their error rates.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;
use serde::Serialize;

use crossover_results::statistics::median::median;

/// When nothing changed, the probability of any 'slower' or 'faster'; when something did, the
/// expected share of false ones among them.
pub(crate) const CHANGE_ERROR: f64 = 0.01;

/// Probability of 'same', each time that a benchmark is analysed, where it truly changed by the
/// threshold.
pub(crate) const SAME_ERROR: f64 = 0.025;

/// Changes smaller than this are not worth a verdict, unless asked for.
pub(crate) const THRESHOLD: f64 = 0.01;

/// Why benchmarks of a small class are not called from one pair of runs.
pub(crate) const TOO_FEW: &str = "one pair of runs has fewer than four benchmarks of its class, so \
 the difference between two runs of the same code is unknown";

/// Why unsteady results are not called from one pair of runs.
pub(crate) const UNSTEADY: &str =
    "one pair of runs, and its samples are unsteady: they have two modes, or spread widely";

/// Why benchmarks that changed as most others did are not called from one pair of runs.
pub(crate) const MOVED_TOGETHER: &str = "it changed with the others, and one pair of runs cannot tell the machine \
 from the code";

/// The statistic of a run's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// The median.
    #[default]
    Median,
    /// The fastest sample, for many short processes: other work on the machine only makes a sample slower, and
    /// leaves one of ten short samples alone even where the median is slower (Chen, Revels, "Robust benchmarking in
    /// noisy environments", arXiv:1608.04295, 2016).
    Fastest,
}

impl Location {
    /// This statistic of samples in nanoseconds; `None` without any.
    pub(crate) fn of(self, ns: &[f64]) -> Option<f64> {
        match self {
            Location::Median => median(ns.iter().copied()),
            Location::Fastest => ns.iter().copied().min_by(f64::total_cmp),
        }
    }
}

/// Where the linker put the functions of both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Stored results do not say.
    #[default]
    Unknown,
    /// In a new order for each process.
    Random,
    /// In one order on each side, and why.
    Fixed(String),
}

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only benchmarks whose id matches. The others still contribute to the drift.
    pub filter: Option<Regex>,
    /// Smallest change worth a verdict, as a fraction.
    pub threshold: f64,
    /// Number of the first pairs of runs that only choose what is tested for a change in the later
    /// ones; 0 where all count.
    pub screened: usize,
    /// Both sides ran here, in turns, so that no record has to say on what machine.
    pub on_one_machine: bool,
    /// The statistic of the samples of each run.
    pub location: Location,
    /// Where the linker put the functions.
    pub layout: Layout,
    /// Benchmarks whose process failed, and how.
    pub failed: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: None,
            threshold: THRESHOLD,
            screened: 0,
            on_one_machine: false,
            location: Location::Median,
            layout: Layout::Unknown,
            failed: BTreeMap::new(),
        }
    }
}

/// The verdict on a benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A process of `ab` that ran it failed.
    Failed,
    /// The result of a run cannot be read.
    Unreadable,
    /// A change is shown, upwards and by the threshold or more.
    Slower,
    /// A change is shown, downwards and by the threshold or more.
    Faster,
    /// Neither shown: too noisy, or not comparable.
    #[default]
    Unsure,
    /// Equivalence is shown: the whole interval lies within the threshold.
    Same,
    /// Only the base has it.
    Gone,
    /// Only the new side has it.
    New,
}

impl Verdict {
    /// Each, in the order of the tables.
    pub(crate) const ALL: [Self; 8] = [
        Self::Failed,
        Self::Unreadable,
        Self::Slower,
        Self::Faster,
        Self::Unsure,
        Self::Same,
        Self::Gone,
        Self::New,
    ];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
