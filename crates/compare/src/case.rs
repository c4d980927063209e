//! One benchmark with the medians of both sides, and the class with which it drifts.
//!
//! Some samples take few distinct values: counts, or times of a clock that ticks coarsely. Criterion's files name no
//! unit. Counts, such as instructions, are exact. Times around single launches, taken with CUDA events, are multiples
//! of a tick that is up to a seventh of a short kernel. So numbers without a clock that are all multiples of a known
//! tick are taken for such times, and others for counts.

use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::mean;
use crossover_results::statistics::median::median_and_log_variance;
use crossover_results::store::sampled::Sampled;

use crate::verdict::Location;

/// Fewest samples from which the spread of a median is estimated.
pub(crate) const FEWEST_SAMPLES: usize = 5;

/// The median time of one benchmark in one run (one process), or its fastest sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Median {
    /// Time of an iteration, nanoseconds.
    pub ns: f64,
    /// Number of samples behind it.
    pub samples: usize,
    /// Variance of the logarithm of the median, from the samples of this run alone.
    pub variance: f64,
}

impl Median {
    /// The statistic of the per-iteration times `ns`, in the order they were taken. The variance of the fastest
    /// sample is known only from other processes.
    ///
    /// `None` for fewer than [`FEWEST_SAMPLES`] and for times that are not positive and
    /// finite.
    pub(crate) fn of(location: Location, ns: &[f64]) -> Option<Self> {
        let samples = ns.len();
        if samples < FEWEST_SAMPLES || ns.iter().any(|t| !t.is_finite() || *t <= 0.0) {
            return None;
        }
        let (ns, variance) = match location {
            Location::Median => median_and_log_variance(ns)?,
            Location::Fastest => (location.of(ns)?, 0.0),
        };
        Some(Self {
            ns,
            samples,
            variance,
        })
    }
}

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
    /// The part of the change that the launch constant explains, as a logarithm.
    pub correction: f64,
}

impl RunPair {
    pub(super) fn new(round: usize, base: Median, new: Median) -> Self {
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

/// Whether a benchmark is corrected for the launch constant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Launching {
    /// A clock without a gate.
    #[default]
    Hidden,
    /// Corrected, for this number of kernels in an iteration.
    Kernels(f64),
    /// Not corrected, for this reason.
    Uncorrected(&'static str),
}

/// Additional nanoseconds per launch of a clock's benchmarks for each additional nanosecond of its empty
/// kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchSlope {
    /// The estimate.
    pub value: f64,
    /// Standard error of the estimate.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub(crate) freedom: f64,
    /// Degrees of freedom used by the fit; 0 if the prior slope is used.
    pub(crate) fitted: f64,
    /// Number of benchmarks from which it was learnt.
    pub benchmarks: usize,
}

/// One benchmark, measured on both sides on the same clock.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    /// The class with which it drifts.
    pub class: Class,
    /// At least one pair.
    pub pairs: Vec<RunPair>,
    pub launching: Launching,
    /// Known variance of a change between two processes of such code: the least variance of one pair.
    pub known_variance: f64,
    /// Whether it has no verdict because the samples of its only pair are unsteady.
    pub is_unsteady: bool,
    /// The step of its samples if they take few values, as a fraction: no change is known better.
    pub step: f64,
    /// Slope used to correct this benchmark; `None` if it is not corrected.
    pub slope: Option<LaunchSlope>,
    /// The factor that makes its changes as large as those of the typical benchmark of its class.
    pub scale: f64,
}

