//! Which runs the results are of.

use maud::{Markup, html};

use crate::page::table;
use crossover_results::model::record::RunRecord;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine::MachineResults;

/// The runs that the results are from, where there are several.
pub(super) fn runs(machine: &MachineResults) -> Markup {
    let runs: Vec<_> = (machine.runs.iter())
        .filter(|(_, results)| *results > 0)
        .collect();
    html! {
        @if runs.len() > 1 {
            details {
                summary { "Results of " (runs.len()) " runs" }
                (table::scroll("Runs that the results are of", html! {
                    table.plain {
                        thead { tr { th { "run" } th { "commit" } th { "profile" } th { "arguments" } th { "end" } th.n { "results" } } }
                        tbody {
                            @for (run, results) in runs {
                                tr {
                                    td { (when(run)) }
                                    td { (run.environment.commit_in_words().unwrap_or_default()) }
                                    td { (run.profile) }
                                    td { @for argument in run.arguments.iter().filter(|a| *a != "--bench") { code { (argument) } " " } }
                                    td { @if run.finished.is_some() { "finished" } @else { "interrupted, or not finished yet" } }
                                    td.n { (results) }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}

/// `2026-11-21 14:12:29 UTC`.
pub(super) fn when(run: &RunRecord) -> String {
    run.started.replace('T', " ").replace('Z', " UTC")
}

/// When the run was that a result is of, where it is not the newest.
pub(super) fn earlier_run(b: &Benchmark, machine: &MachineResults) -> Option<String> {
    let own = b.run.as_ref()?;
    if machine
        .run
        .as_ref()
        .is_some_and(|newest| newest.run == *own)
    {
        return None;
    }
    let run = machine.runs.iter().find(|(run, _)| run.run == *own);
    Some(run.map_or_else(|| own.clone(), |(run, _)| when(run)))
}
