//! The evidence about each benchmark, from all its pairs and from the tested ones, by the drift of its class. It
//! also plans when pairs are analysed, and which share of the error each analysis may spend.

use std::collections::BTreeMap;

use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::median::median;

use crate::case::{Case, Launching};
use crate::constant::{self, LaunchShift};
use crate::estimate::Estimate;
use crate::learn::{DriftModel, ENOUGH_BENCHMARKS};
use crate::verdict::{CHANGE_ERROR, Options, SAME_ERROR, TOO_FEW, UNSTEADY, Verdict};

/// The evidence about one benchmark.
pub(super) struct CaseEvidence {
    /// The estimate from all its pairs.
    pub(super) estimate: Estimate,
    /// The evidence for a change, if it may be called slower or faster.
    pub(super) change: Option<ChangeEvidence>,
    pub(super) reason: Option<&'static str>,
    /// The evidence without the correction for the launch constant, if a verdict needs both.
    pub(super) uncorrected: Option<Box<CaseEvidence>>,
}

impl CaseEvidence {
    fn with_and_without(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.uncorrected.as_deref())
    }

    /// With or without the correction: the weaker evidence of a change.
    pub(super) fn weaker(&self) -> &Self {
        let p_value = |evidence: &&Self| evidence.change.as_ref().map_or(0.0, |c| c.p_value);
        self.with_and_without()
            .max_by(|a, b| p_value(a).total_cmp(&p_value(b)))
            .expect("there is always one")
    }

    /// Probability of this change or a larger one where nothing changed.
    pub(super) fn p_value(&self) -> Option<f64> {
        let change = self.change.as_ref()?;
        let Some(uncorrected) = &self.uncorrected else {
            return Some(change.p_value);
        };
        // Two levels mislead a test of few pairs.
        if change.pairs < constant::FEWEST_PAIRS {
            return Some(1.0);
        }
        let uncorrected = uncorrected.change.as_ref().map_or(0.0, |c| c.p_value);
        Some(
            change
                .p_value
                .max((constant::MISLED * uncorrected).min(1.0)),
        )
    }

    /// The verdict, on which the evidence with and without the correction agree.
    pub(super) fn verdict(&self, is_found: bool, edge: f64) -> Verdict {
        let verdict = self.verdict_of_this(is_found, edge);
        let mut verdicts = (self.with_and_without()).map(|it| it.verdict_of_this(is_found, edge));
        if verdicts.all(|other| other == verdict) {
            verdict
        } else {
            Verdict::Unsure
        }
    }

    /// The verdict of this evidence alone.
    pub(super) fn verdict_of_this(&self, is_found: bool, edge: f64) -> Verdict {
        if self.reason.is_some() {
            return Verdict::Unsure;
        }
        let change = self.change.as_ref().filter(|_| is_found);
        match change.map(|change| change.estimate.change()) {
            Some(change) if change >= edge => Verdict::Slower,
            Some(change) if change <= -edge => Verdict::Faster,
            _ if self.estimate.if_changed(edge) <= SAME_ERROR => Verdict::Same,
            _ => Verdict::Unsure,
        }
    }

    /// Whether the evidence with the correction alone shows a change by `edge` or more.
    fn seems_changed(&self, edge: f64) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|it| it.p_value <= CHANGE_ERROR && it.estimate.change().abs() >= edge)
    }
}

/// The evidence for a change.
pub(super) struct ChangeEvidence {
    /// The estimate of the interim analysis with the strongest evidence.
    pub(super) estimate: Estimate,
    /// Probability of this change or a larger one where nothing changed; allows for every analysis.
    pub(super) p_value: f64,
    /// Share of the error that this analysis may spend.
    pub(super) share: f64,
    /// Number of all pairs that were run to test it.
    pub(super) pairs: usize,
}

