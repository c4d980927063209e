//! What is believed of how much the benchmarks of a class differ from process to process.
//!
//! The change seen in one pair of processes is taken to have the variance `v`, and `v` to differ
//! from benchmark to benchmark as `s` times the inverse of a chi-square variable over its degrees
//! of freedom `f`: large where all benchmarks of the class are alike, 1 or 2 where some differ by
//! far more than the rest. `s` is the variance of the class plus the noise of the benchmark's own
//! medians. This is the model of Smyth, "Linear models and empirical Bayes methods for assessing
//! differential expression in microarray experiments", Statistical Applications in Genetics and
//! Molecular Biology 3 (2004). He estimates `s` and `f` and then takes them for known; a class of
//! ten benchmarks in two pairs of processes does not tell them well enough for that. So every
//! pair of values is kept with its weight, and a probability is averaged over them.

use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

use crate::model::id::Device;

/// One hypothesis about a class, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Belief {
    /// Variance of the logarithm of a change between two processes of the same code, beside the
    /// noise of their medians.
    pub variance: f64,
    /// How alike the benchmarks are.
    pub freedom: f64,
    /// All weights together are 1.
    pub weight: f64,
}

/// All that is believed of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Beliefs(Vec<Belief>);

/// What one benchmark tells of its class: the mean square of what its changes differ by when
/// nothing changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) square: f64,
    /// Degrees of freedom of that square.
    pub(super) freedom: f64,
    /// Variance that its medians explain.
    pub(super) noise: f64,
}

/// Degrees of freedom that are tried.
const FREEDOMS: [f64; 9] = [1.0, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 20.0, 60.0];

/// The weights of these where there is only one pair of runs to learn from: 60 benchmarks without a
/// change tell a heavy tail from a light one only where it is very heavy, and with equal weights
/// nothing could ever be called.
const IF_ONE_PAIR: [f64; 9] = [0.001, 0.003, 0.01, 0.05, 0.15, 0.25, 0.25, 0.18, 0.106];

/// The same for a GPU, where some kernels have two speeds, one of which each process draws: on an
/// H200 three of fifteen differed by 2 to 4 % between processes, and most of the others by 0.1 %.
const IF_ONE_PAIR_ON_GPU: [f64; 9] = [0.01, 0.03, 0.08, 0.16, 0.2, 0.2, 0.16, 0.1, 0.06];

/// The standard deviations that are tried lie this far apart, as logarithms.
const STEP: f64 = 0.2;

/// Number of them on either side of the assumed one.
const STEPS: i32 = 20;

/// Standard deviation of the logarithm of the assumption's error: it may well be three times too
/// large or too small.
const ASSUMED_WITHIN: f64 = 1.2;

/// How much a benchmark's evidence counts, as a power of its likelihood. Neighbouring sizes of
/// one kernel drift together, so that a class tells less than its number of benchmarks.
const INDEPENDENT: f64 = 0.5;

/// Beliefs of less weight than this are dropped.
const NEGLIGIBLE: f64 = 1e-7;

/// Share of the weight that an assumption keeps beside what an earlier run has learnt.
const DOUBT: f64 = 0.1;

/// Squares are not taken to be smaller than this: times on a coarse clock can agree to the last
/// digit.
const LEAST_SQUARE: f64 = 1e-14;

impl Beliefs {
    /// What is assumed before anything is seen, around a standard deviation.
    pub(super) fn assumed(deviation: f64) -> Self {
        Self::around(deviation, [1.0; FREEDOMS.len()])
    }

    /// The same before one pair of runs.
    pub(super) fn assumed_of_one_pair(deviation: f64, device: Option<Device>) -> Self {
        match device {
            Some(Device::Gpu) => Self::around(deviation, IF_ONE_PAIR_ON_GPU),
            _ => Self::around(deviation, IF_ONE_PAIR),
        }
    }

    fn around(deviation: f64, shares: [f64; FREEDOMS.len()]) -> Self {
        let deviations = (-STEPS..=STEPS).map(|step| {
            let away = f64::from(step) * STEP;
            let weight = (-0.5 * (away / ASSUMED_WITHIN).powi(2)).exp();
            (deviation * away.exp(), weight)
        });
        let all = deviations.flat_map(|(deviation, weight)| {
            FREEDOMS
                .into_iter()
                .zip(shares)
                .map(move |(freedom, share)| Belief {
                    variance: deviation * deviation,
                    freedom,
                    weight: weight * share,
                })
        });
        Self(all.collect()).in_proportion()
    }

    /// What earlier runs on this machine have learnt, not taken for certain.
    pub(super) fn and_doubt(&self, assumed: &Self) -> Self {
        let share = |beliefs: &Self, share: f64| {
            let scaled = beliefs.0.iter().map(move |b| Belief {
                weight: share * b.weight,
                ..*b
            });
            scaled.collect::<Vec<_>>()
        };
        let mut all = share(self, 1.0 - DOUBT);
        all.extend(share(assumed, DOUBT));
        Self(all).in_proportion()
    }

