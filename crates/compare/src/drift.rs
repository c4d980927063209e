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

/// One pair of values for a class, and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hypothesis {
    /// Variance of the logarithm of a change, beside the noise of its medians.
    pub variance: f64,
    /// How alike the benchmarks are.
    pub freedom: f64,
    /// All weights together are 1.
    pub weight: f64,
}

/// The evidence of one benchmark about its class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Mean square of what its changes differ by where nothing changed.
    pub square: f64,
    /// Degrees of freedom of that square.
    pub freedom: f64,
    /// Variance that its medians explain.
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

/// So many of the degrees of freedom are for tails that a quiet machine does not have.
const HEAVY: usize = 2;

/// The distance of tried deviations, as logarithms, around that of the median benchmark.
const STEP: f64 = 0.2;

/// Number of them on either side.
const STEPS: i32 = 20;

/// The weight of a benchmark's evidence, as a power of its likelihood, if there are several pairs.
/// Neighbouring sizes of one kernel drift together, so a class has less evidence than benchmarks.
const INDEPENDENT: f64 = 0.5;

/// Values of less weight than this are dropped.
const NEGLIGIBLE: f64 = 1e-7;

/// Lower bound on squares, because times on a coarse clock can agree to the last digit.
const LEAST_SQUARE: f64 = 1e-14;

/// From squares that no true change touches: how the pairs of processes of a benchmark disagree.
pub(super) fn of_disagreements(evidence: &[Evidence]) -> Vec<Hypothesis> {
    learn(evidence, &FREEDOMS, |_, unchanged| {
        INDEPENDENT * unchanged.iter().sum::<f64>()
    })
}

