//! Makes verdicts from medians, with one error rate for many benchmarks and for repeated analyses.

use crate::case::Case;
use crate::constant;
use crate::estimate::Estimate;
use crate::evidence::{
    CaseEvidence, ChangeEvidence, Drift, FIRST_ANALYSIS, evidence, in_doubt, last_analysis,
    next_analysis,
};
use crate::verdict::{CHANGE_ERROR, Options, SAME_ERROR, Verdict};

/// Ratio and interval of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Time of the new side over that of the base: the geometric mean over the pairs, or over the pairs that
    /// confirmed a verdict; from eight pairs on without the outer quarters if this is more certain.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The change that is found with 95 % probability, as a fraction.
    pub resolution: f64,
    /// Pairs of runs that have this resolution.
    pub(crate) resolved_by: usize,
    /// Pairs of runs behind the ratio.
    pub pairs: usize,
    /// Pairs of runs after those that chose what is tested.
    pub(crate) confirmed: usize,
    /// Number of further pairs that would decide an open verdict; infinite where none would.
    pub(crate) more_pairs: f64,
}

/// One judged benchmark, whose interval and resolution are not computed yet.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// The estimate of the ratio.
    pub(super) estimate: Estimate,
    /// Error of the interval.
    pub(super) error: f64,
    /// Number of all pairs that were run to test it.
    pub(super) confirmed: usize,
    /// The estimate, error and number of pairs of the resolution. `None` if no change can be called.
    resolving: Option<(Estimate, f64, usize)>,
    /// Number of further pairs that would decide it; infinite where none would.
    pub(super) more_pairs: f64,
    pub(super) reason: Option<&'static str>,
    /// Whether it has no verdict only because the correction for the launch constant is in doubt.
    pub(super) is_doubted: bool,
}

/// Judges all benchmarks of a comparison together: benchmarks of a class share their evidence, and the
/// error rate is that of all together.
///
/// `tested` selects the cases to judge; the others only contribute to the drift (a filter must not
/// weaken its estimate).
pub(super) fn judge(
    cases: &[Case],
    tested: &[bool],
    options: &Options,
) -> (Vec<Option<Judged>>, Vec<Drift>) {
    let (evidence, drifts) = corrected_evidence(cases, tested, options);
    let p_values: Vec<f64> = (evidence.iter().flatten())
        .filter_map(CaseEvidence::p_value)
        .collect();
    let (chosen, largest) = discoveries(&p_values, CHANGE_ERROR).unwrap_or((0, -1.0));
    let changes = evidence
        .iter()
        .flatten()
        .filter_map(|it| it.change.as_ref());
    let most_pairs = changes.map(|change| change.pairs).max().unwrap_or(0);
    let family = Family {
        edge: options.threshold.ln_1p(),
        largest,
        error: error_of_chosen(chosen, p_values.len(), CHANGE_ERROR),
        error_of_next: error_of_chosen(chosen + 1, p_values.len(), CHANGE_ERROR),
        // Had any other benchmark seemed to change, it would have been run as often.
        last: (options.screened > 0).then(|| last_analysis(most_pairs.max(FIRST_ANALYSIS))),
    };
    let judged = (evidence.iter().zip(tested)).map(|(evidence, is_tested)| {
        let evidence = evidence.as_ref().filter(|_| *is_tested)?;
        Some(family.judge(evidence))
    });
    (judged.collect(), drifts)
}

/// The evidence with the correction for the launch constant, and where this is in doubt also without it.
fn corrected_evidence(
    cases: &[Case],
    tested: &[bool],
    options: &Options,
) -> (Vec<Option<CaseEvidence>>, Vec<Drift>) {
    let Some(corrected) = constant::corrected(cases) else {
        return evidence(cases, tested, options);
    };
    let (mut with, drifts) = evidence(&corrected, tested, options);
    let doubted = in_doubt(&corrected, &with, options.threshold.ln_1p());
    if !doubted.is_empty() {
        let (mut without, _) = evidence(cases, tested, options);
        for i in doubted {
            if let Some(evidence) = &mut with[i] {
                evidence.uncorrected = without[i].take().map(Box::new);
            }
        }
    }
    (with, drifts)
}

