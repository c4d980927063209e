//! Answers from a table of times of any two programs.

use std::collections::BTreeMap;

use crate::analysis::answer::curve::{Curve, Gap, Point, gaps};
use crate::analysis::answer::estimate::{
    Crossing, FEWEST_PROCESSES, Samples, at_each_size, estimates,
};
use crate::analysis::answer::kind::Speedup;
use crate::model::role::Residency;
use crate::statistics::between_processes::TWO_SIDED_95;
use crate::statistics::median::{interval_of_sorted, median_of_sorted};
use crossover_advice::thresholds::BETWEEN_PROCESSES;

/// A line of the table: one sample.
#[derive(Clone, Debug)]
pub struct Time {
    /// The operation's name.
    pub operation: String,
    /// Where its data start and end.
    pub place: Residency,
    /// Problem size.
    pub size: u64,
    /// The program: 0 is a, such as the CPU, and 1 is b. The answer is from which size on b is faster.
    pub side: usize,
    /// Name of the process that measured it.
    pub process: String,
    /// Nanoseconds.
    pub ns: f64,
}

/// The answer for one operation and one place of its data.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAnswer {
    /// The operation's name.
    pub operation: String,
    /// Where its data start and end.
    pub place: Residency,
    /// Times of a and of b, medians over all samples.
    pub curves: [Curve; 2],
    /// The estimate; `None` where the two sides have no size in common.
    pub crossing: Option<Crossing>,
    /// The speedup of b over a at each size, by size: of several processes at the sizes that enough of
    /// them measured.
    pub speedups: Vec<Speedup>,
    /// The sizes of the table that do not count. No answer reaches beyond them.
    pub left_out: Vec<(u64, LeftOut)>,
}

/// Why a size of a table does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// This side was not measured there.
    Lacking(usize),
    /// One side was measured once, which gives no interval.
    Once,
    /// Fewer than three processes measured it.
    FewProcesses,
}

/// Removes the sizes that one side lacks, or that it measured once.
fn remove_incomplete(sizes: &mut BySize) -> Vec<(u64, LeftOut)> {
    let incomplete = sizes.iter().filter_map(|(size, sides)| {
        let lacking = (0..2).find(|side| sides[*side].is_empty());
        let once = sides.iter().any(|samples| samples.len() == 1);
        let why = lacking.map(LeftOut::Lacking);
        Some((*size, why.or(once.then_some(LeftOut::Once))?))
    });
    let incomplete: Vec<(u64, LeftOut)> = incomplete.collect();
    sizes.retain(|size, _| !incomplete.iter().any(|(other, _)| other == size));
    incomplete
}

/// The samples of both sides in ns, by size.
type BySize = BTreeMap<u64, [Vec<f64>; 2]>;

/// The answers, by operation and place. Fewer than three processes count as one.
pub fn of_times(times: &[Time]) -> Vec<TableAnswer> {
    let mut questions: BTreeMap<(&str, Residency), BTreeMap<Option<&str>, BySize>> =
        BTreeMap::new();
    for time in times {
        let question = questions.entry((&time.operation, time.place)).or_default();
        // The entry `None` has all samples together.
        for process in [None, Some(&*time.process)] {
            let sizes = question.entry(process).or_default();
            sizes.entry(time.size).or_default()[time.side].push(time.ns);
        }
    }
    let mut asked = Vec::new();
    let mut answers = Vec::new();
    for ((operation, place), mut processes) in questions {
        let together = processes.remove(&None).unwrap_or_default();
        let (answer, mut samples) = without_crossing(together, processes.into_values());
        if a_is_ahead(&answer) {
            let gaps = samples.processes.iter_mut().flatten();
            gaps.for_each(Gap::swap_sides);
        }
        asked.push(Samples { place, ..samples });
        answers.push(TableAnswer {
            operation: operation.to_owned(),
            place,
            ..answer
        });
    }
    for (answer, mut crossing) in answers.iter_mut().zip(estimates(&asked)) {
        if let Some(crossing) = &mut crossing {
            if a_is_ahead(answer) {
                crossing.swap_sides(&answer.speedups);
            }
            for at in &mut answer.speedups {
                *at = crossing.at_the_largest(*at);
            }
        }
        answer.crossing = crossing;
    }
    answers
}

