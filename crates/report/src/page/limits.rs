//! What was measured of the machine's limits: the figures, and bandwidth over the working set.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use crate::assemble::Assembled;
use crate::page::table;
use crossover_draw::ink::Family;
use crossover_draw::plot::figure::Shape::{Narrow, Wide};
use crossover_draw::plot::figure::{Curve, Dot, Plot, Quantity};
use crossover_results::analysis::limits::words;
use crossover_results::model::group_info::Unit;
use crossover_results::model::record::BandwidthPoint;
use crossover_results::store::machine::{Limits, MachineResults};
use crossover_words::Clock;
use crossover_words::units;

/// A curve's name, its words, and its place among the colours.
const CURVES: [(&str, &str, Family, usize); 4] = [
    ("cpu_read", "CPU, read", Family::Cpu, 0),
    ("cpu_copy", "CPU, copied", Family::Cpu, 1),
    ("gpu_read", "GPU, read", Family::Gpu, 0),
    ("gpu_copy", "GPU, copied", Family::Gpu, 1),
];

/// What a curve was measured on.
fn clock(family: Family) -> Clock {
    match family {
        Family::Cpu => Clock::Wall,
        _ => Clock::EventsGated,
    }
}

pub(super) fn section(report: &Assembled) -> Markup {
    let has = |m: &&MachineResults| !m.limits.ceilings.is_empty() || !m.limits.curves.is_empty();
    html! {
        section #limits {
            h2 { "Measured limits" }
            p {
                "Each benchmark is compared with the limits that its own run measured; these are the \
                 newest. On the GPU the peak of a number format is the number of multiprocessors times FLOP \
                 per clock (from NVIDIA's documents) times the SM clock during the benchmark; the plots draw \
                 it at the device's highest clock."
            }
            @for machine in report.machines().filter(has) {
                @if !report.others.is_empty() { h3 { (machine.hardware()) @if machine.other { " (another machine)" } } }
                (ceilings(&machine.limits, &machine.hardware()))
                (bandwidth(&machine.limits, &machine.hardware()))
            }
            @if !report.machines().any(|m| has(&m)) {
                p { "No limits were measured." }
            }
        }
    }
}

fn ceilings(limits: &Limits, whose: &str) -> Markup {
    html! {
        (table::table(&format!("Measured limits, {whose}"), "limits", html! {
            table.plain {
                thead { tr { th { "Limit" } th.n { "Measured" } th { "How" } } }
                tbody {
                    @for (name, c) in &limits.ceilings {
                        @if let Some(value) = limits.ceiling(name) {
                            tr {
                                td { (words(name)) }
                                td.n { (units::ceiling(value, &c.unit)) }
                                td.how { (c.method) }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// The points of a curve that are sound.
fn points(limits: &Limits, name: &str) -> Vec<BandwidthPoint> {
    let curve = limits.curves.get(name);
    let mut points = curve.map_or(Vec::new(), |curve| curve.points.clone());
    points.retain(|point| point.bytes > 0 && point.rate.is_normal() && point.rate > 0.0);
    points.sort_by_key(|point| point.bytes);
    points
}

fn bandwidth(limits: &Limits, whose: &str) -> Markup {
    let mut rows: BTreeMap<u64, [Option<f64>; CURVES.len()]> = BTreeMap::new();
    for (column, (name, ..)) in CURVES.iter().enumerate() {
        for point in points(limits, name) {
            rows.entry(point.bytes).or_default()[column] = Some(point.rate);
        }
    }
    let there = |column: usize| rows.values().any(|row| row[column].is_some());
    let columns: Vec<usize> = (0..CURVES.len()).filter(|column| there(*column)).collect();
    if columns.is_empty() {
        return html! {};
    }
    let plot = plot(limits);
    html! {
        @if let (Some(wide), Some(narrow)) = (plot.svg(Wide), plot.svg(Narrow)) {
            figure {
                div.wide { (PreEscaped(wide)) }
                div.narrow { (PreEscaped(narrow)) }
            }
        }
        (table::table(&format!("Bandwidth over the working set, {whose}"), "bandwidth", html! {
            table.plain.tight {
                thead { tr {
                    th.n { "Working set" }
                    @for column in &columns { th.n { (CURVES[*column].1) } }
                } }
                tbody {
                    @for (bytes, row) in &rows {
                        tr {
                            td.n { (units::binary(*bytes)) }
                            @for column in &columns {
                                td.n { @if let Some(rate) = row[*column] { (units::rate(rate, "B/s")) } }
                            }
                        }
                    }
                }
            }
        }))
        @for column in &columns {
            @if let Some(curve) = limits.curves.get(CURVES[*column].0) {
                p.note { (CURVES[*column].1) ": " (curve.method) "." }
            }
        }
    }
}

fn plot(limits: &Limits) -> Plot {
    let curves = CURVES.iter().map(|(name, words, family, index)| {
        let dot = |point: &BandwidthPoint| Dot {
            size: point.bytes as f64,
            value: point.rate,
            low: point.rate,
            high: point.rate,
        };
        Curve {
            label: (*words).to_owned(),
            family: *family,
            index: *index,
            clock: Some(clock(*family)),
            other: false,
            joined: true,
            dots: points(limits, name).iter().map(dot).collect(),
        }
    });
    let curves = curves.filter(|curve| !curve.dots.is_empty()).collect();
    let title = "Bandwidth over the working set".to_owned();
    Plot::of(
        title,
        ("working set", Unit::Bytes),
        Quantity::Rate("B/s"),
        curves,
    )
}
