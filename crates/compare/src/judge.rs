//! From medians to verdicts, with one error rate for many benchmarks and for repeated analyses.

use std::collections::BTreeMap;

use regex::Regex;
use serde::Serialize;

use crate::case::Case;
use crate::estimate::Estimate;
use crate::learn::{DriftModel, ENOUGH_BENCHMARKS};
use crate::median::Location;
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::median::median;

/// When nothing changed, the probability of any 'slower' or 'faster'; when something did, the
/// expected share of false ones among them.
pub(crate) const CHANGE_ERROR: f64 = 0.01;

/// Probability of 'same', each time that a benchmark is analysed, where it truly changed by the
/// threshold.
pub(crate) const SAME_ERROR: f64 = 0.025;

/// Changes smaller than this are not worth a verdict, unless asked for.
pub(crate) const THRESHOLD: f64 = 0.01;

/// Why benchmarks of a small class are not called from one pair of runs.
pub(crate) const TOO_FEW: &str = "one pair of runs has fewer than four benchmarks of its class, so \
 the difference between two runs of the same code is unknown";

/// The options of a comparison.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only benchmarks whose id matches. The others still contribute to the drift.
    pub filter: Option<Regex>,
    /// Smallest change worth a verdict, as a fraction.
    pub threshold: f64,
    /// Number of the first pairs of runs that only choose what is tested for a change in the later
    /// ones; 0 where all count.
    pub screened: usize,
    /// Both sides ran here, in turns, so that no record has to say on what machine.
    pub on_one_machine: bool,
    /// The statistic of the samples of each run.
    pub location: Location,
    /// Benchmarks whose process failed, and how.
    pub failed: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: None,
            threshold: THRESHOLD,
            screened: 0,
            on_one_machine: false,
            location: Location::Median,
            failed: BTreeMap::new(),
        }
    }
}

/// The verdict on a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A process of `ab` that ran it failed.
    Failed,
    /// A change is shown, upwards and by the threshold or more.
    Slower,
    /// A change is shown, downwards and by the threshold or more.
    Faster,
    /// Neither shown: too noisy, or not comparable.
    Unsure,
    /// Equivalence is shown: the whole interval lies within the threshold.
    Same,
    /// Only the base has it.
    Gone,
    /// Only the new side has it.
    New,
}

impl Verdict {
    /// The word that is shown.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Failed => "failed",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Unsure => "unsure",
            Verdict::Same => "same",
            Verdict::Gone => "gone",
            Verdict::New => "new",
        }
    }
}

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
}

/// One class of benchmarks, as this comparison saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The class.
    pub class: Class,
    /// Benchmarks it was learnt from.
    pub benchmarks: usize,
    /// Pairs of runs.
    pub pairs: usize,
    /// Standard deviation of the change between two processes of the same code, as a
    /// fraction (0.01 is one percent), of the typical benchmark.
    pub deviation: f64,
    /// Why true changes may not be found, in a sentence.
    pub doubt: Option<String>,
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
    let mut classes: BTreeMap<&Class, Vec<usize>> = BTreeMap::new();
    for (i, case) in cases.iter().enumerate() {
        classes.entry(&case.class).or_default().push(i);
    }
    let mut seen: Vec<Option<Seen>> = cases.iter().map(|_| None).collect();
    let mut drifts = Vec::new();
    for (class, members) in &classes {
        let of_class: Vec<&Case> = members.iter().map(|i| &cases[*i]).collect();
        let model = DriftModel::of(&of_class);
        let one_pair = of_class.iter().all(|case| case.pairs.len() < 2);
        let reason = (one_pair && of_class.len() < ENOUGH_BENCHMARKS).then_some(TOO_FEW);
        for (member, i) in members.iter().enumerate().filter(|(_, i)| tested[**i]) {
            let of =
                |wanted: &dyn Fn(usize) -> bool| Estimate::of(&cases[*i], &model, member, wanted);
            seen[*i] = of(&|_| true).map(|all| Seen {
                change: (reason.is_none())
                    .then(|| ChangeEvidence::of(&cases[*i], options.screened, of))
                    .flatten(),
                all,
                reason,
            });
        }
        drifts.push(Drift {
            class: **class,
            benchmarks: of_class.len(),
            pairs: (of_class.iter().flat_map(|case| &case.pairs))
                .map(|pair| pair.round + 1)
                .max()
                .unwrap_or(0),
            deviation: model.deviation(),
            doubt: doubt(&of_class, &model, edge),
        });
    }

    let candidates: Vec<&ChangeEvidence> = (seen.iter().flatten())
        .filter_map(|seen| seen.change.as_ref())
        .collect();
    let probabilities: Vec<f64> = candidates.iter().map(|c| c.p_value).collect();
    let found = discoveries(&probabilities, CHANGE_ERROR);
    let (number, least) = found.unwrap_or((0, -1.0));
    let most_pairs = candidates.iter().map(|c| c.pairs).max();
    let error_of = |chosen| error_of_chosen(chosen, candidates.len(), CHANGE_ERROR);

    let judged: Vec<Option<Judged>> = seen
        .iter()
        .map(|seen| {
            let Seen {
                all,
                change,
                reason,
            } = seen.as_ref()?;
            let is_found = change.as_ref().filter(|c| c.p_value <= least);
            let is_same = all.if_changed(edge) <= SAME_ERROR;
            let verdict = match is_found.map(|c| c.estimate.change()) {
                Some(centre) if centre >= edge => Verdict::Slower,
                Some(centre) if centre <= -edge => Verdict::Faster,
                _ if is_same => Verdict::Same,
                _ => Verdict::Unsure,
            };
            let is_called = matches!(verdict, Verdict::Slower | Verdict::Faster);
            let shown = is_found.filter(|_| is_called);
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
            })
        })
        .collect();
    (judged, drifts)
}

