//! The times that the processes of a run measured for a question, the answers by them, and the sizes at
//! which the next process measures.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::analysis::answer::curve::{Gap, ON_EITHER_SIDE, centre};
use crate::analysis::answer::estimate::{
    Crossing, FEWEST_PROCESSES, Samples, at_each_size, estimates, half_width,
};
use crate::analysis::answer::kind::Speedup;
use crate::model::id::Device;
use crate::model::record::{Confirmation, PairedTimes};
use crate::statistics::between_processes::Spread;
use crate::statistics::median::median;
use crate::statistics::positive;
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;

/// If one side was this many times faster at an end of the range in each process so far, the next
/// process will not see a crossing there.
const NO_CROSSING_BEYOND: f64 = 1.5;

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
            is_searched: true,
            processes,
        }
    };
    estimates(&confirmations.iter().map(samples).collect::<Vec<_>>())
}

/// Leaves out the processes that did not measure the largest of all sizes, at which the speedup is
/// taken.
fn up_to_the_largest_size(processes: &mut Vec<Vec<Gap>>) {
    let ends = processes.iter().filter_map(|gaps| gaps.last());
    let largest = ends.map(|gap| gap.size).fold(0.0, f64::max);
    processes.retain(|gaps| gaps.last().is_some_and(|gap| gap.size == largest));
}

