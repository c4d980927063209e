//! Where one pair of runs cannot tell a change in shared code from a machine at another speed.

use crate::compare::case::Case;
use crate::model::median::median;

/// One pair of runs cannot tell a change in code that many benchmarks share from a machine
/// that ran slower. When many moved, the drift has swallowed it: say so.
pub(super) fn doubt(cases: &[&Case], deviation: f64, threshold: f64) -> Option<String> {
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
             drift learnt here may hide true changes; run `crossover ab`",
            changes.len(),
            100.0 * threshold,
            100.0 * middle,
        )
    })
}
