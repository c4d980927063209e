//! The evidence for each answer: the results of every process, the runs, the board, disturbances, and
//! the benchmarks.

use std::sync::Arc;

use maud::{Markup, Render, html};

use crate::group::{GroupAnswer, GroupView};
use crate::page::link::anchor;
use crate::page::table::{named, table};
use crate::report::Report;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::CrossoverAnswer;
use crossover_results::model::record::{PairedTimes, RunRecord};
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine_results::MachineResults;
use crossover_words::units;

/// The evidence for the answers of one group.
pub(super) fn section(report: &Report, group: &GroupView) -> Markup {
    html! {
        @if !group.answers.is_empty() {
            h3 { "Where the GPU overtakes the best CPU code, and how sure that is" }
            p.note {
                "An answer is firm if several processes agree about the winner, if the interval of its crossing \
                 spans less than a factor of two, if other runs of this machine found the same, and if \
                 nothing disturbed it. In each of these processes, which are started for this purpose, the \
                 best CPU code and the GPU code take turns. One process is not enough: processes of the \
                 same code differ in the placement of their memory, the load of the host and the cost of \
                 a launch."
            }
            @for answer in &group.answers { (one(report, answer)) }
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
    let other_runs: Vec<String> = (trust.other_runs.iter())
        .map(|(other, answer)| {
            let words = answer_in_words::of_another_run(&f.topic, answer);
            format!("{words} ({})", run(other))
        })
        .collect();
    html! {
        article.proof id=(anchor(f)) {
            h4 { (f.question.words()) }
            dl.facts {
                div { dt { "answer" } dd { (answer_in_words::wins(&f.topic, &f.crossing)) } }
                div { dt { "at the largest size" } dd { (answer_in_words::at_largest(f)) } }
                div { dt { "compared" } dd { span.gpu { (f.gpu_label()) } " on the clock " (f.clock) ", against " span.cpu { (f.cpu_label()) } } }
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
                @if !other_runs.is_empty() {
                    div { dt { "other runs found" } dd { (other_runs.join("; ")) } }
                }
                div { dt { "runs" } dd { (trust.runs.iter().map(run).collect::<Vec<_>>().join("; ")) } }
            }
            @if !f.processes.is_empty() { (processes(f)) }
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
fn processes(found: &CrossoverAnswer) -> Markup {
    let processes = &found.processes;
    let mut sizes: Vec<u64> = processes.iter().flatten().map(|pair| pair.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ratio = |pair: &PairedTimes| match pair.cpu_ns / pair.gpu_ns {
        ratio if ratio.is_finite() => units::factor_fine(ratio),
        _ => "unknown".to_owned(),
    };
    let mut heads = vec![found.topic.symbol.clone()];
    heads.extend((1..=processes.len()).map(|process| process.to_string()));
    let rows = sizes.into_iter().map(|size| {
        let cells = processes.iter().map(move |process| {
            let mut pairs = process.iter();
            pairs
                .find(|pair| pair.size == size)
                .map_or_else(String::new, ratio)
        });
        let name = found.topic.unit.write(size);
        std::iter::once(name).chain(cells).map(|cell| cell.render())
    });
    let (title, asked) = (&found.topic.title, found.question.words());
    let label = format!("Speedup in each process: {title}, {asked}");
    html! {
        p.note { "CPU time over GPU time in each process" }
        (table(&label, "matrix", &named(&heads), rows))
    }
}

/// The runs that the results are from, where there are several.
pub(super) fn runs(machine: &MachineResults) -> Option<(&'static str, String)> {
    let runs = machine.runs.iter().filter(|(_, results)| *results > 0);
    let one = |(run, results): &(Arc<RunRecord>, usize)| {
        let commit = run.environment.commit_in_words().unwrap_or_default();
        format!(
            "{} ({commit}, size set {}): {results} results",
            when(run),
            run.size_set
        )
    };
    let runs: Vec<String> = runs.map(one).collect();
    (runs.len() > 1).then(|| ("results of several runs", runs.join("; ")))
}

/// `2026-11-21 14:12:29 UTC`.
pub(super) fn when(run: &RunRecord) -> String {
    run.started.replace('T', " ").replace('Z', " UTC")
}

/// The time of a result's run, if it is not the newest run.
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
