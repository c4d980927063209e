//! The history of a machine: a folder with a file for each kept run, with its samples. Files are JSON, packed by
//! gzip, as the [record of a machine](super::machine_record).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::export::file_name;
use crate::model::environment::Environment;
use crate::statistics::positive;
use crate::store::layout::{is_temporary, paths_in};
use crate::store::machine_record::{is_named, unpacked, write};
use crate::store::sampled::Sampled;
use crate::store::whole_file::{FileError, Unreadable, of_schema, read_bytes};
use crossover_words::Clock;

/// Version of the form.
const SCHEMA: u32 = 1;

/// Tells a kept run from other files.
const KIND: &str = "crossover kept run";

/// One run, or one process of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    kind: String,
    schema: u32,
    /// When its newest result was written, RFC 3339.
    pub time: String,
    /// The compiler, where it is known.
    pub toolchain: Option<String>,
    /// The machine and the commit.
    pub environment: Environment,
    /// The benchmarks by id.
    pub benchmarks: BTreeMap<String, KeptBenchmark>,
}

/// The samples of one benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptBenchmark {
    /// The clock, where it is known.
    pub clock: Option<Clock>,
    /// Time of an iteration in each sample, ns, with seven digits.
    pub ns: Vec<f64>,
}

impl KeptRun {
    /// The run with these results, measured in `environment` with `toolchain`.
    pub fn new<'a>(
        time: String,
        environment: Environment,
        toolchain: Option<String>,
        results: impl Iterator<Item = (&'a String, &'a Sampled)>,
    ) -> Self {
        let rounded = |ns: &f64| format!("{ns:.6e}").parse().unwrap_or(*ns);
        let kept = |(id, result): (&String, &Sampled)| {
            let (clock, ns) = (result.clock, result.ns.iter().map(rounded).collect());
            (id.clone(), KeptBenchmark { clock, ns })
        };
        Self {
            kind: KIND.to_owned(),
            schema: SCHEMA,
            time,
            toolchain,
            environment,
            benchmarks: results.map(kept).collect(),
        }
    }

    /// Leaves out the benchmarks that an earlier run, or one of another commit, has with the same samples, and returns
    /// how many. Counts, whose samples are all equal, stay.
    pub fn leave_out_kept(&mut self, kept: &[Self]) -> usize {
        let before = self.benchmarks.len();
        // The same results of the same code are written again, under the same name.
        let is_written = |run: &Self| run.time == self.time && code(run) == code(self);
        let earlier: Vec<&Self> = (kept.iter())
            .filter(|run| run.time <= self.time && !is_written(run))
            .collect();
        self.benchmarks.retain(|id, benchmark| {
            let mut of_id = earlier.iter().filter_map(|run| run.benchmarks.get(id));
            let is_count = benchmark.ns.iter().all(|ns| *ns == benchmark.ns[0]);
            is_count || of_id.all(|earlier| earlier.ns != benchmark.ns)
        });
        before - self.benchmarks.len()
    }

    /// Writes the run into the folder of its machine, and returns the path. The same results have the same name.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn keep(&self, machine: &Path) -> Result<PathBuf, FileError> {
        let path = machine.join(file_name(&self.time, &self.environment));
        let json = serde_json::to_value(self).map_err(|error| FileError::io(&path, error))?;
        write(&path, &json)?;
        Ok(path)
    }

    fn read(path: &Path) -> Result<Self, FileError> {
        let refuse = |_| {
            let reason = "is damaged or no kept run; copy it again, or delete it";
            FileError::other(path, reason)
        };
        let text = unpacked(&read_bytes(path)?).map_err(refuse)?;
        let value = serde_json::from_slice(&text).map_err(|_| refuse(""))?;
        let run: Self = of_schema(path, SCHEMA, value)?;
        let samples = run.benchmarks.values().map(|kept| &kept.ns);
        let is_sound =
            |ns: &Vec<f64>| !ns.is_empty() && ns.iter().all(|ns| positive(*ns).is_some());
        let commit = run.environment.commit.as_deref().unwrap_or_default();
        let is_hexadecimal = commit.chars().all(|digit| digit.is_ascii_hexdigit());
        if run.kind == KIND && is_hexadecimal && samples.clone().all(is_sound) {
            Ok(run)
        } else {
            Err(refuse(""))
        }
    }
}

/// The runs in the folder of a machine, oldest first, and the files that are none.
pub fn read_all(machine: &Path) -> (Vec<KeptRun>, Vec<Unreadable>) {
    let (mut runs, mut problems) = (Vec::new(), Vec::new());
    let hidden = |path: &PathBuf| path.file_name().is_some_and(is_temporary);
    for path in paths_in(machine).into_iter().filter(|path| !hidden(path)) {
        match KeptRun::read(&path) {
            Ok(run) => runs.push(run),
            Err(error) => problems.push(error.into()),
        }
    }
    runs.sort_by(|a, b| a.time.cmp(&b.time));
    (runs, problems)
}

