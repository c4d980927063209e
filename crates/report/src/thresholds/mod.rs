//! The thresholds for programs ([`crossover_advice`]), made from a report.
//!
//! An operation has one answer per place of the data, with the points of the curve on the page: the
//! medians of several processes, if there were several.

pub(crate) mod breakpoints;
pub mod decision_in_words;
mod limits;
pub mod of_table;
#[cfg(test)]
mod tests;

use std::path::Path;

use crossover_advice::thresholds::{
    Binding, Change, Crossing, CrossingKind, Machine as Held, Operation, Place, Point, Residency,
    SCHEMA, Shape, Thresholds,
};
use rayon::prelude::*;

use crate::report::Report;
use crossover_results::analysis::answer::crossover_answer::{self, CrossoverAnswer};
use crossover_results::analysis::answer::kind::{Answer, Speedup};
use crossover_results::analysis::answer::speedup_curve::along;
use crossover_results::analysis::answer::{estimate, kind};
use crossover_results::analysis::cold_start;
use crossover_results::analysis::limits::at as limit_at;
use crossover_results::model::id::Device;
use crossover_results::statistics::median::median;
use crossover_results::store::curves::{Group, Series};
use crossover_results::store::machine::MachineResults;
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
    let (gpu, found) = (report.gpu(), &report.found);
    found.first()?;
    let groups = report.machine.groups.par_iter();
    let operations = groups.filter_map(|ours| operation(ours, found, gpu, &report.machine));
    let environment = report.machine.environment.as_ref()?;
    let device = gpu.environment.as_ref()?.gpu.as_ref()?;
    Some(Thresholds {
        schema: SCHEMA,
        crossover: environment.crossover.clone(),
        commit: environment.commit.clone(),
        date: report.machine.run.as_ref()?.started.clone(),
        machine: Held {
            cpu: environment.cpu.model.clone(),
            threads: environment.cpu.usable_cores,
            numa_node: environment.numa_node,
            gpu: device.name.clone(),
            gpu_of_another_machine: report.reference.is_some(),
            driver: device.driver.clone(),
            power_limit_w: device.power_limit_w,
            caches: environment.cpu.caches.clone(),
            vector_extensions: environment.cpu.vector_extensions.clone(),
        },
        limits: limits::limits(&report.machine, gpu),
        operations: operations.collect(),
    })
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