impl Case {
    pub(super) fn new(class: Class, pairs: Vec<RunPair>) -> Self {
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

    /// The change of one pair, in the scale of the class.
    pub(super) fn scaled(&self, pair: &RunPair) -> f64 {
        self.scale * pair.change()
    }

    /// Mean variance of one pair's change that the noise of its two medians explains.
    pub(super) fn pair_noise(&self) -> f64 {
        mean(self.pairs.iter().map(|p| p.base.variance + p.new.variance))
    }
}

/// Ticks of CUDA events and of host clocks, ns: the coarsest first.
const TICKS: [f64; 6] = [1024.0, 1000.0, 512.0, 500.0, 100.0, 32.0];

/// Times are rounded to nanoseconds.
const ROUNDING_NS: f64 = 1.0;

/// Samples have few distinct values if each is taken so many times on average.
const TIMES_EACH: usize = 4;

/// Values closer than this, as a fraction, differ by the rounding of a division by the iterations.
const EQUAL: f64 = 1e-9;

/// The distinct values of samples in order, if they are few.
fn few_values<'a>(runs: impl IntoIterator<Item = &'a Sampled>) -> Option<Vec<f64>> {
    let mut values: Vec<f64> = runs
        .into_iter()
        .flat_map(|run| run.ns.iter().copied())
        .collect();
    let samples = values.len();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup_by(|a, b| (*a / *b - 1.0).abs() <= EQUAL);
    (values.len() * TIMES_EACH <= samples).then_some(values)
}

/// The least distance between two values of samples that take few, or the measured step of their clock, if it is less.
/// `None` if they take many values, or one and the step was not measured.
pub(super) fn step<'a>(runs: impl IntoIterator<Item = &'a Sampled> + Clone) -> Option<f64> {
    let values = few_values(runs.clone())?;
    let distances = values.windows(2).map(|pair| pair[1] - pair[0]);
    let measured = runs.into_iter().filter_map(|run| run.event_step_ns);
    let measured = measured.max_by(f64::total_cmp);
    distances.chain(measured).min_by(f64::total_cmp)
}

/// The tick of the numbers without a clock that take few values, if they may be times.
pub(super) fn tick<'a>(results: impl Iterator<Item = &'a Sampled>) -> Option<f64> {
    let without_clock = results.filter(|result| result.clock.is_none() && !result.is_count);
    let values: Vec<f64> = without_clock
        .filter_map(|result| few_values([result]))
        .flatten()
        .collect();
    let fits = |tick: &f64| {
        let is_multiple = |value: &f64| {
            let nearest = (value / tick).round();
            nearest >= 1.0 && (value - nearest * tick).abs() <= ROUNDING_NS
        };
        !values.is_empty() && values.iter().all(is_multiple)
    };
    TICKS.into_iter().find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_sample_is_what_other_work_did_not_slow_down() {
        let slowed = [9.0, 5.1, 8.0, 5.0, 7.0, 12.0];
        let fastest = Median::of(Location::Fastest, &slowed).unwrap();
        assert_eq!([fastest.ns, fastest.variance], [5.0, 0.0]);
        assert_eq!(fastest.samples, 6);
        assert!(Median::of(Location::Fastest, &slowed[..4]).is_none());
    }

    #[test]
    fn too_few_and_impossible_times_have_no_median() {
        assert!(Median::of(Location::Median, &[1.0; 4]).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Median::of(Location::Median, &[1.0, 2.0, bad, 3.0, 4.0]).is_none());
        }
    }

    fn result(ns: &[f64]) -> Sampled {
        Sampled {
            ns: ns.repeat(10),
            ..Sampled::default()
        }
    }

    #[test]
    fn times_with_steps_are_multiples_of_a_tick_and_counts_are_not() {
        for (values, wanted) in [
            (&[7_168.0, 8_192.0][..], Some(1024.0)),
            (&[6_656.0, 7_168.0], Some(512.0)),
            // Truncated to nanoseconds.
            (&[7_167.0, 24_575.0], Some(1024.0)),
            (&[100_003.0, 250_010.0], None),
            (&[512.0, 40_123.0], None),
            (&[], None),
        ] {
            let results: Vec<Sampled> = values.iter().map(|ns| result(&[*ns])).collect();
            assert_eq!(tick(results.iter()), wanted, "{values:?}");
        }
        let [equal, mixed] = [&[7_168.0][..], &[8_192.0, 9_216.0]].map(result);
        assert_eq!(step([&equal, &mixed]), Some(1024.0));
        assert_eq!(step([&equal]), None);
        let many = Sampled {
            ns: (0..40).map(f64::from).collect(),
            ..Sampled::default()
        };
        assert_eq!(step([&many]), None);
    }
}