/// One pair of runs cannot distinguish a change in shared code from another speed of the machine. Says
/// so if most benchmarks moved together by more than the threshold.
fn doubt(cases: &[&Case], model: &DriftModel, edge: f64) -> Option<String> {
    let together = model.centre.abs() > edge.max(model.deviation());
    together.then(|| {
        let middle = median(cases.iter().map(|case| case.mean_change())).unwrap_or(model.centre);
        let word = if middle > 0.0 { "slower" } else { "faster" };
        format!(
            "half of the {} benchmarks became at least {:.1} % {word}: either code that they share \
             changed, or the machine was {word}. One pair of runs cannot tell which, so only \
             benchmarks that stand out from the others get a verdict",
            cases.len(),
            100.0 * middle.exp_m1().abs(),
        )
    })
}

/// A tested case.
struct Seen {
    /// By all its pairs.
    all: Estimate,
    /// Where it may be called slower or faster.
    change: Option<ChangeEvidence>,
    reason: Option<&'static str>,
}

/// The evidence for a change.
struct ChangeEvidence {
    /// By the interim analysis with the strongest evidence.
    estimate: Estimate,
    /// Probability of this much or more where nothing changed; every analysis is paid for.
    p_value: f64,
    /// Share of the error that this analysis may spend.
    share: f64,
    /// Pairs in all that were run to test it.
    pairs: usize,
}

impl ChangeEvidence {
    /// From the rounds after the first `screened`, which were not run to choose it.
    fn of(
        case: &Case,
        screened: usize,
        estimate: impl Fn(&dyn Fn(usize) -> bool) -> Option<Estimate>,
    ) -> Option<Self> {
        let mut rounds: Vec<usize> = (case.pairs.iter())
            .map(|pair| pair.round)
            .filter(|round| *round >= screened)
            .collect();
        rounds.sort_unstable();
        let mut best: Option<Self> = None;
        for (size, share) in analyses(rounds.len(), screened > 0) {
            let until = *rounds.get(size.checked_sub(1)?)?;
            let estimate = estimate(&|round| (screened..=until).contains(&round))?;
            let p_value = (estimate.p_value() / share).min(1.0);
            if best.as_ref().is_none_or(|best| p_value < best.p_value) {
                best = Some(Self {
                    estimate,
                    p_value,
                    share,
                    pairs: rounds.len(),
                });
            }
        }
        best
    }
}

/// The number of pairs at the last analysis, and the share of the error that it may spend.
fn last_analysis(pairs: usize) -> (usize, f64) {
    let all = analyses(pairs, true);
    *all.last().expect("all pairs are analysed")
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

/// Pairs of processes before the first interim analysis; another follows each time that their
/// number has grown by half.
const FIRST_ANALYSIS: usize = 6;

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

/// The planned interim analyses: after 6 pairs, 9, 13, 19 and so on.
fn planned() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST_ANALYSIS), |pairs| Some(pairs + pairs / 2))
}

/// The numbers of pairs at which `pairs` of them have been analysed, and the share of the error
/// that each analysis may spend: 1/2, 1/6, 1/12 and so on, which is 1 in all. Without any on the
/// way the only one has all of it.
fn analyses(pairs: usize, on_the_way: bool) -> Vec<(usize, f64)> {
    if !on_the_way {
        return vec![(pairs, 1.0)];
    }
    let before = planned().take_while(|planned| *planned < pairs);
    let all = before.chain([pairs]).zip(1..);
    all.map(|(size, i)| (size, 1.0 / f64::from(i * (i + 1))))
        .collect()
}

/// Whether these many pairs are analysed.
pub(super) fn is_analysed_at(pairs: usize) -> bool {
    next_analysis(pairs) == pairs
}

/// The first analysis of these many pairs or more.
pub(super) fn next_analysis(pairs: usize) -> usize {
    planned().find(|planned| *planned >= pairs).unwrap_or(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn looks_share_the_error() {
        assert_eq!(analyses(5, false), [(5, 1.0)]);
        assert_eq!(analyses(5, true), [(5, 1.0 / 2.0)]);
        assert_eq!(analyses(9, true), [(6, 1.0 / 2.0), (9, 1.0 / 6.0)]);
        let all = analyses(14, true);
        assert_eq!(all[2..], [(13, 1.0 / 12.0), (14, 1.0 / 20.0)]);
        for (size, _) in &analyses(100, true)[..7] {
            assert!(is_analysed_at(*size) && next_analysis(size - 1) == *size);
        }
        assert!(!is_analysed_at(0) && !is_analysed_at(7) && !is_analysed_at(18));
    }
}
