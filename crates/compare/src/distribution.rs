//! The distribution of an estimated change: a mixture of Student's t distributions.

use crossover_results::statistics::between_processes::{Spread, upper_tail};
use crossover_results::statistics::mean;

/// Student's t distributions around one centre, with weights whose sum is 1.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    pub(super) centre: f64,
    /// The change that the class may have in common.
    pub(super) common: f64,
    /// The step of the clock.
    pub(super) step: f64,
    pub(super) parts: Vec<Scaled>,
    /// Degrees of freedom that another pair adds.
    pub(super) per_pair: f64,
}

/// One Student's t distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaled {
    pub(super) weight: f64,
    /// Standard error.
    pub(super) error: f64,
    pub(super) freedom: f64,
}

impl Distribution {
    /// The trimmed mean without a quarter of the pairs at either end, which outlying processes do
    /// not move (Tukey and McLaughlin, "Less vulnerable confidence and
    /// significance procedures for location based on a single sample", Sankhya A 25, 1963).
    pub(super) fn of_trimmed_mean(mut changes: Vec<f64>, more_variance: f64, step: f64) -> Self {
        changes.sort_unstable_by(f64::total_cmp);
        let cut = changes.len() / 4;
        let last = changes.len() - 1 - cut;
        let kept = (last + 1 - cut) as f64;
        let centre = mean(changes[cut..=last].iter().copied());
        for i in 0..cut {
            changes[i] = changes[cut];
            changes[last + 1 + i] = changes[last];
        }
        let squares = Spread::of(&changes).squares;
        Self {
            centre,
            common: 0.0,
            step,
            parts: vec![Scaled {
                weight: 1.0,
                error: (squares / (kept * (kept - 1.0)) + more_variance).sqrt(),
                freedom: kept - 1.0,
            }],
            per_pair: 0.5,
        }
    }

    /// Standard error: the root of the mean variance of the parts.
    pub(super) fn error(&self) -> f64 {
        let parts = self.parts.iter();
        let variance: f64 = parts.map(|part| part.weight * part.error.powi(2)).sum();
        variance.sqrt()
    }

    /// The distribution around zero that `pairs` pairs would give, if `now` pairs gave this one.
    pub(super) fn with_pairs(&self, now: f64, pairs: f64) -> Self {
        let parts = self.parts.iter().map(|part| Scaled {
            weight: part.weight,
            error: part.error * (now / pairs.max(1.0)).sqrt(),
            // Each pair adds degrees of freedom.
            freedom: (part.freedom + self.per_pair * (pairs - now)).max(1.0),
        });
        Self {
            centre: 0.0,
            common: 0.0,
            parts: parts.collect(),
            ..*self
        }
    }

    /// The smallest change that is possible, whatever the class has in common and the clock hides.
    pub(super) fn change(&self) -> f64 {
        let low = self.common.min(0.0) - self.step;
        let high = self.common.max(0.0) + self.step;
        (self.centre - high).max(0.0) + (self.centre - low).min(0.0)
    }

    /// The size of the largest change that is possible.
    pub(super) fn largest(&self) -> f64 {
        self.centre.abs().max((self.centre - self.common).abs()) + self.step
    }

    /// Centre and ends of the interval that misses with this probability, whatever the class has in
    /// common.
    pub(super) fn interval(&self, error: f64) -> [f64; 3] {
        let half = self.half_width(error) + self.step;
        let low = self.centre - self.common.max(0.0) - half;
        [self.centre, low, self.centre - self.common.min(0.0) + half]
    }

    /// Probability of more than `distance` on one side of the centre.
    pub(super) fn tail(&self, distance: f64) -> f64 {
        let parts = self.parts.iter().map(|part| {
            let t = distance / part.error;
            // Neither times too far apart for a variance nor pairs that agree to the last bit, as on
            // a coarse clock, are evidence.
            if !(part.error > 0.0 && part.error.is_finite() && t.is_finite()) {
                return part.weight;
            }
            part.weight * upper_tail(part.freedom, t)
        });
        parts.sum::<f64>().min(1.0)
    }

