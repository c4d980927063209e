//! The charts of a group: speedup, time and throughput by size, of the places of the data and of all
//! implementations. The page's script draws them; those of the places are files too, for a README and for
//! readers without scripts.

use crate::group::{GroupView, Implementation};
use crate::page::link::safe;
use crossover_draw::ink::Paint;
use crossover_draw::plot::{Curve, Dot, Limit, Plot, Quantity};
use crossover_results::analysis::answer::crossover_answer::CrossoverAnswer;
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Series};

/// Number of curves that can be told apart in a file.
const MOST: usize = 6;
/// The decades above every curve within which a limit is drawn: one further up would press them flat.
const NEAR: f64 = 1.6;

/// One chart.
pub(crate) struct Chart<'a> {
    pub(crate) plot: Plot,
    /// For each curve what a file does not show.
    pub(crate) more: Vec<More<'a>>,
}

/// The properties of a curve that only the page shows.
#[derive(Default)]
pub(crate) struct More<'a> {
    /// The answer that it is the curve of.
    pub(crate) answer: Option<&'a CrossoverAnswer>,
    pub(crate) clock: &'static str,
    /// The speedups that single processes measured.
    pub(crate) single: Vec<(u64, f64)>,
}

/// The quantity of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Speedup,
    Time,
    Throughput,
}

impl Shown {
    pub(crate) const ALL: [Self; 3] = [Self::Speedup, Self::Time, Self::Throughput];

    /// In the names of files and of options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Speedup => "speedup",
            Self::Time => "time",
            Self::Throughput => "throughput",
        }
    }
}

/// The chart of the places of the data, with the best CPU code; `None` if there is nothing to show.
pub(crate) fn of_places<'a>(group: &'a GroupView, shown: Shown) -> Option<Chart<'a>> {
    let mut curves: Vec<(Curve, More)> = Vec::new();
    for answer in &group.answers {
        let place = answer.found.question;
        let (dots, single) = match shown {
            Shown::Speedup => {
                let along = answer.speedup.iter().filter(|at| at.processes > 0);
                let dots = along.map(|at| Dot::new(at.size, at.ratio, at.low, at.high));
                (dots.collect(), answer.of_processes())
            }
            _ => (dots(group, answer.series, shown), Vec::new()),
        };
        let more = More {
            answer: Some(answer.found),
            single,
            ..More::default()
        };
        curves.push((
            Curve::joined(place.words(), Paint::Place(place), dots),
            more,
        ));
    }
    if shown != Shown::Speedup && !curves.is_empty() {
        let best = group.best_names.iter().filter_map(|(size, name)| {
            let mut codes = group.own?.on(Device::Cpu);
            let code = codes.find(|code| code.implementation == *name)?;
            let mut dots = dots(group, code, shown).into_iter();
            dots.find(|dot| dot.size == *size)
        });
        let best = Curve::joined("best CPU code", Paint::Cpu, best.collect());
        curves.push((best, More::default()));
    }
    chart(group, shown, curves)
}

/// The chart of all implementations, or of some.
pub(crate) fn of_implementations<'a>(
    group: &GroupView,
    shown: Shown,
    all: impl Iterator<Item = &'a Implementation<'a>>,
) -> Option<Chart<'static>> {
    let one = |code: &Implementation| {
        let more = More {
            clock: code.series.clock_name(),
            ..More::default()
        };
        let dots = dots(group, code.series, shown);
        (Curve::joined(&code.name, Paint::Hue(code.hue), dots), more)
    };
    chart(group, shown, all.map(one).collect())
}

/// A chart as a file, its name and its SVG; `None` for a group of one size. If nothing is compared, it shows
/// the first rows.
pub(crate) fn file(group: &GroupView, shown: Shown) -> Option<(String, String)> {
    if group.one_size() {
        return None;
    }
    let mut chart = if group.answers.is_empty() {
        let codes = (group.implementations.iter()).filter(|code| code.series.measures_work());
        of_implementations(group, shown, codes)?
    } else {
        of_places(group, shown)?
    };
    chart.plot.curves.truncate(MOST);
    let name = format!("{}-{}.svg", safe(group.name), shown.name());
    Some((name, chart.plot.svg()?))
}

fn chart<'a>(
    group: &GroupView,
    shown: Shown,
    mut curves: Vec<(Curve, More<'a>)>,
) -> Option<Chart<'a>> {
    for (curve, _) in &mut curves {
        curve.dots.retain(Dot::is_sound);
    }
    curves.retain(|(curve, _)| !curve.dots.is_empty());
    let values = curves.iter().flat_map(|(curve, _)| &curve.dots);
    let highest = values.map(|dot| dot.value.log10()).reduce(f64::max)?;
    let (words, quantity, limits) = match shown {
        Shown::Speedup => {
            let even = Limit {
                label: format!("as fast as {}", group.baseline()),
                value: 1.0,
                paint: Paint::Cpu,
            };
            ("speedup", Quantity::Speedup, vec![even])
        }
        Shown::Time => ("time", Quantity::Time, Vec::new()),
        Shown::Throughput => {
            let near = |limit: &&Limit| limit.value.log10() <= highest + NEAR;
            let limits = group.limits.iter().filter(near).cloned();
            let quantity = Quantity::Rate(group.work?.unit());
            ("throughput and limits", quantity, limits.collect())
        }
    };
    let (curves, more) = curves.into_iter().unzip();
    let plot = Plot {
        title: format!("{}: {words}", group.topic.title),
        size_label: group.topic.axis.clone(),
        size_unit: group.topic.unit,
        quantity,
        curves,
        limits,
    };
    Some(Chart { plot, more })
}

/// The points of an implementation.
fn dots(group: &GroupView, series: &Series, shown: Shown) -> Vec<Dot> {
    // A rate of queueing would mean nothing, and neither would its speedup.
    if shown != Shown::Time && !series.measures_work() {
        return Vec::new();
    }
    let points = series.points.iter().enumerate();
    let dot = |(i, b): (usize, &Benchmark)| {
        let [value, low, high] = match shown {
            Shown::Time => [b.median_ns, b.low_ns(), b.high_ns()],
            Shown::Throughput => {
                let amount = group.work?.amount(series, i)? * 1e9;
                [b.median_ns, b.high_ns(), b.low_ns()].map(|ns| amount / ns)
            }
            Shown::Speedup => [group.speedup(series, b)?; 3],
        };
        Some(Dot::new(b.size as f64, value, low, high))
    };
    points.filter_map(dot).collect()
}
