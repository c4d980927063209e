//! The evidence of all pairs and of the tested ones about each benchmark, from the drift of its class.

use std::collections::BTreeMap;

use crate::analyses::analyses;
use crate::case::{Case, Launching};
use crate::constant::{self, LaunchShift};
use crate::estimate::Estimate;
use crate::learn::{DriftModel, ENOUGH_BENCHMARKS};
use crate::rows::BenchmarkRow;
use crate::verdict::{CHANGE_ERROR, Options, SAME_ERROR, TOO_FEW, UNSTEADY, Verdict};
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::median::median;

/// A case.
pub(super) struct Seen {
    /// By all its pairs.
    pub(super) all: Estimate,
    /// Where it may be called slower or faster.
    pub(super) change: Option<ChangeEvidence>,
    pub(super) reason: Option<&'static str>,
    /// Without the correction for the launch constant, if a verdict needs both.
    pub(super) without: Option<Box<Seen>>,
}

impl Seen {
    fn both(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(self.without.as_deref())
    }

    /// That with the weaker evidence of a change.
    pub(super) fn weakest(&self) -> &Self {
        let p_value = |seen: &&Self| seen.change.as_ref().map_or(0.0, |change| change.p_value);
        self.both()
            .max_by(|a, b| p_value(a).total_cmp(&p_value(b)))
            .expect("there is this one")
    }

    /// Probability of this much of a change or more where there is none.
    pub(super) fn p_value(&self) -> Option<f64> {
        // Two levels mislead a test of few pairs.
        let pairs = self.change.as_ref()?.pairs;
        if self.without.is_some() && pairs < constant::FEWEST_PAIRS {
            return Some(1.0);
        }
        let p_value = |seen: &Self| Some(seen.change.as_ref()?.p_value);
        let without = self.without.as_ref().and_then(|seen| p_value(seen));
        let without = without.map_or(0.0, |p| (constant::MISLED * p).min(1.0));
        Some(p_value(self)?.max(without))
    }

    pub(super) fn verdict(&self, is_found: bool, edge: f64) -> Verdict {
        let alone = self.alone(is_found, edge);
        let agree = self.both().all(|seen| seen.alone(is_found, edge) == alone);
        if agree { alone } else { Verdict::Unsure }
    }

    /// The verdict of this evidence alone.
    pub(super) fn alone(&self, is_found: bool, edge: f64) -> Verdict {
        if self.reason.is_some() {
            return Verdict::Unsure;
        }
        let found = self.change.as_ref().filter(|_| is_found);
        match found.map(|change| change.estimate.change()) {
            Some(centre) if centre >= edge => Verdict::Slower,
            Some(centre) if centre <= -edge => Verdict::Faster,
            _ if self.all.if_changed(edge) <= SAME_ERROR => Verdict::Same,
            _ => Verdict::Unsure,
        }
    }
}

/// The evidence for a change.
pub(super) struct ChangeEvidence {
    /// By the interim analysis with the strongest evidence.
    pub(super) estimate: Estimate,
    /// Probability of this much or more where nothing changed; every analysis is paid for.
    pub(super) p_value: f64,
    /// Share of the error that this analysis may spend.
    pub(super) share: f64,
    /// Pairs in all that were run to test it.
    pub(super) pairs: usize,
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

/// One class of benchmarks, as this comparison saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The class.
    pub class: Class,
    /// Whether its benchmarks are corrected for the launch constant; others of the class are not.
    pub is_corrected: bool,
    /// Benchmarks it was learnt from.
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
    /// Its name.
    pub fn name(&self) -> String {
        let corrected = if self.is_corrected { ", corrected" } else { "" };
        format!("{}{corrected}", self.class)
    }

    /// Whether a row is one of its benchmarks.
    pub(super) fn has(&self, row: &BenchmarkRow) -> bool {
        row.class == Some(self.class) && row.correction_ns.is_some() == self.is_corrected
    }

    /// Whether the row changed with the others of the class.
    pub(super) fn moved(&self, row: &BenchmarkRow) -> bool {
        let change = row.judgement.map_or(0.0, |judgement| judgement.ratio.ln());
        self.doubt.is_some() && self.has(row) && change / self.centre > 0.5
    }
}

