//! From medians to verdicts.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::class::Class;
use crate::estimate::Estimate;
use crate::learn::{DriftModel, ENOUGH_BENCHMARKS};
use crate::multiple::{FIRST_ANALYSIS, analyses, discoveries, error_of_chosen, next_analysis};
use crate::verdict::Verdict;

/// When nothing changed, the probability of any 'slower' or 'faster'; when something did, the
/// expected share of false ones among them.
pub(crate) const CHANGE_ERROR: f64 = 0.01;

/// Probability of 'same', each time that a benchmark is analysed, where it truly changed by the
/// threshold.
pub(crate) const SAME_ERROR: f64 = 0.025;

/// Changes smaller than this are not worth a verdict, unless asked for.
pub(crate) const THRESHOLD: f64 = 0.01;

/// Why benchmarks of a small class are not called from one pair of runs.
pub(crate) const TOO_FEW: &str = "fewer than four benchmarks of its class over one pair of runs: nothing \
     tells what two runs of the same code differ by";

/// What is asked of the benchmarks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// Smallest change worth a verdict, as a fraction.
    pub(super) threshold: f64,
    /// Number of the first rounds that only choose what is tested for a change in the later ones; 0
    /// where all rounds count.
    pub(super) screened: usize,
}

/// What is said of one benchmark.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// What the ratio is taken from.
    pub(super) estimate: Estimate,
    /// Error of the interval.
    pub(super) error: f64,
    /// Pairs in all that were run to test it.
    pub(super) confirmed: usize,
    /// What the resolution is of: all pairs, to be asked with this error and of so many pairs.
    /// `None` where no change is called.
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

/// Judges all benchmarks of a comparison together: those of a class share what they tell of it,
/// and the error is that of all together.
///
/// `tested` says which cases are asked about; the others only teach (a filter must not make the
/// drift any less known).
pub(super) fn judge(
    cases: &[Case],
    tested: &[bool],
    question: &Question,
) -> (Vec<Option<Judged>>, Vec<Drift>) {
    let edge = question.threshold.ln_1p();
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
                    .then(|| Change::of(&cases[*i], question.screened, of))
                    .flatten(),
                all,
                reason,
            });
        }
        drifts.push(Drift {
            class: (*class).clone(),
            benchmarks: of_class.len(),
            pairs: (of_class.iter().flat_map(|case| &case.pairs))
                .map(|pair| pair.round + 1)
                .max()
                .unwrap_or(0),
            deviation: model.deviation(),
            doubt: doubt(&of_class, &model, edge),
        });
    }

    let candidates: Vec<&Change> = (seen.iter().flatten())
        .filter_map(|seen| seen.change.as_ref())
        .collect();
    let probabilities: Vec<f64> = candidates.iter().map(|c| c.if_unchanged).collect();
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
            let is_found = change.as_ref().filter(|c| c.if_unchanged <= least);
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
            let (pairs, share) = match question.screened {
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

/// One pair of runs cannot tell a change in code that most benchmarks share from a machine that ran
/// at another speed. Where they moved together by more than the threshold, that is said.
fn doubt(cases: &[&Case], model: &DriftModel, edge: f64) -> Option<String> {
    let together = model.centre.abs() > edge.max(model.deviation());
    together.then(|| {
        format!(
            "the median of {} benchmarks changed by {:+.1} %: one pair of runs cannot tell a change \
             in shared code from a machine that ran at another speed, so only what stands out from \
             the others is called",
            cases.len(),
            100.0 * model.centre.exp_m1(),
        )
    })
}

/// A tested case.
struct Seen {
    /// By all its pairs.
    all: Estimate,
    /// Where it may be called slower or faster.
    change: Option<Change>,
    reason: Option<&'static str>,
}

/// What speaks for a change.
struct Change {
    /// By the interim analysis that speaks for it most.
    estimate: Estimate,
    /// Probability of this much or more where nothing changed; every analysis is paid for.
    if_unchanged: f64,
    /// Share of the error that this analysis may spend.
    share: f64,
    /// Pairs in all that were run to test it.
    pairs: usize,
}

impl Change {
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
            let if_unchanged = (estimate.if_unchanged() / share).min(1.0);
            if best
                .as_ref()
                .is_none_or(|best| if_unchanged < best.if_unchanged)
            {
                best = Some(Self {
                    estimate,
                    if_unchanged,
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
fn more_pairs(all: &Estimate, change: Option<&Change>, edge: f64) -> f64 {
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

    /// The change that is found with 95 % probability, as a fraction; infinite where none is.
    pub(super) fn resolution(&self) -> f64 {
        self.resolving
            .as_ref()
            .map_or(f64::INFINITY, |(estimate, error, pairs)| {
                estimate.resolution(*error, *pairs).exp_m1()
            })
    }
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
}
