//! The evidence for each answer: the results of every process, the runs, the board, disturbances, and
//! the benchmarks.

use maud::{Markup, html};

use crate::answers::GroupAnswer;
use crate::page::link::safe;
use crate::page::runs::when;
use crate::page::table;
use crate::report::Report;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::model::record::PairedTimes;
use crossover_words::units;

/// The evidence for the answers of one group.
pub(super) fn section(report: &Report, here: &[GroupAnswer], group: &str) -> Markup {
    html! {
        @if !here.is_empty() {
            h3 id={ "answers-" (safe(group)) } { "Where the GPU overtakes the best CPU code, and how sure that is" }
            p.note {
                "An answer is firm if several processes agree about the winner, if the interval of its crossing \
                 spans less than a factor of two, if other runs of this machine found the same, and if \
                 nothing disturbed it. In each of these processes, which are started for this purpose, the \
                 best CPU code and the GPU code take turns. One process is not enough: processes of the \
                 same code differ in the placement of their memory, the load of the host and the cost of \
                 a launch."
            }
            @for answer in here { (one(report, answer)) }
        }
    }
}

fn one(report: &Report, answer: &GroupAnswer) -> Markup {
    let (f, trust) = (answer.found, &answer.trust);
    let environment = answer.machine.environment.as_ref();
    let uuid = environment.and_then(|e| e.gpu.as_ref()?.uuid.as_ref());
    let run = |name: &String| {
        let known = report.machines().flat_map(|m| &m.runs);
        let mut known = known.filter(|(run, _)| run.run == *name);
        known
            .next()
            .map_or_else(|| name.clone(), |(run, _)| when(run))
    };
    let others: Vec<String> = (trust.other_runs.iter())
        .map(|(other, answer)| {
            let said = answer_in_words::of_another_run(&f.topic, answer);
            format!("{said} ({})", run(other))
        })
        .collect();
    html! {
        article.proof id=(answer.anchor()) {
            h4 { (answer.found.question.words()) }
            dl.facts {
                div { dt { "answer" } dd { (answer_in_words::wins(f)) } }
                div { dt { "at the largest size" } dd { (answer_in_words::at_largest(f)) } }
                div { dt { "compared" } dd { span.gpu { (f.gpu_label()) } " on the clock " (f.clock) ", against " span.cpu { "cpu/" (f.cpu) } } }
                @for (size, limit) in &answer.limits {
                    div { dt { "limit at " (f.topic.at(*size)) } dd { b { (limit.kind.name()) } ": " (limit.words()) } }
                }
                div { dt { "how sure" } dd { (answer.cause()) } }
                div {
                    dt { "board" }
                    dd {
                        (answer.machine.hardware())
                        @if let Some(uuid) = uuid { ", " code { (uuid) } }
                    }
                }
                @if !others.is_empty() {
                    div { dt { "other runs found" } dd { (others.join("; ")) } }
                }
                div { dt { "runs" } dd { (trust.runs.iter().map(run).collect::<Vec<_>>().join("; ")) } }
            }
            (processes(answer))
            details {
                summary { (units::counted(f.benchmarks.len(), "benchmark")) }
                p.ids { @for id in &f.benchmarks { code { (id) } " " } }
            }
            @if f.processes.is_empty() {
                p.note {
                    "No further processes confirmed this answer. A run of "
                    code { "cargo bench" } " starts them after its groups."
                }
            } @else {
                p.note { "The processes searched from " (f.topic.at(f.crossing.range.0 as u64)) " to " (f.topic.at(f.crossing.range.1 as u64)) "." }
            }
        }
    }
}

/// Speedup by size, a column per process.
fn processes(answer: &GroupAnswer) -> Markup {
    let all = &answer.found.processes;
    let mut sizes: Vec<u64> = all.iter().flatten().map(|pair| pair.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ratio = |pair: &PairedTimes| match pair.cpu_ns / pair.gpu_ns {
        ratio if ratio.is_finite() => units::factor_fine(ratio),
        _ => "unknown".to_owned(),
    };
    let asked = answer.found.question.words();
    let what = format!(
        "Speedup in each process: {}, {asked}",
        answer.found.topic.title
    );
    html! {
        @if !all.is_empty() {
            (table::scroll(&what, html! {
                table.matrix {
                    caption { "CPU time over GPU time in each process" }
                    thead { tr {
                        th scope="col" { (answer.found.topic.symbol) }
                        @for at in 1..=all.len() { th.n scope="col" { (at) } }
                    } }
                    tbody {
                        @for size in sizes {
                            tr {
                                th scope="row" { (answer.found.topic.unit.write(size)) }
                                @for process in all {
                                    td.n { @if let Some(pair) = process.iter().find(|d| d.size == size) { (ratio(pair)) } }
                                }
                            }
                        }
                    }
                }
            }))
        }
    }
}
