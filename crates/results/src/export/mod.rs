//! The record of a machine: one file with all that a report draws and, for other programs, the
//! conclusions from its results. It has no samples, Criterion pages or history, and no private data: folders, which
//! contain the user's name, and serial numbers of boards.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::analysis::answer::crossover_answer::CrossoverAnswer;
use crate::analysis::findings::finding::Finding;
use crate::analysis::limits;
use crate::analysis::reuse::Reuse;
use crate::model::environment::Environment;
use crate::model::record::RunRecord;
use crate::store::curves::{Benchmark, Series};
use crate::store::layout::SIDECAR;
use crate::store::machine_record::{self, EXTENSION, KIND, SCHEMA};
use crate::store::machine_results::{MachineResults, NOT_REACHED};
use crate::store::whole_file::{self, FileError, Unreadable};

/// The record that a report writes beside its page.
pub const BESIDE_THE_PAGE: &str = "record.json.gz";

/// A benchmark as it is stored: with the interval in which the median of another process lies with a
/// probability of 95 %, and the share that it reaches of the limit that bounds it.
fn row(series: &Series, benchmark: &Benchmark, machine: &MachineResults) -> Value {
    let share = limits::share(series, benchmark, machine);
    let mut row = json!(benchmark);
    row["another_process_ns"] = json!((benchmark.low_ns(), benchmark.high_ns()));
    row["limit"] = json!(share.map(|share| share.kind.name()));
    row["limit_share"] = json!(share.and_then(|share| share.fraction()));
    row
}

/// The record of a machine whose results have these answers, findings and break-even tables, without
/// samples; docs/records.md describes the fields. Paths, users and serial numbers are left out or replaced by
/// digests. `None` if no result belongs to a run that left a record.
pub fn record(
    machine: &MachineResults,
    found: &[CrossoverAnswer],
    findings: &[Finding],
    break_even: &[Reuse],
) -> Option<Value> {
    let not_reached = machine.not_reached().into_iter();
    let mut left_out: Vec<Unreadable> = (machine.problems.iter().cloned())
        .chain(not_reached.map(|id| Unreadable::new(id, NOT_REACHED)))
        .collect();
    let mut benchmarks = Vec::new();
    for series in machine.groups.iter().flat_map(|group| &group.series) {
        for benchmark in &series.points {
            match why_not(benchmark, machine) {
                None => benchmarks.push(row(series, benchmark, machine)),
                Some(reason) => left_out.push(Unreadable::new(&benchmark.id, reason)),
            }
        }
    }
    if benchmarks.is_empty() {
        return None;
    }
    // The confirmations of other runs are shown beside the answers of the newest.
    let kept = (machine.runs.iter().rev())
        .filter(|(run, results)| *results > 0 || !run.confirmations.is_empty());
    // What is removed below is in the digest.
    let kept = kept.map(|(run, _)| RunRecord {
        digest: String::new(),
        ..RunRecord::clone(run)
    });
    let runs: Vec<RunRecord> = kept.collect();
    let profiles = machine.profiles.iter().map(|profiled| &profiled.profile);
    let mut value = json!({
        "kind": KIND,
        "schema": SCHEMA,
        "machine": machine.hardware(),
        "runs": runs,
        "benchmarks": benchmarks,
        "profiles": profiles.collect::<Vec<_>>(),
        "answers": crossovers(found),
        "findings": findings,
        "break_even": break_even,
        "left_out": left_out,
    });
    remove_private(&mut value);
    Some(value)
}

/// The answers as they are stored, in their order.
fn crossovers(found: &[CrossoverAnswer]) -> Vec<Value> {
    let one = |f: &CrossoverAnswer| {
        let change = f.crossing.for_good();
        let (low, high) = f.crossing.speedup_interval;
        json!({
            "group": f.group,
            "cpu": f.cpu,
            "gpu": f.gpu,
            "gpu_machine": f.gpu_machine,
            "devices": f.devices,
            "question": f.question,
            "clock": f.clock,
            "headline": f.headline,
            "answer": f.crossing.answer,
            "size": change.map(|c| c.size),
            "size_low": change.map(|c| c.low),
            "size_high": change.map(|c| c.high),
            "measured": change.map(|c| c.measured),
            "range": f.crossing.range,
            "speedup": f.crossing.speedup,
            "speedup_size": f.crossing.largest,
            "processes": f.crossing.is_confirmed().then_some(f.crossing.processes),
            "speedup_low": low,
            "speedup_high": high,
        })
    };
    found.iter().map(one).collect()
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

/// One record that was exported.
#[derive(Debug)]
pub struct Written {
    /// The file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of benchmarks in it.
    pub benchmarks: usize,
    /// Number of runs that they come from.
    pub runs: usize,
    /// Results that are not in it, each with its reason.
    pub left_out: Vec<Unreadable>,
}

/// Why nothing was exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// No report has written a record.
    #[error("there is no {}: run `cargo bench`, or `crossover report` where there are results", .0.display())]
    NoRecord(PathBuf),
    /// Results of the recording driver are no reference.
    #[error(
        "run {0} comes from the recording driver of the tests, which executes no kernel; remove \
         its results and run `cargo bench` on a GPU"
    )]
    Recorded(String),
    /// The record could not be read or written.
    #[error("{0}; name a folder that can be written to")]
    File(#[from] FileError),
}

