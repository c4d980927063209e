//! The page of the machine's measured limits: the figures, and bandwidth over the working set.

use maud::{Markup, PreEscaped, Render, html};

use crate::page::table::{number, table, text};
use crate::report::Report;
use crossover_draw::ink::Paint;
use crossover_draw::plot::{Curve, Dot, Plot, Quantity};
use crossover_results::analysis::limits::words;
use crossover_results::model::group_info::Unit;
use crossover_results::model::record::BandwidthPoint;
use crossover_results::store::machine_results::{Limits, MachineResults};
use crossover_words::units;

/// A curve's name, its words, and its colour.
const CURVES: [(&str, &str, Paint); 4] = [
    ("cpu_read", "CPU, read", Paint::Cpu),
    ("cpu_copy", "CPU, copied", Paint::Hue(1)),
    ("gpu_read", "GPU, read", Paint::Gpu),
    ("gpu_copy", "GPU, copied", Paint::Hue(8)),
];

pub(super) fn section(report: &Report) -> Markup {
    let has = |m: &&MachineResults| !m.limits.measured.is_empty() || !m.limits.curves.is_empty();
    html! {
        section #limits {
            p {
                "Each benchmark is compared with the limits that its own run measured; these are the \
                 newest. On the GPU the peak of a number format is the number of multiprocessors times FLOP \
                 per clock (from NVIDIA's documents) times the SM clock during the benchmark; the plots draw \
                 it at the device's highest clock."
            }
            @for machine in report.machines().filter(has) {
                @if report.reference.is_some() { h2 { (machine.hardware()) } }
                (measured(&machine.limits, &machine.hardware()))
                (bandwidth(&machine.limits))
            }
            @if !report.machines().any(|m| has(&m)) {
                p { "No limits were measured." }
            }
        }
    }
}

fn measured(limits: &Limits, whose: &str) -> Markup {
    let columns = [text("Limit"), number("Measured"), text("How")];
    let rows = limits.measured.iter().filter_map(|(name, limit)| {
        let value = units::limit(limits.limit(name)?, &limit.unit);
        Some([words(name), &value, &limit.method].map(Render::render))
    });
    let label = format!("Measured limits, {whose}");
    table(&label, "plain limits", &columns, rows)
}

fn bandwidth(limits: &Limits) -> Markup {
    html! {
        @if let Some(svg) = plot(limits).svg() { figure { (PreEscaped(svg)) } }
        @for (name, words, _) in CURVES {
            @if let Some(curve) = limits.curves.get(name) {
                p.note { (words) ": " (curve.method) "." }
            }
        }
    }
}

fn plot(limits: &Limits) -> Plot {
    let curves = CURVES.iter().map(|(name, words, paint)| {
        let dot = |point: &BandwidthPoint| Dot::exact(point.bytes as f64, point.rate);
        let points = limits.curves.get(*name).map(|curve| &curve.points);
        let mut dots: Vec<Dot> = points.into_iter().flatten().map(dot).collect();
        // A damaged record may have unsorted points.
        dots.sort_by(|a, b| a.size.total_cmp(&b.size));
        Curve::joined(*words, *paint, dots)
    });
    Plot {
        title: "Bandwidth over the working set".to_owned(),
        size_label: "working set".to_owned(),
        size_unit: Unit::Bytes,
        quantity: Quantity::Rate("B/s"),
        curves: curves.collect(),
        limits: Vec::new(),
    }
}
