//! One benchmark's change and how far it can be trusted.

use crate::case::{Case, RunPair};
use crate::learn::DriftModel;
use crossover_results::statistics::mean;
use crossover_results::statistics::spread::{Spread, freedom_of_sum, upper_tail};

/// Pairs of processes from which on a benchmark is also judged by its own alone.
const ENOUGH_PAIRS: usize = 8;

/// Degrees of freedom of the spread that is known of processes: some have another mode.
const KNOWN_FREEDOM: f64 = 8.0;

/// Resolution is the change that is found with this probability.
const FOUND: f64 = 0.95;

/// The change of one benchmark, as a logarithm, seen in some of its pairs.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub(super) pairs: usize,
    /// The mean correction for the launch constant, which is taken off it; `None` without one.
    pub(super) correction: Option<f64>,
    /// By the drift of its class.
    modelled: Distribution,
    /// By its own pairs alone, if there are enough.
    own: Option<Distribution>,
}

/// Student's t around `centre`, of several scales and degrees of freedom.
#[derive(Clone, Debug)]
struct Distribution {
    centre: f64,
    /// The change that the class may have in common.
    common: f64,
    /// The step of the clock.
    step: f64,
    parts: Vec<Scaled>,
    /// Degrees of freedom that another pair adds.
    per_pair: f64,
}

#[derive(Clone, Copy, Debug)]
struct Scaled {
    weight: f64,
    /// Standard error.
    error: f64,
    freedom: f64,
}

impl Estimate {
    /// From the pairs of `case` that `wanted` names by their rounds; `None` without any.
    ///
    /// `member` is its place in the class that was learnt from.
    pub(super) fn of(
        case: &Case,
        model: &DriftModel,
        member: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let pairs = || case.pairs.iter().filter(|pair| wanted(pair.round));
        let changes: Vec<f64> = pairs().map(RunPair::change).collect();
        let k = changes.len() as f64;
        if changes.is_empty() {
            return None;
        }
        let slope = case.slope.map(|slope| {
            let correction = mean(pairs().map(|pair| pair.correction));
            (
                correction,
                (correction * slope.error / slope.value).powi(2),
                slope.freedom,
            )
        });
        let noise = case.pair_noise();
        // The class has the scale of its typical benchmark.
        let squared = case.scale.powi(-2);
        let own = model.own[member].map_or(Spread::default(), |own| {
            Spread::known(squared * own.square, own.freedom)
        });
        let fitted = case.slope.map_or(0.0, |slope| slope.fitted);
        let common = Spread {
            freedom: (model.common.freedom - fitted).max(0.0),
            ..model.common
        };
        let shown = shown_by_some(&changes, case.pairs.len());
        let parts = model.hypotheses.iter().map(|hypothesis| {
            let mut freedom = hypothesis.freedom * model.others;
            let mut variance = squared * hypothesis.variance;
            if model.is_of_one_pair && variance < case.known_variance {
                variance = case.known_variance;
                freedom = freedom.max(KNOWN_FREEDOM);
            }
            let class = Spread::known(variance + noise, freedom);
            let all = own.and(class);
            let square = all.variance().unwrap_or(f64::INFINITY).max(shown);
            let common = (common.variance()).map(|variance| (squared * variance, common.freedom));
            let slope = slope.map(|(_, variance, freedom)| (k * variance, freedom));
            let mut variances = vec![(square, all.freedom)];
            variances.extend(common.into_iter().chain(slope));
            let freedom = match variances[..] {
                [(_, freedom)] => freedom,
                _ => freedom_of_sum(&variances),
            };
            let sum: f64 = variances.iter().map(|(variance, _)| variance).sum();
            Scaled {
                weight: hypothesis.weight,
                error: (sum / k).sqrt(),
                freedom,
            }
        });
        let parts: Vec<Scaled> = parts.collect();
        let slope_variance = slope.map_or(0.0, |(_, variance, _)| variance);
        Some(Self {
            pairs: changes.len(),
            correction: slope.map(|(correction, ..)| correction),
            modelled: Distribution {
                centre: mean(changes.iter().copied()),
                common: model.centre / case.scale,
                step: case.step,
                parts,
                per_pair: 1.0,
            },
            own: (changes.len() >= ENOUGH_PAIRS).then(|| Distribution {
                step: case.step,
                ..Distribution::of_trimmed_mean(changes, slope_variance)
            }),
        })
    }

    fn ways(&self) -> impl Iterator<Item = &Distribution> {
        std::iter::once(&self.modelled).chain(&self.own)
    }

