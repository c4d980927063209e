//! The scripts that carry the suite to a machine without Rust. Building a bundle is CI's
//! part; here are the launcher, with executables that tell how they were called, and what
//! `scripts/bundle` refuses before it builds anything.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;

use crate::printed::{expect, table, with_line};
use crate::repositories::executable;

pub(crate) const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// A bundle whose executables print their name, the results folder and their arguments.
pub(crate) fn bundle(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(format!("{SCRIPTS}/launcher"), dir.path().join("run")).unwrap();
    for name in names {
        executable(
            &dir.path().join("bin").join(name),
            "echo \"$(basename \"$0\") in $CRITERION_HOME:\" \"$@\"\nexit ${STATUS:-0}",
        );
    }
    dir
}

/// The output of its launcher, which a shell reads: a file that another thread's process holds open for a moment
/// cannot be started ("Text file busy").
pub(crate) fn launched(dir: &TempDir, line: &str, code: i32, words: &str) -> String {
    let mut command = Command::new("sh");
    command.arg(dir.path().join("run")).current_dir("/");
    command.env_remove("CRITERION_HOME");
    expect(with_line(&mut command, line), code, words)
}

pub(crate) fn the_launcher_calls_each_executable_as_cargo_would() {
    let dir = bundle(&["bench", "crossover", "test-gpu", "test-gpu_more"]);
    let home = dir.path().canonicalize().unwrap();
    let home = format!("{}/results/criterion:", home.display());
    for [line, prints] in table(
        "
        bench matmul/gpu a | bench in HOME: --bench matmul/gpu a
        env --json         | crossover in HOME: env --json
        test | test-gpu in HOME: ARGUMENTS, test-gpu_more in HOME: ARGUMENTS
        CRITERION_HOME=/elsewhere bench | bench in /elsewhere: --bench
        ",
    ) {
        let prints = prints.replace("ARGUMENTS", "--include-ignored --test-threads=1 --test");
        let prints = prints.replace("HOME:", &home).replace(", ", "\n");
        assert_eq!(launched(&dir, line, 0, "").trim_end(), prints);
    }
    // It keeps the exit code.
    launched(&dir, "STATUS=3 bench", 3, "bench in");
    launched(&dir, "STATUS=3 test", 3, "test-gpu");
    launched(&bundle(&["bench"]), "test", 2, "without GPU tests");
    // A link starts its own bundle.
    let other = tempfile::tempdir().unwrap();
    symlink(dir.path().join("run"), other.path().join("first")).unwrap();
    symlink("first", other.path().join("run")).unwrap();
    let call = launched(&other, "bench", 0, "");
    assert_eq!(call, format!("bench in {home} --bench\n"));
}

pub(crate) fn bundling_refuses_what_it_would_spoil() {
    let bundle = || Command::new(format!("{SCRIPTS}/bundle"));
    expect(&mut bundle(), 2, "usage: ");
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.txt"), "precious").unwrap();
    expect(bundle().arg(foreign.path()), 2, "is not a bundle");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
}
