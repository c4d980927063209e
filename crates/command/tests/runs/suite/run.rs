//! Runs of the suite under test, and what they left.

use std::path::Path;
use std::process::{Command, Output};

use crossover::model::{RunRecord, Sidecar};

use crate::printed::printed;

/// Says that this process is a run of the suite and not the test.
pub(crate) const SUITE: &str = "CROSSOVER_TEST_SUITE";

/// A run of the suite in a process of its own, without a GPU.
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) results: tempfile::TempDir,
}

impl Run {
    pub(crate) fn new(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let results = tempfile::tempdir().expect("a temporary folder can be made");
        Self::into_folder(results, arguments, environment)
    }

    pub(crate) fn into_folder(
        results: tempfile::TempDir,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let output = Command::new(std::env::current_exe().expect("this process has a file"))
            .args(arguments)
            .env_remove("CROSSOVER_PROFILE")
            .env(SUITE, "1")
            .env("CROSSOVER_DEVICE", "none")
            .env("CRITERION_HOME", results.path())
            .envs(environment.iter().copied())
            .output()
            .expect("this executable can be started again");
        Self { output, results }
    }

    pub(crate) fn root(&self) -> &Path {
        self.results.path()
    }

    pub(crate) fn code(&self) -> i32 {
        self.output.status.code().expect("ended by itself")
    }

    pub(crate) fn said(&self) -> String {
        printed(&self.output)
    }

    pub(crate) fn record(&self) -> RunRecord {
        let entry = std::fs::read_dir(self.root().join("runs"))
            .unwrap_or_else(|e| panic!("no runs folder: {e}\n{}", self.said()))
            .next()
            .expect("one record")
            .expect("readable");
        let name = entry.path();
        let record: RunRecord = read(&name);
        assert_eq!(
            Some(record.run.as_str()),
            name.file_stem().and_then(|s| s.to_str())
        );
        record
    }
}

/// The setting for the fewest benchmarks.
pub(crate) const QUICK: (&str, &str) = ("CROSSOVER_PROFILE", "quick");

/// The sidecar of a result, which must be that of the samples beside it.
pub(crate) fn sidecar(folder: &Path) -> Sidecar {
    let read = crossover_results::store::sidecar::read(folder);
    read.expect("of its samples").expect("a sidecar")
}

pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