    /// Each of two methods gets half of the error, so that the better one may be chosen.
    fn share(&self) -> f64 {
        1.0 / self.ways().count() as f64
    }

    /// The change, by the mean over the pairs.
    pub(super) fn centre(&self) -> f64 {
        self.modelled.centre
    }

    /// The least change shown, by the method with the strongest evidence: one process far off can turn
    /// the sign of the mean.
    pub(super) fn change(&self) -> f64 {
        self.most_significant().change()
    }

    fn most_significant(&self) -> &Distribution {
        let unlikely = |d: &&Distribution| d.tail(d.change().abs());
        self.ways()
            .min_by(|a, b| unlikely(a).total_cmp(&unlikely(b)))
            .expect("there is always one way")
    }

    /// Probability of seeing this much of a change or more where there is none.
    pub(super) fn p_value(&self) -> f64 {
        let least = self.ways().map(|d| 2.0 * d.tail(d.change().abs()));
        (least.fold(1.0, f64::min) / self.share()).min(1.0)
    }

    /// Probability of seeing so little of a change where there is one of `edge` or more: two
    /// one-sided tests (Schuirmann, "A comparison of the two one-sided tests procedure and the
    /// power approach for assessing the equivalence of average bioavailability", Journal of
    /// Pharmacokinetics and Biopharmaceutics 15, 1987).
    pub(super) fn if_changed(&self, edge: f64) -> f64 {
        let least = self.ways().map(|d| d.tail(edge - d.largest()));
        (least.fold(1.0, f64::min) / self.share()).min(1.0)
    }

    /// Centre of the method with the strongest evidence for a change, and the ends of its interval that
    /// misses with this probability.
    pub(super) fn interval_of_change(&self, error: f64) -> [f64; 3] {
        self.most_significant().interval(error * self.share())
    }

    /// Centre and ends of the interval that misses with this probability; the narrower of the two
    /// ways.
    pub(super) fn interval(&self, error: f64) -> [f64; 3] {
        let width = |[_, low, high]: &[f64; 3]| high - low;
        self.ways()
            .map(|d| d.interval(error * self.share()))
            .min_by(|a, b| width(a).total_cmp(&width(b)))
            .expect("there is always one way")
    }

    /// Standard error of the change, by the drift of its class.
    pub(super) fn standard_error(&self) -> f64 {
        self.modelled.error()
    }

    /// Standard deviation of one pair's change, by the more certain method: pairs far off widen the
    /// mean, and not the trimmed mean.
    pub(super) fn deviation(&self) -> f64 {
        let errors = self.ways().map(Distribution::error);
        errors.fold(f64::INFINITY, f64::min) * (self.pairs as f64).sqrt()
    }

    /// The smallest change that is found with the probability [`FOUND`] from `pairs` of
    /// processes, where what is found has this error.
    pub(super) fn resolution(&self, error: f64, pairs: usize) -> f64 {
        let found = |way: &Distribution| {
            let then = way.with_pairs(self.pairs as f64, pairs as f64);
            let width = |error| then.half_width(error);
            way.step + width(error * self.share()) + width(2.0 * (1.0 - FOUND))
        };
        self.ways().map(found).fold(f64::INFINITY, f64::min)
    }
}

/// Variance of one pair's change that only some of a benchmark's pairs show; 0 if these are all `of`
/// them. A pair far off weighs less the more others there are, but not in the mean of the few that an
/// early analysis saw, which is known no better than these few show.
fn shown_by_some(changes: &[f64], of: usize) -> f64 {
    let spread = Spread::of(changes).variance();
    spread.filter(|_| changes.len() < of).unwrap_or(0.0)
}

