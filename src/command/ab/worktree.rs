//! Worktrees of our own, gone again when dropped.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::command::ab::child;

/// Begins the names of our worktrees' folders; the process that made it follows.
const PREFIX: &str = "crossover-ab-";

/// The repository around the current folder.
#[derive(Clone)]
pub(super) struct Repository {
    top: PathBuf,
    /// Where the current folder lies in it.
    prefix: PathBuf,
}

/// A worktree in a temporary folder.
pub(super) struct Worktree {
    repository: Repository,
    dir: TempDir,
}

fn git(dir: &Path, args: &[&str]) -> anyhow::Result<Vec<u8>> {
    let out = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .context("git could not be started")?;
    if !out.status.success() {
        bail!(
            "git {}: {}",
            args.join(" "),
            String::from_utf8_lossy(&out.stderr).trim()
        );
    }
    Ok(out.stdout)
}

fn git_line(dir: &Path, args: &[&str]) -> anyhow::Result<String> {
    let out = git(dir, args)?;
    Ok(String::from_utf8(out)
        .context("git printed no UTF-8")?
        .trim_end_matches(['\n', '\r'])
        .to_owned())
}

impl Repository {
    pub(super) fn here() -> anyhow::Result<Self> {
        let here = Path::new(".");
        Ok(Self {
            top: git_line(here, &["rev-parse", "--show-toplevel"])?.into(),
            prefix: git_line(here, &["rev-parse", "--show-prefix"])?.into(),
        })
    }

    /// The commit that a revision names.
    pub(super) fn commit(&self, revision: &str) -> anyhow::Result<String> {
        let revision = format!("{revision}^{{commit}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &revision];
        git_line(&self.top, &args)
    }

    /// Target folder of one side. It is kept: the next build finds its dependencies there.
    pub(super) fn target(&self, side: &str) -> PathBuf {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.top.join("target"), PathBuf::from);
        let target = std::path::absolute(&target).unwrap_or(target);
        target.join("ab").join(side)
    }

    /// A worktree at `commit`.
    pub(super) fn checkout(&self, commit: &str) -> anyhow::Result<Worktree> {
        self.add(&[commit])
    }

    /// A worktree that holds what the user's work tree holds now: committed, changed and new
    /// files, without those that git ignores.
    pub(super) fn snapshot(&self) -> anyhow::Result<Worktree> {
        let tree = self.add(&["--no-checkout", "HEAD"])?;
        let files = git(
            &self.top,
            &[
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
        )?;
        let files: BTreeSet<&[u8]> = files.split(|b| *b == 0).filter(|f| !f.is_empty()).collect();
        for file in files {
            let file = path_of(file)?;
            copy(&self.top.join(&file), &tree.dir.path().join(&file))
                .with_context(|| format!("{} could not be copied", file.display()))?;
        }
        // The index of HEAD, so that git and a build script see what is changed.
        git(tree.dir.path(), &["reset", "--quiet"])?;
        Ok(tree)
    }

    /// Removes the worktrees of processes that were killed before they could.
    pub(super) fn remove_abandoned(&self) -> anyhow::Result<()> {
        let list = git(&self.top, &["worktree", "list", "--porcelain", "-z"])?;
        for line in list.split(|b| *b == 0) {
            let Some(path) = line.strip_prefix(b"worktree ") else {
                continue;
            };
            let path = path_of(path)?;
            if owner(&path).is_some_and(|owner| !is_alive(owner)) {
                self.remove(&path);
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) {
        let removed = Command::new("git")
            .arg("-C")
            .arg(&self.top)
            .args(["worktree", "remove", "--force"])
            .arg(path)
            .stdin(Stdio::null())
            .output();
        if !removed.is_ok_and(|out| out.status.success()) {
            // Half added: without the folder git forgets it. A failure leaves a folder in
            // the system's temporary folder and no harm.
            let _ = fs::remove_dir_all(path);
            let _ = git(&self.top, &["worktree", "prune"]);
        }
    }

    fn add(&self, args: &[&str]) -> anyhow::Result<Worktree> {
        // Outside the repository: cargo would take a manifest above for the workspace.
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let dir = tempfile::Builder::new().prefix(&prefix).tempdir()?;
        let tree = Worktree {
            repository: self.clone(),
            dir,
        };
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&self.top)
            .args(["worktree", "add", "--quiet", "--detach"]);
        // Options come before the path, the commit after it.
        let (options, commit) = args.split_at(args.len() - 1);
        command.args(options).arg(tree.dir.path()).args(commit);
        let status = child::run(&mut command)?;
        if !status.success() {
            bail!("git worktree add: {status}");
        }
        Ok(tree)
    }
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> anyhow::Result<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Ok(OsStr::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> anyhow::Result<PathBuf> {
    Ok(OsStr::new(std::str::from_utf8(bytes)?).into())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let Ok(kind) = fs::symlink_metadata(from).map(|m| m.file_type()) else {
        // Deleted in the work tree.
        return Ok(());
    };
    if kind.is_dir() {
        // A submodule: not part of this repository's files.
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    #[cfg(unix)]
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    fs::copy(from, to).map(drop)
}

impl Worktree {
    /// Where the user's current folder lies in it.
    pub(super) fn package(&self) -> PathBuf {
        self.dir.path().join(&self.repository.prefix)
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        self.repository.remove(self.dir.path());
    }
}

/// The process that made a worktree, by the name of its folder.
fn owner(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    name.split('-').next()?.parse().ok()
}

#[cfg(unix)]
fn is_alive(process: i32) -> bool {
    use nix::errno::Errno;
    use nix::sys::signal::kill;
    use nix::unistd::Pid;

    // Signal 0 only asks; a process of another user may not be signalled, and is there.
    kill(Pid::from_raw(process), None) != Err(Errno::ESRCH)
}

/// Nothing is removed that may be in use.
#[cfg(not(unix))]
fn is_alive(_process: i32) -> bool {
    true
}
