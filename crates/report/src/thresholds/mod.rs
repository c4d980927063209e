//! The thresholds for programs ([`crossover_advice`]), made from a report.
//!
//! An operation has one answer per place of the data, with the points of the curve on the page: the
//! medians of several processes, if there were several.

pub(crate) mod breakpoints;
pub mod decision_in_words;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

use crossover_advice::thresholds::{
    Binding, Change, Choice, Crossing, Machine as Held, Operation, Place, Point, SCHEMA, Shape,
    Thresholds,
};
use rayon::prelude::*;

use crate::group::{GroupAnswer, GroupView, describe};
use crate::report::Report;
use crossover_results::analysis::answer::crossover_answer::{self, of_several};
use crossover_results::analysis::answer::curve::{self, Curve};
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::analysis::answer::{estimate, kind};
use crossover_results::analysis::limits::at as limit_at;
use crossover_results::analysis::reuse::{First, start};
use crossover_results::model::id::Device;
use crossover_results::statistics::median::median;
use crossover_results::store::curves::{Group, Series};
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::whole_file::{self, FileError};
use crossover_words::units;

/// Writes the thresholds of a report.
///
/// # Errors
/// A file that cannot be written.
pub fn write(thresholds: &Thresholds, path: &Path) -> Result<(), FileError> {
    let mut text = serde_json::to_string(thresholds).map_err(|e| FileError::io(path, e))?;
    text.push('\n');
    whole_file::write_atomic(path, text.as_bytes())
}

/// The thresholds of a report's machine, with its own GPU or the reference's; `None` if it has no
/// answers.
pub fn thresholds(report: &Report) -> Option<Thresholds> {
    of_groups(report, &describe(report))
}

/// The thresholds of the described groups of a report.
pub(crate) fn of_groups(report: &Report, groups: &[GroupView]) -> Option<Thresholds> {
    let gpu = report.gpu();
    report.found.first()?;
    let operations = groups
        .par_iter()
        .flat_map_iter(|group| operations(report, group));
    let mut operations: Vec<Operation> = operations.collect();
    operations.sort_by(|a, b| a.name.cmp(&b.name));
    let environment = report.machine.environment.as_ref()?;
    let device = gpu.environment.as_ref()?.gpu.as_ref()?;
    // A later run may have measured only some groups.
    let runs = runs(groups);
    let records = report.machine.runs.iter().map(|(run, _)| run).rev();
    let mut of_answers = records.filter(|run| runs.contains(&*run.run));
    let drivers = of_answers.clone();
    let mut drivers = drivers.filter_map(|run| run.environment.gpu.as_ref()?.driver.clone());
    let oldest = of_answers.next().or(report.machine.run.as_ref())?;
    Some(Thresholds {
        schema: SCHEMA,
        crossover: oldest.environment.crossover.clone(),
        commit: oldest.environment.commit.clone(),
        date: oldest.started.clone(),
        machine: Held {
            cpu: environment.cpu.model.clone(),
            threads: environment.cpu.usable_cores,
            numa_node: environment.numa_node,
            gpu: device.name.clone(),
            gpu_of_another_machine: report.reference.is_some(),
            driver: drivers.next().or_else(|| device.driver.clone()),
            power_limit_w: device.power_limit_w,
            caches: environment.cpu.caches.clone(),
            vector_extensions: environment.cpu.vector_extensions.clone(),
        },
        operations,
    })
}

/// The runs that the answers rest on.
fn runs<'a>(groups: &'a [GroupView]) -> BTreeSet<&'a str> {
    let answered = groups.iter().filter(|group| !group.answers.is_empty());
    let series = answered.flat_map(|group| {
        let series = group.own.into_iter().flat_map(|own| &own.series);
        let sides = series.filter(|series| series.is_baseline() && series.answers());
        sides.chain(group.answers.iter().map(|answer| answer.series))
    });
    let results = series.flat_map(|series| series.steady_points());
    results.filter_map(|result| result.run.as_deref()).collect()
}

