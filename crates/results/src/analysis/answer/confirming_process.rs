//! The crossing in one process, and the sizes at which the process measures.
//!
//! Its crossing is the root of a straight line through the logarithms of its ratios at the sizes
//! around it, between the sizes where their signs say that it lies.

use std::f64::consts::LN_2;

use crate::model::record::PairedTimes;
use crate::statistics::median::median_of_sorted;

/// Sizes that a process measures on either side of a crossing.
const ON_EITHER_SIDE: usize = 2;

/// Where one side is this many times faster at an end of the range in each process so far, another
/// process will not see a crossing there.
const CLEARLY: f64 = 1.5;

/// The sizes to ask the next process about, after these: `ON_EITHER_SIDE` of `near` on the grid of
/// quarters between the powers of two, inside `range`; then the largest. Without a crossing those at
/// the end of the range where one would be next, or the end alone where it is clear: `near` below the
/// range where the GPU always wins, above where it never does. With a NaN only the largest: there is
/// no one crossing.
pub fn sizes(near: f64, range: (u64, u64), processes: &[Vec<PairedTimes>]) -> Vec<u64> {
    if near.is_nan() {
        return vec![range.1];
    }
    let on_either_side = match is_clear(near, range, processes) {
        true => 1,
        false => ON_EITHER_SIDE,
    };
    let grid = quarters(range);
    let above = grid.partition_point(|size| (*size as f64) < near);
    let window = above.saturating_sub(on_either_side)..(above + on_either_side).min(grid.len());
    let mut sizes = grid[window].to_vec();
    sizes.push(range.1);
    sizes.dedup();
    sizes
}

/// Whether all processes so far saw the same side clearly faster at the end of the range that `near`
/// lies beyond.
fn is_clear(near: f64, range: (u64, u64), processes: &[Vec<PairedTimes>]) -> bool {
    // Seen from the side that wins there.
    let (end, sign) = match near {
        _ if near <= range.0 as f64 => (range.0, -1.0),
        _ if near > range.1 as f64 => (range.1, 1.0),
        _ => return false,
    };
    let mut seen = processes.iter().map(|duels| {
        let at_the_end = duels.iter().find(|duel| duel.size == end);
        at_the_end.is_some_and(|duel| sign * gap(duel) >= CLEARLY.ln())
    });
    !processes.is_empty() && seen.all(|clear| clear)
}

/// Powers of two and the whole quarters between them, so that alignment to large powers of two is
/// kept, and the ends of the range.
fn quarters((first, last): (u64, u64)) -> Vec<u64> {
    let powers = (0..63).map(|e| 1u64 << e).take_while(|p| *p <= last);
    let mut grid: Vec<u64> = powers
        .flat_map(|power| (4..8).map(move |quarters| (power, quarters)))
        .filter(|(power, quarters)| (power * quarters).is_multiple_of(4))
        .map(|(power, quarters)| power / 4 * quarters + power % 4 * quarters / 4)
        .chain([first, last])
        .filter(|size| (first..=last).contains(size))
        .collect();
    grid.sort_unstable();
    grid.dedup();
    grid
}

/// The crossing in the processes so far, around which the next one measures.
pub fn centre(processes: &[Vec<PairedTimes>], range: (u64, u64)) -> Option<f64> {
    let seen = processes.iter().filter_map(|duels| crossing(duels, range));
    // One that lies below what was asked: further down next time.
    let seen = seen.map(|seen| seen.root().unwrap_or(seen.high - LN_2));
    let mut sorted: Vec<f64> = seen.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    let middle = median_of_sorted(&sorted).filter(|middle| middle.is_finite());
    Some(middle.unwrap_or(lower).exp())
}

/// What one process sees of the crossing: logarithms of the sizes between which the GPU begins to win.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Seen {
    /// Both are infinite where the GPU always or never wins.
    pub(super) high: f64,
    /// The same, except where only larger sizes were asked about: there it is where the line leads, at
    /// least to half of the bound, and else not a number.
    pub(super) low: f64,
    /// Change of the logarithm of GPU over CPU time per logarithm of the size: below zero.
    pub(super) slope: Option<f64>,
}