    /// The distance from the centre beyond which each side has half of `error`, by secants of the logarithm
    /// (M. Dowell and P. Jarratt, The Pegasus method for computing the root of an equation, BIT 12, 1972).
    pub(super) fn half_width(&self, error: f64) -> f64 {
        let excess = |distance| self.tail(distance).ln() - (error / 2.0).ln();
        let largest = self.parts.iter().map(|part| part.error).fold(0.0, f64::max);
        let (mut kept, mut last) = ((0.0, excess(0.0)), (largest, excess(largest)));
        while last.1 > 0.0 {
            kept = last;
            last.0 *= 2.0;
            // A ratio of more than 10^300 in either direction.
            if last.0.is_nan() || last.0 > 700.0 || last.0 <= 0.0 {
                return f64::INFINITY;
            }
            last.1 = excess(last.0);
        }
        for _ in 0..60 {
            let mut at = last.0 - last.1 * (last.0 - kept.0) / (last.1 - kept.1);
            // A tail of zero has no secant.
            if !((kept.0.min(last.0)..=kept.0.max(last.0)).contains(&at)) {
                at = f64::midpoint(kept.0, last.0);
            }
            if (at - last.0).abs() <= 1e-12 * at {
                return at;
            }
            let found = excess(at);
            if (found > 0.0) == (last.1 > 0.0) {
                kept.1 *= last.1 / (last.1 + found);
            } else {
                kept = last;
            }
            last = (at, found);
        }
        last.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of one standard error and these degrees of freedom.
    fn around(centre: f64, common: f64, error: f64, freedoms: &[f64]) -> Distribution {
        let part = |&freedom| Scaled {
            weight: 1.0 / freedoms.len() as f64,
            error,
            freedom,
        };
        Distribution {
            centre,
            common,
            step: 0.0,
            parts: freedoms.iter().map(part).collect(),
            per_pair: 1.0,
        }
    }

    #[test]
    fn a_mixture_lies_between_its_parts() {
        let half_width = |freedoms: &[f64]| around(0.0, 0.0, 0.01, freedoms).half_width(0.01);
        let [normal, mixed, heavy] = [&[1e6][..], &[4.0, 1e6], &[4.0]].map(half_width);
        assert!((normal / 0.025_758 - 1.0).abs() < 1e-3);
        assert!((heavy / 0.046_041 - 1.0).abs() < 1e-3);
        assert!(normal < mixed && mixed < heavy);
    }

    #[test]
    fn the_outer_quarters_do_not_count() {
        let changes = [
            -99.0, -9.0, -8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 20.0, 30.0, 99.0,
        ];
        let trimmed = Distribution::of_trimmed_mean(changes.to_vec(), 0.0, 0.0);
        assert_eq!((trimmed.centre, trimmed.parts[0].freedom), (3.5, 5.0));
        // The outer ones are taken to be as far as the next: four times 1 and four times 6.
        let squares = 8.0 * 2.5_f64.powi(2) + 2.0 * (1.5_f64.powi(2) + 0.5_f64.powi(2));
        let error = (squares / (6.0 * 5.0)).sqrt();
        assert!((trimmed.parts[0].error - error).abs() < 1e-12);
    }

    #[test]
    fn possible_drift_of_the_class_proves_nothing() {
        for (sign, (centre, change, largest)) in [1.0, -1.0].into_iter().flat_map(|sign| {
            [(0.05, 0.02, 0.05), (0.02, 0.0, 0.02), (-0.04, -0.04, 0.07)].map(|case| (sign, case))
        }) {
            let found = around(sign * centre, sign * 0.03, 0.01, &[1e6]);
            assert!((found.change() - sign * change).abs() < 1e-12);
            assert!((found.largest() - largest).abs() < 1e-12);
            let [_, low, high] = found.interval(0.05);
            assert!((high - low - 0.03 - 2.0 * 0.0196).abs() < 1e-4);
            assert!(low < sign * centre && sign * centre < high);
        }
    }

    #[test]
    fn pairs_without_a_spread_have_no_limits() {
        for error in [0.0, f64::NAN, f64::INFINITY] {
            let unknown = around(0.5, 0.0, error, &[3.0]);
            assert_eq!(unknown.tail(0.5), 1.0);
            assert_eq!(unknown.half_width(0.01), f64::INFINITY);
        }
    }
}
