//! What the device costs beside the work: its start, launches, waiting, copies and allocation, in
//! one table.

use maud::{Markup, html};

use crate::assemble::Assembled;
use crate::page::table;
use crate::page::verdict::{Verdicts, place_words};
use crossover_results::analysis::cold_start::{First, start, words};
use crossover_results::model::role::{Allocator, Does};
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

pub(super) fn section(report: &Assembled, verdicts: Option<&Verdicts>) -> Markup {
    let rows: Vec<(String, String, String)> = lines(report, verdicts);
    let whose = gpu(report).map(MachineResults::hardware);
    html! {
        @if !rows.is_empty() {
            section #costs {
                h2 { "What the device costs" }
                @if let Some(whose) = whose.filter(|_| !report.others.is_empty()) { p.note { (whose) } }
                (table::table("What the device costs", "costs", None, html! {
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
        let longest = start
            .phases
            .iter()
            .max_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
        let note = longest.map(|b| {
            format!(
                "the longest part: {}, {}",
                words(b),
                units::time(b.median_ns)
            )
        });
        add(
            what,
            units::time(start.total_ns()),
            note.unwrap_or_default(),
        );
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
        let mut all = machine.groups.iter().flat_map(|group| &group.series);
        let series = all.find(|series| series.role.does == Does::Allocates(allocator));
        let group = series.and_then(|s| machine.group(s.points.first()?.id.split('/').next()?));
        if let (Some(b), Some(group)) = (series.and_then(|s| s.points.last()), group) {
            add(
                &format!("{what}, with one use"),
                units::time(b.median_ns),
                group.topic.at(b.size),
            );
        }
    }
    rows
}
