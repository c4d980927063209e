//! Calls of git.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crossover_protocol::local_variables;

/// git on the repository around `dir`. It runs no hook, takes no lock that it can do without, and
/// fetches nothing that a partial clone lacks.
pub(super) fn around(dir: &Path) -> Command {
    let mut command = Command::new("git");
    local_variables::remove(&mut command)
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(["-c", "core.fsmonitor=false"])
        .arg("-C")
        .arg(dir)
        // What it says is read.
        .env("LC_ALL", "C")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null());
    command
}

/// git on our repository in `dir`, and on no other one above it. What a partial clone lacks is
/// fetched to it.
pub(super) fn within(dir: &Path) -> Command {
    let mut command = around(dir);
    command
        .arg("--git-dir")
        .arg(dir.join(".git"))
        .arg("--work-tree")
        .arg(dir)
        .env_remove("GIT_NO_LAZY_FETCH");
    command
}

/// What it prints.
///
/// # Errors
/// What it says of its failure, as one sentence.
pub(super) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let out = command.output().context("git could not be started")?;
    if !out.status.success() {
        let said = String::from_utf8_lossy(&out.stderr);
        let said: Vec<&str> = said.split_whitespace().collect();
        bail!("git: {}", said.join(" "));
    }
    Ok(out.stdout)
}

/// The line that it prints.
///
/// # Errors
/// As [`output`].
pub(super) fn line(command: &mut Command) -> anyhow::Result<String> {
    Ok(String::from_utf8(output(command)?)
        .context("git printed no UTF-8")?
        .trim_end_matches(['\n', '\r'])
        .to_owned())
}
