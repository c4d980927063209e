//! By how much the benchmarks of a class differ between two processes of the same code, learnt
//! from the benchmarks themselves.
//!
//! The change of an unchanged benchmark has the variance `v`, and `v` differs from benchmark to
//! benchmark as `s` times the inverse of a chi-square variable over its degrees of freedom `f`:
//! large where all are alike, 1 or 2 where some drift by far more than the rest. `s` is the
//! variance of the class plus the noise of the benchmark's medians. So a single change follows
//! Student's t, with tails as heavy as the class shows. Neither `s` nor `f` is taken for known: ten
//! benchmarks do not tell them well enough. Every pair of values is kept with its weight, and a
//! probability is averaged over them.

use statrs::function::gamma::ln_gamma;

use crossover_results::statistics::median::median;

/// A possible spread of a class, and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hypothesis {
    /// Variance of the logarithm of a change, beside the noise of its medians.
    pub variance: f64,
    /// How alike the benchmarks are.
    pub freedom: f64,
    /// All weights together are 1.
    pub weight: f64,
}

/// The mean square of one benchmark's changes around the class or around their mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeanSquare {
    pub square: f64,
    pub freedom: f64,
    /// The variance that the noise of its medians explains.
    pub noise: f64,
}

/// Degrees of freedom that are tried.
const FREEDOMS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// The tried shares of changed benchmarks are multiples of this, from zero.
const SHARE: f64 = 0.05;

/// The largest tried multiple. If more benchmarks changed, the class would show the changes instead of
/// the drift.
const SHARES: i32 = 6;

/// A benchmark counts as changed from this multiple of the class's deviation on. Changes have to be
/// large beside the drift: else the two could swap their roles.
pub(super) const LARGE: f64 = 4.7;

/// The change of the typical benchmark between two runs of the same code under which a machine is quiet.
const QUIET: f64 = 0.0135;

/// The number of first [`FREEDOMS`] that are not tried on a quiet machine: their tails are too heavy.
const HEAVY: usize = 2;

/// The distance of tried deviations, as logarithms, around that of the median benchmark.
const STEP: f64 = 0.2;

/// Number of tried deviations on either side.
const STEPS: i32 = 20;

/// The weight of a benchmark's evidence, as a power of its likelihood, if there are several pairs.
/// Neighbouring sizes of one kernel drift together, so a class has less evidence than benchmarks.
const INDEPENDENT: f64 = 0.5;

/// Values of less weight than this are dropped.
const NEGLIGIBLE: f64 = 1e-7;

/// Lower bound on squares, because times on a coarse clock can agree to the last digit.
const LEAST_SQUARE: f64 = 1e-14;

/// The spread of a class with several pairs, by how the pairs of a benchmark disagree, which no true change
/// affects.
pub(super) fn of_disagreements(squares: &[MeanSquare]) -> Vec<Hypothesis> {
    learn(squares, &FREEDOMS, |_, unchanged| {
        INDEPENDENT * unchanged.iter().sum::<f64>()
    })
}

/// The spread of a class from one change of each benchmark, some of which may be true: the two groups of Efron,
/// "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis", JASA 99 (2004).
///
/// Any share of the benchmarks up to three in ten may have changed, by any size from [`LARGE`] on,
/// each order of magnitude being as likely as the next. So a few changes far from all the rest are true,
/// and many changes that thin out with their size are drift. On a loaded machine single
/// benchmarks differ by up to five times between two runs of the same code, so there all changes are taken for drift,
/// with tails as heavy as they show. On a [`QUIET`] one the heaviest tails are not tried, which one pair cannot tell
/// from true changes.
pub(super) fn of_changes(squares: &[MeanSquare]) -> Vec<Hypothesis> {
    let typical = median(squares.iter().map(|e| e.square)).unwrap_or_default();
    let (freedoms, shares) = if typical.sqrt() < QUIET {
        (&FREEDOMS[HEAVY..], SHARES)
    } else {
        (&FREEDOMS[..], 0)
    };
    let largest = squares.iter().map(|e| e.square).fold(0.0, f64::max);
    learn(squares, freedoms, |variance, unchanged| {
        let changed: Vec<f64> = squares
            .iter()
            .map(|e| {
                let least = LARGE.powi(2) * (variance + e.noise);
                if e.square <= least {
                    return 0.0;
                }
                1.0 / (e.square * (largest / least).ln().max(1.0))
            })
            .collect();
        let unchanged: Vec<f64> = unchanged.iter().map(|ln| ln.exp()).collect();
        ln_sum((0..=shares).map(|i| {
            let share = f64::from(i) * SHARE;
            let both = unchanged.iter().zip(&changed);
            both.map(|(unchanged, changed)| {
                ((1.0 - share) * unchanged + share * changed)
                    .max(f64::MIN_POSITIVE)
                    .ln()
            })
            .sum()
        }))
    })
}

