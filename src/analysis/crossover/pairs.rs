//! Which curves are compared: each GPU implementation with the best CPU code.
//!
//! The CPU side is the fastest CPU implementation at each size. On the GPU side each
//! implementation has its own answer, and one a question is the headline:
//!
//! - *data on the device*: of the implementations that leave the data in GPU memory, those
//!   whose time includes the launch (clocks `events` and `wall`), since that is what a
//!   caller pays; of these, the one that wins from the smallest size on, and of several that
//!   do, the fastest at the largest. Gated times stand in, labelled as device time, only where
//!   no other was measured.
//! - *data on the host*: likewise, of the implementations that move the data both ways.
//!
//! `submit` never takes part, nor what its group declares to be no answer.

use crate::analysis::crossover::search::{Answer, Crossing, Curve, Point, search};
use crate::model::id::Device;
use crate::model::topic::Topic;
use crate::results::curves::{Group, Question, Series};
use crate::results::machine::Machine;

/// The answer for one GPU implementation of one group.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The group.
    pub group: String,
    /// What the group says of itself.
    pub topic: Topic,
    /// The best CPU implementation where the winner changes, or at the largest size.
    pub cpu: String,
    /// The GPU implementation.
    pub gpu: String,
    /// Clock of the GPU implementation.
    pub clock: &'static str,
    /// Where the data lies.
    pub question: Question,
    /// Whether the GPU's time includes the launch.
    pub includes_launch: bool,
    /// Whether it answers its question for the group.
    pub headline: bool,
    /// Name of the machine whose GPU it is, when not the CPU's own.
    pub gpu_machine: Option<String>,
    /// The answer.
    pub crossing: Crossing,
    /// CPU over GPU time at the largest size that both cover, and that size.
    pub speedup: f64,
    /// The size of `speedup`.
    pub speedup_size: f64,
    /// Ids that the answer rests on: both curves around each change and at the largest size.
    pub benchmarks: Vec<String>,
}

impl Found {
    /// Machine and implementation, `gpu/cublas (NVIDIA H200)`.
    pub(crate) fn gpu_label(&self) -> String {
        match &self.gpu_machine {
            Some(machine) => format!("gpu/{} ({machine})", self.gpu),
            None => format!("gpu/{}", self.gpu),
        }
    }
}

/// A series as a curve for the search.
pub(crate) fn curve(series: &Series) -> Curve {
    Curve::new(series.points.iter().map(|b| Point {
        size: b.size as f64,
        median: b.median_ns,
        low: b.low_ns(),
        high: b.high_ns(),
    }))
}

/// The fastest CPU implementation at each size that any has, with its name. Between the
/// sizes of an implementation its curve is interpolated, so that a missing size does not
/// put a slower one in its place.
pub(crate) fn best_cpu(group: &Group) -> (Curve, Vec<(f64, String)>) {
    let curves: Vec<(String, Curve)> = group
        .on(Device::Cpu)
        .filter(|s| s.answers() && s.computes())
        .map(|s| (s.implementation.clone(), curve(s)))
        .collect();
    let mut sizes: Vec<f64> = curves
        .iter()
        .flat_map(|(_, c)| c.points().iter().map(|p| p.size))
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut points = Vec::new();
    let mut names = Vec::new();
    for size in sizes {
        let best = curves
            .iter()
            .filter_map(|(name, c)| Some((name, c.at(size)?)))
            .min_by(|a, b| a.1.median.total_cmp(&b.1.median));
        if let Some((name, point)) = best {
            points.push(point);
            names.push((size, name.clone()));
        }
    }
    (Curve::new(points), names)
}

/// Every answer of a machine, and of this machine's CPU against the GPUs of `others` where
/// it measured none itself in a group.
pub(crate) fn find(machine: &Machine, others: &[Machine]) -> Vec<Found> {
    let mut found = Vec::new();
    for group in &machine.groups {
        if group.on(Device::Gpu).next().is_some() {
            found.extend(compare(group, group, None));
            continue;
        }
        for other in others {
            if let Some(theirs) = other.group(&group.name) {
                found.extend(compare(group, theirs, Some(other.hardware())));
            }
        }
    }
    found
}

