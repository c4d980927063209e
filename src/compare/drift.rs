//! What two processes differ by when they run the same code: the floor under every verdict.
//!
//! The change seen in pair `j` of runs of benchmark `i` is taken to be
//!
//! ```text
//! d(i,j) = true change(i) + c(j) + e(i,j) + noise of the two medians
//! ```
//!
//! with `c` common to a class in that pair (a hotter chip, a busy neighbour) and `e` its own
//! (where the memory fell). The noise is known from the samples; the variances of `c` and
//! `e` are learnt a class:
//!
//! - With two pairs or more, from how the pairs disagree, which no true change touches: their
//!   median square, or their mean square without the largest where that says more, since on a
//!   shared host a few benchmarks drift far more than the rest.
//! - With one pair, from the changes of the *other* benchmarks of the class around zero, as
//!   most are taken to be unchanged (an empirical null: Efron, "Large-scale simultaneous
//!   hypothesis testing", JASA 99, 2004). Their median square is used, so a few true changes
//!   hardly widen it; when many moved, [`Drift::doubt`] says so.
//! - And from an assumption a class, which fades as evidence arrives.
//!
//! Shrinking each benchmark's own variance towards its class follows Smyth, "Linear models
//! and empirical Bayes methods", SAGMB 3, 2004, with a robust class variance as in Phipson
//! and others, Ann. Appl. Stat. 10, 2016, and fixed degrees of freedom.

use std::collections::BTreeMap;

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::compare::case::Case;
use crate::compare::class::Class;
use crate::model::median::median;

/// How many repeats the assumption of [`Class::assumed_drift`] is worth.
pub(crate) const PRIOR_FREEDOM: f64 = 4.0;

/// How alike the benchmarks of a class are taken to drift: 4 degrees of freedom let the
/// standard deviation of one be half again its class's, or two thirds of it (one sigma).
const ALIKE_FREEDOM: f64 = 4.0;

/// Mean square of benchmarks that are so alike (a Student's t), without the largest, over what
/// it would be if all drifted equally: 1.2 for 26 of them and 1.7 for 200.
const ALIKE_MEAN: f64 = 1.5;

/// Share of the degrees of freedom that a median of squares keeps against their mean.
const MEDIAN_EFFICIENCY: f64 = 0.37;

/// Share of the noise of the medians that is taken out of what the processes differ by. The
/// bootstrap overstates the variance of a median by a tenth at 100 samples and by a third at
/// 10, and drift must not be mistaken for noise.
const NOISE_SHARE: f64 = 0.75;

/// The common part of the assumed drift, as a share of its standard deviation.
const COMMON_SHARE: f64 = 0.5;

/// Drift of one class, learnt from one comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Drift {
    /// The class.
    pub class: Class,
    /// Benchmarks it was learnt from.
    pub benchmarks: usize,
    /// Pairs of runs.
    pub pairs: usize,
    /// Standard deviation of the change between two processes of the same code, as a
    /// fraction (0.01 is one percent): common and own part together.
    pub deviation: f64,
    /// Why the floor may be too high to find true changes, in a sentence.
    pub doubt: Option<String>,
}

/// Variance with the degrees of freedom it is known with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

/// What the drift adds to the variance of one benchmark's mean change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    pub(super) own: Part,
    pub(super) common: Part,
}

/// Learns the drift of the classes in `cases`: a floor for each case, in their order, and
/// the classes.
pub(super) fn learn(cases: &[Case], threshold: f64) -> (Vec<Floor>, Vec<Drift>) {
    let mut classes: BTreeMap<&Class, Vec<usize>> = BTreeMap::new();
    for (i, case) in cases.iter().enumerate() {
        classes.entry(&case.class).or_default().push(i);
    }
    let mut floors: Vec<Option<Floor>> = vec![None; cases.len()];
    let mut drifts = Vec::new();
    for (class, members) in classes {
        let members_of: Vec<&Case> = members.iter().map(|i| &cases[*i]).collect();
        let (learnt, drift) = learn_class(class, &members_of, threshold);
        for (i, floor) in members.into_iter().zip(learnt) {
            floors[i] = Some(floor);
        }
        drifts.push(drift);
    }
    let floors = floors
        .into_iter()
        .map(|f| f.expect("every case belongs to a class"))
        .collect();
    (floors, drifts)
}