    /// After seeing what benchmarks of the class differ by, by the F distribution of their mean
    /// squares.
    pub(super) fn after(self, evidence: &[Evidence]) -> Self {
        self.weighed(INDEPENDENT, |belief| {
            let f = MeanSquare::new(belief.freedom);
            evidence
                .iter()
                .map(|e| f.ln_density(e, belief.variance + e.noise))
                .sum()
        })
    }

    /// After seeing one change of each benchmark, some of which may be true ones.
    ///
    /// Unchanged benchmarks follow Student's t around zero. Any share of the others, up to a
    /// half, may have truly changed, by sizes of either sign that fall off exponentially (the
    /// two groups of Efron, "Large-scale simultaneous hypothesis testing: the choice of a null
    /// hypothesis", JASA 99, 2004). Few changes far from all the rest are thus changes; many
    /// that thin out with their size are how this machine drifts.
    pub(super) fn after_changes(self, changes: &[(f64, f64)]) -> Self {
        const SHARES: [f64; 4] = [0.05, 0.15, 0.3, 0.5];
        // True changes are taken to be large beside the drift: else the two could swap roles.
        const SIZES: [f64; 3] = [3.0, 10.0, 30.0];
        let noise =
            changes.iter().map(|(_, noise)| noise).sum::<f64>() / changes.len().max(1) as f64;
        self.weighed(1.0, |belief| {
            let f = MeanSquare::new(belief.freedom);
            let unchanged: Vec<f64> = changes
                .iter()
                .map(|&(change, noise)| f.ln_density_of_change(change, belief.variance + noise))
                .collect();
            let none = unchanged.iter().sum::<f64>() + 0.5_f64.ln();
            let mut ways = vec![none];
            let prior = 0.5 / (SHARES.len() * SIZES.len()) as f64;
            for size in SIZES.map(|size| size * (belief.variance + noise).sqrt()) {
                let changed = |change: f64| (-change.abs() / size).exp() / (2.0 * size);
                for share in SHARES {
                    let likelihood =
                        unchanged
                            .iter()
                            .zip(changes)
                            .map(|(unchanged, (change, _))| {
                                ((1.0 - share) * unchanged.exp() + share * changed(*change))
                                    .max(f64::MIN_POSITIVE)
                                    .ln()
                            });
                    ways.push(likelihood.sum::<f64>() + prior.ln());
                }
            }
            let best = ways.iter().copied().fold(f64::MIN, f64::max);
            best + ways.iter().map(|way| (way - best).exp()).sum::<f64>().ln()
        })
    }

    fn weighed(mut self, power: f64, ln_likelihood: impl Fn(&Belief) -> f64) -> Self {
        let logarithms: Vec<f64> = self
            .0
            .iter()
            .map(|belief| belief.weight.ln() + power * ln_likelihood(belief))
            .collect();
        let best = logarithms.iter().copied().fold(f64::MIN, f64::max);
        for (belief, logarithm) in self.0.iter_mut().zip(logarithms) {
            belief.weight = (logarithm - best).exp();
        }
        self.0.retain(|belief| belief.weight > NEGLIGIBLE);
        self.in_proportion()
    }

    fn in_proportion(mut self) -> Self {
        let sum: f64 = self.0.iter().map(|belief| belief.weight).sum();
        for belief in &mut self.0 {
            belief.weight /= sum;
        }
        self
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Belief> {
        self.0.iter()
    }

    /// Standard deviation of a change between two processes of the same code, of the median
    /// benchmark by the median belief.
    pub(super) fn deviation(&self) -> f64 {
        let mut variances: Vec<(f64, f64)> = self
            .iter()
            .map(|b| (b.variance / typical(b.freedom), b.weight))
            .collect();
        variances.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut below = 0.0;
        let middle = variances.into_iter().find(|(_, weight)| {
            below += weight;
            below >= 0.5
        });
        middle.map_or(f64::INFINITY, |(variance, _)| variance.sqrt())
    }

    /// Whether all of it can be used: what is read from a file may be anything.
    pub(crate) fn is_sound(&self) -> bool {
        let sound = |x: f64| x.is_finite() && x > 0.0;
        !self.0.is_empty()
            && self.iter().all(|b| {
                sound(b.variance) && b.freedom >= 1.0 && sound(b.freedom) && sound(b.weight)
            })
    }
}

/// Median of a chi-square variable over its degrees of freedom (Wilson and Hilferty, 1931).
fn typical(freedom: f64) -> f64 {
    (1.0 - 2.0 / (9.0 * freedom)).powi(3)
}

/// The distribution of the mean square of a benchmark whose class has this freedom.
struct MeanSquare {
    freedom: f64,
    /// Of half the freedom.
    ln_gamma: f64,
    /// Of half the freedom and a half: the density of one change needs it again and again.
    ln_gamma_of_change: f64,
}

impl MeanSquare {
    fn new(freedom: f64) -> Self {
        Self {
            freedom,
            ln_gamma: ln_gamma(freedom / 2.0),
            ln_gamma_of_change: ln_gamma((freedom + 1.0) / 2.0),
        }
    }

