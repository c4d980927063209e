//! The estimated change of one benchmark, from some of its pairs.

use crate::case::{Case, RunPair};
use crate::distribution::{Distribution, Scaled};
use crate::learn::DriftModel;
use crossover_results::statistics::between_processes::{Spread, freedom_of_sum};
use crossover_results::statistics::mean;

/// Pairs of processes from which on a benchmark is also judged by its own pairs alone.
const ENOUGH_PAIRS: usize = 8;

/// Degrees of freedom of the known spread between processes: some have another mode.
const KNOWN_FREEDOM: f64 = 8.0;

/// The probability with which a change as large as the resolution is found.
const FOUND: f64 = 0.95;

/// The change of one benchmark, as a logarithm, in some of its pairs.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    pub(super) pairs: usize,
    /// The mean correction for the launch constant, which the change excludes; `None` without one.
    pub(super) correction: Option<f64>,
    /// The change by the drift of its class.
    by_class: Distribution,
    /// The change by its own pairs alone, if there are enough.
    by_pairs: Option<Distribution>,
}

impl Estimate {
    /// The estimate from the pairs whose rounds are `wanted`; `None` without any.
    ///
    /// `member` is the index of `case` in its class.
    pub(super) fn of(
        case: &Case,
        model: &DriftModel,
        member: usize,
        wanted: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let pairs = || case.pairs.iter().filter(|pair| wanted(pair.round));
        let changes: Vec<f64> = pairs().map(RunPair::change).collect();
        if changes.is_empty() {
            return None;
        }
        let correction = (case.slope).map(|_| mean(pairs().map(|pair| pair.correction)));
        let slope = correction.zip(case.slope).map(|(correction, slope)| {
            let variance = (correction * slope.error / slope.value).powi(2);
            (variance, slope.freedom)
        });
        let slope_variance = slope.map_or(0.0, |(variance, _)| variance);
        Some(Self {
            pairs: changes.len(),
            correction,
            by_class: by_class(case, model, member, &changes, slope),
            by_pairs: (changes.len() >= ENOUGH_PAIRS)
                .then(|| Distribution::of_trimmed_mean(changes, slope_variance, case.step)),
        })
    }

    fn distributions(&self) -> impl Iterator<Item = &Distribution> {
        std::iter::once(&self.by_class).chain(&self.by_pairs)
    }

    /// The share of the error for each distribution, so that the better one may be chosen.
    fn share(&self) -> f64 {
        1.0 / self.distributions().count() as f64
    }

    /// The mean change of the pairs.
    pub(super) fn centre(&self) -> f64 {
        self.by_class.centre
    }

    /// The smallest possible change, by the distribution with the strongest evidence: one outlying process
    /// can turn the sign of the mean.
    pub(super) fn change(&self) -> f64 {
        self.most_significant().change()
    }

    fn most_significant(&self) -> &Distribution {
        let tail = |d: &&Distribution| d.tail(d.change().abs());
        self.distributions()
            .min_by(|a, b| tail(a).total_cmp(&tail(b)))
            .expect("there is always one")
    }

    /// Probability of this change or a larger one where nothing changed.
    pub(super) fn p_value(&self) -> f64 {
        let tails = self.distributions().map(|d| 2.0 * d.tail(d.change().abs()));
        (tails.fold(1.0, f64::min) / self.share()).min(1.0)
    }

    /// Probability of this change or a smaller one where the true change is `edge` or more: two
    /// one-sided tests (Schuirmann, "A comparison of the two one-sided tests procedure and the
    /// power approach for assessing the equivalence of average bioavailability", Journal of
    /// Pharmacokinetics and Biopharmaceutics 15, 1987).
    pub(super) fn if_changed(&self, edge: f64) -> f64 {
        let tails = self.distributions().map(|d| d.tail(edge - d.largest()));
        (tails.fold(1.0, f64::min) / self.share()).min(1.0)
    }

    /// Centre and ends of the interval that misses with this probability, by the distribution with the
    /// strongest evidence for a change.
    pub(super) fn interval_of_change(&self, error: f64) -> [f64; 3] {
        self.most_significant().interval(error * self.share())
    }

    /// Centre and ends of the narrowest interval that misses with this probability.
    pub(super) fn interval(&self, error: f64) -> [f64; 3] {
        let width = |[_, low, high]: &[f64; 3]| high - low;
        self.distributions()
            .map(|d| d.interval(error * self.share()))
            .min_by(|a, b| width(a).total_cmp(&width(b)))
            .expect("there is always one")
    }

    /// Standard error of the change, by the drift of its class.
    pub(super) fn standard_error(&self) -> f64 {
        self.by_class.error()
    }

    /// Standard deviation of one pair's change, by the more certain distribution: outlying pairs widen
    /// the mean, and not the trimmed mean.
    pub(super) fn deviation(&self) -> f64 {
        let errors = self.distributions().map(Distribution::error);
        errors.fold(f64::INFINITY, f64::min) * (self.pairs as f64).sqrt()
    }

    /// The smallest change that `pairs` pairs of processes find with the probability [`FOUND`], if verdicts
    /// have this error.
    pub(super) fn resolution(&self, error: f64, pairs: usize) -> f64 {
        let resolution = |d: &Distribution| {
            let predicted = d.with_pairs(self.pairs as f64, pairs as f64);
            d.step
                + predicted.half_width(error * self.share())
                + predicted.half_width(2.0 * (1.0 - FOUND))
        };
        let resolutions = self.distributions().map(resolution);
        resolutions.fold(f64::INFINITY, f64::min)
    }
}