/// What one benchmark tells of the drift of its class.
struct Evidence {
    /// Mean square of what is left of its changes.
    square: f64,
    /// Degrees of freedom of that square.
    freedom: f64,
    /// The drift variance that would make `square` its median.
    if_median: f64,
    /// The drift variance that would make `square` its mean.
    if_mean: f64,
}

impl Evidence {
    fn new(square: f64, freedom: f64, noise: f64) -> Self {
        let noise = NOISE_SHARE * noise;
        Self {
            square,
            freedom,
            if_median: square / median_chi_square(freedom) - noise,
            if_mean: square - noise,
        }
    }
}

fn learn_class(class: &Class, cases: &[&Case], threshold: f64) -> (Vec<Floor>, Drift) {
    let assumed = class.assumed_drift().powi(2);
    let pairs = cases
        .iter()
        .flat_map(|c| c.pairs.iter().map(|p| p.round + 1))
        .max()
        .unwrap_or(0);
    let repeated = cases.iter().any(|c| c.pairs.len() > 1);
    let common_by_round = common_change(cases, pairs);
    let common = {
        let rounds = common_by_round.iter().flatten().count().saturating_sub(1) as f64;
        let sum: f64 = common_by_round.iter().flatten().map(|c| c * c).sum();
        let prior = assumed * COMMON_SHARE.powi(2);
        let both = (PRIOR_FREEDOM * prior + sum) / (PRIOR_FREEDOM + rounds);
        Part {
            // Pairs that disagree more than assumed are believed.
            variance: both.max(if rounds > 0.0 { sum / rounds } else { 0.0 }),
            freedom: PRIOR_FREEDOM + rounds,
        }
    };

    let evidence: Vec<Option<Evidence>> = cases
        .iter()
        .map(|case| {
            if !repeated {
                let change = case.mean_change();
                let freedom = 1.0;
                return Some(Evidence::new(change * change, freedom, case.pair_noise()));
            }
            let k = case.pairs.len();
            if k < 2 {
                return None;
            }
            let mean = case.mean_change();
            let sum: f64 = case
                .pairs
                .iter()
                .map(|p| (p.change() - mean - common_by_round[p.round].unwrap_or(0.0)).powi(2))
                .sum();
            // The common change was fitted to these very residuals. One benchmark alone has
            // no part of its own: all its disagreement is in the common part.
            let fitted = match cases.len() {
                1 => 0.0,
                n => n as f64 / (n as f64 - 1.0),
            };
            let freedom = (k - 1) as f64;
            Some(Evidence::new(
                sum / freedom * fitted,
                freedom,
                case.pair_noise(),
            ))
        })
        .collect();

    // What all benchmarks but `without` tell of the class, beside what is assumed, weighed
    // by their degrees of freedom.
    let pooled = |without: Option<usize>| {
        let seen: Vec<&Evidence> = evidence
            .iter()
            .enumerate()
            .filter(|(i, _)| Some(*i) != without)
            .filter_map(|(_, e)| e.as_ref())
            .collect();
        let freedom = MEDIAN_EFFICIENCY * seen.iter().map(|e| e.freedom).sum::<f64>();
        let variance = class_variance(&seen, repeated);
        let both = (PRIOR_FREEDOM * assumed + freedom * variance) / (PRIOR_FREEDOM + freedom);
        Part {
            // Pairs that disagree more than assumed are believed.
            variance: if repeated { both.max(variance) } else { both },
            freedom: PRIOR_FREEDOM + freedom,
        }
    };

    let floors = cases
        .iter()
        .zip(&evidence)
        .enumerate()
        .map(|(i, (case, own))| {
            // Its own change must not raise the floor that it is held against.
            let others = pooled(Some(i));
            let noise = case.pair_noise();
            let (variance, alike) = match own {
                Some(e) if repeated => {
                    let total = (ALIKE_FREEDOM * (others.variance + noise) + e.freedom * e.square)
                        / (ALIKE_FREEDOM + e.freedom);
                    // Pairs that agree by luck must not lower the floor, only those that
                    // disagree may raise it.
                    let own = total - noise;
                    if own > others.variance {
                        (own, ALIKE_FREEDOM + e.freedom)
                    } else {
                        (others.variance, ALIKE_FREEDOM)
                    }
                }
                _ => (others.variance, ALIKE_FREEDOM),
            };
            let k = case.pairs.len() as f64;
            Floor {
                own: Part {
                    variance: variance / k,
                    freedom: 1.0 / (1.0 / alike + 1.0 / others.freedom),
                },
                common: Part {
                    // A single pair shows its common change in every benchmark's.
                    variance: if repeated { common.variance / k } else { 0.0 },
                    freedom: common.freedom,
                },
            }
        })
        .collect();

    let all = pooled(None);
    let deviation = (all.variance + if repeated { common.variance } else { 0.0 }).sqrt();
    let doubt = if repeated {
        None
    } else {
        doubt(cases, deviation, threshold)
    };
    let drift = Drift {
        class: class.clone(),
        benchmarks: cases.len(),
        pairs,
        deviation,
        doubt,
    };
    (floors, drift)
}