/// The evidence about each case, whose change counts if it is `tested`, and the drift of each class.
pub(super) fn evidence(
    cases: &[Case],
    tested: &[bool],
    options: &Options,
) -> (Vec<Option<Seen>>, Vec<Drift>) {
    let edge = options.threshold.ln_1p();
    // Corrected benchmarks spread less than others, so they are a class of their own.
    let is_corrected = |case: &Case| case.slope.is_some();
    let mut classes: BTreeMap<(Class, bool), Vec<usize>> = BTreeMap::new();
    for (i, case) in cases.iter().enumerate() {
        let class = (case.class, is_corrected(case));
        classes.entry(class).or_default().push(i);
    }
    let mut seen: Vec<Option<Seen>> = cases.iter().map(|_| None).collect();
    let mut drifts = Vec::new();
    for (&(class, is_corrected), members) in &classes {
        let of_class: Vec<&Case> = members.iter().map(|i| &cases[*i]).collect();
        let model = DriftModel::of(&of_class);
        let pairs = of_class.iter().map(|case| case.pairs.len()).max();
        let pairs = pairs.unwrap_or(0);
        let too_few = (pairs < 2 && of_class.len() < ENOUGH_BENCHMARKS).then_some(TOO_FEW);
        for (member, i) in members.iter().enumerate() {
            let reason = cases[*i].is_unsteady.then_some(UNSTEADY).or(too_few);
            let of =
                |wanted: &dyn Fn(usize) -> bool| Estimate::of(&cases[*i], &model, member, wanted);
            seen[*i] = of(&|_| true).map(|all| Seen {
                change: (reason.is_none() && tested[*i])
                    .then(|| ChangeEvidence::of(&cases[*i], options.screened, of))
                    .flatten(),
                all,
                reason,
                without: None,
            });
        }
        drifts.push(Drift {
            class,
            is_corrected,
            benchmarks: of_class.len(),
            pairs: (of_class.iter().flat_map(|case| &case.pairs))
                .map(|pair| pair.round + 1)
                .max()
                .unwrap_or(0),
            deviation: model.deviation(),
            centre: model.centre,
            doubt: doubt(&of_class, &model, edge),
        });
    }
    (seen, drifts)
}

/// The corrected cases whose verdict must hold without the correction too: changes by `edge` or more that a change
/// of the empty kernel alone explains.
pub(super) fn in_doubt(cases: &[Case], seen: &[Option<Seen>], edge: f64) -> Vec<usize> {
    let all = || cases.iter().zip(seen).enumerate();
    let of = |i: usize, launching: Launching| {
        let Launching::Kernels(kernels) = launching else {
            return None;
        };
        let per_launch = cases[i].pairs[0].base.ns / kernels;
        Some(LaunchShift::of(&seen[i].as_ref()?.all, per_launch))
    };
    let seems_changed = |seen: &Option<Seen>| {
        let change = seen.as_ref().and_then(|seen| seen.change.as_ref());
        change.is_some_and(|it| it.p_value <= CHANGE_ERROR && it.estimate.change().abs() >= edge)
    };
    all()
        .filter(|(i, (case, seen))| {
            let clock = case.class.clock;
            let Some(this) = of(*i, case.launching) else {
                return false;
            };
            let of_clock = || {
                let of_clock = all().filter(|(_, (other, _))| other.class.clock == clock);
                Vec::from_iter(of_clock.filter_map(|(i, (other, _))| of(i, other.launching)))
            };
            seems_changed(seen) && constant::in_doubt(this, &of_clock())
        })
        .map(|(i, _)| i)
        .collect()
}

/// One pair of runs cannot distinguish a change in shared code from another speed of the machine. Says
/// so if most benchmarks moved together by more than the threshold.
fn doubt(cases: &[&Case], model: &DriftModel, edge: f64) -> Option<String> {
    let together = model.centre.abs() > edge.max(model.deviation());
    together.then(|| {
        let middle = median(cases.iter().map(|case| case.mean_change())).unwrap_or(model.centre);
        let word = if middle > 0.0 { "slower" } else { "faster" };
        let size = 100.0 * middle.exp_m1().abs();
        let followed = |case: &&Case| case.mean_change() / middle > 0.5;
        let which = match cases.iter().all(followed) {
            true => format!("all {} benchmarks became about {size:.1} % {word}", cases.len()),
            false => format!("half of the {} benchmarks became at least {size:.1} % {word}", cases.len()),
        };
        format!(
            "{which}: either code that they share changed, or the machine was {word}. One pair of runs cannot \
             tell which, so only benchmarks that stand out from the others get a verdict",
        )
    })
}
