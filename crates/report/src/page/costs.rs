//! The fixed costs of the device: its start, launches, waiting, copies and allocation, in one table.

use crossover_advice::Residency;
use maud::{Markup, Render, html};

use crate::decisions::Decisions;
use crate::page::table::{number, table, text};
use crate::report::Report;
use crossover_results::analysis::cold_start::{First, start, words};
use crossover_results::model::role::{Allocator, Measures};
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// Phases of the start that are named, the longest first.
const MOST_PHASES: usize = 4;

/// A line: what, its latency, its bandwidth, a note.
type Line = [String; 4];

pub(super) fn section(report: &Report, decisions: Option<&Decisions>) -> Markup {
    let rows = lines(report.gpu(), decisions);
    let columns = [
        text("what"),
        number("latency"),
        number("bandwidth"),
        text("note"),
    ];
    html! {
        @if !rows.is_empty() {
            section #costs {
                h2 { "What the device costs" }
                details {
                    summary { "Start, launches, copies and allocation" }
                    (table("What the device costs", "plain wrap-text", &columns, rows.iter().map(|row| row.each_ref().map(Render::render))))
                }
            }
        }
    }
}

fn lines(machine: &MachineResults, decisions: Option<&Decisions>) -> Vec<Line> {
    let mut rows = Vec::new();
    let mut add = |what: &str, ns: f64, bandwidth: String, note: String| {
        rows.push([what.to_owned(), units::time(ns), bandwidth, note]);
    };
    for (first, what) in [
        (First::Kernel, "Process start to first kernel"),
        (First::Product, "Process start to first cuBLAS product"),
    ] {
        let Some(start) = start(machine, first) else {
            continue;
        };
        let longest = start.phases.iter().take(MOST_PHASES);
        let mut note: Vec<String> = longest
            .map(|b| format!("{} {}", words(b), units::time(b.median_ns)))
            .collect();
        let warm = start
            .warm
            .map(|b| format!("later calls {}", units::time(b.median_ns)));
        note.extend(warm);
        add(what, start.total_ns(), String::new(), note.join("; "));
    }
    if let Some(limits) = decisions.and_then(|decisions| decisions.thresholds().limits.as_ref()) {
        for (what, ns, note) in [
            ("Launch, queued", limits.launch_ns, "launches back to back"),
            ("Empty kernel", limits.kernel_ns, "device time"),
            (
                "Launch, awaited",
                limits.awaited_ns,
                "with the synchronisation",
            ),
        ] {
            add(what, ns, String::new(), note.to_owned());
        }
        for link in &limits.links {
            let memory = match link.data {
                Residency::Pinned => "Pinned",
                _ => "Ordinary",
            };
            for (direction, one) in [
                ("host to device", &link.upload),
                ("device to host", &link.download),
            ] {
                let bandwidth = units::rate(one.rate, "B/s");
                add(
                    &format!("{memory} {direction}"),
                    one.latency_ns,
                    bandwidth,
                    String::new(),
                );
            }
        }
    }
    for (allocator, what) in [
        (Allocator::Malloc, "Allocate, use once, free"),
        (Allocator::Reuse, "The same use of a kept buffer"),
    ] {
        let mut all = (machine.groups.iter()).flat_map(|g| g.series.iter().map(move |s| (g, s)));
        let found = all.find(|(_, s)| s.role.does == Measures::Allocates(allocator));
        if let Some((group, b)) = found.and_then(|(group, s)| Some((group, s.points.last()?))) {
            add(what, b.median_ns, String::new(), group.topic.at(b.size));
        }
    }
    rows
}
