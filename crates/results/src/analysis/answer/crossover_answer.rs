//! Which curves are compared: each GPU implementation with the best CPU code.
//!
//! The CPU side is the fastest CPU implementation at each size. On the GPU side each
//! implementation has its own answer, and one per question is the headline:
//!
//! - *data on the device, a queue of calls*: of the implementations that leave the data in GPU
//!   memory and are not waited for, those whose time includes the launch (clock `events`); of
//!   these, the one that wins from the smallest size on, and of several that do, the fastest at
//!   the largest. Gated times stand in, labelled as device time, only where no other was measured.
//! - *data on the device, one call awaited*, *data in pinned host memory*, *data in ordinary host
//!   memory*: likewise, of the implementations whose role says so.
//!
//! Where the run put the question to several processes, their answer counts (`confirm`).
//!
//! No answer uses unsteady results. The curves leave them out; if one of them may be the fastest CPU
//! code at a size, no slower code takes its place there.
//!
//! Rows on the clock `submit` and rows that their group declares as not answers are ignored.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use crate::analysis::answer::confirmations::{RunAnswer, confirmed, with_own};
use crate::analysis::answer::curve::{Curve, Point, gaps};
use crate::analysis::answer::estimate::{Crossing, Samples, estimates};
use crate::analysis::answer::kind::Speedup;
use crate::analysis::telemetry::{Capped, capped};
use crate::model::environment::Environment;
use crate::model::group_info::GroupInfo;
use crate::model::id::{self, Device};
use crate::model::record::{Confirmation, DEVICES, PairedTimes};
use crate::model::role::Residency;
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;
use crossover_advice::thresholds::CrossingKind;

/// The answer for one GPU implementation of one group.
#[derive(Clone, Debug)]
pub struct CrossoverAnswer {
    /// The group.
    pub group: String,
    /// The group's title, question and axis.
    pub topic: GroupInfo,
    /// The best CPU implementation where the winner changes, or at the largest size.
    pub cpu: String,
    /// The GPU implementation.
    pub gpu: String,
    /// Clock of the GPU implementation.
    pub clock: &'static str,
    /// Where the data start and end.
    pub question: Residency,
    /// Whether the GPU's time includes the launch.
    pub includes_launch: bool,
    /// Whether it answers its question for the group.
    pub headline: bool,
    /// Number of GPUs that are compared with one; `None` where the GPU is compared with the CPU.
    pub devices: Option<u32>,
    /// Name of the machine whose GPU it is, when not the CPU's own.
    pub gpu_machine: Option<String>,
    /// The estimate, of one process or of several.
    pub crossing: Crossing,
    /// The times of each process; empty if only one process answered.
    pub processes: Vec<Vec<PairedTimes>>,
    /// Clock and cap of the GPU's result at that size, where it ran under the power cap.
    pub capped: Option<Capped>,
    /// Ids of the results behind the answer: both curves around each change and at the largest size.
    pub benchmarks: Vec<String>,
}

impl CrossoverAnswer {
    /// Takes over the estimate of several processes; elsewhere the run's own times, in the curve `cpu` and in `theirs`,
    /// count.
    fn confirm(
        &mut self,
        confirmed: &RunAnswer,
        cpu: &Curve,
        theirs: &Group,
        with_unsteady: &WithUnsteady,
    ) {
        let gpu = self.gpu_series(theirs).map(curve).unwrap_or_default();
        self.crossing.clone_from(&confirmed.answer);
        self.processes.clone_from(&confirmed.asked.processes);
        let own = gaps(cpu, &gpu);
        self.crossing.decide(with_own(&own, &self.processes));
        // The processes may have measured at other sizes than the runs.
        let WithUnsteady { ours, theirs, best } = with_unsteady;
        if let Some(gpu) = self.gpu_series(theirs) {
            self.benchmarks = rests_on(ours, gpu, &best.1, &self.crossing);
        }
    }

    /// Decides again with the unsteady results that might refute an answer *always* or *never*.
    fn reopen(&mut self, cpu: &Curve, gpu: &Series, all_cpu: &Curve) {
        let sizes = self.speedups(cpu, gpu);
        let open = undecided_by_unsteady(&sizes, all_cpu, gpu, &self.crossing);
        self.crossing.decide_again(sizes, open);
    }

