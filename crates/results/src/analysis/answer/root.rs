//! Where side b begins to win by the gaps of one process: the root of a line.

use std::f64::consts::LN_2;

use crate::analysis::answer::curve::Gap;
use crate::statistics::mean;

/// Sizes that make the line on either side of a crossing.
pub(super) const ON_EITHER_SIDE: usize = 2;

/// The crossing of one process: logarithms of the sizes between which b begins to be faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Root {
    /// Both are infinite where b is faster at every size or at none.
    pub(super) high: f64,
    /// Equal to `high`, except where only larger sizes were measured: there it is where the line
    /// leads, at least to half of the bound, and else not a number.
    pub(super) low: f64,
    /// Change of the gap per logarithm of the size: below zero.
    pub(super) slope: Option<f64>,
}

impl Root {
    fn at(root: f64, slope: Option<f64>) -> Self {
        let (low, high) = (root, root);
        Self { high, low, slope }
    }

    /// The crossing, where the sizes around it were measured.
    pub(super) fn exact(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.high)
    }

    /// Where b begins to be faster for good by the gaps of one process.
    pub(super) fn of(gaps: &[Gap], range: (f64, f64)) -> Option<Self> {
        let (first, largest) = (gaps.first()?, gaps.last()?);
        if largest.log >= 0.0 {
            // If the range continues, nothing is known beyond.
            return (largest.size >= range.1).then_some(Self::at(f64::INFINITY, None));
        }
        let Some(lost) = last_lost(gaps) else {
            if first.size <= range.0 {
                return Some(Self::at(f64::NEG_INFINITY, None));
            }
            let high = first.log_size();
            let (root, slope) = line(near(gaps, 0));
            let leads_there = slope < 0.0 && root >= high - LN_2;
            let within = || root.clamp(range.0.ln(), high);
            let low = if leads_there { within() } else { f64::NAN };
            let slope = None;
            return Some(Self { high, low, slope });
        };
        let near = near(gaps, lost);
        let (root, slope) = line(near);
        if slope < 0.0 {
            // The signs enclose it.
            let root = root.clamp(near[0].log_size(), near[near.len() - 1].log_size());
            return Some(Self::at(root, Some(slope)));
        }
        // Overall b does not gain with the size: the crossing lies between the last size that b lost
        // and the next one.
        let (root, slope) = line(&gaps[lost..lost + 2]);
        let root = root.clamp(gaps[lost].log_size(), gaps[lost + 1].log_size());
        Some(Self::at(root, Some(slope).filter(|slope| *slope < 0.0)))
    }
}

/// The last size at which b is not faster, before it is for good. Sizes whose intervals contain both
/// count only where they lie between a size that b loses and the first that it wins.
pub(super) fn last_lost(gaps: &[Gap]) -> Option<usize> {
    let decided = gaps.iter().rposition(|gap| gap.winner() == Some(false));
    let from = decided.map_or(0, |at| at + 1);
    let won = gaps[from..]
        .iter()
        .position(|gap| gap.winner() == Some(true));
    let until = won.map_or(gaps.len(), |at| from + at);
    let open = gaps[from..until].iter().rposition(|gap| gap.log >= 0.0);
    open.map(|at| from + at).or(decided)
}

/// The gaps of the line: of a long curve those on either side of the last lost size. The largest size
/// was measured for the speedup. It is part of the line if it is next to the others, or if all others
/// are lost.
pub(super) fn near(gaps: &[Gap], lost: usize) -> &[Gap] {
    let (last, before) = gaps.split_last().expect("there are gaps");
    let is_far = before.last().is_some_and(|gap| last.size > 1.5 * gap.size);
    let gaps = match (is_far, lost + 1 == before.len()) {
        (true, true) => return &gaps[lost..],
        (true, false) => before,
        (false, _) => gaps,
    };
    if gaps.len() <= 2 * ON_EITHER_SIDE + 1 {
        return gaps;
    }
    let next = lost + 1;
    &gaps[next.saturating_sub(ON_EITHER_SIDE)..(next + ON_EITHER_SIDE).min(gaps.len())]
}

/// The line of least squares through the gaps: where it is zero, and its slope.
fn line(gaps: &[Gap]) -> (f64, f64) {
    let mx = mean(gaps.iter().map(Gap::log_size));
    let my = mean(gaps.iter().map(|gap| gap.log));
    let (xx, xy) = gaps.iter().fold((0.0, 0.0), |(xx, xy), gap| {
        let x = gap.log_size() - mx;
        (xx + x * x, xy + x * (gap.log - my))
    });
    let slope = xy / xx;
    (mx - my / slope, slope)
}

/// The median root, where the next process should measure.
pub(super) fn centre(processes: &[Vec<Gap>], range: (f64, f64)) -> Option<f64> {
    let roots = processes.iter().filter_map(|gaps| Root::of(gaps, range));
    // A root below the measured sizes: measure lower the next time.
    let roots = roots.map(|root| root.exact().unwrap_or(root.high - LN_2));
    let mut sorted: Vec<f64> = roots.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(
        middle_of_sorted(&sorted)
            .filter(|middle| middle.is_finite())
            .unwrap_or(lower)
            .exp(),
    )
}

/// The median of the roots, and its uncertainty on either side. If the two in the middle are a crossing
/// and none, it is the crossing; `None` if one is always and the other never.
pub(super) fn middle(roots: &[Root]) -> Option<(f64, f64)> {
    let median_of = |end: fn(&Root) -> f64| {
        let mut ends: Vec<f64> = roots.iter().map(end).collect();
        // An unknown root may be the smallest.
        ends.sort_unstable_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
        middle_of_sorted(&ends)
    };
    let (low, high) = (median_of(|root| root.low)?, median_of(|root| root.high)?);
    let distance = (high - low) / 2.0;
    let unknown = if distance.is_finite() { distance } else { 0.0 };
    Some((middle_of_sorted(&[low, high])?, unknown))
}

/// The median, as [`middle`] has it; `None` next to one that is not a number, which is not known.
fn middle_of_sorted(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let (a, b) = (sorted[last / 2], sorted[sorted.len() / 2]);
    match (a.is_finite(), b.is_finite()) {
        _ if a.is_nan() || b.is_nan() => None,
        (true, true) => Some(a.midpoint(b)),
        (true, false) => Some(a),
        (false, true) => Some(b),
        (false, false) => (a == b).then_some(a),
    }
}
