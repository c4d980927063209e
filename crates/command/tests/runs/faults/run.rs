//! Runs of the groups, and what became of their results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crossover_suite::Package;
use serde_json::Value;

use crate::printed::expect;

/// Says that a process is a run of the suite and not the test.
pub(crate) const RUN: &str = "CROSSOVER_TEST_RUN";

/// Names the folder of the package whose code is measured, if it is another one than this.
pub(crate) const FOLDER: &str = "CROSSOVER_TEST_FOLDER";

pub(crate) fn package() -> Package {
    let package = crossover_suite::package!();
    let folder = std::env::var(FOLDER).map_or(package.folder, |folder| folder.leak());
    Package { folder, ..package }
}

/// A run of `groups` in a process of its own, with results in `root`.
pub(crate) fn plotted(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(arguments)
        .env(RUN, "1")
        .env("CRITERION_HOME", root)
        .env("CROSSOVER_SIZES", "quick")
        .env("CROSSOVER_DEVICE", "none");
    command
}

/// The same without Criterion's plots, which take it as long as all else.
pub(crate) fn bench(root: &Path, arguments: &[&str]) -> Command {
    let mut command = plotted(root, arguments);
    command.arg("--noplot");
    command
}

pub(crate) fn crossover(root: &Path, arguments: &[&str]) -> Command {
    // In a bundle it lies beside this executable, which else lies in a folder beside it.
    let executable = std::env::current_exe().unwrap();
    let places = executable.ancestors().skip(1).take(2);
    let mut places = places.map(|folder| folder.join("crossover"));
    let mut command = Command::new(places.find(|place| place.is_file()).expect("the command"));
    command.args(arguments).env("CRITERION_HOME", root);
    command
}

/// Results of one sound run, in a folder of the caller's own.
pub(crate) fn measured() -> (tempfile::TempDir, PathBuf) {
    static MEASURED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let once = MEASURED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("criterion");
        expect(&mut bench(&root, &["--bench", "--quick", "sound"]), 0, "");
        dir
    });
    copied(once.path())
}

/// A copy of what a run left, in a folder of the caller's own.
pub(crate) fn copied(from: &Path) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    for entry in walkdir::WalkDir::new(from).into_iter().map(Result::unwrap) {
        let to = dir.path().join(entry.path().strip_prefix(from).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(to).unwrap(),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
    let root = dir.path().join("criterion");
    (dir, root)
}

/// Every file of a folder but the lock, with its bytes.
pub(crate) fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    walkdir::WalkDir::new(root)
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
        .args(run.get_args());
    for (name, value) in run.get_envs() {
        limited.env(name, value.unwrap());
    }
    limited
}

/// The record that a report of these results writes.
pub(crate) fn summary(root: &Path) -> Value {
    let out = tempfile::tempdir().unwrap();
    let to = out.path().to_str().unwrap();
    expect(
        &mut crossover(root, &["report", "--no-reference", "--out", to]),
        0,
        "",
    );
    record(out.path())
}

/// The record beside the page in a folder.
pub(crate) fn record(folder: &Path) -> Value {
    let packed = fs::read(folder.join("record.json.gz")).unwrap();
    serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).unwrap()
}

/// The ids that a report shows.
pub(crate) fn shown(root: &Path) -> Vec<String> {
    let summary = summary(root);
    let rows = summary["benchmarks"].as_array().unwrap();
    let mut ids: Vec<String> = rows
        .iter()
        .map(|row| row["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

pub(crate) const SOUND: [&str; 3] = ["sound/cpu/fill/32", "sound/cpu/fill/4", "sound/cpu/fill/8"];