    /// Whether the answer is about this GPU curve.
    pub fn is_of(&self, series: &Series) -> bool {
        series.implementation == self.gpu && series.clock_name() == self.clock
    }

    /// The GPU curve of the answer among those of `theirs`, the group on the GPU's machine.
    pub fn gpu_series<'a>(&self, theirs: &'a Group) -> Option<&'a Series> {
        theirs.on(Device::Gpu).find(|series| self.is_of(series))
    }

    /// The speedup at each size that the best CPU code and its GPU code both cover. The kind of the answer
    /// follows from the sizes at which both were measured.
    pub fn speedups(&self, best_cpu: &Curve, gpu: &Series) -> Vec<Speedup> {
        let own = gaps(best_cpu, &curve(gpu));
        let joined = with_own(&own, &self.processes);
        joined.map(|at| self.crossing.at_the_largest(at)).collect()
    }

    /// Device and implementation of the other side, `cpu/best`.
    pub fn cpu_label(&self) -> String {
        let device = self.devices.map_or(Device::Cpu, |_| Device::Gpu);
        id::function_of(device, &self.cpu)
    }

    /// Machine and implementation, `gpu/cublas (NVIDIA H200)`.
    pub fn gpu_label(&self) -> String {
        match &self.gpu_machine {
            Some(machine) => format!("gpu/{} ({machine})", self.gpu),
            None => format!("gpu/{}", self.gpu),
        }
    }
}

/// A series as a curve for the search, without what is unsteady.
pub fn curve(series: &Series) -> Curve {
    Curve::new(series.steady_points().map(point))
}

fn point(b: &Benchmark) -> Point {
    Point {
        size: b.size as f64,
        median: b.median_ns,
        low: b.low_ns(),
        high: b.high_ns(),
        measured: true,
    }
}

/// The fastest CPU implementation at each size that any has, with its name. Between the
/// sizes of an implementation its curve is interpolated, so that a missing size does not
/// put a slower one in its place.
pub fn best_cpu(group: &Group) -> (Curve, Vec<(f64, String)>) {
    let series = group.answering(Device::Cpu);
    let curves: Vec<(&Series, Curve)> = series.map(|s| (s, curve(s))).collect();
    let points = curves.iter().flat_map(|(s, _)| s.steady_points());
    let sizes: BTreeSet<u64> = points.map(|b| b.size).collect();
    let (mut points, mut names) = (Vec::new(), Vec::new());
    for size in sizes {
        let here = size as f64;
        let rivals = || curves.iter().filter_map(|(s, c)| Some((s, c.at(here)?)));
        let best = rivals().min_by(|a, b| a.1.median.total_cmp(&b.1.median));
        let Some((series, mut point)) = best else {
            continue;
        };
        let mut unsteady = curves.iter().filter_map(|(s, _)| s.at(size));
        if unsteady.any(|b| b.unsteady.is_some() && b.low_ns() < point.median) {
            continue;
        }
        if !point.measured {
            // Other code may be faster.
            let least = |end: fn(&Point) -> f64| {
                let ends = rivals().map(|(_, rival)| end(&rival));
                ends.fold(point.high, f64::min)
            };
            (point.low, point.high) = (least(|p| p.low), least(|p| p.high));
        }
        points.push(point);
        names.push((here, series.implementation.clone()));
    }
    (Curve::new(points), names)
}

/// The fastest implementation from a size on, by the names of [`best_cpu`].
fn name_at(names: &[(f64, String)], size: f64) -> Option<&String> {
    let next = names.iter().find(|(at, _)| *at >= size);
    next.or(names.last()).map(|(_, name)| name)
}

/// The fastest CPU implementation at a size by the curves, including unsteady results: it is to be
/// measured again, by several processes.
pub fn best_at(group: &Group, size: f64) -> Option<String> {
    let curve = |series: &Series| Curve::new(series.points.iter().map(point));
    group
        .answering(Device::Cpu)
        .filter_map(|s| Some((curve(s).at(size)?.median, &s.implementation)))
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.clone())
}