fn compare(ours: &Group, theirs: &Group, gpu_machine: Option<String>) -> Vec<Found> {
    let (best, names) = best_cpu(ours);
    let mut found: Vec<Found> = theirs
        .on(Device::Gpu)
        .filter(|s| s.answers() && s.computes())
        .filter_map(|series| one(ours, series, &best, &names, &gpu_machine))
        .collect();
    for question in [Question::Device, Question::Host] {
        if let Some(i) = headline(&found, question) {
            found[i].headline = true;
        }
    }
    found
}

fn one(
    group: &Group,
    series: &Series,
    best: &Curve,
    names: &[(f64, String)],
    gpu_machine: &Option<String>,
) -> Option<Found> {
    let gpu = curve(series);
    let crossing = search(best, &gpu)?;
    let largest = crossing.range.1;
    let speedup = best.at(largest)?.median / gpu.at(largest)?.median;
    let at = crossing.for_good().map_or(largest, |c| c.bracket.1);
    let cpu = names
        .iter()
        .find(|(size, _)| *size >= at)
        .or(names.last())
        .map(|(_, name)| name.clone())?;
    let mut sizes: Vec<f64> = crossing
        .changes
        .iter()
        .flat_map(|c| [c.bracket.0, c.bracket.1])
        .collect();
    sizes.push(largest);
    let mut benchmarks = Vec::new();
    for size in sizes {
        benchmarks.extend(ids_near(series, size));
        let best_here = names.iter().find(|(s, _)| *s >= size).or(names.last());
        if let Some((_, name)) = best_here
            && let Some(cpu) = group
                .on(Device::Cpu)
                .find(|s| s.implementation == *name && s.measures_work())
        {
            benchmarks.extend(ids_near(cpu, size));
        }
    }
    benchmarks.sort();
    benchmarks.dedup();
    Some(Found {
        group: group.name.clone(),
        topic: group.topic.clone(),
        cpu,
        gpu: series.implementation.clone(),
        clock: series.clock_name(),
        question: series.question(),
        includes_launch: series.includes_launch(),
        headline: false,
        gpu_machine: gpu_machine.clone(),
        crossing,
        speedup,
        speedup_size: largest,
        benchmarks,
    })
}

/// The result at `size`, or its two neighbours where the curve is interpolated there.
fn ids_near(series: &Series, size: f64) -> Vec<String> {
    let next = series.points.partition_point(|b| (b.size as f64) < size);
    match series.points.get(next) {
        Some(b) if b.size as f64 == size => vec![b.id.clone()],
        _ => series.points[next.saturating_sub(1)..(next + 1).min(series.points.len())]
            .iter()
            .map(|b| b.id.clone())
            .collect(),
    }
}

/// Crossovers within this factor of each other count as equal.
const ALIKE: f64 = 1.1;

/// Which of these answers, all of one group and GPU, answers the question: of those that win
/// from about the smallest size on, the fastest at the largest.
pub(crate) fn headline(found: &[Found], question: Question) -> Option<usize> {
    let wins_from = |f: &Found| match (f.crossing.answer, f.crossing.for_good()) {
        (Answer::Always, _) => f.crossing.range.0,
        (_, Some(change)) => change.size,
        (_, None) => f64::INFINITY,
    };
    let best = |launch: bool| {
        let candidates = || {
            found
                .iter()
                .enumerate()
                .filter(move |(_, f)| f.question == question && (f.includes_launch || !launch))
        };
        let first = candidates()
            .map(|(_, f)| wins_from(f))
            .min_by(f64::total_cmp)?;
        candidates()
            .filter(|(_, f)| wins_from(f) <= ALIKE * first)
            .max_by(|a, b| a.1.speedup.total_cmp(&b.1.speedup))
            .map(|(i, _)| i)
    };
    best(true).or_else(|| best(false))
}

/// The headline answers.
pub(crate) fn headlines(found: &[Found]) -> impl Iterator<Item = &Found> {
    found.iter().filter(|f| f.headline)
}
