//! The spread between two processes of the same code, learnt from the comparison itself.
//!
//! The change seen in pair `j` of processes of benchmark `i` is taken to be
//!
//! ```text
//! d(i,j) = true change(i) + c(j) + e(i,j)
//! ```
//!
//! with `c` common to a class in that pair (a process whose launches all cost more) and `e` of this
//! benchmark alone (where its memory lies). With two pairs or more, both are learnt from how the pairs
//! disagree, which no true change affects. With one pair, a benchmark is compared with the others of its
//! class. One pair does not distinguish `c` from a change that most of them share, so the true `c` is taken
//! to lie anywhere between zero and their centre.

use crate::case::{Case, RunPair};
use crate::drift::{self, Hypothesis, LARGE, MeanSquare};
use crossover_results::statistics::between_processes::Spread;
use crossover_results::statistics::mean as average;
use crossover_results::statistics::median::median;

/// Fewest benchmarks from which a class's common drift is estimated.
pub(super) const ENOUGH_BENCHMARKS: usize = 4;

/// Number of fits of the common and the own part in turn.
const FITS: usize = 4;

/// The drift of one class.
#[derive(Clone, Debug)]
pub(super) struct DriftModel {
    pub(super) hypotheses: Vec<Hypothesis>,
    /// The part that the benchmarks have in common, with two pairs or more.
    pub(super) common: Spread,
    /// The part that they may have in common in one pair.
    pub(super) centre: f64,
    /// The mean square of each benchmark's own part, in the order of the cases.
    pub(super) own: Vec<Option<MeanSquare>>,
    /// Share of the class that is not the benchmark itself; 0 for a small class.
    pub(super) others: f64,
    pub(super) is_of_one_pair: bool,
}

impl DriftModel {
    /// The drift of the benchmarks of one class.
    pub(super) fn of(cases: &[&Case]) -> Self {
        let others = match cases.len() {
            n if n < ENOUGH_BENCHMARKS => 0.0,
            n => 1.0 - 1.0 / n as f64,
        };
        if cases.iter().all(|case| case.pairs.len() < 2) {
            let (hypotheses, centre) = of_one_pair(cases);
            return Self {
                hypotheses,
                common: Spread::default(),
                centre,
                own: vec![None; cases.len()],
                others,
                is_of_one_pair: true,
            };
        }
        let rounds = (cases.iter().flat_map(|case| &case.pairs))
            .map(|pair| pair.round + 1)
            .max()
            .unwrap_or(0);
        let (common_by_round, own) = split_common_drift(cases, rounds);
        let known: Vec<f64> = common_by_round.into_iter().flatten().collect();
        let common = Spread {
            squares: known.iter().map(|c| c * c).sum(),
            freedom: (known.len() as f64 - 1.0).max(0.0),
        };
        let own: Vec<Option<MeanSquare>> = (cases.iter().zip(own))
            .map(|(case, squares)| {
                let mut freedom = (case.pairs.len() as f64 - 1.0).max(0.0);
                if known.len() > 1 {
                    // The common change was fitted to these very squares.
                    freedom *= 1.0 - 1.0 / cases.len() as f64;
                }
                let observed = MeanSquare {
                    square: squares / freedom,
                    freedom,
                    noise: case.scale.powi(2) * case.pair_noise(),
                };
                (freedom > 0.0 && observed.noise.is_finite()).then_some(observed)
            })
            .collect();
        let known = Vec::from_iter(own.iter().flatten().copied());
        Self {
            hypotheses: drift::of_disagreements(&known),
            common,
            centre: 0.0,
            own,
            others,
            is_of_one_pair: false,
        }
    }

    /// Standard deviation of a change between two processes of the same code.
    pub(super) fn deviation(&self) -> f64 {
        let common = self.common.variance().unwrap_or(0.0);
        (drift::deviation(&self.hypotheses).powi(2) + common).sqrt()
    }
}