/// Whether a is faster at the largest size. Then the crossing is that of swapped sides, since an estimate is of
/// the size from which on b is faster: it does not depend on which side is named first.
fn a_is_ahead(answer: &TableAnswer) -> bool {
    answer.speedups.last().is_some_and(|at| at.ratio < 1.0)
}

/// The answer of a question before its crossing is estimated from the samples.
fn without_crossing(
    mut together: BySize,
    processes: impl Iterator<Item = BySize>,
) -> (TableAnswer, Samples) {
    let mut left_out = remove_incomplete(&mut together);
    let complete = processes.map(|mut sizes| {
        sizes.retain(|size, _| together.contains_key(size));
        sizes
    });
    let apart = with_both_sides(complete).into_iter();
    let mut processes: Vec<Vec<Gap>> = apart.filter_map(of_process).collect();
    let curves = curves(together);
    up_to_a_common_size(&mut processes);
    let speedups: Vec<Speedup> = if processes.is_empty() {
        let mut gaps = measured(&curves);
        for gap in &mut gaps {
            gap.half_width = gap.half_width.hypot(TWO_SIDED_95 * BETWEEN_PROCESSES);
        }
        processes = vec![gaps];
        processes[0].iter().map(Gap::speedup).collect()
    } else {
        at_each_size(processes.concat())
    };
    let sizes = curves[0].points().iter().map(|at| at.size);
    let few = sizes.filter(|size| !speedups.iter().any(|at| at.size == *size));
    left_out.extend(few.map(|size| (size as u64, LeftOut::FewProcesses)));
    left_out.sort_by_key(|(size, _)| *size);
    let ends = speedups.first().zip(speedups.last());
    let samples = Samples {
        place: Residency::default(),
        range: ends.map_or((0.0, 0.0), |(first, last)| (first.size, last.size)),
        is_searched: false,
        processes,
    };
    let answer = TableAnswer {
        operation: String::new(),
        place: Residency::default(),
        curves,
        crossing: None,
        speedups,
        left_out,
    };
    (answer, samples)
}

/// The times of each process. Processes that measured one side alone are paired in the order of their names:
/// such a pair shows the spread of both.
fn with_both_sides(processes: impl Iterator<Item = BySize>) -> Vec<BySize> {
    let is_alone = |of: &BySize| (0..2).any(|side| of.values().all(|sides| sides[side].is_empty()));
    let (alone, mut both): (Vec<BySize>, Vec<BySize>) = processes.partition(is_alone);
    let (mut pairs, mut counts) = (Vec::new(), BTreeMap::new());
    for (size, sides) in alone.into_iter().flatten() {
        for (side, samples) in sides.into_iter().enumerate() {
            if samples.is_empty() {
                continue;
            }
            let count: &mut usize = counts.entry((size, side)).or_default();
            if *count == pairs.len() {
                pairs.push(BySize::new());
            }
            pairs[*count].entry(size).or_default()[side] = samples;
            *count += 1;
        }
    }
    both.extend(pairs);
    both
}

/// Leaves out the sizes above the largest one that enough processes measured, and the processes without it.
fn up_to_a_common_size(processes: &mut Vec<Vec<Gap>>) {
    let mut sizes: Vec<f64> = processes.iter().flatten().map(|gap| gap.size).collect();
    sizes.sort_by(f64::total_cmp);
    let mut sizes = sizes.chunk_by(|a, b| a == b);
    let enough = sizes.rfind(|size| size.len() >= FEWEST_PROCESSES);
    let largest = enough.map_or(0.0, |size| size[0]);
    for gaps in &mut *processes {
        gaps.retain(|gap| gap.size <= largest);
    }
    processes.retain(|gaps| gaps.last().is_some_and(|gap| gap.size == largest));
}

