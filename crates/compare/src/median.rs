//! The median of a run's samples, and its variance.

use crossover_results::statistics::median::{median, median_and_log_variance};

/// Fewest samples from which the spread of a median can be told.
pub(crate) const FEWEST_SAMPLES: usize = 5;

/// The statistic of a run's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// Their median.
    #[default]
    Median,
    /// The fastest one, for many short processes: other work on the machine only ever makes a sample
    /// slower, and of ten that last a millisecond or a few one is left alone also where the median is
    /// not (Chen, Revels, "Robust benchmarking in noisy environments", arXiv:1608.04295, 2016).
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
    /// one is known only from other processes.
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

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(
            Median::of(Location::Median, &[5.0, 1.0, 4.0, 2.0, 3.0])
                .unwrap()
                .ns,
            3.0
        );
        assert_eq!(
            Median::of(Location::Median, &[6.0, 1.0, 4.0, 2.0, 3.0, 90.0])
                .unwrap()
                .ns,
            3.5
        );
        let equal = Median::of(Location::Median, &[7.0; 20]).unwrap();
        assert_eq!((equal.ns, equal.variance), (7.0, 0.0));
    }

    #[test]
    fn the_fastest_sample_is_what_other_work_did_not_slow_down() {
        let slowed = [9.0, 5.1, 8.0, 5.0, 7.0, 12.0];
        let fastest = Median::of(Location::Fastest, &slowed).unwrap();
        assert_eq!(
            (fastest.ns, fastest.variance, fastest.samples),
            (5.0, 0.0, 6)
        );
        assert!(Median::of(Location::Fastest, &slowed[..4]).is_none());
    }

    #[test]
    fn too_few_and_impossible_times_have_no_median() {
        assert!(Median::of(Location::Median, &[1.0; 4]).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Median::of(Location::Median, &[1.0, 2.0, bad, 3.0, 4.0]).is_none());
        }
    }
}
