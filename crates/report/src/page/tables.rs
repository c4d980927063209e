//! The tables of a group's page: the evidence for its answers, findings, break-even, times, profiles,
//! and all figures.

use std::path::Path;

use maud::{Markup, Render, html};

use crate::group::GroupView;
use crate::page::evidence::earlier_run;
use crate::page::link::safe;
use crate::page::table::{Column, breakable, number, scroll, table, text};
use crate::page::{evidence, findings, link, profile};
use crate::report::Report;
use crossover_results::analysis::rate::{self, RateKind};
use crossover_results::analysis::reuse::Reuse;
use crossover_results::analysis::{limits, telemetry};
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Group, Series};
use crossover_results::store::machine_results::MachineResults;
use crossover_words::units;

/// All measurements of a group; `out` is the folder of its page.
pub(super) fn section(report: &Report, group: &GroupView, out: &Path) -> Markup {
    let name = group.name;
    html! {
        section.group id={ "group-" (safe(name)) } {
            h2 { "Evidence and figures" }
            (evidence::section(report, group))
            @if let Some(why) = &group.unmeasured { p.note { (why) } }
            (findings::beside(report, name))
            (break_even(report, name))
            (profile::profiles(report, name, out))
            @for machine in report.machines() {
                @if let Some(measured) = machine.group(name) {
                    (details(report, measured, machine, out, group.one_size()))
                }
            }
        }
    }
}

/// A row per size, so that it fits a phone.
fn break_even(report: &Report, group: &str) -> Markup {
    let tables: Vec<&Reuse> = report.reuse.iter().filter(|r| r.group == group).collect();
    let Some(first) = tables.first() else {
        return html! {};
    };
    let mut sizes: Vec<u64> = tables
        .iter()
        .flat_map(|t| t.rows.iter().map(|r| r.size))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let topic = report.topic(group);
    let row = |t: &Reuse, size: u64| t.rows.iter().find(|r| r.size == size).copied();
    let calls = |size: u64| tables.iter().find_map(|t| row(t, size)?.calls);
    let any_calls = sizes.iter().any(|size| calls(*size).is_some());
    let mut columns = vec![text(&topic.symbol)];
    columns.extend(tables.iter().map(|t| {
        let code = format!("gpu/{}", t.transfer);
        number(html! { "moved by " (breakable(&code)) })
    }));
    if any_calls {
        columns.push(number("calls until the cold start has paid off"));
    }
    let rows = sizes.iter().map(|size| {
        let mut cells = vec![topic.unit.write(*size).render()];
        let counts = tables.iter().map(|t| row(t, *size).map(|r| r.operations));
        let counts = counts.chain([calls(*size)]);
        cells.extend(counts.map(|n| n.map_or_else(String::new, operations).render()));
        cells
    });
    let label = format!(
        "{}: operations until moving the data has paid off",
        topic.title
    );
    html! {
        h3 { "How often data must be used to pay for moving it" }
        p.note {
            "Data are moved once and then used by several operations of gpu/" (first.resident) ": how many does it \
             take until the GPU is ahead of the best CPU code? 1: a single operation is enough. Never: the CPU \
             is faster even when the data are on the device already."
            @if any_calls { " The last column says after how many calls, with the data on the device, a new process has made up for its cold start." }
        }
        (table(&label, "matrix", &columns, rows))
    }
}

fn operations(n: f64) -> String {
    match n {
        n if n.is_infinite() => "never".into(),
        n => units::count(n.ceil().max(1.0)),
    }
}

/// A link to Criterion's own page, if it exists.
fn linked(text: &str, benchmark: &Benchmark, machine: &MachineResults, out: &Path) -> Markup {
    let page = benchmark.dir.join("report").join("index.html");
    let link = (!machine.other)
        .then(|| link::relative(out, &page))
        .flatten();
    html! {
        @match link {
            Some(link) => { a href=(link) title={ "Criterion's page of " (benchmark.id) } { (text) } }
            None => { (text) }
        }
    }
}

