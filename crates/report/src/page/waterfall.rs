//! What a fresh process pays before its first result: the phases in their order on one linear axis,
//! each beginning where the one before it ends.

use maud::{Markup, html};

use crate::assemble::Assembled;
use crate::page::findings::permalink;
use crate::page::link::safe;
use crate::page::table;
use crossover_draw::ink::{Family, Paint};
use crossover_results::analysis::cold_start::{First, Start, start, words};
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// Width of the drawing; its height is that of a row.
const WIDTH: f64 = 100.0;
/// What is shorter is drawn as wide as this, so that it is seen where it lies.
const THINNEST: f64 = 0.35;
/// Labels of the axis.
const TICKS: f64 = 3.0;

/// The waterfalls of a group that measures phases, of this machine or else of those beside it.
pub(super) fn of_group(report: &Assembled, name: &str) -> Markup {
    let firsts = [
        (First::Kernel, "kernel"),
        (First::Product, "cuBLAS product"),
    ];
    let of = |machine: &MachineResults| -> Vec<Markup> {
        let all = firsts.into_iter().filter_map(|(first, what)| {
            let start = start(machine, first)?;
            let is_here = start.phases.last().is_some_and(|b| b.group == name);
            let drawn = start.total_ns() > 0.0 && start.total_ns().is_finite();
            (is_here && drawn).then(|| one(report, machine, &start, name, what))
        });
        all.collect()
    };
    let drawn = report.machines().map(of).find(|all| !all.is_empty());
    html! { @for one in drawn.unwrap_or_default() { (one) } }
}

fn one(
    report: &Assembled,
    machine: &MachineResults,
    start: &Start,
    name: &str,
    what: &str,
) -> Markup {
    let total = start.total_ns();
    let anchor = format!("start-{}-{}", safe(name), safe(what));
    let title = format!("From the start of a process to its first {what}");
    let step = step(total / TICKS);
    let ticks: Vec<f64> = (0..=(total / step) as u32)
        .map(|i| f64::from(i) * step)
        .collect();
    let x = |ns: f64| WIDTH * ns / total;
    let mut from = 0.0;
    let rows: Vec<_> = (start.phases.iter())
        .map(|b| {
            let begin = from;
            from += b.median_ns;
            (words(b), b, begin)
        })
        .collect();
    let bar = Paint::Shade(Family::Gpu, 0);
    html! {
        h3 id=(anchor) { (title) @if !report.others.is_empty() { ", " (machine.hardware()) } (permalink(&anchor, &title)) }
        (table::table(&title, &anchor, None, html! {
            table.waterfall {
                thead { tr {
                    th { "phase" } th.n data-v="median, ns" { "time" } th.n { "share" }
                    th.bar aria-hidden="true" {
                        div.axis { @for tick in &ticks { span style={ "left:" (format!("{:.2}%", x(*tick))) } { @if *tick == 0.0 { "0" } @else { (units::short(&units::time(*tick))) } } } }
                    }
                } }
                tbody {
                    @for (words, b, begin) in &rows {
                        tr {
                            th scope="row" { (words) }
                            td.n data-v=(table::full(b.median_ns)) { (units::time(b.median_ns)) }
                            td.n { (units::percent(b.median_ns / total)) }
                            td.bar aria-hidden="true" {
                                svg viewBox="0 0 100 10" preserveAspectRatio="none" {
                                    @for tick in &ticks {
                                        line x1=(px(x(*tick))) x2=(px(x(*tick))) y1="0" y2="10" class="s-grid" stroke="#dde2e9" stroke-width="0.15" {}
                                    }
                                    rect x=(px(x(*begin).min(WIDTH - THINNEST))) y="1" height="8" width=(px(x(b.median_ns).max(THINNEST)))
                                        class={ "f-" (bar.class()) } fill=(bar.light()) {}
                                }
                            }
                        }
                    }
                    tr.total {
                        th scope="row" { "together" }
                        td.n data-v=(table::full(total)) { (units::time(total)) }
                        td.n { "100 %" }
                        td.bar aria-hidden="true" {
                            @if let Some(warm) = start.warm { "once warm: " (units::time(warm.median_ns)) }
                        }
                    }
                }
            }
        }))
    }
}

fn px(value: f64) -> String {
    format!("{value:.2}")
}

/// 1, 2 or 5 times a power of ten, not under `least`.
fn step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    steps
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_round_steps() {
        assert_eq!(step(100.0), 100.0);
        assert_eq!(step(130.0), 200.0);
        assert_eq!(step(4.2e8), 5e8);
        assert_eq!(step(0.9), 1.0);
    }
}
