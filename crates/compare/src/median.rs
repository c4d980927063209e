//! The median of a run's samples, and its variance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use statrs::function::beta::beta_reg;

use crossover_results::statistics::median::{median, median_of_sorted};

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
    /// This statistic of the samples. The variance of the fastest one is known only from other
    /// processes.
    pub(crate) fn at(location: Location, ns: &[f64]) -> Option<Self> {
        let median = Self::of(ns)?;
        Some(match location {
            Location::Median => median,
            Location::Fastest => Self {
                ns: location.of(ns)?,
                variance: 0.0,
                ..median
            },
        })
    }

    /// Median of the per-iteration times `ns`, in the order they were taken.
    ///
    /// The variance is that of the bootstrap with infinitely many resamples, which for a
    /// median has a closed form (Maritz and Jarrett, "A note on estimating the variance of
    /// the sample median", JASA 73, 1978): no seed, and no resampling noise in the far tail.
    /// Samples that follow each other closely count for fewer, by the autocorrelation of
    /// the signs around the median.
    ///
    /// `None` for fewer than [`FEWEST_SAMPLES`] and for times that are not positive and
    /// finite.
    pub(crate) fn of(ns: &[f64]) -> Option<Self> {
        let n = ns.len();
        if n < FEWEST_SAMPLES || ns.iter().any(|t| !t.is_finite() || *t <= 0.0) {
            return None;
        }
        let mut sorted = ns.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = median_of_sorted(&sorted)?;

        let weights = bootstrap_weights(n);
        // Relative to the median, so that the moments are those of its logarithm.
        let (mut first, mut second) = (0.0, 0.0);
        for (x, w) in sorted.iter().zip(weights.iter()) {
            let x = x / median - 1.0;
            first += w * x;
            second += w * x * x;
        }
        let repeats = repetition(ns, median);
        let variance = match second - first * first {
            // Times so far apart that their squares overflow tell nothing of the median.
            overflown if overflown.is_nan() => f64::INFINITY,
            variance => variance.max(0.0),
        };
        Some(Self {
            ns: median,
            samples: n,
            variance: variance * repeats,
        })
    }
}

/// Probability that the bootstrap median of `n` sorted samples falls on each of them.
fn bootstrap_weights(n: usize) -> Rc<[f64]> {
    thread_local! {
        static KNOWN: RefCell<HashMap<usize, Rc<[f64]>>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        known
            .entry(n)
            .or_insert_with(|| {
                let a = (n as f64 + 1.0) / 2.0;
                let below = |i: usize| match i {
                    0 => 0.0,
                    i if i == n => 1.0,
                    i => beta_reg(a, a, i as f64 / n as f64),
                };
                (0..n).map(|i| below(i + 1) - below(i)).collect()
            })
            .clone()
    })
}

/// How many samples carry the information of one: 1 where they are independent, more where
/// each resembles the one before it.
fn repetition(ns: &[f64], median: f64) -> f64 {
    let n = ns.len();
    let sign = |t: f64| {
        if t > median {
            1.0
        } else if t < median {
            -1.0
        } else {
            0.0
        }
    };
    let signs: Vec<f64> = ns.iter().map(|t| sign(*t)).collect();
    let power: f64 = signs.iter().map(|s| s * s).sum();
    if power == 0.0 {
        return 1.0;
    }
    let correlation = |lag: usize| {
        signs
            .iter()
            .zip(&signs[lag..])
            .map(|(a, b)| a * b)
            .sum::<f64>()
            / power
    };
    // Only a correlation that independent samples show in one run of twenty is believed:
    // else its noise would widen every interval.
    if correlation(1) < 1.645 / (n as f64).sqrt() {
        return 1.0;
    }
    let tail: f64 = (1..n / 2).map(correlation).take_while(|c| *c > 0.0).sum();
    (1.0 + 2.0 * tail).min(n as f64 / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rand_core::Rng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn uniform(rng: &mut impl Rng) -> f64 {
        (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Median::of(&[5.0, 1.0, 4.0, 2.0, 3.0]).unwrap().ns, 3.0);
        assert_eq!(
            Median::of(&[6.0, 1.0, 4.0, 2.0, 3.0, 90.0]).unwrap().ns,
            3.5
        );
        let equal = Median::of(&[7.0; 20]).unwrap();
        assert_eq!((equal.ns, equal.variance), (7.0, 0.0));
    }

    #[test]
    fn the_fastest_sample_is_what_other_work_did_not_slow_down() {
        let slowed = [9.0, 5.1, 8.0, 5.0, 7.0, 12.0];
        assert_eq!(Median::at(Location::Median, &slowed), Median::of(&slowed));
        let fastest = Median::at(Location::Fastest, &slowed).unwrap();
        assert_eq!(
            (fastest.ns, fastest.variance, fastest.samples),
            (5.0, 0.0, 6)
        );
        assert!(Median::at(Location::Fastest, &slowed[..4]).is_none());
    }

    #[test]
    fn too_few_and_impossible_times_have_no_median() {
        assert!(Median::of(&[1.0; 4]).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Median::of(&[1.0, 2.0, bad, 3.0, 4.0]).is_none());
        }
    }

    #[test]
    fn the_variance_is_that_of_a_bootstrap() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for n in [11, 30, 101] {
            let samples: Vec<f64> = (0..n).map(|_| 100.0 + uniform(&mut rng)).collect();
            let exact = Median::of(&samples).unwrap().variance;
            let medians: Vec<f64> = (0..8_000)
                .map(|_| {
                    let resample: Vec<f64> = (0..n)
                        .map(|_| samples[(uniform(&mut rng) * n as f64) as usize])
                        .collect();
                    Median::of(&resample).unwrap().ns
                })
                .collect();
            let mean = medians.iter().sum::<f64>() / medians.len() as f64;
            let drawn = medians
                .iter()
                .map(|m| (m / mean - 1.0).powi(2))
                .sum::<f64>()
                / medians.len() as f64;
            // An even n averages two samples, where the closed form is a close neighbour.
            let allowed = if n % 2 == 1 { 0.05 } else { 0.12 };
            assert!(
                (exact / drawn - 1.0).abs() < allowed,
                "n={n} exact={exact:e} drawn={drawn:e}"
            );
        }
    }

    #[test]
    fn samples_that_follow_each_other_count_for_fewer() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let independent: Vec<f64> = (0..100).map(|_| 100.0 + uniform(&mut rng)).collect();
        let mut walk = 0.0;
        let following: Vec<f64> = (0..100)
            .map(|_| {
                walk = 0.9 * walk + uniform(&mut rng) - 0.5;
                100.0 + walk
            })
            .collect();
        assert!(repetition(&independent, Median::of(&independent).unwrap().ns) < 1.5);
        assert!(repetition(&following, Median::of(&following).unwrap().ns) > 4.0);
    }
}