/// Every answer of a machine, and of this machine's CPU against the GPUs of `others` where
/// it measured none itself in a group.
pub fn find(machine: &MachineResults, others: &[MachineResults]) -> Vec<CrossoverAnswer> {
    let confirmed = confirmed(machine);
    let of_group = |group: &Arc<Group>| -> Vec<CrossoverAnswer> {
        let confirmed = confirmed.get(&*group.name).map_or(&[][..], Vec::as_slice);
        if group.on(Device::Gpu).next().is_some() {
            let environment = machine.environment.as_ref();
            return compare(group, group, None, environment, confirmed);
        }
        let beside = others.iter().filter_map(|other| {
            let theirs = other.group(&group.name)?;
            let environment = other.environment.as_ref();
            let hardware = Some(other.hardware());
            Some(compare(group, theirs, hardware, environment, confirmed))
        });
        beside.flatten().collect()
    };
    machine.groups.par_iter().flat_map_iter(of_group).collect()
}

/// The runs of the GPU's results.
fn runs_of(group: &Group, found: &CrossoverAnswer) -> Vec<Option<String>> {
    let points = found.gpu_series(group).into_iter().flat_map(|s| &s.points);
    points.map(|b| b.run.clone()).collect()
}

/// The answers of other runs' processes to the same question, each with its run.
pub(crate) fn of_other_runs(
    of_runs: &[RunAnswer],
    found: &CrossoverAnswer,
) -> Vec<(String, Crossing)> {
    let same = |it: &&RunAnswer| {
        (&it.asked.group, it.asked.question, &it.asked.gpu_machine)
            == (&found.group, found.question, &found.gpu_machine)
            && (found.devices.is_none() || it.asked.gpu == found.gpu)
    };
    let answers = of_runs.iter().filter(same);
    let answers = answers.filter(|it| it.asked.processes != found.processes);
    answers
        .map(|it| (it.run.to_owned(), it.answer.clone()))
        .collect()
}

/// Both sides with all results treated as steady, because the processes also decide results that were unsteady.
struct WithUnsteady {
    ours: Group,
    theirs: Group,
    best: (Curve, Vec<(f64, String)>),
}

impl WithUnsteady {
    fn of(ours: &Group, theirs: &Group) -> Self {
        let (ours, theirs) = (ours.with_unsteady(), theirs.with_unsteady());
        let best = best_cpu(&ours);
        Self { ours, theirs, best }
    }
}

fn compare(
    ours: &Group,
    theirs: &Group,
    gpu_machine: Option<String>,
    environment: Option<&Environment>,
    confirmed: &[RunAnswer],
) -> Vec<CrossoverAnswer> {
    let cpu = best_cpu(ours).0;
    let mut found = of_rows(ours, theirs);
    let with_unsteady = LazyCell::new(|| WithUnsteady::of(ours, theirs));
    for (question, row) in questions(theirs) {
        let is_row = |gpu: &String| row.as_ref().is_none_or(|row| row == gpu);
        let confirmed = confirmed.iter().find(|RunAnswer { asked, .. }| {
            asked.question == question && asked.gpu_machine == gpu_machine && is_row(&asked.gpu)
        });
        let by_processes = confirmed.and_then(|RunAnswer { asked, .. }| {
            let is_asked = |f: &CrossoverAnswer| answers(f, asked, theirs);
            if !found.iter().any(is_asked) {
                // All results behind the answer were unsteady in the run's own process.
                let rows = of_rows(&with_unsteady.ours, &with_unsteady.theirs);
                found.extend(rows.into_iter().find(is_asked));
            }
            found.iter().position(is_asked)
        });
        let own = || match &row {
            None => headline(&found, question),
            Some(row) => found.iter().position(|f| f.gpu == *row),
        };
        let Some(at) = by_processes.or_else(own) else {
            continue;
        };
        found[at].headline = true;
        if let Some(confirmed) = confirmed.filter(|_| by_processes.is_some()) {
            found[at].confirm(confirmed, &cpu, theirs, &with_unsteady);
        }
    }
    for found in &mut found {
        found.gpu_machine.clone_from(&gpu_machine);
        let Some(series) = found.gpu_series(theirs) else {
            continue;
        };
        let largest = series.at(found.crossing.largest as u64);
        found.capped = largest.and_then(|b| capped(b, environment));
        if let CrossingKind::Always | CrossingKind::Never = found.crossing.answer {
            found.reopen(&cpu, series, &with_unsteady.best.0);
        }
    }
    found
}

