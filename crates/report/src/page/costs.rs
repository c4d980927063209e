//! What the device costs beside the work: its start, launches, waiting, copies and allocation, in
//! one table.

use maud::{Markup, html};

use crate::assemble::Assembled;
use crate::page::gpu_or_cpu::{Verdicts, place_words};
use crate::page::table;
use crossover_results::analysis::cold_start::{First, start, words};
use crossover_results::model::role::{Allocator, Measures};
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// Phases of a start that are named, the longest first.
const MOST_PHASES: usize = 4;

pub(super) fn section(report: &Assembled, verdicts: Option<&Verdicts>) -> Markup {
    let rows: Vec<(String, String, String)> = lines(report, verdicts);
    let whose = gpu(report).map(MachineResults::hardware);
    html! {
        @if !rows.is_empty() {
            section #costs {
                h2 { "What the device costs" }
                @if let Some(whose) = whose.filter(|_| !report.others.is_empty()) { p.note { (whose) } }
                (table::table("What the device costs", "costs", html! {
                    table.plain.wrap-text {
                        thead { tr { th { "what" } th.n { "time" } th { "which is" } } }
                        tbody {
                            @for (what, time, note) in &rows {
                                tr { th scope="row" { (what) } td.n { (time) } td { (note) } }
                            }
                        }
                    }
                }))
            }
        }
    }
}

/// The machine of the GPU's figures: this one where it has a GPU.
fn gpu(report: &Assembled) -> Option<&MachineResults> {
    report.machines().find(|machine| machine.gpu().is_some())
}

fn lines(report: &Assembled, verdicts: Option<&Verdicts>) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let Some(machine) = gpu(report) else {
        return rows;
    };
    let mut add = |what: &str, time: String, note: String| rows.push((what.to_owned(), time, note));
    for (first, what) in [
        (
            First::Kernel,
            "From the start of a process to its first kernel",
        ),
        (
            First::Product,
            "From the start of a process to its first cuBLAS product",
        ),
    ] {
        let Some(start) = start(machine, first) else {
            continue;
        };
        let mut phases: Vec<_> = start.phases.iter().collect();
        phases.sort_by(|a, b| b.median_ns.total_cmp(&a.median_ns));
        let phase = |b: &Benchmark| format!("{}, {}", words(b), units::time(b.median_ns));
        let mut note: Vec<String> = phases
            .into_iter()
            .take(MOST_PHASES)
            .map(|b| phase(b))
            .collect();
        if let Some(warm) = start.warm {
            note.push(format!(
                "once warm it takes {}",
                units::time(warm.median_ns)
            ));
        }
        add(what, units::time(start.total_ns()), note.join("; "));
    }
    if let Some(limits) = verdicts.and_then(|verdicts| verdicts.thresholds().limits.as_ref()) {
        add(
            "A launch, in a queue of them",
            units::time(limits.launch_ns),
            "the rate at which the host launches".into(),
        );
        add(
            "A kernel that does nothing",
            units::time(limits.kernel_ns),
            "on the device".into(),
        );
        add(
            "A launch and the wait for it",
            units::time(limits.awaited_ns),
            "synchronising".into(),
        );
        for link in &limits.links {
            for (way, one) in [
                ("to the device", &link.upload),
                ("to the host", &link.download),
            ] {
                add(
                    &format!("A copy {way}, {}", place_words(link.data)[0]),
                    units::time(one.latency_ns),
                    format!("and {} of the rest", units::rate(one.rate, "B/s")),
                );
            }
        }
    }
    for (allocator, what) in [
        (Allocator::Malloc, "cuMemAlloc and cuMemFree"),
        (Allocator::Reuse, "A buffer that is kept"),
    ] {
        let mut all = (machine.groups.iter()).flat_map(|g| g.series.iter().map(move |s| (g, s)));
        let found = all.find(|(_, s)| s.role.does == Measures::Allocates(allocator));
        if let Some((group, b)) = found.and_then(|(group, s)| Some((group, s.points.last()?))) {
            add(
                &format!("{what}, with one use"),
                units::time(b.median_ns),
                group.topic.at(b.size),
            );
        }
    }
    rows
}