/// From one change of each benchmark, some of which may be true ones: the two groups of Efron,
/// "Large-scale simultaneous hypothesis testing: the choice of a null hypothesis", JASA 99 (2004).
///
/// Any share of the benchmarks up to three in ten may have changed, by any size from [`LARGE`] on,
/// each order of magnitude being as likely as the next. A few changes far from all the rest are thus
/// true ones; many that thin out with their size are how this machine drifts. On a loaded machine single
/// benchmarks differ by up to five times between two runs of the same code, so there all changes are taken for drift,
/// with tails as heavy as they show. On a [`QUIET`] one the heaviest tails are not tried, which one pair cannot tell
/// from true changes.
pub(super) fn of_changes(evidence: &[Evidence]) -> Vec<Hypothesis> {
    let typical = median(evidence.iter().map(|e| e.square)).unwrap_or_default();
    let is_quiet = typical.sqrt() < QUIET;
    let (freedoms, shares) = match is_quiet {
        true => (&FREEDOMS[HEAVY..], SHARES),
        false => (&FREEDOMS[..], 0),
    };
    let largest = evidence.iter().map(|e| e.square).fold(0.0, f64::max);
    learn(evidence, freedoms, |variance, unchanged| {
        let changed: Vec<f64> = evidence
            .iter()
            .map(|e| {
                let least = LARGE.powi(2) * (variance + e.noise);
                let density = || 1.0 / (e.square * (largest / least).ln().max(1.0));
                if e.square > least { density() } else { 0.0 }
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

/// Weighs each pair of values by the likelihood of the evidence: by what `ln_likelihood` makes of
/// its variance and of the logarithms of the densities of unchanged benchmarks.
fn learn(
    evidence: &[Evidence],
    freedoms: &[f64],
    ln_likelihood: impl Fn(f64, &[f64]) -> f64,
) -> Vec<Hypothesis> {
    let Some(middle) = median(evidence.iter().map(|e| e.square)) else {
        return vec![UNKNOWN];
    };
    let mut all = Vec::new();
    for freedom in freedoms.iter().copied() {
        let densities: Vec<MeanSquare> = (evidence.iter())
            .map(|e| MeanSquare::new(e, freedom))
            .collect();
        for step in -STEPS..=STEPS {
            let variance = middle.max(LEAST_SQUARE) * (2.0 * STEP * f64::from(step)).exp();
            let unchanged: Vec<f64> = (evidence.iter().zip(&densities))
                .map(|(e, density)| density.ln_at(variance + e.noise))
                .collect();
            all.push(Hypothesis {
                variance,
                freedom,
                weight: ln_likelihood(variance, &unchanged),
            });
        }
    }
    let sum = ln_sum(all.iter().map(|h| h.weight));
    for hypothesis in &mut all {
        hypothesis.weight = (hypothesis.weight - sum).exp();
    }
    all.retain(|h| h.weight > NEGLIGIBLE);
    all
}

/// Without evidence about a class, anything may be drift.
const UNKNOWN: Hypothesis = Hypothesis {
    variance: f64::INFINITY,
    freedom: 1.0,
    weight: 1.0,
};

/// Logarithm of the sum of numbers that are given as logarithms.
fn ln_sum(logarithms: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = logarithms.collect();
    let best = all.iter().copied().fold(f64::MIN, f64::max);
    best + all.iter().map(|ln| (ln - best).exp()).sum::<f64>().ln()
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

/// The distribution of the mean square of a benchmark, F beside a scale, at what was seen of it.
struct MeanSquare {
    seen: f64,
    freedom_seen: f64,
    /// Of the class.
    freedom: f64,
    ln_seen: f64,
    /// The part that does not depend on the scale.
    constant: f64,
}

impl MeanSquare {
    fn new(evidence: &Evidence, freedom: f64) -> Self {
        let (seen, freedom_seen) = (evidence.square.max(LEAST_SQUARE), evidence.freedom);
        let both = ln_gamma((freedom_seen + freedom) / 2.0);
        let each = ln_gamma(freedom_seen / 2.0) + ln_gamma(freedom / 2.0);
        Self {
            seen,
            freedom_seen,
            freedom,
            ln_seen: seen.ln(),
            constant: both - each + freedom_seen / 2.0 * (freedom_seen / freedom).ln(),
        }
    }

    /// Logarithm of the density where the expectation is about `scale`.
    fn ln_at(&self, scale: f64) -> f64 {
        let ratio = self.freedom_seen / self.freedom * self.seen / scale;
        let ln_scale = scale.ln();
        self.constant + (self.freedom_seen / 2.0 - 1.0) * (self.ln_seen - ln_scale)
            - (self.freedom_seen + self.freedom) / 2.0 * ratio.ln_1p()
            - ln_scale
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Continuous, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

    use super::*;

    fn evidence(square: f64, freedom: f64) -> Evidence {
        Evidence {
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

    fn of(changes: &[f64]) -> Vec<Hypothesis> {
        let all: Vec<Evidence> = changes.iter().map(|c| evidence(c * c, 1.0)).collect();
        of_changes(&all)
    }

    /// Probability of a change of this size or more in a benchmark that did not change.
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
            let (seen, scale, square) = (4.0, 0.25, 0.7);
            let f = MeanSquare::new(&evidence(square, seen), prior);
            let want = FisherSnedecor::new(seen, prior)
                .unwrap()
                .ln_pdf(square / scale)
                - scale.ln();
            assert!((f.ln_at(scale) - want).abs() < 1e-9);
        }
    }

    #[test]
    fn any_deviation_is_learnt() {
        for planted in [1e-4, 1.0, 1e2] {
            let changes: Vec<f64> = quiet(100).iter().map(|c| planted * c).collect();
            close(deviation(&of(&changes)) / planted, 0.0102);
        }
        // Times that agree to the last digit drift by less than anybody asks for.
        close(deviation(&of(&[0.0; 20])), 1.01e-7);
    }

    #[test]
    fn benchmarks_that_differ_widely_are_known_to() {
        let learnt = |squares: &[f64]| {
            let all: Vec<Evidence> = squares.iter().map(|s| evidence(*s, 5.0)).collect();
            of_disagreements(&all)
        };
        let freedom = |squares: &[f64]| -> f64 {
            let all = learnt(squares);
            all.iter().map(|h| h.weight * h.freedom).sum()
        };
        let unlike =
            |factor: f64| -> Vec<f64> { (0..60).map(|i| 1e-4 * factor.powi(i % 5 - 2)).collect() };
        close(freedom(&[1e-4; 60]), 54.31);
        close(freedom(&unlike(2.5)), 2.282);
        close(freedom(&unlike(10.0)), 1.0);
        close(deviation(&learnt(&unlike(10.0))), 4.391e-3);
        // One benchmark tells hardly anything: of the seven times forty-one pairs most remain.
        assert_eq!(of_disagreements(&[evidence(1e-4, 1.0)]).len(), 262);
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
            close(unlikely(&of(&changes), 0.06), p);
        }
    }

    #[test]
    fn changes_that_thin_out_are_drift() {
        // As Student's t with four degrees of freedom has them, which gives 5.6e-4.
        let t = StudentsT::new(0.0, 0.01, 4.0).unwrap();
        let heavy: Vec<f64> = (0..200)
            .map(|i| t.inverse_cdf((f64::from(i) + 0.5) / 200.0))
            .collect();
        close(unlikely(&of(&heavy), 0.1), 4.429e-4);
    }

    #[test]
    fn four_benchmarks_tell_little_and_none_nothing() {
        let hypotheses = of(&quiet(4));
        close(unlikely(&hypotheses, 0.1), 4.405e-4);
        assert_eq!(hypotheses.len(), 192);
        assert_eq!(of_changes(&[]), [UNKNOWN]);
        for all in [&hypotheses[..], &[UNKNOWN]] {
            close(all.iter().map(|h| h.weight).sum(), 1.0);
        }
        assert_eq!(deviation(&[UNKNOWN]), f64::INFINITY);
    }
}