/// The change by the drift of its class. `slope` is the variance that the slope of the launch constant adds,
/// with its degrees of freedom.
fn by_class(
    case: &Case,
    model: &DriftModel,
    member: usize,
    changes: &[f64],
    slope: Option<(f64, f64)>,
) -> Distribution {
    let pairs = changes.len() as f64;
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
    let shown = shown_by_some(changes, case.pairs.len());
    let parts = model.hypotheses.iter().map(|hypothesis| {
        let mut freedom = hypothesis.freedom * model.others;
        let mut variance = squared * hypothesis.variance;
        if model.is_of_one_pair && variance < case.known_variance {
            variance = case.known_variance;
            freedom = freedom.max(KNOWN_FREEDOM);
        }
        let spread = own.and(Spread::known(variance + noise, freedom));
        let square = spread.variance().unwrap_or(f64::INFINITY).max(shown);
        let common = (common.variance()).map(|variance| (squared * variance, common.freedom));
        let slope = slope.map(|(variance, freedom)| (pairs * variance, freedom));
        let mut variances = vec![(square, spread.freedom)];
        variances.extend(common.into_iter().chain(slope));
        let freedom = match variances[..] {
            [(_, freedom)] => freedom,
            _ => freedom_of_sum(&variances),
        };
        let sum: f64 = variances.iter().map(|(variance, _)| variance).sum();
        Scaled {
            weight: hypothesis.weight,
            error: (sum / pairs).sqrt(),
            freedom,
        }
    });
    Distribution {
        centre: mean(changes.iter().copied()),
        common: model.centre / case.scale,
        step: case.step,
        parts: parts.collect(),
        per_pair: 1.0,
    }
}

/// Variance of one pair's change where these are only some of the `pairs` of a benchmark; 0 where they are
/// all. An outlying pair weighs less the more others there are, but not in the mean of the few pairs of an
/// early analysis.
fn shown_by_some(changes: &[f64], pairs: usize) -> f64 {
    let spread = Spread::of(changes).variance();
    spread.filter(|_| changes.len() < pairs).unwrap_or(0.0)
}

#[cfg(test)]
impl Estimate {
    /// No change, with a known standard error.
    pub(super) fn known(pairs: usize, error: f64) -> Self {
        let part = Scaled {
            weight: 1.0,
            error,
            freedom: 1e6,
        };
        Self {
            pairs,
            correction: None,
            by_class: Distribution {
                centre: 0.0,
                common: 0.0,
                step: 0.0,
                parts: vec![part],
                per_pair: 1.0,
            },
            by_pairs: None,
        }
    }

    /// The same, whose own pairs show a change.
    pub(super) fn with_own(mut self, centre: f64, error: f64) -> Self {
        let own = Self::known(self.pairs, error).by_class;
        self.by_pairs = Some(Distribution { centre, ..own });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::LaunchSlope;
    use crate::drift::Hypothesis;
    use crate::tests::case_of;
    use crossover_results::model::id::Device;

    /// The shifts that the slope was fitted to vary less around it.
    #[test]
    fn the_fit_of_the_slope_leaves_the_common_part_less_freedom() {
        let slope = LaunchSlope {
            value: 1.0,
            error: 0.05,
            freedom: 3.0,
            fitted: 0.75,
            benchmarks: 1,
        };
        let case = Case {
            slope: Some(slope),
            ..case_of(Device::Gpu, 0..4, |_| 110.0)
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
        let Scaled { error, freedom, .. } = estimate.by_class.parts[0];
        assert!((error - 0.01).abs() < 1e-6, "{error}");
        assert!((freedom - 2.25).abs() < 1e-3, "{freedom}");
    }

    #[test]
    fn from_eight_pairs_on_a_benchmark_is_also_judged_by_its_own() {
        let estimate = |pairs| {
            let case = case_of(Device::Cpu, 0..pairs, |round| 100.0 + round as f64);
            let model = DriftModel::of(&[&case]);
            Estimate::of(&case, &model, 0, |_| true).unwrap()
        };
        let [four, seven, eight, sixteen] = [4, 7, 8, 16].map(estimate);
        assert!(seven.by_pairs.is_none());
        // The prediction for more pairs is the estimate that they then give.
        let freedom = |distribution: &Distribution| distribution.parts[0].freedom;
        let predicted = four.by_class.with_pairs(4.0, 8.0);
        assert_eq!(freedom(&predicted), freedom(&eight.by_class));
        let predicted = eight.by_pairs.unwrap().with_pairs(8.0, 16.0);
        assert_eq!(freedom(&predicted), freedom(&sixteen.by_pairs.unwrap()));
    }

    #[test]
    fn an_outlying_pair_is_no_change_of_the_few_pairs_of_an_analysis() {
        // As of a real benchmark beside other processes: 70 pairs within 2 %, one 42 % off.
        let case = case_of(Device::Cpu, 0..71, |round| match round {
            9 => 152.0,
            _ => 100.0 + (round % 5) as f64 - 2.0,
        });
        let model = DriftModel::of(&[&case]);
        let six = Estimate::of(&case, &model, 0, |round| (8..14).contains(&round)).unwrap();
        assert!(six.p_value() > 0.2, "{}", six.p_value());
    }

    #[test]
    fn the_resolution_is_found_in_95_of_100() {
        let estimate = Estimate::known(4, 0.01);
        let wanted = 0.01 * (2.5758 + 1.6449);
        for (pairs, share) in [(4, 1.0), (16, 0.5)] {
            assert!((estimate.resolution(0.01, pairs) / wanted - share).abs() < 1e-3);
        }
    }
}