/// Copies the record that the report in `folder` has beside its page, to
/// `<gpu>--<cpu>/<start of its newest run>--<commit>.json.gz` in `destination`.
///
/// # Errors
/// No record, or one that cannot be copied.
pub fn export(folder: &Path, destination: &Path) -> Result<Written, ExportError> {
    let from = folder.join(BESIDE_THE_PAGE);
    if !from.is_file() {
        return Err(ExportError::NoRecord(from));
    }
    let contents = machine_record::read(&from)?;
    let recorded = |run: &&RunRecord| run.environment.recorded();
    if let Some(run) = contents.runs.iter().find(recorded) {
        return Err(ExportError::Recorded(run.run.clone()));
    }
    let Some(newest) = contents.runs.last() else {
        return Err(ExportError::NoRecord(from));
    };
    let name = file_name(&newest.started, &newest.environment);
    let path = destination.join(newest.environment.slug()).join(name);
    let packed = fs::read(&from).map_err(|error| FileError::io(&from, error))?;
    whole_file::write_atomic(&path, &packed)?;
    Ok(Written {
        path,
        bytes: packed.len() as u64,
        benchmarks: contents.benchmarks.len(),
        runs: contents.runs.len(),
        left_out: contents.left_out,
    })
}

/// `20261122T225357Z--61e1f4603b1c.json.gz`: the names of a machine's records are in the order of
/// their runs.
pub(crate) fn file_name(started: &str, environment: &Environment) -> String {
    // As long as in a sound record, so that a damaged record also gives names of files.
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

/// The UUID of a whole GPU or of a slice of one, `GPU-01234567-89ab-cdef-0123-456789abcdef`. Fewer characters are
/// a word, such as `GPU-bad`.
static UUID: LazyLock<Regex> = LazyLock::new(|| pattern("(GPU|MIG)-[0-9A-Fa-f-]{8,36}"));

/// A path from the root or from a home folder, behind the beginning of a word.
static PATH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(^|[\s"'`=:()\[\]{}<>,;|])([/~][^\s"'`=:()\[\]{}<>,;|]+)"#));

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the pattern is sound")
}

/// Replaces folders and UUIDs in all texts.
fn remove_private(value: &mut Value) {
    match value {
        Value::String(text) => *text = without_folders(&without_uuids(text)),
        Value::Array(values) => values.iter_mut().for_each(remove_private),
        Value::Object(fields) => fields.values_mut().for_each(remove_private),
        _ => {}
    }
}

/// `board-` and a digest in place of each UUID, so that results of one board are known as such.
fn without_uuids(text: &str) -> String {
    let board = |uuid: &Captures| {
        let digest = Sha256::digest(&uuid[0]);
        let digits: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("board-{digits}")
    };
    UUID.replace_all(text, board).into_owned()
}

/// Paths without their folders: `…/name`. One with fewer than three parts may end in the name of a user.
fn without_folders(text: &str) -> String {
    let shortened = |found: &Captures| {
        let parts: Vec<&str> = found[2]
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        match parts[..] {
            [_, _, .., name] => format!("{}…/{name}", &found[1]),
            _ => format!("{}…", &found[1]),
        }
    };
    PATH.replace_all(text, shortened).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_name_of_its_run_of_any_length() {
        let mut environment = Environment {
            commit: Some("61e1f4603b1c0d2".to_owned()),
            ..Environment::default()
        };
        let named = file_name("2026-11-22T22:53:57Z", &environment);
        assert_eq!(named, "20261122T225357Z--61e1f4603b1c.json.gz");
        let long = "../x".repeat(1000);
        environment.commit = Some(long.clone());
        environment.cpu.model = long.clone();
        assert!(file_name(&long, &environment).len() < 255 && environment.slug().len() < 255);
    }

    #[test]
    fn of_a_path_the_name_at_its_end_is_left() {
        // Also the argument of a run that names ids.
        let filter = "^(matmul/((cpu/naive)/(1|2)|(gpu/tiled)/(8)))$";
        for (text, kept) in [
            ("/home/a/kernels/b.cu: no such file", "…/b.cu: no such file"),
            ("cannot open '/home/someone'", "cannot open '…'"),
            ("PATH=/home/a/lib:/opt/b/lib64/", "PATH=…/lib:…/lib64"),
            ("at ~someone/lib, ~/x/y and ~", "at …, …/y and ~"),
            (
                "matmul/gpu/cublas/64, 3 GB/s",
                "matmul/gpu/cublas/64, 3 GB/s",
            ),
            ("a / b, 1/2 /", "a / b, 1/2 /"),
            (filter, filter),
        ] {
            assert_eq!(without_folders(text), kept);
        }
    }

    #[test]
    fn boards_are_told_apart_by_a_digest() {
        let of_kind = |kind| format!("a {kind}-01234567-89ab-cdef-0123-456789abcdef b");
        let texts = ["GPU", "MIG"].map(|kind| without_uuids(&of_kind(kind)));
        assert_ne!(texts[0], texts[1]);
        for text in &texts {
            assert!(!text.contains("01234567"), "{text}");
            assert_eq!(text.len(), "a board-................ b".len());
        }
        for kept in [&texts[0], "GPU-bad, GPU-"] {
            assert_eq!(without_uuids(kept), kept);
        }
    }
}