/// The speedup at each size, ascending: of several processes where they measured, around the crossing and
/// at the largest size, and elsewhere the run's own, some of which are interpolated.
pub(super) fn with_own(
    own: &[Gap],
    processes: &[Vec<PairedTimes>],
) -> impl Iterator<Item = Speedup> {
    let mut speedups = at_each_size(sound(processes).concat());
    // All but the largest size lie around the crossing.
    let around = &speedups[..speedups.len().saturating_sub(1)];
    let window = around.first().zip(around.last());
    let window = window.map(|(first, last)| first.size..=last.size);
    let largest = speedups.last().map(|at| at.size);
    let is_known = |size: f64| {
        largest == Some(size) || window.as_ref().is_some_and(|window| window.contains(&size))
    };
    let own: Vec<Speedup> = own
        .iter()
        .filter(|own| !is_known(own.size))
        .map(Gap::speedup)
        .collect();
    speedups.extend(own);
    speedups.sort_by(|a, b| a.size.total_cmp(&b.size));
    speedups.into_iter().filter(|at| {
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
        // Logarithms one by one, because the ratio of a damaged file's values may overflow.
        let log_time = positive(pair.cpu_ns)?.ln();
        Some(Gap {
            size: positive(pair.size as f64)?,
            log: positive(pair.gpu_ns)?.ln() - log_time,
            log_time,
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
    let clear = |gap: &Gap| gap.size == end as f64 && sign * gap.log >= NO_CROSSING_BEYOND.ln();
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

/// The answers of several processes to each question that a run put to them, where the results are
/// still those of that run, by group.
pub(super) fn confirmed(machine: &MachineResults) -> BTreeMap<&str, Vec<RunAnswer<'_>>> {
    let series = |asked: &Confirmation, pair: &PairedTimes| -> Vec<&Series> {
        let group = machine.group(&asked.group).into_iter();
        let curves = group.flat_map(|group| &group.series);
        let is_compared = |s: &&Series| {
            if s.is_baseline() {
                s.implementation == pair.cpu
            } else {
                s.implementation == asked.gpu && s.clock == Some(asked.clock)
            }
        };
        curves.filter(is_compared).collect()
    };
    // Both results of a pair, if they exist. Between two sizes the CPU's curve is interpolated.
    let results = |asked: &Confirmation, pair: &PairedTimes| -> Vec<&Benchmark> {
        let series = series(asked, pair).into_iter();
        series.filter_map(|s| s.at(pair.size)).collect()
    };
    let mut confirmed: BTreeMap<&str, Vec<RunAnswer>> = BTreeMap::new();
    for answer in of_runs(machine) {
        let (run, asked) = (answer.run, answer.asked);
        // This run and the earlier ones: the newest run is the first.
        let names = machine.runs.iter().map(|(record, _)| &record.run);
        let until_it: Vec<&String> = names.skip_while(|name| *name != run).collect();
        // If a later run measured any of it again, the answer is about older code.
        let later = |b: &&Benchmark| b.run.as_ref().is_none_or(|name| !until_it.contains(&name));
        let mut pairs = asked.processes.iter().flatten();
        let is_there = |pair: &PairedTimes| {
            let curves = series(asked, pair);
            let here = curves.iter().find_map(|s| s.at(pair.size));
            // The largest size of another machine's GPU may lie between two sizes of the CPU.
            let first = here.or_else(|| curves.first()?.points.iter().find(|b| b.size > pair.size));
            first.is_some_and(|b| b.run.as_deref() == Some(run))
        };
        let is_current = pairs.clone().last().is_some_and(is_there)
            && !pairs.any(|pair| results(asked, pair).iter().any(later));
        // Each division of the work among several GPUs is a question of its own.
        let of_several = machine.group(&asked.group).map(Group::baseline) == Some(Device::Gpu);
        let question = |answer: &RunAnswer| {
            let gpu = Some(answer.asked.gpu.clone()).filter(|_| of_several);
            (answer.asked.question, answer.asked.gpu_machine.clone(), gpu)
        };
        let of_group = confirmed.entry(&*asked.group).or_default();
        let is_new = !(of_group.iter()).any(|other| question(other) == question(&answer));
        if is_current && is_new {
            of_group.push(answer);
        }
    }
    confirmed
}

/// The machine with the times of a run's processes in place of results of its GPU that were unsteady in the
/// run itself. Where its GPU stands in for another machine's, nothing else takes these times.
pub fn with_confirmed_times(mut machine: MachineResults) -> MachineResults {
    let mut times: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for (run, asked) in machine
        .confirmations()
        .flat_map(|(run, answers)| answers.iter().map(move |asked| (run, asked)))
    {
        for pair in asked.processes.iter().flatten() {
            let row = (
                asked.group.clone(),
                asked.gpu.clone(),
                asked.clock.name(),
                pair.size,
                run.to_owned(),
            );
            times
                .entry(row)
                .or_default()
                .extend(positive(pair.gpu_ns).map(f64::ln));
        }
    }
    times.retain(|_, logs| logs.len() >= FEWEST_PROCESSES);
    let confirmed = |series: &Series, b: &Benchmark| {
        let row = (
            b.group.clone(),
            b.implementation.clone(),
            series.clock_name(),
            b.size,
            b.run.clone()?,
        );
        times.get(&row).filter(|_| b.unsteady.is_some())
    };
    for group in &mut machine.groups {
        let is_any = |series: &Series| series.points.iter().any(|b| confirmed(series, b).is_some());
        if !group.on(Device::Gpu).any(is_any) {
            continue;
        }
        for series in &mut Arc::make_mut(group).series {
            let found: Vec<_> = series.points.iter().map(|b| confirmed(series, b)).collect();
            for (b, logs) in series.points.iter_mut().zip(found) {
                let Some((logs, middle)) =
                    logs.and_then(|logs| Some((logs, median(logs.iter().copied())?)))
                else {
                    continue;
                };
                let half = half_width(Spread::of(logs), std::iter::empty(), logs.len());
                b.median_ns = middle.exp();
                b.interval_ns = Some(((middle - half).exp(), (middle + half).exp()));
                b.notes.push(format!(
                    "the median of {} processes; in the run's own process {}",
                    logs.len(),
                    b.unsteady.take().unwrap_or_default()
                ));
            }
        }
    }
    machine
}

/// The answer of a run's processes to one of its questions.
#[derive(Debug)]
pub struct RunAnswer<'a> {
    pub(super) run: &'a str,
    pub(super) asked: &'a Confirmation,
    pub(super) answer: Crossing,
}

/// The answers of all runs of a machine, from the newest run to the oldest.
pub fn of_runs(machine: &MachineResults) -> Vec<RunAnswer<'_>> {
    let mut run_answers = Vec::new();
    for (run, confirmations) in machine.confirmations() {
        let answers = of_confirmations(confirmations);
        let answered = confirmations.iter().zip(answers);
        run_answers.extend(answered.filter_map(|(asked, answer)| {
            let answer = answer?;
            Some(RunAnswer { run, asked, answer })
        }));
    }
    run_answers
}