/// The drift of a class by one pair of runs, and the centre of its changes: the median, then the median
/// of those that are not [`LARGE`], which a share of true changes does not move.
fn of_one_pair(cases: &[&Case]) -> (Vec<Hypothesis>, f64) {
    let changes: Vec<(f64, f64)> = (cases.iter())
        .map(|case| (case.mean_change(), case.pair_noise()))
        .filter(|(_, noise)| noise.is_finite())
        .collect();
    if changes.len() < ENOUGH_BENCHMARKS {
        return (drift::of_changes(&[]), 0.0);
    }
    let around = |centre: f64| {
        let squares = changes.iter().map(|&(change, noise)| MeanSquare {
            square: (change - centre).powi(2),
            freedom: 1.0,
            noise,
        });
        drift::of_changes(&Vec::from_iter(squares))
    };
    let first = median(changes.iter().map(|(change, _)| *change)).expect("there are enough");
    let deviation = drift::deviation(&around(first));
    let near = changes
        .iter()
        .filter(|(change, noise)| (change - first).abs() < LARGE * deviation.hypot(noise.sqrt()));
    let centre = median(near.map(|(change, _)| *change)).expect("half of them are near");
    (around(centre), centre)
}

/// The common part of each round, `None` if too few benchmarks took part, and the sum of the squares of
/// each benchmark's own part.
fn split_common_drift(cases: &[&Case], rounds: usize) -> (Vec<Option<f64>>, Vec<f64>) {
    let mut common: Vec<Option<f64>> = vec![None; rounds];
    let mut means: Vec<f64> = (cases.iter())
        .map(|case| case.scale * case.mean_change())
        .collect();
    let own = |case: &Case, pair: &RunPair, common: &[Option<f64>]| {
        case.scaled(pair) - common[pair.round].unwrap_or(0.0)
    };
    for _ in 0..FITS {
        for (round, common) in common.iter_mut().enumerate() {
            let of_round: Vec<f64> = (cases.iter().zip(&means))
                .filter(|(case, _)| case.pairs.len() > 1)
                .filter_map(|(case, mean)| {
                    let pair = case.pairs.iter().find(|pair| pair.round == round)?;
                    Some(case.scaled(pair) - mean)
                })
                .collect();
            *common = (of_round.len() >= ENOUGH_BENCHMARKS)
                .then(|| median(of_round))
                .flatten();
        }
        for (mean, case) in means.iter_mut().zip(cases) {
            *mean = average(case.pairs.iter().map(|pair| own(case, pair, &common)));
        }
    }
    let squares = (cases.iter().zip(&means)).map(|(case, mean)| {
        let squares = (case.pairs.iter()).map(|pair| (own(case, pair, &common) - mean).powi(2));
        squares.sum()
    });
    let squares = squares.collect();
    (common, squares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::case_of;
    use crossover_results::model::id::Device;

    #[test]
    fn shared_drift_is_separated_from_own_drift() {
        let common = [0.0_f64, 0.1, 0.3, 0.2];
        // Each truly changed by an amount of its own, and most ran in the first two rounds only.
        let case = |i: usize| {
            case_of(Device::Cpu, 0..if i < 4 { 4 } else { 2 }, |round| {
                100.0 * (common[round] + 0.01 * i as f64).exp()
            })
        };
        let cases: Vec<Case> = (0..12).map(case).collect();
        let cases: Vec<&Case> = cases.iter().collect();
        let model = DriftModel::of(&cases);
        assert_eq!(model.common.freedom, 3.0);
        let freedom = model.own.into_iter();
        let freedom =
            Vec::from_iter(freedom.map(|own| own.map(|own| (12.0 * own.freedom).round())));
        let of_pairs = |case: &&Case| Some(11.0 * (case.pairs.len() - 1) as f64);
        assert_eq!(freedom, Vec::from_iter(cases.iter().map(of_pairs)));
        let (found, squares) = split_common_drift(&cases, 4);
        let found: Vec<f64> = found.into_iter().flatten().collect();
        // Each fit in turn halves what the rounds of few benchmarks are off by.
        for (found, wanted) in found.iter().zip([-0.05, 0.05, 0.2375, 0.1375]) {
            assert!((found - wanted).abs() < 1e-9, "{found}");
        }
        for (i, square) in squares.iter().enumerate() {
            let wanted = if i < 4 { 0.0125_f64.powi(2) } else { 0.0 };
            assert!((square - wanted).abs() < 1e-9, "{square}");
        }
    }
}
