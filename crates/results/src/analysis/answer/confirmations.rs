//! The times that the processes of a run measured for a question, and the sizes at which the next
//! process measures.

use std::collections::BTreeSet;

use crate::analysis::answer::curve::Gap;
use crate::analysis::answer::estimate::{
    Crossing, FEWEST_PROCESSES, Samples, at_each_size, estimates,
};
use crate::analysis::answer::kind::Speedup;
use crate::analysis::answer::root::{ON_EITHER_SIDE, centre};
use crate::model::record::{Confirmation, PairedTimes};
use crate::statistics::positive;

/// If one side was this many times faster at an end of the range in each process so far, the next
/// process will not see a crossing there.
const CLEARLY: f64 = 1.5;

/// The estimates of a run's questions; `None` for a question that too few processes answered at its
/// largest size.
pub fn of_confirmations(confirmations: &[Confirmation]) -> Vec<Option<Crossing>> {
    let samples = |asked: &Confirmation| {
        let (first, last) = asked.range;
        let mut processes = sound(&asked.processes);
        up_to_the_largest_size(&mut processes);
        if processes.len() < FEWEST_PROCESSES {
            processes.clear();
        }
        Samples {
            place: asked.question,
            range: (first as f64, last as f64),
            processes,
        }
    };
    estimates(&confirmations.iter().map(samples).collect::<Vec<_>>())
}

/// Leaves out the processes that did not measure the largest of all sizes, at which the speedup is
/// taken.
pub(super) fn up_to_the_largest_size(processes: &mut Vec<Vec<Gap>>) {
    let ends = processes.iter().filter_map(|gaps| gaps.last());
    let largest = ends.map(|gap| gap.size).fold(0.0, f64::max);
    processes.retain(|gaps| gaps.last().is_some_and(|gap| gap.size == largest));
}

/// The speedup at each size, ascending: of several processes where they measured, around the crossing and
/// at the largest size, and elsewhere the run's own.
pub(super) fn with_own(
    own: &[Gap],
    processes: &[Vec<PairedTimes>],
) -> impl Iterator<Item = Speedup> {
    let mut all = at_each_size(sound(processes).concat());
    // All but the largest size lie around the crossing.
    let around = &all[..all.len().saturating_sub(1)];
    let window = around.first().zip(around.last());
    let window = window.map(|(first, last)| first.size..=last.size);
    let largest = all.last().map(|at| at.size);
    let is_known = |size: f64| {
        largest == Some(size) || window.as_ref().is_some_and(|window| window.contains(&size))
    };
    let own: Vec<Speedup> = own
        .iter()
        .filter(|own| !is_known(own.size))
        .map(Gap::speedup)
        .collect();
    all.extend(own);
    all.sort_by(|a, b| a.size.total_cmp(&b.size));
    all.into_iter().filter(|at| {
        [at.size, at.ratio, at.low, at.high]
            .iter()
            .all(|v| v.is_normal())
    })
}

/// The gaps of each process whose times are positive numbers, at ascending sizes.
fn sound(processes: &[Vec<PairedTimes>]) -> Vec<Vec<Gap>> {
    processes
        .iter()
        .filter_map(|process| gaps_of(process))
        .collect()
}

fn gaps_of(process: &[PairedTimes]) -> Option<Vec<Gap>> {
    let gap = |pair: &PairedTimes| {
        Some(Gap {
            size: positive(pair.size as f64)?,
            // Logarithms one by one, because the ratio of a damaged file's values may overflow.
            log: positive(pair.gpu_ns)?.ln() - positive(pair.cpu_ns)?.ln(),
            half_width: 0.0,
            measured: true,
        })
    };
    let gaps: Vec<Gap> = process.iter().map(gap).collect::<Option<_>>()?;
    let ascending = gaps.windows(2).all(|pair| pair[0].size < pair[1].size);
    (ascending && !gaps.is_empty()).then_some(gaps)
}

/// The sizes for the next process: `ON_EITHER_SIDE` of the median crossing of the processes so far (or
/// else of `near`), on the grid of quarters between the powers of two, inside `range`; then the largest
/// size. Without a crossing, `near` is below the range if the GPU always wins, and above if it never
/// does; then the sizes at that end of the range, or only the end if it is clear. With a NaN only the
/// largest size: there is more than one crossing.
pub fn next_sizes(near: f64, range: (u64, u64), processes: &[Vec<PairedTimes>]) -> Vec<u64> {
    let processes = sound(processes);
    let near = centre(&processes, (range.0 as f64, range.1 as f64)).unwrap_or(near);
    if near.is_nan() {
        return vec![range.1];
    }
    let is_clear = is_clear(near, range, &processes);
    let on_either_side = if is_clear { 1 } else { ON_EITHER_SIDE };
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
fn is_clear(near: f64, range: (u64, u64), processes: &[Vec<Gap>]) -> bool {
    // Seen from the side that wins there.
    let (end, sign) = match near {
        _ if near <= range.0 as f64 => (range.0, -1.0),
        _ if near > range.1 as f64 => (range.1, 1.0),
        _ => return false,
    };
    let clear = |gap: &Gap| gap.size == end as f64 && sign * gap.log >= CLEARLY.ln();
    !processes.is_empty() && processes.iter().all(|gaps| gaps.iter().any(clear))
}

/// Powers of two and the whole quarters between them, so that alignment to large powers of two is
/// kept, and the ends of the range.
fn quarters((first, last): (u64, u64)) -> Vec<u64> {
    let powers = (0..63).map(|e| 1u64 << e).take_while(|p| *p <= last);
    let inside = powers
        .flat_map(|power| (4..8).map(move |quarters| u128::from(power) * quarters))
        .filter(|fourfold| fourfold.is_multiple_of(4))
        .map(|fourfold| (fourfold / 4) as u64)
        .chain([first, last])
        .filter(|size| (first..=last).contains(size));
    BTreeSet::from_iter(inside).into_iter().collect()
}
