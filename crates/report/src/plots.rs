//! The plots of a group as files, for a README and for readers without scripts: the speedup of each
//! answer, time, and the rate with the limits, all by size. They are the first views of the chart.

use crate::group::{Curve, Group};
use crossover_draw::ink::Paint;
use crossover_draw::plot::{self, Dot, Limit, Plot, Quantity};
use crossover_results::model::id::Device;
use crossover_results::model::role::Residency;

/// Number of curves that can be told apart.
const MOST: usize = 6;

/// The plots of a group, each with the suffix of its file's name; none for a group of one size.
pub(crate) fn plots(group: &Group) -> Vec<(&'static str, Plot)> {
    if group.one_size() {
        return Vec::new();
    }
    let plot = |name: &'static str, kind: &str, quantity, curves, limits| {
        let plot = Plot {
            title: format!("{}: {kind}", group.topic.title),
            size_label: group.topic.axis.clone(),
            size_unit: group.topic.unit,
            quantity,
            curves,
            limits,
        };
        (name, plot)
    };
    let even = Limit {
        label: "as fast as the CPU".to_owned(),
        value: 1.0,
        paint: Paint::Cpu,
    };
    let speedups = group.answers.iter().filter_map(|answer| {
        let dots = answer.speedup.iter();
        let dots = dots.map(|&(size, value, low, high, _)| Dot {
            size,
            value,
            low,
            high,
        });
        curve_of(answer.question, dots.collect())
    });
    let mut plots = vec![
        plot(
            "speedup",
            "speedup",
            Quantity::Speedup,
            speedups.collect(),
            vec![even],
        ),
        plot(
            "time",
            "time",
            Quantity::Time,
            curves(group, &times),
            Vec::new(),
        ),
    ];
    if let Some(unit) = group.unit {
        let limits = group.limits.iter().map(|roof| Limit {
            label: roof.label.clone(),
            value: roof.value,
            paint: if roof.cpu { Paint::Cpu } else { Paint::Gpu },
        });
        let curves = curves(group, &rates);
        let quantity = Quantity::Rate(unit);
        plots.push(plot(
            "throughput",
            "throughput and limits",
            quantity,
            curves,
            limits.collect(),
        ));
    }
    plots
}

/// The curve of GPU code with its data in one place.
fn curve_of(question: &str, dots: Vec<Dot>) -> Option<plot::Curve> {
    let mut all = Residency::ALL.into_iter();
    let data = all.find(|data| data.name() == question)?;
    Some(curve(data.words(), Paint::Place(data), dots))
}

fn curve(label: &str, paint: Paint, dots: Vec<Dot>) -> plot::Curve {
    let label = label.to_owned();
    plot::Curve { label, paint, dots }
}

/// The code of the answers and the CPU code that it is compared with; if nothing is compared, the first
/// rows.
fn curves(group: &Group, dots: &dyn Fn(&Curve) -> Vec<Dot>) -> Vec<plot::Curve> {
    if group.answers.is_empty() {
        let counts = group.series.iter().filter(|series| series.counts);
        let curves = counts.map(|s| curve(&s.name, Paint::Hue(s.colour), dots(s)));
        return curves.take(MOST).collect();
    }
    let answers = group
        .answers
        .iter()
        .filter_map(|answer| curve_of(answer.question, dots(&group.series[answer.series?])));
    let mut curves: Vec<plot::Curve> = answers.collect();
    let mut best: Vec<Dot> = Vec::new();
    for (size, .., name) in &group.host {
        let is_it =
            |s: &&Curve| s.device == Device::Cpu && s.name.strip_prefix("cpu/") == Some(name);
        let series = group.series.iter().find(is_it);
        best.extend(
            series
                .into_iter()
                .flat_map(dots)
                .filter(|dot| dot.size == *size),
        );
    }
    curves.push(curve("best CPU code", Paint::Cpu, best));
    curves
}

fn times(series: &Curve) -> Vec<Dot> {
    let rows = series.rows.iter();
    let dot = |row: &(u64, f64, f64, f64, _, _)| Dot {
        size: row.0 as f64,
        value: row.1,
        low: row.2,
        high: row.3,
    };
    rows.map(dot).collect()
}

fn rates(series: &Curve) -> Vec<Dot> {
    // A rate of queueing would mean nothing.
    let rows = series.rows.iter().filter(|_| series.counts);
    let dot = |row: &(u64, f64, f64, f64, Option<f64>, _)| {
        let amount = row.4? * 1e9;
        Some(Dot {
            size: row.0 as f64,
            value: amount / row.1,
            low: amount / row.3,
            high: amount / row.2,
        })
    };
    rows.filter_map(dot).collect()
}