/// The places of the data; in a group on several GPUs each of its rows.
fn questions(theirs: &Group) -> Vec<(Residency, Option<String>)> {
    if theirs.baseline() == Device::Cpu {
        return Residency::ALL.map(|question| (question, None)).to_vec();
    }
    let rows = theirs.answering(Device::Gpu);
    rows.map(|s| (s.role.data, Some(s.implementation.clone())))
        .collect()
}

/// Whether an answer is about the GPU code that processes measured.
fn answers(found: &CrossoverAnswer, asked: &Confirmation, theirs: &Group) -> bool {
    (found.question, &found.gpu, found.clock) == (asked.question, &asked.gpu, asked.clock.name())
        && (asked.gpu_run.is_none() || runs_of(theirs, found).contains(&asked.gpu_run))
}

/// The sizes that were measured on both sides, with a result too unsteady to count, and that the side may win
/// which never wins elsewhere.
fn undecided_by_unsteady(
    known: &[Speedup],
    all_cpu: &Curve,
    gpu: &Series,
    crossing: &Crossing,
) -> Vec<f64> {
    let wins = crossing.wins_at_the_largest();
    let is_known = |size: f64| known.iter().any(|at| at.size == size && at.processes > 0);
    let is_open = |b: &&Benchmark| {
        let cpu = all_cpu.at(b.size as f64).filter(|cpu| cpu.measured);
        let may_differ = cpu.is_some_and(|cpu| match wins {
            Some(true) => b.high_ns() > cpu.low,
            Some(false) => b.low_ns() < cpu.high,
            None => false,
        });
        may_differ && !is_known(b.size as f64)
    };
    gpu.points
        .iter()
        .filter(is_open)
        .map(|b| b.size as f64)
        .collect()
}

/// The answer of each GPU implementation by itself.
fn of_rows(ours: &Group, theirs: &Group) -> Vec<CrossoverAnswer> {
    let (best, names) = best_cpu(ours);
    let mut found: Vec<CrossoverAnswer> = theirs
        .answering(Device::Gpu)
        .filter_map(|series| one(ours, series, &best, &names))
        .collect();
    found.sort_by_key(|f| f.question);
    found
}

fn one(
    group: &Group,
    series: &Series,
    best: &Curve,
    names: &[(f64, String)],
) -> Option<CrossoverAnswer> {
    let mut gaps = gaps(best, &curve(series));
    let range = (gaps.first()?.size, gaps.last()?.size);
    gaps.retain(|gap| gap.measured);
    let samples = Samples {
        place: series.role.data,
        range,
        is_searched: false,
        processes: vec![gaps],
    };
    let mut crossing = estimates(&[samples]).pop()??;
    // CPU code that has no result there might have won.
    let lacks = |s: &Series, size: f64| s.at(size as u64).is_none() && curve(s).covers(size);
    let ran = |size| !(group.answering(Device::Cpu)).any(|s| lacks(s, size));
    for change in &mut crossing.changes {
        change.measured &= ran(change.bracket.0) && ran(change.bracket.1);
    }
    let at = crossing
        .for_good()
        .map_or(crossing.largest, |c| c.bracket.1);
    let cpu = name_at(names, at)?.clone();
    let benchmarks = rests_on(group, series, names, &crossing);
    Some(CrossoverAnswer {
        group: group.name.clone(),
        topic: group.topic.clone(),
        cpu,
        gpu: series.implementation.clone(),
        clock: series.clock_name(),
        question: series.role.data,
        includes_launch: series.includes_launch(),
        headline: false,
        devices: devices(series),
        gpu_machine: None,
        crossing,
        processes: Vec::new(),
        capped: None,
        benchmarks,
    })
}