    /// Logarithm of the density of F, of a mean square whose expectation is about `scale`.
    fn ln_density(&self, evidence: &Evidence, scale: f64) -> f64 {
        let (seen, prior) = (evidence.freedom, self.freedom);
        let x = evidence.square.max(LEAST_SQUARE) / scale;
        ln_gamma((seen + prior) / 2.0) - ln_gamma(seen / 2.0) - self.ln_gamma
            + seen / 2.0 * (seen / prior).ln()
            + (seen / 2.0 - 1.0) * x.ln()
            - (seen + prior) / 2.0 * (seen * x / prior).ln_1p()
            - scale.ln()
    }

    /// Logarithm of the density of Student's t.
    fn ln_density_of_change(&self, change: f64, scale: f64) -> f64 {
        let f = self.freedom;
        self.ln_gamma_of_change
            - self.ln_gamma
            - 0.5 * (f * std::f64::consts::PI * scale).ln()
            - (f + 1.0) / 2.0 * (change * change / (scale * f)).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(squares: &[f64], freedom: f64) -> Vec<Evidence> {
        let of = |&square: &f64| Evidence {
            square,
            freedom,
            noise: 0.0,
        };
        squares.iter().map(of).collect()
    }

    #[test]
    fn the_densities_are_those_of_statrs() {
        use statrs::distribution::{Continuous, FisherSnedecor, StudentsT};
        for prior in [1.0, 3.0, 20.0] {
            let f = MeanSquare::new(prior);
            let (seen, scale, square) = (4.0, 0.25, 0.7);
            let want = FisherSnedecor::new(seen, prior)
                .unwrap()
                .ln_pdf(square / scale)
                - scale.ln();
            let e = evidence(&[square], seen)[0];
            assert!((f.ln_density(&e, scale) - want).abs() < 1e-9);
            let want = StudentsT::new(0.0, scale.sqrt(), prior)
                .unwrap()
                .ln_pdf(0.9);
            assert!((f.ln_density_of_change(0.9, scale) - want).abs() < 1e-9);
        }
    }

    #[test]
    fn an_assumption_fades_as_evidence_arrives() {
        let assumed = Beliefs::assumed(0.1);
        assert!((assumed.deviation() / 0.1).ln().abs() < 0.5);
        let after = |n: usize| {
            let squares = vec![0.01_f64.powi(2); n];
            Beliefs::assumed(0.1)
                .after(&evidence(&squares, 4.0))
                .deviation()
        };
        assert!(after(1) > after(4) && after(4) > after(100));
        assert!((after(100) / 0.01 - 1.0).abs() < 0.15, "{}", after(100));
    }

    #[test]
    fn benchmarks_that_differ_widely_are_believed_to() {
        let freedom = |squares: &[f64]| {
            let beliefs = Beliefs::assumed(0.01).after(&evidence(squares, 5.0));
            beliefs.iter().map(|b| b.weight * b.freedom).sum::<f64>()
        };
        let alike = vec![1e-4; 60];
        let unlike: Vec<f64> = (0..60).map(|i| 1e-4 * 10_f64.powi(i % 5 - 2)).collect();
        assert!(freedom(&alike) > 15.0 && freedom(&unlike) < 2.5);
    }

    #[test]
    fn a_few_changes_far_from_the_rest_do_not_count_as_drift() {
        let mut changes: Vec<(f64, f64)> = (0..48)
            .map(|i| (0.004 * (f64::from(i) - 23.5) / 23.5, 0.0))
            .collect();
        let quiet = Beliefs::assumed_of_one_pair(0.01, None)
            .after_changes(&changes)
            .deviation();
        changes.extend([(0.03, 0.0); 12]);
        let after = Beliefs::assumed_of_one_pair(0.01, None)
            .after_changes(&changes)
            .deviation();
        assert!(after < 1.3 * quiet, "{after} after {quiet}");
    }

    #[test]
    fn what_cannot_be_used_is_known() {
        let of = |variance, freedom, weight| {
            Beliefs(vec![Belief {
                variance,
                freedom,
                weight,
            }])
        };
        assert!(of(1.0, 2.0, 1.0).is_sound() && Beliefs::assumed(0.1).is_sound());
        assert!(!Beliefs(Vec::new()).is_sound());
        for wrong in [
            of(-1.0, 2.0, 1.0),
            of(1.0, 0.1, 1.0),
            of(1.0, 2.0, f64::NAN),
        ] {
            assert!(!wrong.is_sound());
        }
    }
}
