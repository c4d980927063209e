//! The scripts that carry the suite to a machine without Rust. Building a bundle is CI's
//! part; here are the launcher, with executables that tell how they were called, and what
//! `scripts/bundle` refuses before it builds anything.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// A process that is started while another thread writes an executable holds that file open for a
/// moment, and it cannot be started then ("Text file busy").
static WRITE_OR_START: Mutex<()> = Mutex::new(());

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A bundle whose executables print their name, the results folder and their arguments.
fn bundle(names: &[&str]) -> tempfile::TempDir {
    let _lock = WRITE_OR_START
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let dir = tempfile::tempdir().unwrap();
    fs::copy(format!("{SCRIPTS}/launcher"), dir.path().join("run")).unwrap();
    fs::create_dir(dir.path().join("bin")).unwrap();
    for name in names {
        executable(
            &dir.path().join("bin").join(name),
            "#!/bin/sh\necho \"$(basename \"$0\") in $CRITERION_HOME:\" \"$@\"\nexit ${STATUS:-0}\n",
        );
    }
    dir
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let _lock = WRITE_OR_START
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn launch(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(dir.join("run"));
    command
        .args(arguments)
        .current_dir("/")
        .env_remove("CRITERION_HOME");
    command
}

#[test]
fn the_launcher_calls_each_executable_as_cargo_would() {
    let dir = bundle(&["bench", "crossover", "test-gpu", "test-gpu_more"]);
    let home = dir.path().canonicalize().unwrap();
    let home = format!("{}/results/criterion", home.display());
    let out = |arguments: &[&str]| {
        let (status, out, err) = run(&mut launch(dir.path(), arguments));
        assert_eq!((status, err.as_str()), (Some(0), ""));
        out
    };
    assert_eq!(
        out(&["bench", "matmul/gpu", "a b"]),
        format!("bench in {home}: --bench matmul/gpu a b\n")
    );
    assert_eq!(
        out(&["env", "--json"]),
        format!("crossover in {home}: env --json\n")
    );
    assert_eq!(
        out(&["test"]),
        format!(
            "test-gpu in {home}: --include-ignored --test-threads=1\n\
             test-gpu_more in {home}: --include-ignored --test-threads=1\n"
        )
    );
    assert!(out(&["--help"]).starts_with("usage: "));
}

#[test]
fn a_link_to_the_launcher_starts_its_own_bundle() {
    let dir = bundle(&["bench"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(home.join("run"), elsewhere.path().join("first")).unwrap();
    std::os::unix::fs::symlink("first", elsewhere.path().join("run")).unwrap();
    let (status, out, err) = run(&mut launch(elsewhere.path(), &["bench"]));
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert_eq!(
        out,
        format!("bench in {}/results/criterion: --bench\n", home.display())
    );
}

#[test]
fn the_launcher_keeps_the_users_folder_and_the_exit_code() {
    let dir = bundle(&["bench", "test-gpu"]);
    let (_, out, _) = run(launch(dir.path(), &["bench"]).env("CRITERION_HOME", "/elsewhere"));
    assert_eq!(out, "bench in /elsewhere: --bench\n");
    for what in ["bench", "test"] {
        let (status, _, _) = run(launch(dir.path(), &[what]).env("STATUS", "3"));
        assert_eq!(status, Some(3), "{what}");
    }
}

#[test]
fn the_launcher_explains_itself_when_it_cannot_help() {
    let dir = bundle(&["bench"]);
    let (status, out, err) = run(&mut launch(dir.path(), &[]));
    assert_eq!((status, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("usage: "), "{err}");
    let (status, _, err) = run(&mut launch(dir.path(), &["test"]));
    assert_eq!(status, Some(2));
    assert!(err.contains("without GPU tests"), "{err}");
}

#[test]
fn bundling_refuses_what_it_would_spoil() {
    let script = format!("{SCRIPTS}/bundle");
    let (status, _, err) = run(&mut Command::new(&script));
    assert_eq!(status, Some(2));
    assert!(err.starts_with("usage: "), "{err}");

    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.txt"), "precious").unwrap();
    let (status, _, err) = run(Command::new(&script).arg(foreign.path()));
    assert_eq!(status, Some(2));
    assert!(err.contains("is not a bundle"), "{err}");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);

    // A path with a shell and nothing else.
    let (_, bash, _) = run(Command::new("sh").args(["-c", "command -v bash"]));
    let path = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(bash.trim(), path.path().join("bash")).unwrap();
    let new = foreign.path().join("new");
    let (status, _, err) = run(Command::new(&script).arg(&new).env("PATH", path.path()));
    assert_eq!(status, Some(2));
    assert!(err.contains("cargo was not found"), "{err}");
    assert!(!new.exists());
}