/// Ids of both curves around each change and at the largest size.
fn rests_on(
    ours: &Group,
    gpu: &Series,
    names: &[(f64, String)],
    crossing: &Crossing,
) -> Vec<String> {
    let around = crossing.changes.iter();
    let around = around.flat_map(|change| [change.bracket.0, change.bracket.1]);
    let mut benchmarks = BTreeSet::new();
    for size in around.chain([crossing.largest]) {
        benchmarks.extend(ids_near(gpu, size));
        let is_best = |s: &&Series| Some(&s.implementation) == name_at(names, size);
        let sides = ours.series.iter().filter(|s| s.is_baseline());
        let mut cpus = sides.filter(|s| s.measures_work());
        if let Some(cpu) = cpus.find(is_best) {
            benchmarks.extend(ids_near(cpu, size));
        }
    }
    benchmarks.into_iter().collect()
}

/// The result at `size`, or its two neighbours where the curve is interpolated there.
fn ids_near(series: &Series, size: f64) -> Vec<String> {
    let points: Vec<&Benchmark> = series.steady_points().collect();
    let next = points.partition_point(|b| (b.size as f64) < size);
    let near = match points.get(next) {
        Some(b) if b.size as f64 == size => next..next + 1,
        _ => next.saturating_sub(1)..(next + 1).min(points.len()),
    };
    points[near].iter().map(|b| b.id.clone()).collect()
}

/// The answer to the question among those of one group and GPU: of those that win from about
/// the smallest size on, the fastest at the largest.
pub fn headline(found: &[CrossoverAnswer], question: Residency) -> Option<usize> {
    let wins_from = |f: &CrossoverAnswer| match (f.crossing.answer, f.crossing.for_good()) {
        (CrossingKind::Always, _) => f.crossing.range.0,
        (_, Some(change)) => change.size,
        (_, None) => f64::INFINITY,
    };
    let best = |launch: bool| {
        let asked = found.iter().enumerate();
        let asked = asked.filter(|(_, f)| f.question == question && (f.includes_launch || !launch));
        let (places, answers): (Vec<usize>, Vec<(f64, f64)>) = asked
            .map(|(i, f)| (i, (wins_from(f), f.crossing.speedup)))
            .unzip();
        Some(places[first_and_fastest(&answers)?])
    };
    best(true).or_else(|| best(false))
}

/// Index of the first and fastest answer, by where each begins to win and by its speedup.
fn first_and_fastest(answers: &[(f64, f64)]) -> Option<usize> {
    /// Crossovers within this factor of each other count as equal.
    const ALIKE: f64 = 1.1;
    let first = answers.iter().map(|a| a.0).min_by(f64::total_cmp)?;
    let early = answers.iter().enumerate();
    let early = early.filter(|(_, (from, _))| *from <= ALIKE * first);
    let fastest = early.max_by(|(_, a), (_, b)| a.1.total_cmp(&b.1));
    fastest.map(|(place, _)| place)
}

/// The answers of one group. All of them are in the order of the groups, which is that of their names.
pub fn of_group<'a>(found: &'a [CrossoverAnswer], group: &str) -> &'a [CrossoverAnswer] {
    let from = found.partition_point(|f| f.group.as_str() < group);
    let of_group = found[from..].partition_point(|f| f.group == group);
    &found[from..from + of_group]
}

/// The headline answers about the GPU and the CPU.
pub fn headlines(found: &[CrossoverAnswer]) -> impl Iterator<Item = &CrossoverAnswer> {
    found.iter().filter(|f| f.headline && f.devices.is_none())
}

/// The answers about several GPUs and one.
pub fn of_several(found: &[CrossoverAnswer]) -> impl Iterator<Item = &CrossoverAnswer> {
    found.iter().filter(|f| f.headline && f.devices.is_some())
}

/// The number of GPUs of a curve that is compared with one GPU.
fn devices(series: &Series) -> Option<u32> {
    series.role.devices?;
    let counts = series.points.iter().filter_map(|b| b.extra.get(DEVICES));
    Some(counts.fold(0.0, |most: f64, count| most.max(*count)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crossover_that_is_hardly_later_may_be_the_faster_one() {
        let answers = |from| first_and_fastest(&[(100.0, 2.0), (from, 3.0)]);
        assert_eq!(answers(107.0), Some(1));
        assert_eq!(answers(115.0), Some(0));
        let never = [(f64::INFINITY, 0.5), (f64::INFINITY, 0.9)];
        assert_eq!(first_and_fastest(&never), Some(1));
        assert_eq!(first_and_fastest(&[]), None);
    }
}