impl ChangeEvidence {
    /// The evidence of the rounds after the first `screened`, which chose what is tested.
    fn of(
        case: &Case,
        screened: usize,
        estimate: impl Fn(&dyn Fn(usize) -> bool) -> Option<Estimate>,
    ) -> Option<Self> {
        let rounds = case.pairs.iter().map(|pair| pair.round);
        let mut rounds = Vec::from_iter(rounds.filter(|round| *round >= screened));
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

/// The drift of one class of benchmarks in this comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The class.
    pub class: Class,
    /// Whether its benchmarks are corrected for the launch constant; others of the class are not.
    pub is_corrected: bool,
    /// Number of benchmarks from which it was learnt.
    pub benchmarks: usize,
    /// Pairs of runs.
    pub pairs: usize,
    /// Standard deviation of the change between two processes of the same code, as a
    /// fraction (0.01 is one percent), of the typical benchmark.
    pub deviation: f64,
    /// The change of the typical benchmark in one pair, as a logarithm.
    pub(super) centre: f64,
    /// Why true changes may not be found, in a sentence.
    pub doubt: Option<String>,
}

impl Drift {
    /// The name of the class.
    pub fn name(&self) -> String {
        let corrected = if self.is_corrected { ", corrected" } else { "" };
        format!("{}{corrected}", self.class)
    }
}

/// The evidence about each case, with the evidence for a change if it is `tested`, and the drift of each class.
pub(super) fn evidence(
    cases: &[Case],
    tested: &[bool],
    options: &Options,
) -> (Vec<Option<CaseEvidence>>, Vec<Drift>) {
    let edge = options.threshold.ln_1p();
    // Corrected benchmarks spread less than others, so they are a class of their own.
    let mut classes: BTreeMap<(Class, bool), Vec<usize>> = BTreeMap::new();
    for (i, case) in cases.iter().enumerate() {
        let class = (case.class, case.slope.is_some());
        classes.entry(class).or_default().push(i);
    }
    let mut evidence: Vec<Option<CaseEvidence>> = cases.iter().map(|_| None).collect();
    let mut drifts = Vec::new();
    for (&(class, is_corrected), indices) in &classes {
        let members: Vec<&Case> = indices.iter().map(|i| &cases[*i]).collect();
        let model = DriftModel::of(&members);
        let most_pairs = members.iter().map(|case| case.pairs.len()).max();
        let is_small = most_pairs < Some(2) && members.len() < ENOUGH_BENCHMARKS;
        for (member, (case, &i)) in members.iter().zip(indices).enumerate() {
            let reason = (case.is_unsteady.then_some(UNSTEADY)).or(is_small.then_some(TOO_FEW));
            let estimate_of =
                |wanted: &dyn Fn(usize) -> bool| Estimate::of(case, &model, member, wanted);
            evidence[i] = estimate_of(&|_| true).map(|estimate| CaseEvidence {
                estimate,
                change: (reason.is_none() && tested[i])
                    .then(|| ChangeEvidence::of(case, options.screened, estimate_of))
                    .flatten(),
                reason,
                uncorrected: None,
            });
        }
        let rounds = members.iter().flat_map(|case| &case.pairs);
        drifts.push(Drift {
            class,
            is_corrected,
            benchmarks: members.len(),
            pairs: rounds.map(|pair| pair.round + 1).max().unwrap_or(0),
            deviation: model.deviation(),
            centre: model.centre,
            doubt: doubt(&members, &model, edge),
        });
    }
    (evidence, drifts)
}

/// The indices of corrected cases whose verdict must hold without the correction too: changes by `edge` or more
/// that a change of the empty kernel alone would explain.
pub(super) fn in_doubt(cases: &[Case], evidence: &[Option<CaseEvidence>], edge: f64) -> Vec<usize> {
    let shifts = cases.iter().zip(evidence).map(|(case, evidence)| {
        let Launching::Kernels(kernels) = case.launching else {
            return None;
        };
        let per_launch = case.pairs[0].base.ns / kernels;
        Some(LaunchShift::of(&evidence.as_ref()?.estimate, per_launch))
    });
    let shifts: Vec<Option<LaunchShift>> = shifts.collect();
    let is_in_doubt = |i: &usize| {
        let (Some(evidence), Some(shift)) = (&evidence[*i], shifts[*i]) else {
            return false;
        };
        let of_clock = (cases.iter().zip(&shifts))
            .filter(|(other, _)| other.class.clock == cases[*i].class.clock)
            .filter_map(|(_, shift)| *shift);
        evidence.seems_changed(edge) && constant::in_doubt(shift, &Vec::from_iter(of_clock))
    };
    (0..cases.len()).filter(is_in_doubt).collect()
}

/// Why one pair of runs does not distinguish a change in shared code from another speed of the machine, if most
/// benchmarks moved together by more than `edge`.
fn doubt(cases: &[&Case], model: &DriftModel, edge: f64) -> Option<String> {
    if model.centre.abs() <= edge.max(model.deviation()) {
        return None;
    }
    let middle = median(cases.iter().map(|case| case.mean_change())).unwrap_or(model.centre);
    let word = if middle > 0.0 { "slower" } else { "faster" };
    let size = 100.0 * middle.exp_m1().abs();
    let number = cases.len();
    let have_followed = (cases.iter()).all(|case| case.mean_change() / middle > 0.5);
    let which = if have_followed {
        format!("all {number} benchmarks became about {size:.1} % {word}")
    } else {
        format!("half of the {number} benchmarks became at least {size:.1} % {word}")
    };
    Some(format!(
        "{which}: either code that they share changed, or the machine was {word}. One pair of runs cannot \
         tell which, so only benchmarks that stand out from the others get a verdict",
    ))
}

/// Pairs of processes before the first interim analysis; another follows each time that their
/// number has grown by half.
pub(super) const FIRST_ANALYSIS: usize = 6;

/// The planned interim analyses: after 6 pairs, 9, 13, 19 and so on.
fn planned() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST_ANALYSIS), |pairs| Some(pairs + pairs / 2))
}