/// The values that all judgements of a comparison use.
struct Family {
    /// The threshold, as a logarithm.
    edge: f64,
    /// The largest probability of a chosen benchmark.
    largest: f64,
    /// Error of the interval of a chosen benchmark.
    error: f64,
    /// Error of the interval if one more were chosen.
    error_of_next: f64,
    /// The last interim analysis: its number of pairs and its share of the error. `None` without any.
    last: Option<(usize, f64)>,
}

impl Family {
    fn judge(&self, evidence: &CaseEvidence) -> Judged {
        let is_found = evidence.p_value().is_some_and(|p| p <= self.largest);
        let verdict = evidence.verdict(is_found, self.edge);
        let is_doubted = evidence.uncorrected.is_some()
            && verdict == Verdict::Unsure
            && evidence.verdict_of_this(is_found, self.edge) != Verdict::Unsure;
        let CaseEvidence {
            estimate,
            change,
            reason,
            ..
        } = evidence.weaker();
        let change = change.as_ref();
        let called = change.filter(|_| matches!(verdict, Verdict::Slower | Verdict::Faster));
        let (pairs, share) = self.last.unwrap_or((estimate.pairs, 1.0));
        Judged {
            verdict,
            estimate: called.map_or(estimate, |change| &change.estimate).clone(),
            error: called.map_or(2.0 * SAME_ERROR, |change| change.share * self.error),
            confirmed: change.map_or(0, |change| change.pairs),
            resolving: (reason.is_none())
                .then(|| (estimate.clone(), share * self.error_of_next, pairs)),
            more_pairs: more_pairs(estimate, change, self.edge),
            reason: reason.filter(|_| verdict == Verdict::Unsure),
            is_doubted,
        }
    }
}

/// Distance of a change from zero, in standard errors, that is significant among a few dozen candidates.
const CHANGED: f64 = 4.5;

/// Distance from the threshold, in standard errors, that shows equivalence.
const SAME: f64 = 2.3;

/// More pairs of processes than anybody runs.
const MOST: f64 = 20_000.0;

/// Estimated number of further pairs until a verdict, if the true change lies within a standard error of the
/// estimate, in the direction that is decided sooner; infinite where nobody runs so many.
fn more_pairs(estimate: &Estimate, change: Option<&ChangeEvidence>, edge: f64) -> f64 {
    let have = estimate.pairs as f64;
    let deviation = estimate.deviation();
    let (size, error) = (estimate.centre().abs(), deviation / have.sqrt());
    let until = |errors: f64, distance: f64| {
        if distance > 0.0 {
            (errors * deviation / distance).powi(2)
        } else {
            f64::INFINITY
        }
    };
    let largest = size + error;
    let confirmed = change.map_or(0, |change| change.pairs);
    let to_change = if largest >= edge {
        until(CHANGED, largest) - confirmed as f64
    } else {
        f64::INFINITY
    };
    let to_same = until(SAME, edge - (size - error).max(0.0)) - have;
    let more = to_change.min(to_same).max(1.0).ceil();
    if more >= MOST || more.is_nan() {
        return f64::INFINITY;
    }
    // Nothing is decided between two interim analyses.
    (next_analysis(confirmed + more as usize) - confirmed) as f64
}

impl Judged {
    /// Ratio and the ends of its interval.
    pub(super) fn ratio(&self) -> [f64; 3] {
        let interval = match self.verdict {
            Verdict::Slower | Verdict::Faster => self.estimate.interval_of_change(self.error),
            _ => self.estimate.interval(self.error),
        };
        interval.map(f64::exp)
    }

    pub(super) fn judgement(&self) -> Judgement {
        let [ratio, low, high] = self.ratio();
        let resolving = self.resolving.as_ref();
        let resolution =
            resolving.map(|(estimate, error, pairs)| estimate.resolution(*error, *pairs).exp_m1());
        Judgement {
            ratio,
            low,
            high,
            resolution: resolution.unwrap_or(f64::INFINITY),
            resolved_by: resolving.map_or(0, |(_, _, pairs)| *pairs),
            pairs: self.estimate.pairs,
            confirmed: self.confirmed,
            more_pairs: self.more_pairs,
        }
    }
}