/// Weighs each hypothesis by its likelihood. `ln_likelihood` gets the variance and the logarithms of the
/// densities of unchanged benchmarks.
fn learn(
    squares: &[MeanSquare],
    freedoms: &[f64],
    ln_likelihood: impl Fn(f64, &[f64]) -> f64,
) -> Vec<Hypothesis> {
    let Some(middle) = median(squares.iter().map(|e| e.square)) else {
        return vec![UNKNOWN];
    };
    let mut hypotheses = Vec::new();
    for freedom in freedoms.iter().copied() {
        let densities = Vec::from_iter(squares.iter().map(|e| ln_density(e, freedom)));
        for step in -STEPS..=STEPS {
            let variance = middle.max(LEAST_SQUARE) * (2.0 * STEP * f64::from(step)).exp();
            let unchanged: Vec<f64> = (squares.iter().zip(&densities))
                .map(|(e, ln_density)| ln_density(variance + e.noise))
                .collect();
            hypotheses.push(Hypothesis {
                variance,
                freedom,
                weight: ln_likelihood(variance, &unchanged),
            });
        }
    }
    let sum = ln_sum(hypotheses.iter().map(|h| h.weight));
    for hypothesis in &mut hypotheses {
        hypothesis.weight = (hypothesis.weight - sum).exp();
    }
    hypotheses.retain(|h| h.weight > NEGLIGIBLE);
    hypotheses
}

/// A class without evidence: any change may be drift.
const UNKNOWN: Hypothesis = Hypothesis {
    variance: f64::INFINITY,
    freedom: 1.0,
    weight: 1.0,
};

/// Logarithm of the sum of numbers that are given as logarithms.
fn ln_sum(logarithms: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = logarithms.collect();
    let largest = logarithms.iter().copied().fold(f64::MIN, f64::max);
    largest
        + logarithms
            .iter()
            .map(|ln| (ln - largest).exp())
            .sum::<f64>()
            .ln()
}

/// Standard deviation of a change between two processes of the same code, of the median benchmark
/// by the median value.
pub(super) fn deviation(hypotheses: &[Hypothesis]) -> f64 {
    // Median of a chi-square variable over its freedom (Wilson and Hilferty, 1931).
    let typical = |freedom: f64| (1.0 - 2.0 / (9.0 * freedom)).powi(3);
    let mut variances: Vec<(f64, f64)> = hypotheses
        .iter()
        .map(|h| (h.variance / typical(h.freedom), h.weight))
        .collect();
    variances.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut below = 0.0;
    let middle = variances.into_iter().find(|(_, weight)| {
        below += weight;
        below >= 0.5
    });
    middle.map_or(f64::INFINITY, |(variance, _)| variance.sqrt())
}