/// The code of a run: its commit, and whether that had changes.
fn code(run: &KeptRun) -> (Option<&str>, Option<bool>) {
    (run.environment.commit.as_deref(), run.environment.dirty)
}

/// Processes of one commit that follow each other within this time are one run.
const ONE_RUN: Duration = Duration::from_secs(3600);

/// The processes of each run, in the order of [`read_all`].
pub fn by_run(processes: &[KeptRun]) -> Vec<&[KeptRun]> {
    let time = |run: &KeptRun| humantime::parse_rfc3339(&run.time).ok();
    let is_next = |last: &KeptRun, next: &KeptRun| {
        let between = time(last).and_then(|last| time(next)?.duration_since(last).ok());
        code(last) == code(next) && between.is_some_and(|between| between <= ONE_RUN)
    };
    processes.chunk_by(is_next).collect()
}

/// Removes the oldest files of runs until `most` are left, and returns how many were removed.
///
/// # Errors
/// A file that cannot be removed.
pub fn prune(machine: &Path, most: usize) -> Result<usize, FileError> {
    let mut files = paths_in(machine);
    // Their names begin with their times.
    files.retain(|path| is_named(path) && KeptRun::read(path).is_ok());
    let surplus = files.len().saturating_sub(most);
    for path in &files[..surplus] {
        fs::remove_file(path).map_err(|error| FileError::io(path, error))?;
    }
    Ok(surplus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(time: &str) -> KeptRun {
        let environment = Environment {
            commit: Some("0123456789abcdef".to_owned()),
            ..Environment::default()
        };
        let sampled = Sampled {
            ns: vec![1.0 / 3.0, 2e9],
            ..Sampled::default()
        };
        let results = BTreeMap::from([("g/f/1".to_owned(), sampled)]);
        KeptRun::new(time.to_owned(), environment, None, results.iter())
    }

    #[test]
    fn damaged_and_foreign_files_are_named_and_never_pruned() {
        let folder = tempfile::tempdir().unwrap();
        let machine = folder.path().join("a machine");
        let times = [
            "2026-01-02T03:04:05Z",
            "2026-01-01T00:00:00Z",
            "2026-02-01T00:00:00Z",
        ];
        let paths = times.map(|time| run(time).keep(&machine).unwrap());
        assert!(paths[0].ends_with("20260102T030405Z--0123456789ab.json.gz"));
        run(times[0]).keep(&machine).unwrap();
        let whole = fs::read(&paths[2]).unwrap();
        fs::write(&paths[2], &whole[..whole.len() - 9]).unwrap();
        fs::write(machine.join("notes.txt"), "mine").unwrap();
        let record = serde_json::json!({"kind": "crossover machine record", "schema": 1});
        write(&machine.join("20250101T000000Z--a.json.gz"), &record).unwrap();
        let (runs, problems) = read_all(&machine);
        let kept: Vec<&str> = runs.iter().map(|run| run.time.as_str()).collect();
        assert_eq!(kept, [times[1], times[0]]);
        assert_eq!(runs[0].benchmarks["g/f/1"].ns, [0.333_333_3, 2e9]);
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert_eq!(prune(&machine, 1).unwrap(), 1);
        assert!(!paths[1].exists() && paths[2].exists() && machine.join("notes.txt").exists());
        assert_eq!(prune(&machine, 1).unwrap(), 0);
    }

    #[test]
    fn processes_of_one_commit_within_an_hour_are_one_run() {
        let mut other = run("2026-01-01T01:30:00Z");
        other.environment.commit = None;
        let processes = [
            run("2026-01-01T00:00:00Z"),
            run("2026-01-01T00:50:00Z"),
            other,
            run("2026-01-03T00:00:00Z"),
        ];
        let counts = by_run(&processes).into_iter().map(<[KeptRun]>::len);
        assert!(counts.eq([2, 1, 1]));
        // Results that did not run again at another commit are none of it.
        let [mut first, .., mut last] = processes.clone();
        assert_eq!(first.leave_out_kept(&processes[..1]), 0);
        last.time.clone_from(&processes[2].time);
        assert_eq!(last.leave_out_kept(&processes[2..3]), 1);
    }

    /// With the name of the host, each runner that lives one hour would be a machine; by its hardware, runners of one
    /// kind are one.
    #[test]
    fn a_machine_is_its_hardware() {
        let base = run("").environment;
        let key = |change: fn(&mut Environment)| {
            let mut environment = base.clone();
            change(&mut environment);
            environment.machine_key()
        };
        let same: [fn(&mut Environment); 3] = [
            |it| it.os = Some("another kernel".to_owned()),
            |it| it.cpu.memory_bytes = Some(16_766_000_000),
            |it| it.commit = None,
        ];
        assert!(same.iter().all(|change| key(*change) == key(|_| ())));
        let others: [fn(&mut Environment); 3] = [
            |it| it.cpu.model = "AMD EPYC 7763".to_owned(),
            |it| it.cpu.usable_cores = 4,
            |it| it.gpu = Some(Default::default()),
        ];
        assert!(others.iter().all(|change| key(*change) != key(|_| ())));
    }
}