/// Which of the tested benchmarks changed, with an expected share of false ones of at most
/// `error` (Benjamini and Hochberg, "Controlling the false discovery rate: a
/// practical and powerful approach to multiple testing", Journal of the Royal Statistical Society
/// B 57, 1995). When nothing changed, that is the probability that anything is chosen.
///
/// Returns how many changed and the largest probability among them; `None` where none did.
fn discoveries(probabilities: &[f64], error: f64) -> Option<(usize, f64)> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let number = (1..=sorted.len())
        .rev()
        .find(|&k| sorted[k - 1] <= error * k as f64 / n)?;
    Some((number, sorted[number - 1]))
}

/// The error of the interval of each chosen benchmark, with which the expected share of
/// intervals that miss is at most `error` (Benjamini and Yekutieli, "False discovery
/// rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005).
fn error_of_chosen(chosen: usize, tested: usize, error: f64) -> f64 {
    error * chosen.max(1) as f64 / tested.max(1) as f64
}

impl Judgement {
    /// About as many pairs of processes as find a change with 95 % probability: the resolution falls with
    /// the square root of their number.
    pub(crate) fn pairs_to_find(&self, change: f64, screened: usize) -> f64 {
        let ratio = self.resolution.ln_1p() / change.ln_1p();
        let tested = (self.resolved_by as f64 * ratio.powi(2)).ceil();
        if !tested.is_finite() {
            return f64::INFINITY;
        }
        match screened {
            0 => tested.max(1.0),
            _ => (screened + next_analysis(tested as usize)) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::THRESHOLD;

    /// An estimate of `pairs` pairs with this known standard deviation.
    fn spread(deviation: f64, pairs: usize) -> Estimate {
        Estimate::known(pairs, deviation / (pairs as f64).sqrt())
    }

    #[test]
    fn unchanged_code_is_same_after_the_predicted_pairs() {
        let predicted = 200 + more_pairs(&spread(0.1, 200), None, THRESHOLD) as usize;
        let is_shown = |pairs| spread(0.1, pairs).if_changed(THRESHOLD) <= SAME_ERROR;
        assert!(is_shown(predicted), "{predicted} pairs");
        assert!(!is_shown(predicted / 2), "{predicted} pairs");
    }

    /// Of the two distributions the narrower one shows no change.
    #[test]
    fn the_interval_of_a_verdict_is_that_of_its_evidence() {
        let excludes_no_change = [Verdict::Slower, Verdict::Unsure].map(|verdict| {
            let judged = Judged {
                verdict,
                estimate: Estimate::known(8, 1e-3).with_own(0.05, 5e-3),
                error: 0.01,
                confirmed: 8,
                resolving: None,
                more_pairs: 1.0,
                reason: None,
                is_doubted: false,
            };
            judged.ratio()[1] > 1.0
        });
        assert_eq!(excludes_no_change, [true, false]);
    }

    #[test]
    fn too_many_further_pairs_are_not_suggested() {
        for (deviation, is_few) in [(0.55, true), (0.75, false)] {
            let predicted = more_pairs(&spread(deviation, 6_000), None, THRESHOLD);
            assert_eq!(predicted.is_finite(), is_few, "{predicted} pairs");
        }
    }

    #[test]
    fn discoveries_are_those_of_the_step_up_procedure() {
        // The example of the paper: 15 probabilities, at 5 %, four are chosen.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p, 0.05), Some((4, 0.0095)));
        assert_eq!(discoveries(&[0.02, 0.9], 0.01), None);
        assert_eq!(discoveries(&[0.015], 0.01), None);
        assert_eq!(discoveries(&[], 0.01), None);
    }

    #[test]
    fn a_change_of_half_the_resolution_takes_four_times_the_pairs() {
        let judgement = Judgement {
            ratio: 1.0,
            low: 0.99,
            high: 1.01,
            resolution: 0.02,
            resolved_by: 13,
            pairs: 21,
            confirmed: 13,
            more_pairs: f64::INFINITY,
        };
        for (change, screened, pairs) in [
            (0.02, 0, 13.0),
            (0.02, 8, 8.0 + 13.0),
            // The next analysis after 53 pairs.
            (0.01, 8, 8.0 + 63.0),
            // No analysis comes earlier.
            (0.5, 8, 8.0 + 6.0),
        ] {
            assert_eq!(judgement.pairs_to_find(change, screened), pairs, "{change}");
        }
        let unknown = Judgement {
            resolution: f64::INFINITY,
            ..judgement
        };
        assert_eq!(unknown.pairs_to_find(0.02, 8), f64::INFINITY);
    }
}