/// Logarithm of the density of a benchmark's mean square (a scaled F distribution) at its observed value, as a
/// function of its scale. `freedom` is that of the class.
fn ln_density(observed: &MeanSquare, freedom: f64) -> impl Fn(f64) -> f64 {
    let (square, own) = (observed.square.max(LEAST_SQUARE), observed.freedom);
    let both = ln_gamma((own + freedom) / 2.0);
    let each = ln_gamma(own / 2.0) + ln_gamma(freedom / 2.0);
    let constant = both - each + own / 2.0 * (own / freedom).ln();
    let ln_square = square.ln();
    move |scale| {
        let ratio = own / freedom * square / scale;
        let ln_scale = scale.ln();
        constant + (own / 2.0 - 1.0) * (ln_square - ln_scale)
            - (own + freedom) / 2.0 * ratio.ln_1p()
            - ln_scale
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Continuous, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

    use super::*;

    fn observed(square: f64, freedom: f64) -> MeanSquare {
        MeanSquare {
            square,
            freedom,
            noise: 0.0,
        }
    }

    /// Changes as a normal distribution of deviation 1 % has them, evenly.
    fn quiet(count: usize) -> Vec<f64> {
        let normal = Normal::new(0.0, 0.01).unwrap();
        (0..count)
            .map(|i| normal.inverse_cdf((i as f64 + 0.5) / count as f64))
            .collect()
    }

    fn learnt_from(changes: &[f64]) -> Vec<Hypothesis> {
        of_changes(&Vec::from_iter(
            changes.iter().map(|c| observed(c * c, 1.0)),
        ))
    }

    /// Probability of a change of this size or more in an unchanged benchmark.
    fn unlikely(hypotheses: &[Hypothesis], change: f64) -> f64 {
        let tail = |h: &Hypothesis| {
            let t = StudentsT::new(0.0, h.variance.sqrt(), h.freedom).unwrap();
            2.0 * h.weight * t.sf(change)
        };
        hypotheses.iter().map(tail).sum()
    }

    fn close(value: f64, wanted: f64) {
        let error = (value / wanted - 1.0).abs();
        assert!(error < 0.01, "{value:e} for {wanted:e}");
    }

    #[test]
    fn the_density_is_that_of_statrs() {
        for prior in [1.0, 3.0, 20.0] {
            let (own, scale, square) = (4.0, 0.25, 0.7);
            let found = ln_density(&observed(square, own), prior)(scale);
            let f = FisherSnedecor::new(own, prior).unwrap();
            let wanted = f.ln_pdf(square / scale) - scale.ln();
            assert!((found - wanted).abs() < 1e-9);
        }
    }

    #[test]
    fn any_deviation_is_learnt() {
        for planted in [1e-4, 1.0, 1e2] {
            let changes: Vec<f64> = quiet(100).iter().map(|c| planted * c).collect();
            close(deviation(&learnt_from(&changes)) / planted, 0.0102);
        }
        // Times that agree to the last digit drift by less than anybody asks for.
        close(deviation(&learnt_from(&[0.0; 20])), 1.01e-7);
    }

    #[test]
    fn benchmarks_that_differ_widely_are_known_to() {
        let learnt = |squares: &[f64]| {
            of_disagreements(&Vec::from_iter(squares.iter().map(|s| observed(*s, 5.0))))
        };
        let freedom = |squares: &[f64]| -> f64 {
            let hypotheses = learnt(squares).into_iter();
            hypotheses.map(|h| h.weight * h.freedom).sum()
        };
        let unlike =
            |factor: f64| -> Vec<f64> { (0..60).map(|i| 1e-4 * factor.powi(i % 5 - 2)).collect() };
        close(freedom(&[1e-4; 60]), 54.31);
        close(freedom(&unlike(2.5)), 2.282);
        close(freedom(&unlike(10.0)), 1.0);
        close(deviation(&learnt(&unlike(10.0))), 4.391e-3);
        // One benchmark tells hardly anything: of the seven times forty-one pairs most remain.
        assert_eq!(of_disagreements(&[observed(1e-4, 1.0)]).len(), 262);
    }

    /// The figures are those of the method as it is: the tests at length say whether it keeps its
    /// promise, and this one that it is still the same.
    #[test]
    fn a_few_changes_far_from_the_rest_are_not_drift() {
        for (changed, size, p) in [
            (0, 0.0, 1.588e-4),
            (1, 0.08, 2.388e-4),
            (12, 0.06, 2.021e-4),
            (18, 0.07, 4.031e-4),
        ] {
            let mut changes = quiet(60 - changed);
            changes.extend((0..changed).map(|i| size * (1.0 + 0.02 * i as f64)));
            close(unlikely(&learnt_from(&changes), 0.06), p);
        }
    }

    #[test]
    fn changes_that_thin_out_are_drift() {
        // As Student's t with four degrees of freedom has them, which gives 5.6e-4.
        let t = StudentsT::new(0.0, 0.01, 4.0).unwrap();
        let heavy: Vec<f64> = (0..200)
            .map(|i| t.inverse_cdf((f64::from(i) + 0.5) / 200.0))
            .collect();
        close(unlikely(&learnt_from(&heavy), 0.1), 4.429e-4);
    }

    #[test]
    fn four_benchmarks_tell_little_and_none_nothing() {
        let hypotheses = learnt_from(&quiet(4));
        close(unlikely(&hypotheses, 0.1), 4.405e-4);
        assert_eq!(hypotheses.len(), 192);
        assert_eq!(of_changes(&[]), [UNKNOWN]);
        for hypotheses in [&hypotheses[..], &[UNKNOWN]] {
            close(hypotheses.iter().map(|h| h.weight).sum(), 1.0);
        }
        assert_eq!(deviation(&[UNKNOWN]), f64::INFINITY);
    }
}
