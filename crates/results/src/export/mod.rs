//! Writes what is known of a machine to one file, its record: all that a report needs to draw it,
//! and for other programs what follows. Samples, Criterion's pages and history stay behind.

mod private;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::analysis::answer::crossover_answer;
use crate::analysis::answer::row::{Crossover, crossovers};
use crate::analysis::findings;
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::reuse;
use crate::model::environment::Environment;
use crate::model::record::RunRecord;
use crate::store::curves::Benchmark;
use crate::store::layout::SIDECAR;
use crate::store::machine::MachineResults;
use crate::store::machine_record::{self, EXTENSION, KIND, SCHEMA};
use crate::store::unreadable::Unreadable;
use crate::store::whole_file::FileError;
use crossover_profile::Profile;

/// The record of a machine: its results of one run or of several that add up, without samples.
/// Times are nanoseconds. Paths, users and serial numbers are left out or replaced by digests.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "record of a machine"))]
pub struct MachineRecord<'a> {
    /// Tells a record from other files.
    #[cfg_attr(feature = "schema", schemars(extend("const" = KIND)))]
    kind: &'static str,
    /// Version of this form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: u32,
    /// The GPU's name, else the CPU's.
    machine: String,
    /// The runs that measured it, from the oldest to the newest, with its environment, ceilings and
    /// bandwidth curves. `confirmations` has the medians of every process that answered a question,
    /// by group and place of the data.
    runs: Vec<&'a RunRecord>,
    /// Each benchmark, by group, curve and size. Those whose role `does` is `starts` are the phases
    /// of a cold start.
    benchmarks: Vec<Row<'a>>,
    /// Where the time of benchmarks goes, with the timeline of one iteration.
    profiles: Vec<&'a Profile>,
    /// From which size on the GPU wins, for each of its implementations. It follows from what stands
    /// above; this program computes it anew.
    answers: Vec<Crossover>,
    /// What follows from comparing rows, likewise.
    findings: Vec<Finding>,
}

/// One benchmark.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row<'a> {
    #[serde(flatten)]
    benchmark: &'a Benchmark,
    /// The interval in which the median of another process lies with a probability of 95 %; that of
    /// this process lies in `interval_ns`.
    another_process_ns: (f64, f64),
}

impl<'a> Row<'a> {
    fn of(benchmark: &'a Benchmark) -> Self {
        Self {
            benchmark,
            another_process_ns: (benchmark.low_ns(), benchmark.high_ns()),
        }
    }
}

/// One record that was written.
#[derive(Debug)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of benchmarks in it.
    pub benchmarks: usize,
    /// Number of runs that they come from.
    pub runs: usize,
}

/// What was exported and what was not.
#[derive(Debug, Default)]
pub struct Exported {
    /// A record for each machine that has results there.
    pub records: Vec<Written>,
    /// Results that were left out, each with its reason.
    pub left_out: Vec<String>,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is nothing to export.
    #[error("no results under {}: run `cargo bench` first", .0.display())]
    NoResults(PathBuf),
    /// Every result was left out, for reasons of which this is the first.
    #[error("none of the results under {} can be exported; the first of them: {reason}", root.display())]
    AllLeftOut {
        /// The results root.
        root: PathBuf,
        /// What was left out first, and why.
        reason: String,
    },
    /// Results of a device that executed nothing are nobody's reference.
    #[error(
        "run {0} was recorded, not measured: a driver that executes nothing stood in for the GPU's; remove its results and run `cargo bench` on a GPU"
    )]
    Recorded(String),
    /// The record could not be written.
    #[error("{0}; name a folder that can be written to")]
    File(#[from] FileError),
}

