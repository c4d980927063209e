//! Runs of the groups, and what became of their results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::sampled::Sampled;
use crossover_suite::Package;
use crossover_suite::model::{RunRecord, Sidecar};
use serde_json::Value;
use tempfile::TempDir;

use crate::printed::{expect, with_line};

/// Says that a process is a run of the suite and not the test.
pub(crate) const RUN: &str = "CROSSOVER_TEST_RUN";

/// Names the folder of the package whose code is measured, if it is another one than this.
pub(crate) const FOLDER: &str = "CROSSOVER_TEST_FOLDER";

pub(crate) const SOUND: [&str; 3] = ["sound/cpu/fill/32", "sound/cpu/fill/4", "sound/cpu/fill/8"];

pub(crate) fn package() -> Package {
    let package = crossover_suite::package!();
    let folder = std::env::var(FOLDER).map_or(package.folder, |folder| folder.leak());
    Package { folder, ..package }
}

/// A folder for the results of runs, and the folder of the test around it.
pub(crate) struct Suite {
    pub(crate) dir: TempDir,
    pub(crate) root: PathBuf,
}

impl Suite {
    /// No results.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("criterion");
        Self { dir, root }
    }

    /// Results of one sound run.
    pub(crate) fn measured() -> Self {
        static MEASURED: OnceLock<Suite> = OnceLock::new();
        let once = MEASURED.get_or_init(|| {
            let suite = Self::new();
            suite.run("--bench --quick sound", 0, "");
            suite
        });
        once.copy()
    }

    /// The same results in a folder of the caller's own.
    pub(crate) fn copy(&self) -> Self {
        let suite = Self::new();
        for (path, bytes) in files(self.dir.path()) {
            let copy = suite.path(path.strip_prefix(&self.dir).unwrap());
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(copy, bytes).unwrap();
        }
        fs::write(suite.root.join("crossover.lock"), "").unwrap();
        suite
    }

    /// A path in the folder of the test.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A run of the groups in a process of its own, with this line of variables and arguments.
    pub(crate) fn plotted(&self, line: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let settings = "CROSSOVER_SIZES=quick CROSSOVER_DEVICE=none";
        with_line(&mut command, settings).env(RUN, "1");
        with_line(&mut command, line).env("CRITERION_HOME", &self.root);
        command
    }

    /// The same without Criterion's plots, which take it as long as all else.
    pub(crate) fn bench(&self, line: &str) -> Command {
        let mut command = self.plotted(line);
        command.arg("--noplot");
        command
    }

    pub(crate) fn crossover(&self, line: &str) -> Command {
        // In a bundle it lies beside this executable, which else lies in a folder beside it.
        let executable = std::env::current_exe().unwrap();
        let places = executable.ancestors().skip(1).take(2);
        let mut places = places.map(|folder| folder.join("crossover"));
        let mut command = Command::new(places.find(|place| place.is_file()).expect("the command"));
        with_line(&mut command, line).env("CRITERION_HOME", &self.root);
        command
    }

    /// The output of a run that must end with this code and print these words.
    pub(crate) fn run(&self, line: &str, code: i32, words: &str) -> String {
        expect(&mut self.bench(line), code, words)
    }

    /// Every file of the results but the lock, with its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        files(&self.root)
    }

    pub(crate) fn records(&self) -> Vec<RunRecord> {
        let mut files = self.files();
        files.retain(|path, _| path.starts_with(self.root.join("runs")));
        let records = files.into_values();
        let record = |bytes: Vec<u8>| serde_json::from_slice(&bytes).unwrap();
        records.map(record).collect()
    }

    /// The sidecar of a result, which must be that of the samples beside it.
    pub(crate) fn sidecar(&self, folder: &str) -> Sidecar {
        let folder = self.root.join(folder);
        let sampled = Sampled::whole(&folder);
        sampled.expect("a whole result").sidecar.expect("a sidecar")
    }

    /// The ids that a report shows.
    pub(crate) fn shown(&self) -> Vec<String> {
        let results = MachineResults::read(&self.root, "here", false);
        let mut ids = Vec::from_iter(results.benchmarks().map(|result| result.id.clone()));
        ids.sort();
        ids
    }
}

/// Every file of a folder but the lock, with its bytes.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    walkdir::WalkDir::new(folder)
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file() && entry.file_name() != "crossover.lock")
        .map(|entry| (entry.path().to_owned(), fs::read(entry.path()).unwrap()))
        .collect()
}

pub(crate) fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The same run with a limit of the shell.
pub(crate) fn limited(run: &Command, limit: &str) -> Command {
    let mut limited = Command::new("sh");
    limited
        .args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")])
        .arg(run.get_program())
        .args(run.get_args())
        .envs(run.get_envs().map(|(name, value)| (name, value.unwrap())));
    limited
}