/// The drift variance of a class from what its benchmarks tell; zero without any.
///
/// A median of squares, so that true changes seen in one pair hardly count. Pairs that
/// disagree show no true change, so the mean of their squares counts as well where it is
/// larger than benchmarks as alike as [`ALIKE_FREEDOM`] have it: on a machine with a
/// busy neighbour a few benchmarks a run are slower by half, and one that meets it in every
/// run of one side must not pass for a change. The largest square is left out: one restless
/// benchmark says nothing of the others.
fn class_variance(evidence: &[&Evidence], repeated: bool) -> f64 {
    let typical = median(evidence.iter().map(|e| e.if_median)).unwrap_or(0.0);
    let mut squares: Vec<f64> = evidence.iter().map(|e| e.if_mean).collect();
    squares.sort_unstable_by(f64::total_cmp);
    squares.pop();
    let tails = if repeated && !squares.is_empty() {
        squares.iter().sum::<f64>() / squares.len() as f64 / ALIKE_MEAN
    } else {
        0.0
    };
    typical.max(tails).max(0.0)
}

/// Median of a chi-square variable over its degrees of freedom.
fn median_chi_square(freedom: f64) -> f64 {
    if freedom == 1.0 {
        return 0.454_936_423_119_573;
    }
    ChiSquared::new(freedom).map_or(1.0, |d| d.inverse_cdf(0.5) / freedom)
}

/// What all benchmarks of a class did alike in each round, around their means over the
/// rounds. `None` for a round that too few of them took part in.
fn common_change(cases: &[&Case], rounds: usize) -> Vec<Option<f64>> {
    (0..rounds)
        .map(|round| {
            let repeated = cases.iter().filter(|c| c.pairs.len() > 1);
            median(repeated.filter_map(|c| {
                let pair = c.pairs.iter().find(|p| p.round == round)?;
                Some(pair.change() - c.mean_change())
            }))
        })
        .collect()
}

/// One pair of runs cannot tell a change in code that many benchmarks share from a machine
/// that ran slower. When many moved, the floor has swallowed it: say so.
fn doubt(cases: &[&Case], deviation: f64, threshold: f64) -> Option<String> {
    if cases.len() < 4 {
        return None;
    }
    let changes: Vec<f64> = cases.iter().map(|c| c.mean_change()).collect();
    let middle = median(changes.iter().copied())?;
    let moved = changes.iter().filter(|c| c.abs() > threshold).count();
    let apart = median(changes.iter().map(|c| (c - middle).abs()))?;
    let together = middle.abs() > threshold && middle.abs() > 2.0 * apart;
    // Three in ten beyond the threshold, against a quiet quarter, are no normal spread.
    let mut sizes: Vec<f64> = changes.iter().map(|c| c.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let quiet = sizes[sizes.len() / 4];
    let uneven = 10 * moved >= 3 * sizes.len() && deviation > 3.0 * (quiet / 0.319).max(1e-4);
    (together || uneven).then(|| {
        format!(
            "{moved} of {} changed by more than {:.1} % (median {:+.1} %): one pair of runs cannot \
             tell a change in shared code from a machine that ran at another speed, and the \
             floor learnt here may hide true changes; run `crossover ab`",
            changes.len(),
            100.0 * threshold,
            100.0 * middle,
        )
    })
}
