//! The scripts that carry the suite to a machine without Rust. Building a bundle is CI's
//! part; here are the launcher, with executables that tell how they were called, and what
//! `scripts/bundle` refuses before it builds anything.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::printed::ended;
use crate::repositories::executable;

pub(crate) const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");

/// A bundle whose executables print their name, the results folder and their arguments.
fn bundle(names: &[&str]) -> TempDir {
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

/// Its launcher, which a shell reads: what another thread's process holds open for a moment cannot be
/// started ("Text file busy").
fn launch(dir: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .arg(dir.path().join("run"))
        .args(arguments)
        .current_dir("/")
        .env_remove("CRITERION_HOME");
    command
}

pub(crate) fn the_launcher_calls_each_executable_as_cargo_would() {
    let dir = bundle(&["bench", "crossover", "test-gpu", "test-gpu_more"]);
    let home = dir.path().canonicalize().unwrap();
    let home = format!("{}/results/criterion", home.display());
    for (arguments, prints) in [
        (
            &["bench", "matmul/gpu", "a b"][..],
            "bench in HOME: --bench matmul/gpu a b\n",
        ),
        (&["env", "--json"], "crossover in HOME: env --json\n"),
        (
            &["test"],
            "test-gpu in HOME: --include-ignored --test-threads=1\n\
             test-gpu_more in HOME: --include-ignored --test-threads=1\n",
        ),
    ] {
        let output = launch(&dir, arguments).output().unwrap();
        assert_eq!(ended(&output, 0, ""), prints.replace("HOME", &home));
    }
    // It keeps the user's folder and the exit code.
    let mut bench = launch(&dir, &["bench"]);
    bench.env("CRITERION_HOME", "/elsewhere").env("STATUS", "3");
    let said = ended(&bench.output().unwrap(), 3, "");
    assert_eq!(said, "bench in /elsewhere: --bench\n");
    let mut test = launch(&dir, &["test"]);
    ended(&test.env("STATUS", "3").output().unwrap(), 3, "test-gpu");
    // A link starts its own bundle.
    let other = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(dir.path().join("run"), other.path().join("first")).unwrap();
    std::os::unix::fs::symlink("first", other.path().join("run")).unwrap();
    let said = ended(&launch(&other, &["bench"]).output().unwrap(), 0, "");
    assert_eq!(said, format!("bench in {home}: --bench\n"));
}

pub(crate) fn the_launcher_explains_itself_when_it_cannot_help() {
    let dir = bundle(&["bench"]);
    for (arguments, code, says) in [
        (&["--help"][..], 0, "usage: "),
        (&[], 2, "usage: "),
        (&["test"], 2, "without GPU tests"),
    ] {
        ended(&launch(&dir, arguments).output().unwrap(), code, says);
    }
}

pub(crate) fn bundling_refuses_what_it_would_spoil() {
    let script = format!("{SCRIPTS}/bundle");
    let bundle = || Command::new(&script);
    ended(&bundle().output().unwrap(), 2, "usage: ");
    let foreign = tempfile::tempdir().unwrap();
    fs::write(foreign.path().join("thesis.txt"), "precious").unwrap();
    let output = bundle().arg(foreign.path()).output().unwrap();
    ended(&output, 2, "is not a bundle");
    assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 1);
    // A path with a shell and nothing else.
    let sh = ["-c", "command -v bash"];
    let bash = Command::new("sh").args(sh).output().unwrap();
    let path = tempfile::tempdir().unwrap();
    let linked = path.path().join("bash");
    std::os::unix::fs::symlink(ended(&bash, 0, "").trim(), linked).unwrap();
    let new = foreign.path().join("new");
    let output = bundle().arg(&new).env("PATH", path.path()).output();
    ended(&output.unwrap(), 2, "cargo was not found");
    assert!(!new.exists());
}