/// The gaps of one of several processes, which show their own spread.
fn of_process(sizes: BySize) -> Option<Vec<Gap>> {
    let mut gaps = measured(&curves(sizes));
    gaps.iter_mut().for_each(|gap| gap.half_width = 0.0);
    (!gaps.is_empty()).then_some(gaps)
}

/// The sizes at which both sides were measured.
fn measured([a, b]: &[Curve; 2]) -> Vec<Gap> {
    let mut gaps = gaps(a, b);
    gaps.retain(|gap| gap.measured);
    gaps
}

fn curves(sizes: BySize) -> [Curve; 2] {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (size, sides) in sizes {
        for (mut samples, points) in sides.into_iter().zip([&mut a, &mut b]) {
            samples.sort_unstable_by(f64::total_cmp);
            let Some(median) = median_of_sorted(&samples) else {
                continue;
            };
            // With fewer than six samples, the smallest and largest replace the interval.
            let ends = (samples[0], samples[samples.len() - 1]);
            let (low, high) = interval_of_sorted(&samples).unwrap_or(ends);
            points.push(Point {
                size: size as f64,
                median,
                low,
                high,
                measured: true,
            });
        }
    }
    [a, b].map(Curve::new)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crossover_advice::thresholds::CrossingKind;

    const SIZES: [u64; 4] = [64, 90, 112, 200];

    fn time(place: Residency, size: u64, side: usize, process: usize, ns: f64) -> Time {
        Time {
            operation: "product".into(),
            place,
            size,
            side,
            process: process.to_string(),
            ns,
        }
    }

    /// b takes 10 µs at each size, a as long at 100 and the square of the size elsewhere.
    fn table(place: Residency, processes: usize, sizes: [u64; 4]) -> Vec<Time> {
        let at = |(process, size): (usize, u64)| {
            let longer = 1.0 + 0.001 * process as f64;
            let times = [(0, (size as f64).powi(2)), (1, 1e4)];
            times.map(|(side, ns)| time(place, size, side, process, longer * ns))
        };
        let of_process = |process| sizes.map(|size| (process, size));
        let mut times: Vec<Time> = (0..processes).flat_map(of_process).flat_map(at).collect();
        twice_if_alone(&mut times, processes);
        times
    }

    /// A size that was measured once has no interval.
    fn twice_if_alone(times: &mut Vec<Time>, processes: usize) {
        if processes == 1 {
            times.extend(times.clone());
        }
    }

    #[test]
    fn a_crossing_in_a_table_is_found_from_one_process_and_from_several() {
        for (processes, counted) in [(1, 1), (2, 1), (5, 5)] {
            let [answer] = &of_times(&table(Residency::Ordinary, processes, SIZES))[..] else {
                panic!("one operation in one place has one answer");
            };
            let crossing = answer.crossing.as_ref().unwrap();
            assert_eq!(
                (crossing.answer, crossing.processes),
                (CrossingKind::From, counted)
            );
            assert!((crossing.for_good().unwrap().size / 100.0 - 1.0).abs() < 1e-6);
            assert!((crossing.speedup / 4.0 - 1.0).abs() < 1e-6);
            assert_eq!(answer.curves[0].points().len(), 4);
            let (first, largest) = (answer.speedups[0], answer.speedups[3]);
            assert_eq!((first.size, first.processes), (64.0, counted));
            assert!((first.ratio / 0.4096 - 1.0).abs() < 1e-6 && first.high < 1.0);
            assert!(largest.low < 4.0 && largest.high > 4.0);
        }
    }

    /// One side takes 3 ns per unit, and b 20 µs and then 1.6 ns: they cross at 14,286.
    fn latency_and_rate(sizes: impl Iterator<Item = u64>, seed: u64, b: usize) -> Crossing {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut times = Vec::new();
        for size in sizes {
            for process in 0..5 {
                for (side, ns) in [(1 - b, 3.0 * size as f64), (b, 2e4 + 1.6 * size as f64)] {
                    let noise: f64 = (0..12).map(|_| random.random_range(-0.5..0.5)).sum();
                    let ns = ns * (1.0 + 0.01 * noise);
                    times.push(time(Residency::Ordinary, size, side, process, ns));
                }
            }
        }
        of_times(&times).remove(0).crossing.unwrap()
    }

    #[test]
    fn a_crossing_between_sizes_far_apart_lies_where_the_curves_meet() {
        let (truth, mut narrowest) = (2e4 / 1.4, f64::INFINITY);
        for (step, count, within) in [(10u64, 5, 0.1), (4, 8, 0.05), (2, 15, 0.04)] {
            let sizes = (0..count).map(|e| 100 * step.pow(e));
            let mut widths = Vec::new();
            for seed in 0..20 {
                let crossing = latency_and_rate(sizes.clone(), seed, 1);
                let change = crossing.for_good().unwrap();
                // Also if the other side is named first.
                let until = latency_and_rate(sizes.clone(), seed, 0).changes[0];
                let is_same = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
                assert!(is_same(until.size, change.size) && !until.to_b);
                assert!(is_same(until.low, change.low) && is_same(until.high, change.high));
                let off = (change.size / truth).ln().abs();
                assert!(off < within, "{step}: {change:?}");
                let interval = change.low..=change.high;
                assert!(interval.contains(&truth), "{step}: {change:?}");
                widths.push(change.high / change.low);
            }
            // The farther apart the sizes are, the more is left open.
            let is_narrower = widths.iter().all(|width| *width < narrowest);
            assert!(is_narrower, "{step}: {widths:?}");
            narrowest = widths.into_iter().fold(f64::INFINITY, f64::min);
        }
    }

    /// a takes 1.07 times as long as b.
    fn similar(process: usize, size: u64) -> [Time; 2] {
        [(0, 1.07e4), (1, 1e4)].map(|(side, ns)| time(Residency::Pinned, size, side, process, ns))
    }

    #[test]
    fn processes_of_one_side_each_are_paired() {
        let mut times: Vec<Time> = (0..4).flat_map(|process| similar(process, 64)).collect();
        times.extend((4..6).map(|process| similar(process, 64)[0].clone()));
        let paired = of_times(&times).remove(0).crossing;
        for time in times.iter_mut().filter(|time| time.side == 1) {
            time.process += "b";
        }
        let apart = of_times(&times).remove(0).crossing;
        assert_eq!(paired.as_ref().unwrap().processes, 4);
        assert_eq!(apart, paired);
    }

    #[test]
    fn another_process_than_a_single_one_may_differ_at_each_size() {
        let mut times: Vec<Time> = SIZES.iter().flat_map(|size| similar(0, *size)).collect();
        twice_if_alone(&mut times, 1);
        let answer = of_times(&times).remove(0);
        assert_eq!(answer.speedups.len(), 4);
        let is_open = |at: &Speedup| at.low < 0.9 && at.high > 1.2;
        assert!(answer.speedups.iter().all(is_open), "{answer:?}");
        assert_eq!(answer.crossing.unwrap().answer, CrossingKind::Undecided);
    }

    #[test]
    fn places_have_answers_of_their_own_and_sides_apart_have_none() {
        let mut times = table(Residency::Ordinary, 3, SIZES);
        times.extend(table(Residency::Pinned, 3, [16, 32, 64, 80]));
        let apart = table(Residency::Queued, 3, SIZES).into_iter();
        times.extend(apart.filter(|time| (time.side == 0) == (time.size < 100)));
        let one_side = table(Residency::Awaited, 3, SIZES).into_iter();
        times.extend(one_side.filter(|time| time.side == 0));
        let answers = of_times(&times);
        let answer = |a: &TableAnswer| (a.place, a.crossing.as_ref().map(|c| c.answer));
        let wanted = [
            (Residency::Queued, None),
            (Residency::Awaited, None),
            (Residency::Pinned, Some(CrossingKind::Never)),
            (Residency::Ordinary, Some(CrossingKind::From)),
        ];
        assert_eq!(answers.iter().map(answer).collect::<Vec<_>>(), wanted);
        assert_eq!(of_times(&[]), []);
    }
}
