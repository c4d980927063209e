//! From medians to verdicts, with one error rate for many benchmarks and for repeated analyses.

use crate::analyses::{FIRST_ANALYSIS, last_analysis, next_analysis};
use crate::case::Case;
use crate::constant;
use crate::estimate::Estimate;
use crate::evidence::{ChangeEvidence, Drift, Seen, evidence, in_doubt};
use crate::verdict::{CHANGE_ERROR, Options, SAME_ERROR, Verdict};

/// Ratio and interval of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judgement {
    /// Time of the new side over that of the base: geometric mean over the pairs, of a
    /// verdict over those that confirmed it; from eight on without the outer quarters where that
    /// tells more.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The change that would be found with 95 % probability, as a fraction.
    pub resolution: f64,
    /// Pairs of runs that have this resolution.
    pub(crate) resolved_by: usize,
    /// Pairs of runs behind the ratio.
    pub pairs: usize,
    /// Pairs of runs after those that chose what is tested.
    pub(crate) confirmed: usize,
    /// Number of further pairs that would decide it, where it is open; infinite where none would.
    pub(crate) more_pairs: f64,
}

/// The judgement of one benchmark.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// The estimate of the ratio.
    pub(super) estimate: Estimate,
    /// Error of the interval.
    pub(super) error: f64,
    /// Pairs in all that were run to test it.
    pub(super) confirmed: usize,
    /// The estimate, error and number of pairs of the resolution. `None` if no change can be called.
    resolving: Option<(Estimate, f64, usize)>,
    /// Number of further pairs of processes that would decide it, as far as is known now; infinite
    /// where none would.
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
    let edge = options.threshold.ln_1p();
    let corrected = constant::corrected(cases);
    let (mut seen, drifts) = evidence(corrected.as_deref().unwrap_or(cases), tested, options);
    let doubted = corrected.map_or(Vec::new(), |corrected| in_doubt(&corrected, &seen, edge));
    if !doubted.is_empty() {
        let (mut without, _) = evidence(cases, tested, options);
        for i in doubted {
            if let Some(seen) = &mut seen[i] {
                seen.without = without[i].take().map(Box::new);
            }
        }
    }

    let probabilities: Vec<f64> = (seen.iter().flatten()).filter_map(Seen::p_value).collect();
    let found = discoveries(&probabilities, CHANGE_ERROR);
    let (number, least) = found.unwrap_or((0, -1.0));
    let candidates = || {
        seen.iter()
            .flatten()
            .filter_map(|seen| seen.change.as_ref())
    };
    let most_pairs = candidates().map(|c| c.pairs).max();
    let error_of = |chosen| error_of_chosen(chosen, probabilities.len(), CHANGE_ERROR);

    let judged: Vec<Option<Judged>> = (seen.iter().zip(tested))
        .map(|(seen, is_tested)| {
            let seen = seen.as_ref().filter(|_| *is_tested)?;
            let is_found = seen.p_value().is_some_and(|p| p <= least);
            let verdict = seen.verdict(is_found, edge);
            let is_doubted = seen.without.is_some()
                && verdict == Verdict::Unsure
                && seen.alone(is_found, edge) != Verdict::Unsure;
            let Seen {
                all,
                change,
                reason,
                ..
            } = seen.weakest();
            let is_called = matches!(verdict, Verdict::Slower | Verdict::Faster);
            let shown = change.as_ref().filter(|_| is_called);
            // Had it seemed to change, it would have been run as often as any.
            let (pairs, share) = match options.screened {
                0 => (all.pairs, 1.0),
                _ => last_analysis(most_pairs.unwrap_or(FIRST_ANALYSIS).max(FIRST_ANALYSIS)),
            };
            Some(Judged {
                verdict,
                estimate: shown.map_or(all, |change| &change.estimate).clone(),
                error: shown.map_or(2.0 * SAME_ERROR, |change| change.share * error_of(number)),
                confirmed: change.as_ref().map_or(0, |change| change.pairs),
                resolving: (reason.is_none())
                    .then(|| (all.clone(), share * error_of(number + 1), pairs)),
                more_pairs: more_pairs(all, change.as_ref(), edge),
                reason: reason.filter(|_| verdict == Verdict::Unsure),
                is_doubted,
            })
        })
        .collect();
    (judged, drifts)
}

/// Standard errors that a change among a few dozen candidates takes.
const CHANGED: f64 = 4.5;

/// Standard errors that equivalence takes.
const SAME: f64 = 2.3;

/// Nobody runs as many pairs of processes as this.
const MOST: f64 = 20_000.0;

/// More pairs of processes after which it would be called, or shown the same, if it is what it
/// seems to be, give or take a standard error in the direction that is decided sooner; infinite where
/// nobody runs so many.
fn more_pairs(all: &Estimate, change: Option<&ChangeEvidence>, edge: f64) -> f64 {
    let have = all.pairs as f64;
    let deviation = all.deviation();
    let (size, error) = (all.centre().abs(), deviation / have.sqrt());
    let until = |errors: f64, distance: f64| match distance > 0.0 {
        true => (errors * deviation / distance).powi(2),
        false => f64::INFINITY,
    };
    let largest = size + error;
    let confirmed = change.map_or(0, |change| change.pairs);
    let to_change = match largest >= edge {
        true => until(CHANGED, largest) - confirmed as f64,
        false => f64::INFINITY,
    };
    let to_same = until(SAME, edge - (size - error).max(0.0)) - have;
    let more = to_change.min(to_same).max(1.0).ceil();
    match more < MOST {
        // Nothing is decided between two interim analyses.
        true => (next_analysis(confirmed + more as usize) - confirmed) as f64,
        false => f64::INFINITY,
    }
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

/// Which of the tested benchmarks changed, when the expected share of false ones among those
/// chosen is at most `error` (Benjamini and Hochberg, "Controlling the false discovery rate: a
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

/// The error that an interval may have around one of the chosen, so that the expected share of
/// intervals that miss is at most `error` (Benjamini and Yekutieli, "False discovery
/// rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005).
fn error_of_chosen(chosen: usize, tested: usize, error: f64) -> f64 {
    error * chosen.max(1) as f64 / tested.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::THRESHOLD;

    /// `pairs` pairs that each spread by `deviation`, as far as is known.
    fn spread(deviation: f64, pairs: usize) -> Estimate {
        Estimate::known(pairs, deviation / (pairs as f64).sqrt())
    }

    #[test]
    fn unchanged_code_is_same_after_the_predicted_pairs() {
        let told = 200 + more_pairs(&spread(0.1, 200), None, THRESHOLD) as usize;
        let is_shown = |pairs| spread(0.1, pairs).if_changed(THRESHOLD) <= SAME_ERROR;
        assert!(is_shown(told) && !is_shown(told / 2), "{told} pairs");
    }

    #[test]
    fn too_many_further_pairs_are_not_suggested() {
        for (deviation, is_few) in [(0.55, true), (0.75, false)] {
            let told = more_pairs(&spread(deviation, 6_000), None, THRESHOLD);
            assert_eq!(told.is_finite(), is_few, "{told} pairs");
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
}