/// Writes the record of each machine that has results under `root`, as
/// `<gpu>--<cpu>/<start of its newest run>--<commit>.json.gz` in `destination`: the newest result of
/// each benchmark, its profile, the record of its run and those of other runs that answered.
/// Results without a sidecar that matches their samples, or whose run left no record, are left out
/// and named.
///
/// # Errors
/// No results, or a record that cannot be written.
pub fn export(root: &Path, destination: &Path) -> Result<Exported, ExportError> {
    let machines = MachineResults::read_all(root, "this machine", false);
    let mut runs = machines.iter().flat_map(|machine| &machine.runs);
    if let Some((run, _)) = runs.find(|(run, _)| run.environment.recorded()) {
        return Err(ExportError::Recorded(run.run.clone()));
    }
    let mut exported = Exported::default();
    for Unreadable { what, reason } in machines.iter().flat_map(|machine| &machine.problems) {
        exported.left_out.push(format!("{what}: {reason}"));
    }
    for machine in machines {
        let why_not = |benchmark: &Benchmark| why_not(benchmark, &machine);
        let left_out = machine.benchmarks().filter_map(|benchmark| {
            let reason = why_not(benchmark)?;
            Some(format!("{}: {reason}", benchmark.id))
        });
        exported.left_out.extend(left_out);
        let machine = machine.only(|benchmark| why_not(benchmark).is_none());
        if !machine.groups.is_empty() {
            exported.records.push(write(&machine, destination)?);
        }
    }
    if !exported.records.is_empty() {
        return Ok(exported);
    }
    let root = root.into();
    Err(match exported.left_out.into_iter().next() {
        Some(reason) => ExportError::AllLeftOut { root, reason },
        None => ExportError::NoResults(root),
    })
}

/// Why a benchmark is not in the record, if so.
fn why_not(benchmark: &Benchmark, machine: &MachineResults) -> Option<String> {
    let Some(run) = &benchmark.run else {
        return Some(format!("has no {SIDECAR} of its samples; run it again"));
    };
    let is_there = machine.runs.iter().any(|(record, _)| record.run == *run);
    let missing = || {
        let run = run.escape_debug();
        format!("the record of its run, runs/{run}.json, is missing; run it again")
    };
    (!is_there).then(missing)
}

fn write(machine: &MachineResults, destination: &Path) -> Result<Written, FileError> {
    // What other runs answered stands beside the answers of the newest.
    let is_kept =
        |(run, results): &&(Arc<RunRecord>, usize)| *results > 0 || !run.confirmations.is_empty();
    let kept = machine.runs.iter().rev().filter(is_kept);
    let runs: Vec<&RunRecord> = kept.map(|(run, _)| &**run).collect();
    let newest = runs
        .last()
        .expect("each benchmark is of a run that is there");
    let folder = destination.join(newest.environment.slug());
    let path = folder.join(file_name(&newest.started, &newest.environment));
    let found = crossover_answer::find(machine, &[]);
    let findings = findings::find(&Context {
        machine: &machine.steady(),
        found: &found,
        reuse: &reuse::find(machine, &found),
    });
    let record = MachineRecord {
        kind: KIND,
        schema: SCHEMA,
        machine: newest.environment.hardware().unwrap_or_default().to_owned(),
        benchmarks: machine.benchmarks().map(Row::of).collect(),
        profiles: machine.profiles.iter().map(|p| &p.profile).collect(),
        answers: crossovers(&found),
        findings,
        runs,
    };
    let (benchmarks, runs) = (record.benchmarks.len(), record.runs.len());
    let io = |error| FileError::io(&path, error);
    let mut value = serde_json::to_value(&record).map_err(|error| io(error.into()))?;
    private::remove(&mut value);
    machine_record::write(&path, &value)?;
    let bytes = fs::metadata(&path).map_err(io)?.len();
    Ok(Written {
        path,
        bytes,
        benchmarks,
        runs,
    })
}

/// `20261122T225357Z--61e1f4603b1c.json.gz`: the names of a machine's records are in the order of
/// their runs.
fn file_name(started: &str, environment: &Environment) -> String {
    // As long as those of a sound record, so that those of a damaged one are names of files too.
    let plain = |text: &str, most: usize| -> String {
        let plain = text.chars().filter(char::is_ascii_alphanumeric);
        plain.take(most).collect()
    };
    let started = plain(started, "20261122T225357Z".len());
    let commit = environment.commit.as_deref();
    let commit = commit.map_or("unknown".to_owned(), |commit| plain(commit, 12));
    let changed = match environment.dirty {
        Some(true) => "-changed",
        _ => "",
    };
    format!("{started}--{commit}{changed}{EXTENSION}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_named_after_its_run_however_long_that_says_it_took_place() {
        let environment = |commit: &str| Environment {
            commit: Some(commit.to_owned()),
            ..Environment::default()
        };
        let named = file_name("2026-11-22T22:53:57Z", &environment("61e1f4603b1c0d2"));
        assert_eq!(named, "20261122T225357Z--61e1f4603b1c.json.gz");
        let long = "../x".repeat(1000);
        let mut damaged = environment(&long);
        damaged.cpu.model = long.clone();
        assert!(file_name(&long, &damaged).len() < 255);
        assert!(damaged.slug().len() < 255);
    }
}