impl Seen {
    fn at(root: f64, slope: Option<f64>) -> Self {
        let (low, high) = (root, root);
        Self { high, low, slope }
    }

    /// The crossing, where it was asked about.
    pub(super) fn root(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.high)
    }
}

/// Logarithm of GPU over CPU time.
pub(super) fn gap(duel: &PairedTimes) -> f64 {
    // Each by itself: what a file holds may overflow as a ratio.
    duel.gpu_ns.ln() - duel.cpu_ns.ln()
}

/// Where the GPU begins to win for good, as these sizes show it.
pub(super) fn crossing(duels: &[PairedTimes], range: (u64, u64)) -> Option<Seen> {
    let (first, largest) = (duels.first()?, duels.last()?);
    let wins = |duel: &PairedTimes| gap(duel) < 0.0;
    if !wins(largest) {
        // Nothing beyond is known where the range goes on.
        return (largest.size >= range.1).then_some(Seen::at(f64::INFINITY, None));
    }
    // The largest is there for the speedup. It is part of the line where it lies beside the others,
    // and where those that were expected around the crossing are all lost.
    let before = &duels[..duels.len() - 1];
    let is_far = before
        .last()
        .is_some_and(|last| largest.size > last.size.saturating_mul(3) / 2);
    let Some(last_lost) = duels.iter().rposition(|duel| !wins(duel)) else {
        if first.size <= range.0 {
            return Some(Seen::at(f64::NEG_INFINITY, None));
        }
        let high = log_size(first);
        let (root, slope) = line(if is_far { before } else { duels });
        let low = match slope < 0.0 && root >= high - LN_2 {
            true => root.clamp((range.0 as f64).ln(), high),
            false => f64::NAN,
        };
        let slope = None;
        return Some(Seen { high, low, slope });
    };
    let near = match (is_far, last_lost + 1 == before.len()) {
        (true, true) => &duels[last_lost..],
        (true, false) => before,
        (false, _) => duels,
    };
    let (root, slope) = line(near);
    if slope < 0.0 {
        // The signs say that it lies between them.
        let root = root.clamp(log_size(&near[0]), log_size(&near[near.len() - 1]));
        return Some(Seen::at(root, Some(slope)));
    }
    // On the whole the GPU does not gain with the size: the crossing lies between the last size that
    // it lost and the next.
    let (a, b) = (&duels[last_lost], &duels[last_lost + 1]);
    let (from, to) = (log_size(a), log_size(b));
    let slope = (gap(b) - gap(a)) / (to - from);
    let root = (from - gap(a) / slope).clamp(from, to);
    Some(Seen::at(root, Some(slope).filter(|slope| *slope < 0.0)))
}

fn log_size(duel: &PairedTimes) -> f64 {
    (duel.size as f64).ln()
}

