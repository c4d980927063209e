//! Several machines side by side: what each answers, against its own CPU, and what it can do at most.

use maud::{Markup, html};

use crate::assemble::Assembled;
use crate::page::table;
use crossover_results::analysis::answer::answer_in_words::{at_largest, size};
use crossover_results::analysis::answer::pairs::{CrossoverAnswer, headlines};
use crossover_results::analysis::limits::words;
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// The limits that are compared, as far as both machines have them.
const LIMITS: [&str; 8] = [
    "cpu_fma_1",
    "cpu_fma_all",
    "gpu_fma",
    "gpu_copy",
    "h2d_pinned",
    "d2h_pinned",
    "launch_latency",
    "empty_kernel",
];

pub(super) fn section(report: &Assembled) -> Markup {
    let machines: Vec<&MachineResults> = report.machines().collect();
    let [first, .., _] = machines[..] else {
        return html! {};
    };
    let shown = |name: &&str| {
        machines
            .iter()
            .filter(|m| m.limits.ceiling(name).is_some())
            .count()
            > 1
    };
    let limits: Vec<&str> = LIMITS.into_iter().filter(shown).collect();
    // Each against its own CPU; a machine without a GPU has no answers of its own.
    let own: Vec<(&MachineResults, Vec<&CrossoverAnswer>)> =
        std::iter::once((first, &report.found))
            .chain(
                report
                    .others
                    .iter()
                    .map(|(machine, found)| (machine, found)),
            )
            .map(|(machine, found)| {
                (
                    machine,
                    headlines(found)
                        .filter(|f| f.gpu_machine.is_none())
                        .collect::<Vec<_>>(),
                )
            })
            .filter(|(_, found)| !found.is_empty())
            .collect();
    html! {
        section #machines {
            h2 { "Machines side by side" }
            (table::table("Limits of the machines", "machine-limits", None, html! {
                table.plain.wrap-text {
                    thead { tr { th { "limit" } @for machine in &machines { th.n { (whose(machine)) } } } }
                    tbody {
                        @for name in limits {
                            tr {
                                th scope="row" { (words(name)) }
                                @for machine in &machines {
                                    td.n { (ceiling(machine, name, first)) }
                                }
                            }
                        }
                    }
                }
            }))
            @if own.len() > 1 {
                details {
                    summary { "What each answers, against its own CPU" }
                    (table::table("Answers of the machines", "machine-answers", None, html! {
                        table.plain.wrap-text {
                            thead { tr { th { "question" } @for (machine, _) in &own { th { (whose(machine)) } } } }
                            tbody {
                                @for f in &own[0].1 {
                                    tr {
                                        th scope="row" { (f.topic.title) ", " (f.question.label()) }
                                        @for (_, found) in &own {
                                            td {
                                                @if let Some(other) = found.iter().find(|o| (&o.group, o.question) == (&f.group, f.question)) {
                                                    (size(other)) "; " (at_largest(other))
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }))
                }
            }
        }
    }
}

/// The GPU, and the CPU that its speedups are against.
fn whose(machine: &MachineResults) -> String {
    let environment = machine.environment.as_ref();
    let cpu = environment.map_or(String::new(), |e| {
        format!("{} threads of {}", e.cpu.usable_cores, e.cpu.model)
    });
    match machine.gpu() {
        Some(_) => format!("{}, against {cpu}", machine.hardware()),
        None => cpu,
    }
}

/// A limit, and how it is to that of the first machine.
fn ceiling(machine: &MachineResults, name: &str, first: &MachineResults) -> String {
    let Some(value) = machine.limits.ceiling(name) else {
        return String::new();
    };
    let unit = machine.limits.ceilings.get(name).map_or("", |c| &c.unit);
    let to_first = first
        .limits
        .ceiling(name)
        .filter(|_| !std::ptr::eq(machine, first));
    let ratio = to_first.map(|of| format!(" ({})", units::factor_fine(value / of)));
    units::ceiling(value, unit) + &ratio.unwrap_or_default()
}