/// The numbers of pairs at which `pairs` of them have been analysed, and the share of the error
/// that each analysis may spend: 1/2, 1/6, 1/12 and so on, which is 1 in all. Without interim analyses, the
/// only analysis spends all of it.
pub(super) fn analyses(pairs: usize, has_interim: bool) -> Vec<(usize, f64)> {
    if !has_interim {
        return vec![(pairs, 1.0)];
    }
    let before = planned().take_while(|planned| *planned < pairs);
    let analyses = before.chain([pairs]).zip(1..);
    analyses
        .map(|(size, i)| (size, 1.0 / f64::from(i * (i + 1))))
        .collect()
}

/// Whether there is an analysis after this number of pairs.
pub(super) fn is_analysed_at(pairs: usize) -> bool {
    next_analysis(pairs) == pairs
}

/// The first analysis after this number of pairs or more.
pub(super) fn next_analysis(pairs: usize) -> usize {
    planned().find(|planned| *planned >= pairs).unwrap_or(pairs)
}

/// The number of pairs at the last analysis, and the share of the error that it may spend.
pub(super) fn last_analysis(pairs: usize) -> (usize, f64) {
    *analyses(pairs, true)
        .last()
        .expect("all pairs are analysed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_error() {
        assert_eq!(analyses(5, false), [(5, 1.0)]);
        assert_eq!(analyses(5, true), [(5, 1.0 / 2.0)]);
        assert_eq!(analyses(9, true), [(6, 1.0 / 2.0), (9, 1.0 / 6.0)]);
        let last = [(13, 1.0 / 12.0), (14, 1.0 / 20.0)];
        assert_eq!(analyses(14, true)[2..], last);
        for (size, _) in &analyses(100, true)[..7] {
            assert!(is_analysed_at(*size) && next_analysis(size - 1) == *size);
        }
        assert!(!is_analysed_at(0) && !is_analysed_at(7) && !is_analysed_at(18));
    }
}
