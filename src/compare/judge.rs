//! From medians to verdicts.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::compare::case::{Case, Pair};
use crate::compare::drift::{self, Drift};

/// Probability that any interval of a comparison misses its true ratio. The intervals are
/// corrected for their number (Bonferroni; Dunn, "Multiple comparisons among means", JASA
/// 56, 1961), so they hold all at once.
pub(crate) const FAMILY_ERROR: f64 = 0.01;

/// Changes smaller than this are not worth a verdict, unless asked for.
pub(crate) const THRESHOLD: f64 = 0.01;

/// Pairs of runs from which on a benchmark is also judged by its own alone.
pub(super) const ENOUGH_PAIRS: usize = 8;

/// What can be said of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// The interval lies above 1 and the ratio beyond the threshold.
    Slower,
    /// The interval lies below 1 and the ratio beyond the threshold.
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
    /// The word shown.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Unsure => "unsure",
            Verdict::Same => "same",
            Verdict::Gone => "gone",
            Verdict::New => "new",
        }
    }
}

/// Ratio, interval and verdict of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Judgement {
    /// Median time of the new side over that of the base (geometric mean over the pairs, from
    /// eight on without the outer quarters where that tells more).
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The verdict.
    #[serde(skip)]
    pub verdict: Verdict,
}

/// Judges all benchmarks of a comparison together: they share what they know of the drift,
/// and each interval pays for their number.
///
/// `tested` says which cases are asked about; the others only teach the drift (a filter
/// must not make the floor any less known). `threshold` is the smallest change worth a
/// verdict, as a fraction.
pub(crate) fn judge(
    cases: &[Case],
    tested: &[bool],
    threshold: f64,
) -> (Vec<Option<Judgement>>, Vec<Drift>) {
    let (floors, drifts) = drift::learn(cases, threshold.ln_1p());
    let number = tested.iter().filter(|t| **t).count().max(1);
    let tail = FAMILY_ERROR / number as f64 / 2.0;
    let judgements = cases
        .iter()
        .zip(&floors)
        .zip(tested)
        .map(|((case, floor), tested)| {
            tested.then(|| {
                let k = case.pairs.len() as f64;
                let medians = || case.pairs.iter().flat_map(|p| [p.base, p.new]);
                let parts = medians()
                    .map(|m| (m.variance / (k * k), m.freedom))
                    .chain([floor.own, floor.common].map(|p| (p.variance, p.freedom)));
                let interval = match case.pairs.len() {
                    0..ENOUGH_PAIRS => Interval {
                        centre: case.mean_change(),
                        reach: reach(parts, tail),
                    },
                    // Each interval gets half of the error budget, so the narrower one may be chosen.
                    _ => {
                        let modelled = Interval {
                            centre: case.mean_change(),
                            reach: reach(parts, tail / 2.0),
                        };
                        let own = Interval::of_trimmed_mean(case, tail / 2.0);
                        if own.reach < modelled.reach {
                            own
                        } else {
                            modelled
                        }
                    }
                };
                verdict(interval, threshold)
            })
        })
        .collect();
    (judgements, drifts)
}

/// Half the width of the interval: Student's t at `tail` times the standard error, the
/// degrees of freedom by Satterthwaite ("An approximate distribution of estimates of
/// variance components", Biometrics Bulletin 2, 1946).
fn reach(parts: impl Iterator<Item = (f64, f64)>, tail: f64) -> f64 {
    let parts: Vec<(f64, f64)> = parts.collect();
    let variance: f64 = parts.iter().map(|(part, _)| part).sum();
    // Times too far apart for a variance, and pairs that agree to the last bit, as on a coarse
    // clock, tell nothing.
    if !(variance > 0.0 && variance.is_finite()) {
        return f64::INFINITY;
    }
    // In shares, since the square of a large variance overflows.
    let spread: f64 = parts
        .iter()
        .map(|(part, freedom)| (part / variance).powi(2) / freedom)
        .sum();
    let freedom = spread.recip().clamp(1.0, 1e6);
    let t = StudentsT::new(0.0, 1.0, freedom)
        .map(|t| -t.inverse_cdf(tail))
        .expect("the scale is 1 and the degrees of freedom lie between 1 and 1e6");
    t * variance.sqrt()
}

/// The logarithm of a ratio lies within `reach` of `centre`.
struct Interval {
    centre: f64,
    reach: f64,
}

impl Interval {
    /// From the pairs of one benchmark alone, without a quarter of them at either end: on a
    /// machine where some runs are far off, the others still tell (Tukey and McLaughlin,
    /// "Less vulnerable confidence and significance procedures for location based on a single
    /// sample", Sankhya A 25, 1963).
    fn of_trimmed_mean(case: &Case, tail: f64) -> Self {
        let mut changes: Vec<f64> = case.pairs.iter().map(Pair::change).collect();
        changes.sort_unstable_by(f64::total_cmp);
        let cut = changes.len() / 4;
        let last = changes.len() - 1 - cut;
        let kept = &changes[cut..=last];
        let centre = kept.iter().sum::<f64>() / kept.len() as f64;
        for i in 0..cut {
            changes[i] = changes[cut];
            changes[last + 1 + i] = changes[last];
        }
        let mean = changes.iter().sum::<f64>() / changes.len() as f64;
        let squares: f64 = changes.iter().map(|c| (c - mean).powi(2)).sum();
        let kept = (last + 1 - cut) as f64;
        let part = (squares / (kept * (kept - 1.0)), kept - 1.0);
        Self {
            centre,
            reach: reach([part].into_iter(), tail),
        }
    }
}

fn verdict(interval: Interval, threshold: f64) -> Judgement {
    let Interval {
        centre: change,
        reach,
    } = interval;
    let edge = threshold.ln_1p();
    let verdict = if change - reach > 0.0 && change >= edge {
        Verdict::Slower
    } else if change + reach < 0.0 && change <= -edge {
        Verdict::Faster
    } else if change - reach >= -edge && change + reach <= edge {
        Verdict::Same
    } else {
        Verdict::Unsure
    };
    Judgement {
        ratio: change.exp(),
        low: (change - reach).exp(),
        high: (change + reach).exp(),
        verdict,
    }
}