impl Distribution {
    /// Without a quarter of the pairs at either end: on a machine where some processes are far
    /// off, the others still tell (Tukey and McLaughlin, "Less vulnerable confidence and
    /// significance procedures for location based on a single sample", Sankhya A 25, 1963).
    fn of_trimmed_mean(mut changes: Vec<f64>, more_variance: f64) -> Self {
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
            step: 0.0,
            parts: vec![Scaled {
                weight: 1.0,
                error: (squares / (kept * (kept - 1.0)) + more_variance).sqrt(),
                freedom: kept - 1.0,
            }],
            per_pair: 0.5,
        }
    }

    /// Standard error, of the mean square over the parts.
    fn error(&self) -> f64 {
        let squares = self
            .parts
            .iter()
            .map(|part| part.weight * part.error.powi(2));
        squares.sum::<f64>().sqrt()
    }

    /// Around zero, where it rests on as many `pairs` instead of `now`.
    fn with_pairs(&self, now: f64, pairs: f64) -> Self {
        let parts = self.parts.iter().map(|part| Scaled {
            weight: part.weight,
            error: part.error * (now / pairs.max(1.0)).sqrt(),
            // Each pair adds degrees of freedom.
            freedom: (part.freedom + self.per_pair * (pairs - now)).max(1.0),
        });
        Self {
            centre: 0.0,
            common: 0.0,
            step: self.step,
            parts: parts.collect(),
            per_pair: self.per_pair,
        }
    }

    /// The end of the change nearest to zero, whatever the class has in common and the clock hides.
    fn change(&self) -> f64 {
        let low = self.common.min(0.0) - self.step;
        let high = self.common.max(0.0) + self.step;
        (self.centre - high).max(0.0) + (self.centre - low).min(0.0)
    }

    /// The size of the end farthest from zero.
    fn largest(&self) -> f64 {
        self.centre.abs().max((self.centre - self.common).abs()) + self.step
    }

    /// Centre and ends of the interval that misses with this probability, whatever the class did
    /// alike.
    fn interval(&self, error: f64) -> [f64; 3] {
        let half = self.half_width(error) + self.step;
        let low = self.centre - self.common.max(0.0) - half;
        [self.centre, low, self.centre - self.common.min(0.0) + half]
    }

    /// Probability of more than `distance` on one side of the centre.
    fn tail(&self, distance: f64) -> f64 {
        let parts = self.parts.iter().map(|part| {
            let t = distance / part.error;
            // Times too far apart for a variance, and pairs that agree to the last bit, as on a
            // coarse clock, tell nothing.
            if !(part.error > 0.0 && part.error.is_finite() && t.is_finite()) {
                return part.weight;
            }
            part.weight * upper_tail(part.freedom, t)
        });
        parts.sum::<f64>().min(1.0)
    }

    /// The distance from the centre that has half of `error` beyond it on each side, by secants of the logarithm
    /// (M. Dowell and P. Jarratt, The Pegasus method for computing the root of an equation, BIT 12, 1972).
    fn half_width(&self, error: f64) -> f64 {
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
impl Estimate {
    /// No change, with this standard error, as if it were known.
    pub(super) fn known(pairs: usize, error: f64) -> Self {
        let part = Scaled {
            weight: 1.0,
            error,
            freedom: 1e6,
        };
        Self {
            pairs,
            correction: None,
            modelled: Distribution {
                centre: 0.0,
                common: 0.0,
                step: 0.0,
                parts: vec![part],
                per_pair: 1.0,
            },
            own: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::LaunchSlope;
    use crate::drift::Hypothesis;
    use crate::median::{Location, Median};
    use crossover_results::model::id::Device;
    use crossover_results::statistics::between_processes::Class;

    /// Around `centre`, with parts of one standard error and these degrees of freedom.
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
        assert!((half_width(&[1e6]) / 0.025_758 - 1.0).abs() < 1e-3);
        assert!((half_width(&[4.0]) / 0.046_041 - 1.0).abs() < 1e-3);
        assert!(
            half_width(&[1e6]) < half_width(&[4.0, 1e6])
                && half_width(&[4.0, 1e6]) < half_width(&[4.0])
        );
    }

    /// The shifts that the slope was fitted to vary less around it.
    #[test]
    fn the_fit_of_the_slope_leaves_the_common_part_less_freedom() {
        let median = |ns| Median::of(Location::Median, &[ns; 5]).unwrap();
        let class = Class::of(Some(Device::Gpu), None, 1e3, None);
        let pairs = (0..4).map(|round| RunPair::of(round, median(100.0), median(110.0)));
        let slope = LaunchSlope {
            value: 1.0,
            error: 0.05,
            freedom: 3.0,
            fitted: 0.75,
            benchmarks: 1,
        };
        let case = Case {
            slope: Some(slope),
            ..Case::of(class, pairs.collect())
        };
        let certain = Hypothesis {
            variance: 1e-12,
            freedom: 1e6,
            weight: 1.0,
        };
        let model = DriftModel {
            hypotheses: vec![certain],
            common: Spread {
                squares: 9e-4,
                freedom: 3.0,
            },
            centre: 0.0,
            own: vec![None],
            others: 1.0,
            is_of_one_pair: false,
        };
        let estimate = Estimate::of(&case, &model, 0, |_| true).unwrap();
        let Scaled { error, freedom, .. } = estimate.modelled.parts[0];
        assert!((error - 0.01).abs() < 1e-6, "{error}");
        assert!((freedom - 2.25).abs() < 1e-3, "{freedom}");
    }

    #[test]
    fn eight_pairs_also_speak_for_themselves() {
        let median = |ns| Median::of(Location::Median, &[ns; 5]).unwrap();
        let pair = |round| RunPair::of(round, median(100.0), median(100.0 + round as f64));
        let of = |pairs| {
            let class = Class::of(Some(Device::Cpu), None, 1e3, None);
            let case = Case::of(class, (0..pairs).map(pair).collect());
            let model = DriftModel::of(&[&case]);
            Estimate::of(&case, &model, 0, |_| true).unwrap()
        };
        assert!(of(7).own.is_none() && of(8).own.is_some());
        // The prediction for more pairs is the estimate that they then give.
        let [four, eight, sixteen] = [4, 8, 16].map(of);
        let freedom = |way: &Distribution| way.parts[0].freedom;
        assert_eq!(
            freedom(&four.modelled.with_pairs(4.0, 8.0)),
            freedom(&eight.modelled)
        );
        let own = [eight.own.unwrap(), sixteen.own.unwrap()];
        assert_eq!(freedom(&own[0].with_pairs(8.0, 16.0)), freedom(&own[1]));
    }

    #[test]
    fn a_pair_far_off_is_no_change_of_the_few_that_it_fell_among() {
        let median = |ns| Median::of(Location::Median, &[ns; 5]).unwrap();
        // As of a real benchmark beside other processes: 70 pairs within 2 %, one 42 % off.
        let new = |round: usize| match round {
            9 => 152.0,
            _ => 100.0 + (round % 5) as f64 - 2.0,
        };
        let pair = |round| RunPair::of(round, median(100.0), median(new(round)));
        let class = Class::of(Some(Device::Cpu), None, 1e3, None);
        let case = Case::of(class, (0..71).map(pair).collect());
        let model = DriftModel::of(&[&case]);
        let six = Estimate::of(&case, &model, 0, |round| (8..14).contains(&round)).unwrap();
        assert!(six.p_value() > 0.2, "{}", six.p_value());
    }

    #[test]
    fn the_outer_quarters_do_not_count() {
        let trimmed = Distribution::of_trimmed_mean(
            vec![
                -99.0, -9.0, -8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 20.0, 30.0, 99.0,
            ],
            0.0,
        );
        assert_eq!((trimmed.centre, trimmed.parts[0].freedom), (3.5, 5.0));
        // The outer ones are taken to be as far as the next: four times 1 and four times 6.
        let squares = 8.0 * 2.5_f64.powi(2) + 2.0 * (1.5_f64.powi(2) + 0.5_f64.powi(2));
        let error = (squares / (6.0 * 5.0)).sqrt();
        assert!((trimmed.parts[0].error - error).abs() < 1e-12);
    }

    #[test]
    fn the_resolution_is_found_in_95_of_100() {
        let estimate = Estimate::known(4, 0.01);
        let wanted = 0.01 * (2.5758 + 1.6449);
        assert!((estimate.resolution(0.01, 4) / wanted - 1.0).abs() < 1e-3);
        assert!((estimate.resolution(0.01, 16) / wanted - 0.5).abs() < 1e-3);
    }

    #[test]
    fn possible_drift_of_the_class_proves_nothing() {
        for sign in [1.0, -1.0] {
            let of = |centre: f64, common: f64| around(sign * centre, sign * common, 0.01, &[1e6]);
            for (centre, change, largest) in
                [(0.05, 0.02, 0.05), (0.02, 0.0, 0.02), (-0.04, -0.04, 0.07)]
            {
                let seen = of(centre, 0.03);
                assert!((seen.change() - sign * change).abs() < 1e-12);
                assert!((seen.largest() - largest).abs() < 1e-12);
                let [_, low, high] = seen.interval(0.05);
                assert!((high - low - 0.03 - 2.0 * 0.0196).abs() < 1e-4);
                assert!(low < sign * centre && sign * centre < high);
            }
        }
    }

    #[test]
    fn pairs_that_tell_nothing_reach_everywhere() {
        for error in [0.0, f64::NAN, f64::INFINITY] {
            let nothing = around(0.5, 0.0, error, &[3.0]);
            assert_eq!(nothing.tail(0.5), 1.0);
            assert_eq!(nothing.half_width(0.01), f64::INFINITY);
        }
    }
}