/// Every figure of every benchmark, folded if a chart shows the times.
fn details(
    report: &Report,
    group: &Group,
    machine: &MachineResults,
    out: &Path,
    open: bool,
) -> Markup {
    let work = rate::work(&[group]);
    let counted = group.benchmarks().any(|b| telemetry::energy_j(b).is_some());
    let own = std::ptr::eq(machine, &report.machine);
    // The link to all figures leads to this machine, or else to the one whose GPU stands in.
    let is_first = own || report.machine.group(&group.name).is_none();
    let columns = [
        Some("benchmark"),
        Some("median"),
        Some("rate"),
        Some("share of the limit"),
        Some("clock"),
        Some("interval"),
        Some("spread"),
        counted.then_some("energy"),
        Some("error"),
        Some("samples"),
        Some("remarks"),
    ];
    let columns: Vec<Column> = columns.into_iter().flatten().map(text).collect();
    let label = format!("{}: all figures, {}", group.topic.title, machine.hardware());
    html! {
        details.all open[open] {
            summary {
                "All figures: " (units::counted(group.benchmarks().count(), "benchmark"))
                @if !own { ", " (machine.hardware()) " (another machine)" }
            }
            // A link to an element inside unfolds it.
            div id=[is_first.then_some("all")] { (scroll(&label, "plain figures", &columns, html! {
                    tbody {
                        @for series in &group.series {
                            @for i in 0..series.points.len() {
                                (figures(series, i, machine, out, work, counted))
                            }
                        }
                    }
            })) }
        }
    }
}

/// The row of a benchmark, the `i`-th of its curve, with its energy if `counted`.
fn figures(
    series: &Series,
    i: usize,
    machine: &MachineResults,
    out: &Path,
    work: Option<RateKind>,
    counted: bool,
) -> Markup {
    let b = &series.points[i];
    let amount = work.filter(|_| series.measures_work());
    let amount = amount.and_then(|work| Some((work, work.amount(series, i)?)));
    html! {
        tr {
            td.gpu[series.device == Device::Gpu].cpu[series.device == Device::Cpu] {
                (linked(&b.id, b, machine, out))
            }
            td { (units::time(b.median_ns)) }
            td {
                @if let Some((work, amount)) = amount { (units::rate(b.rate(amount), work.unit())) }
            }
            td {
                @if let Some(share) = limits::share(series, b, machine) {
                    (share.words())
                }
            }
            td { (series.clock_name()) }
            td { (units::time(b.low_ns())) " to " (units::time(b.high_ns())) }
            td { @if let Some(spread) = b.spread { (units::percent(spread)) } }
            @if counted { td { (energy(series, i, work)) } }
            td { @if let Some(v) = &b.verified { span title=(v.method) { (v.words()) } } }
            td { @if let Some(n) = b.samples { (n) } }
            td {
                @if let Some(run) = earlier_run(b, machine) { "of the run of " (run) "; " }
                (b.unsteady.iter().map(|why| format!("unsteady: {why}")).chain(clock_events(b, machine)).chain(remarks(b)).collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// Energy of an iteration, and its work per joule.
fn energy(series: &Series, index: usize, work: Option<RateKind>) -> String {
    let Some(joules) = telemetry::energy_j(&series.points[index]) else {
        return String::new();
    };
    let flop = work.filter(|w| *w == RateKind::Flop);
    let of_work = flop.and_then(|w| w.amount(series, index));
    let each = of_work.map_or(String::new(), |flop| {
        format!(", {}", units::rate(flop / joules, "FLOP/J"))
    });
    units::energy(joules) + &each
}

/// Events of the clock during a benchmark, with their times.
fn clock_events(b: &Benchmark, machine: &MachineResults) -> Vec<String> {
    let mut words: Vec<String> = telemetry::events(b)
        .map(|e| format!("at {} ms {}", e.time_ms, telemetry::words(e)))
        .collect();
    if words.is_empty() {
        words.extend(telemetry::slowed(b).into_iter().map(str::to_owned));
    }
    let capped = telemetry::capped(b, machine.environment.as_ref());
    words.extend(capped.map(|c| c.words()));
    words
}

/// Figures besides the time, and notes.
fn remarks(b: &Benchmark) -> Vec<String> {
    let figures = b
        .extra
        .iter()
        .map(|(key, value)| units::figure(key, *value));
    figures.chain(b.notes.iter().cloned()).collect()
}