/// The line of least squares through the logarithms: where it is zero, and its slope.
fn line(duels: &[PairedTimes]) -> (f64, f64) {
    let n = duels.len() as f64;
    let mx = duels.iter().map(log_size).sum::<f64>() / n;
    let my = duels.iter().map(gap).sum::<f64>() / n;
    let (xx, xy) = duels.iter().fold((0.0, 0.0), |sums, duel| {
        let from_middle = log_size(duel) - mx;
        (
            sums.0 + from_middle.powi(2),
            sums.1 + from_middle * (gap(duel) - my),
        )
    });
    let slope = xy / xx;
    (mx - my / slope, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANGE: (u64, u64) = (8, 4096);

    /// CPU over GPU time at a size.
    fn ratio(size: u64, ratio: f64) -> PairedTimes {
        PairedTimes {
            size,
            cpu: "c".into(),
            cpu_ns: ratio,
            gpu_ns: 1.0,
        }
    }

    #[test]
    fn sizes_lie_around_the_crossing_and_at_the_end() {
        assert_eq!(sizes(89.0, RANGE, &[]), [64, 80, 96, 112, 4096]);
        assert_eq!(sizes(96.0, RANGE, &[]), [64, 80, 96, 112, 4096]);
        assert_eq!(sizes(0.0, RANGE, &[]), [8, 10, 4096]);
        assert_eq!(sizes(f64::NAN, RANGE, &[]), [4096]);
        assert_eq!(sizes(f64::INFINITY, RANGE, &[]), [3584, 4096]);
        assert_eq!(sizes(3.0, (1, 7), &[]), [1, 2, 3, 4, 7]);
        assert_eq!(sizes(64.0, (64, 64), &[]), [64]);
        assert_eq!(quarters((5, 11)), [5, 6, 7, 8, 10, 11]);
    }

    #[test]
    fn an_end_that_each_process_saw_clearly_is_asked_about_alone() {
        let at = |size, gpu_ns: f64| ratio(size, 10.0 / gpu_ns);
        let never = |gpu_ns| vec![at(3584, gpu_ns), at(4096, gpu_ns)];
        let (clear, close) = (never(16.0), never(14.0));
        let asks = |processes: &[_]| sizes(f64::INFINITY, RANGE, processes);
        assert_eq!(asks(&[clear.clone(), clear.clone()]), [4096]);
        assert_eq!(asks(&[clear.clone(), close]), [3584, 4096]);
        // The other side is faster, and the centre has not moved yet.
        assert_eq!(asks(&[never(5.0)]), [3584, 4096]);
        let always = vec![at(8, 5.0), at(10, 5.0), at(4096, 0.1)];
        assert_eq!(sizes(0.0, RANGE, std::slice::from_ref(&always)), [8, 4096]);
        assert_eq!(
            sizes(0.0, RANGE, &[always, vec![at(8, 9.0)]]),
            [8, 10, 4096]
        );
        // A crossing is asked about on both sides, whatever was seen.
        assert_eq!(sizes(89.0, RANGE, &[clear]).len(), 5);
    }

    /// It was measured for the speedup, and the line is that of the sizes around the crossing.
    #[test]
    fn a_largest_size_far_beyond_the_others_does_not_bend_the_line() {
        let root = |largest: u64| {
            let duel = |size: u64| {
                let bent = if size == largest { 2.0 } else { 1.0 };
                ratio(size, bent * (size as f64 / 90.0).powi(2))
            };
            let seen = crossing(&[64, 80, 96, 112, largest].map(duel), RANGE);
            seen.unwrap().root().unwrap().exp()
        };
        assert!((root(256) - 90.0).abs() < 1e-9, "{}", root(256));
        assert!((root(128) - 90.0).abs() > 1.0, "{}", root(128));
    }

    #[test]
    fn a_line_leads_below_what_was_asked_about_but_not_far() {
        let seen = |at: f64, steep: f64| {
            let duel = |size: u64| ratio(size, (size as f64 / at).powf(steep));
            let seen = crossing(&[64, 80, 96, 112, 4096].map(duel), RANGE).unwrap();
            assert!(seen.high == 64.0f64.ln() && seen.root().is_none());
            seen.low.exp()
        };
        assert!((seen(50.0, 1.0) - 50.0).abs() < 1e-9);
        assert!(seen(31.0, 1.0).is_nan(), "further down than half of 64");
        assert!(seen(5000.0, -1.0).is_nan(), "the GPU loses with the size");
    }

    #[test]
    fn the_next_process_measures_around_the_middle_crossing() {
        let process = |at: f64| {
            let duel = |size: u64| ratio(size, size as f64 / at);
            [8, 512, 4096].map(duel).into()
        };
        let middle = centre(&[300.0, 100.0, 200.0].map(process), RANGE).unwrap();
        assert!((middle - 200.0).abs() < 1e-9, "{middle}");
    }
}