fn operation(
    ours: &Group,
    found: &[CrossoverAnswer],
    gpu: &MachineResults,
    cpu: &MachineResults,
) -> Option<Operation> {
    let theirs = gpu.group(&ours.name)?;
    let series = |f: &CrossoverAnswer| Some((f.clone(), f.gpu_series(theirs)?));
    let of_group = found.iter().filter(|f| f.group == ours.name);
    let of_group: Vec<(CrossoverAnswer, &Series)> = of_group.filter_map(series).collect();
    let place = |at: Residency| {
        let here = of_group.iter().filter(|(_, series)| series.role.data == at);
        let (here, series): (Vec<CrossoverAnswer>, Vec<&Series>) = here.cloned().unzip();
        let question = here.first()?.question;
        let headline = here.iter().position(|f| f.headline);
        let best = headline.or_else(|| crossover_answer::headline(&here, question))?;
        place(at, &here[best], ours, series[best], cpu, gpu)
    };
    let places: Vec<Place> = Residency::ALL.into_iter().filter_map(place).collect();
    let fastest = &places.first()?.gpu;
    let (_, first) = of_group.iter().find(|(found, _)| found.gpu == *fastest)?;
    let start = cold_start::start(gpu, cold_start::First::of(first));
    let first_call = start.map(|start| start.total_ns() - start.warm.map_or(0.0, |b| b.median_ns));
    Some(Operation {
        name: ours.name.clone(),
        title: ours.topic.title.clone(),
        format: first.role.format.name().to_owned(),
        size: ours.topic.axis.clone(),
        shape: shape(ours),
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

fn place(
    at: Residency,
    found: &CrossoverAnswer,
    ours: &Group,
    series: &Series,
    cpu: &MachineResults,
    gpu: &MachineResults,
) -> Option<Place> {
    let points = points(found, ours, series);
    let last = series.at(points.last()?.size as u64);
    decided(Place {
        data: at,
        cpu: found.cpu.clone(),
        gpu: found.gpu.clone(),
        clock: found.clock.to_owned(),
        launches: last.and_then(|b| b.cost.launches),
        crossing: stored(&found.crossing),
        limits: bindings(&points, ours, series, cpu, gpu),
        points,
        ..Place::default()
    })
}

/// The place with the answers that follow from its points.
fn decided(mut place: Place) -> Option<Place> {
    place.find_ends();
    place.answers = breakpoints::answers(&place)?;
    Some(place)
}

fn stored(crossing: &estimate::Crossing) -> Crossing {
    let change = |c: &kind::WinnerChange| Change {
        size: rounded(c.size),
        low: rounded(c.low),
        high: rounded(c.high),
        to_gpu: c.to_b,
    };
    Crossing {
        kind: match crossing.answer {
            Answer::At => CrossingKind::From,
            Answer::Always => CrossingKind::Always,
            Answer::Never => CrossingKind::Never,
            Answer::CrossesBack => CrossingKind::BothWays,
            Answer::Undecided => CrossingKind::Undecided,
        },
        changes: crossing.changes.iter().map(change).collect(),
        range: crossing.range,
        processes: crossing.processes,
    }
}

/// The sizes at which the CPU's code was measured and the GPU's was too, or at sizes on either side.
/// The curve of the page also has sizes at which the CPU's time is interpolated.
fn points(found: &CrossoverAnswer, ours: &Group, series: &Series) -> Vec<Point> {
    let of_processes = |size: u64| {
        let paired_times = found.processes.iter().flatten();
        median(
            paired_times
                .filter(|pair| pair.size == size)
                .map(|pair| pair.gpu_ns),
        )
    };
    let (best, _) = crossover_answer::best_cpu(ours);
    let gpu = crossover_answer::curve(series);
    let bent = gpu.bent();
    let point = |at: &Speedup| {
        let size = at.size as u64;
        let mut cpus = (ours.on(Device::Cpu)).filter(|s| s.answers());
        let is_measured = cpus.any(|s| s.at(size).is_some());
        let gpu_at = || gpu.at(at.size).filter(|_| is_measured);
        let (gpu_ns, low, high, processes) = match at.processes {
            1 if gpu.has(at.size) => (gpu_at()?.median, at.low, at.high, 1),
            1 => {
                let (gpu, cpu) = (gpu_at()?, best.at(at.size)?);
                let bent = bent.as_ref()?.at(at.size.ln());
                let (low, high) = (bent.low.exp(), bent.high.exp());
                (gpu.median, cpu.low / high, cpu.high / low, 0)
            }
            processes => (of_processes(size)?, at.low, at.high, processes),
        };
        let link = series.at(size).and_then(|b| b.cost.link_bytes);
        let link = link.filter(|link| link.sum() > 0.0);
        let at = Speedup {
            low,
            high,
            processes,
            ..*at
        };
        Some(Point {
            upload: link.map(|link| link.to_device),
            download: link.map(|link| link.to_host),
            ..measured(&at, gpu_ns)
        })
    };
    along(found, ours, series)
        .iter()
        .filter_map(point)
        .collect()
}

/// A measured size, with numbers rounded as their intervals allow.
fn measured(at: &Speedup, gpu_ns: f64) -> Point {
    Point {
        size: at.size,
        cpu_ns: rounded(gpu_ns * at.ratio),
        gpu_ns: rounded(gpu_ns),
        // An interval is not known to four digits.
        low: units::significant(at.low, 3).min(rounded(at.ratio)),
        high: units::significant(at.high, 3).max(rounded(at.ratio)),
        processes: at.processes,
        ..Point::default()
    }
}

/// The nearest limit along the sizes, from each change on.
fn bindings(
    points: &[Point],
    ours: &Group,
    gpu_series: &Series,
    cpu: &MachineResults,
    gpu: &MachineResults,
) -> Vec<Binding> {
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
            cpu: cpu_series.and_then(|series| nearest(series, cpu, point.cpu_ns)),
            gpu: nearest(gpu_series, gpu, point.gpu_ns),
        };
        let known = binding.cpu.is_some() || binding.gpu.is_some();
        let is_new = |last: &Binding| (&last.cpu, &last.gpu) != (&binding.cpu, &binding.gpu);
        if known && bindings.last().is_none_or(is_new) {
            bindings.push(binding);
        }
    }
    bindings
}
