//! What two processes differ by when they run the same code, learnt from a comparison itself.
//!
//! The change seen in pair `j` of processes of benchmark `i` is taken to be
//!
//! ```text
//! d(i,j) = true change(i) + c(j) + e(i,j)
//! ```
//!
//! with `c` common to a class in that pair (a process whose launches all cost more) and `e` its
//! own (where its memory fell). With two pairs or more both are learnt from how the pairs
//! disagree, which no true change touches. With one pair they cannot be told apart from each
//! other, and from true changes only as [`Beliefs::after_changes`] says.

use crate::compare::beliefs::{Beliefs, Evidence};
use crate::compare::case::{Case, Pair};
use crate::compare::class::Class;
use crate::model::median::median;

/// Least number of benchmarks in a pair that tell what was common to them.
const ENOUGH_BENCHMARKS: usize = 4;

/// Times that the common and the own part are fitted in turn.
const FITS: usize = 4;

/// Variance with the degrees of freedom that it is known with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) variance: f64,
    pub(super) freedom: f64,
}

/// What is known of one class.
#[derive(Clone, Debug)]
pub(super) struct Learnt {
    pub(super) beliefs: Beliefs,
    /// What the benchmarks do alike.
    pub(super) common: Part,
    /// What each benchmark shows of its own, in the order of the cases.
    pub(super) own: Vec<Option<Evidence>>,
}

impl Learnt {
    /// From the benchmarks of one class; `known` is what earlier comparisons on this machine told
    /// of two processes that run one after the other, and counts where there is one pair.
    pub(super) fn of(class: &Class, cases: &[&Case], known: Option<&Beliefs>) -> Self {
        if cases.iter().any(|case| case.pairs.len() > 1) {
            return Self::of_pairs(class, cases);
        }
        let changes: Vec<(f64, f64)> = (cases.iter())
            .map(|case| (case.mean_change(), case.pair_noise()))
            .filter(|(_, noise)| noise.is_finite())
            .collect();
        let assumed = Beliefs::assumed_of_one_pair(class.assumed_drift(), class.device);
        let before = known.map_or(assumed.clone(), |known| known.and_doubt(&assumed));
        Self {
            beliefs: before.after_changes(&changes),
            common: Part {
                variance: 0.0,
                freedom: 1.0,
            },
            own: vec![None; cases.len()],
        }
    }

    fn of_pairs(class: &Class, cases: &[&Case]) -> Self {
        let rounds = (cases.iter().flat_map(|case| &case.pairs))
            .map(|pair| pair.round + 1)
            .max()
            .unwrap_or(0);
        let (common_by_round, own) = apart(cases, rounds);
        let known = common_by_round.iter().flatten().count();
        let common = match known {
            0 | 1 => Part {
                variance: 0.0,
                freedom: 1.0,
            },
            rounds => {
                let freedom = (rounds - 1) as f64;
                let squares: f64 = common_by_round.iter().flatten().map(|c| c * c).sum();
                Part {
                    variance: squares / freedom,
                    freedom,
                }
            }
        };
        let own: Vec<Option<Evidence>> = (cases.iter().zip(own))
            .map(|(case, squares)| {
                let mut freedom = (case.pairs.len() as f64 - 1.0).max(0.0);
                if known > 1 {
                    // The common change was fitted to these very squares.
                    freedom *= 1.0 - 1.0 / cases.len() as f64;
                }
                let evidence = Evidence {
                    square: squares / freedom,
                    freedom,
                    noise: case.pair_noise(),
                };
                (freedom > 0.0 && evidence.noise.is_finite()).then_some(evidence)
            })
            .collect();
        let seen: Vec<Evidence> = own.iter().flatten().copied().collect();
        Self {
            beliefs: Beliefs::assumed(class.assumed_drift()).after(&seen),
            common,
            own,
        }
    }

    /// Standard deviation of a change between two processes of the same code.
    pub(super) fn deviation(&self) -> f64 {
        (self.beliefs.deviation().powi(2) + self.common.variance).sqrt()
    }
}

/// What the benchmarks did alike in each round, `None` where too few took part, and the sum of
/// the squares of what each did on its own.
fn apart(cases: &[&Case], rounds: usize) -> (Vec<Option<f64>>, Vec<f64>) {
    let mut common: Vec<Option<f64>> = vec![None; rounds];
    let mut means: Vec<f64> = cases.iter().map(|case| case.mean_change()).collect();
    let own =
        |pair: &Pair, common: &[Option<f64>]| pair.change() - common[pair.round].unwrap_or(0.0);
    for _ in 0..FITS {
        for (round, common) in common.iter_mut().enumerate() {
            let of_round: Vec<f64> = (cases.iter().zip(&means))
                .filter(|(case, _)| case.pairs.len() > 1)
                .filter_map(|(case, mean)| {
                    let pair = case.pairs.iter().find(|pair| pair.round == round)?;
                    Some(pair.change() - mean)
                })
                .collect();
            *common = (of_round.len() >= ENOUGH_BENCHMARKS)
                .then(|| median(of_round))
                .flatten();
        }
        for (mean, case) in means.iter_mut().zip(cases) {
            let sum: f64 = (case.pairs.iter()).map(|pair| own(pair, &common)).sum();
            *mean = sum / case.pairs.len() as f64;
        }
    }
    let squares = (cases.iter().zip(&means)).map(|(case, mean)| {
        let squares = (case.pairs.iter()).map(|pair| (own(pair, &common) - mean).powi(2));
        squares.sum()
    });
    let squares = squares.collect();
    (common, squares)
}
