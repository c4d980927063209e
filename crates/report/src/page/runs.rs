//! The runs that the results come from.

use std::sync::Arc;

use crossover_results::model::record::RunRecord;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::machine::MachineResults;

/// The runs that the results are from, where there are several.
pub(super) fn runs(machine: &MachineResults) -> Option<(&'static str, String)> {
    let runs = machine.runs.iter().filter(|(_, results)| *results > 0);
    let one = |(run, results): &(Arc<RunRecord>, usize)| {
        let commit = run.environment.commit_in_words().unwrap_or_default();
        format!(
            "{} ({commit}, profile {}): {results} results",
            when(run),
            run.profile
        )
    };
    let all: Vec<String> = runs.map(one).collect();
    (all.len() > 1).then(|| ("Results of several runs", all.join("; ")))
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