/// `an NVIDIA H200`.
pub(crate) fn with_article(gpu: &str) -> String {
    // The N of NVIDIA is read as a letter.
    let article = if gpu.starts_with(['A', 'E', 'I', 'N', 'O']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {gpu}")
}

/// Rounds to four digits, more than any measurement has.
pub(crate) fn rounded(value: f64) -> f64 {
    units::significant(value, 4)
}

/// The operation of a group; of a group on several GPUs one for each division of the work.
fn operations(report: &Report, group: &GroupView) -> Vec<Operation> {
    let several = of_several(crossover_answer::of_group(&report.found, group.name));
    let divided = several.filter_map(|found| {
        let answer = GroupAnswer::of(report, found, &group.best_cpu, &[])?;
        let operation = operation(report, group, std::slice::from_ref(&answer))?;
        Some(Operation {
            name: format!("{}/{}", group.name, found.gpu),
            sides: Some(["one GPU".to_owned(), format!("{} GPUs", found.devices?)]),
            first_call_ns: None,
            ..operation
        })
    });
    let whole = operation(report, group, &group.answers);
    divided.chain(whole).collect()
}

fn operation(report: &Report, group: &GroupView, answers: &[GroupAnswer]) -> Option<Operation> {
    let gpu = report.gpu();
    let places = answers.iter();
    let places: Vec<Place> = places
        .filter_map(|answer| place(report, group, answer))
        .collect();
    let data = places.first()?.data;
    let fastest = answers
        .iter()
        .find(|answer| answer.found.question == data)?;
    let fastest = fastest.series;
    let start = start(gpu, First::of(fastest));
    let first_call = start.map(|start| start.total_ns() - start.warm.map_or(0.0, |b| b.median_ns));
    let topic = &group.topic;
    Some(Operation {
        name: group.name.to_owned(),
        title: topic.title.clone(),
        format: fastest.role.format.name().to_owned(),
        size: topic.axis.clone(),
        shape: shape(group.own?),
        first_call_ns: first_call.filter(|ns| *ns > 0.0).map(rounded),
        sides: None,
        places,
    })
}

/// Square products, if every row of the group does the arithmetic of a product of N by N matrices.
fn shape(group: &Group) -> Shape {
    let answering = group.series.iter().filter(|s| s.answers());
    let mut points = answering.flat_map(|s| &s.points);
    let is_product = points.all(|b| b.cost.flop == Some(2.0 * (b.size as f64).powi(3)));
    if is_product {
        Shape::SquareProduct
    } else {
        Shape::Size
    }
}

fn place(report: &Report, group: &GroupView, answer: &GroupAnswer) -> Option<Place> {
    let (found, series) = (answer.found, answer.series);
    let points = points(group.own?, &group.best_cpu, answer);
    points.last()?;
    // The CPU's sizes without a decision: the GPU's result is unsteady there, or the GPU may have failed.
    let ours = group
        .own?
        .series
        .iter()
        .filter(|s| s.is_baseline() && s.answers());
    let sizes = ours.flat_map(|series| &series.points).map(|b| b.size);
    let lacking = |size: u64| (size, series.at(size).is_none().then_some(Choice::Gpu));
    let sizes: Vec<_> = sizes.map(lacking).collect();
    let place = Place {
        data: found.question,
        cpu: found.cpu.clone(),
        gpu: found.gpu.clone(),
        clock: found.clock.to_owned(),
        crossing: stored(&found.crossing),
        limits: bindings(report, group.own?, answer, &points),
        points,
        ..Place::default()
    };
    decided(place, sizes)
}

/// The place with the answers that follow from its points. `sizes` are those of [`Place::find_ends`].
pub fn decided(
    mut place: Place,
    sizes: impl IntoIterator<Item = (u64, Option<Choice>)>,
) -> Option<Place> {
    let sizes = sizes.into_iter();
    place.find_ends(sizes.map(|(size, excluded)| (size as f64, excluded)));
    place.answers = breakpoints::answers(&place)?;
    Some(place)
}

/// A crossing, with numbers rounded as a file has them.
pub fn stored(crossing: &estimate::Crossing) -> Crossing {
    let change = |c: &kind::WinnerChange| Change {
        size: rounded(c.size),
        low: rounded(c.low),
        high: rounded(c.high),
        to_gpu: c.to_b,
    };
    Crossing {
        kind: crossing.answer,
        changes: crossing.changes.iter().map(change).collect(),
        range: crossing.range,
        processes: crossing.processes,
    }
}

/// The sizes at which the CPU's code was measured and the GPU's was too, or at sizes on either side.
/// The curve of the page also has sizes at which the CPU's time is interpolated.
fn points(ours: &Group, best: &Curve, answer: &GroupAnswer) -> Vec<Point> {
    let series = answer.series;
    let of_processes = |at: &Speedup| {
        let pairs = answer.found.processes.iter().flatten();
        let there = pairs.filter(|pair| pair.size as f64 == at.size && at.processes > 1);
        let median = median(there.map(|pair| pair.gpu_ns))?;
        Some(curve::Point {
            size: at.size,
            median,
            low: median * at.low / at.ratio,
            high: median * at.high / at.ratio,
            measured: true,
        })
    };
    // Where several processes measured, their times count.
    let known = answer.speedup.iter().filter_map(of_processes);
    let own = crossover_answer::curve(series);
    let gpu = Curve::new(known.chain(own.points().iter().copied()));
    let point = |at: &Speedup| {
        let size = at.size as u64;
        let gpu = gpu.at(at.size)?;
        let mut at = *at;
        if at.processes == 0 {
            let sides = ours.series.iter().filter(|s| s.is_baseline());
            let mut cpus = sides.filter(|s| s.answers() && s.at(size).is_some());
            let cpu = cpus.next().and(best.at(at.size))?;
            at.ratio = cpu.median / gpu.median;
            (at.low, at.high) = (cpu.low / gpu.high, cpu.high / gpu.low);
        }
        Some(measured(&at, gpu.median))
    };
    answer.speedup.iter().filter_map(point).collect()
}

/// A measured size, with numbers rounded as their intervals allow.
pub fn measured(at: &Speedup, gpu_ns: f64) -> Point {
    Point {
        size: at.size,
        cpu_ns: rounded(gpu_ns * at.ratio),
        gpu_ns: rounded(gpu_ns),
        // An interval is not known to four digits.
        low: units::significant(at.low, 3).min(rounded(at.ratio)),
        high: units::significant(at.high, 3).max(rounded(at.ratio)),
        processes: at.processes,
    }
}

/// The nearest limit along the sizes, from each change on.
fn bindings(report: &Report, ours: &Group, answer: &GroupAnswer, points: &[Point]) -> Vec<Binding> {
    let mut bindings: Vec<Binding> = Vec::new();
    for point in points {
        let nearest = |series: &Series, machine: &MachineResults, ns: f64| {
            let kind = limit_at(series, point.size as u64, ns, machine)?.kind;
            Some(kind.name().to_owned())
        };
        let best = crossover_answer::best_at(ours, point.size);
        let cpu_series = ours
            .on(Device::Cpu)
            .find(|s| Some(&s.implementation) == best.as_ref());
        let binding = Binding {
            from: point.size,
            cpu: cpu_series.and_then(|series| nearest(series, &report.machine, point.cpu_ns)),
            gpu: nearest(answer.series, answer.machine, point.gpu_ns),
        };
        let known = binding.cpu.is_some() || binding.gpu.is_some();
        let is_new = |last: &Binding| (&last.cpu, &last.gpu) != (&binding.cpu, &binding.gpu);
        if known && bindings.last().is_none_or(is_new) {
            bindings.push(binding);
        }
    }
    bindings
}
