//! Work trees of our own, gone again when dropped. Each belongs to a repository of its own, which
//! reads the objects of the user's: whatever runs in it, nothing is written to the user's.
//!
//! Both sides are built, and run, at one path, where one of them lies at a time: the path goes into
//! the names of symbols, and with them into the order of functions, and it is what a benchmark finds
//! its files by.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use tempfile::TempDir;

use crate::ab::{NAMES, child};
use crossover_protocol::local_variables;
use crossover_results::store::whole_file::try_to_write;
use crossover_system::files::{os_string, symlink};

/// Begins the names of our folders.
const PREFIX: &str = "crossover-ab-";

/// The repository around the current folder, or one of its submodules.
#[derive(Clone)]
pub(super) struct Repository {
    top: PathBuf,
    /// Where the current folder lies in it.
    prefix: PathBuf,
    /// What all its worktrees share: objects, refs, settings.
    common: PathBuf,
}

/// A temporary folder with the work trees of both sides.
pub(super) struct Place {
    _dir: TempDir,
    /// Without links, as a process sees where it is.
    path: PathBuf,
    /// The folder, locked for as long as it is in use; `None` where folders cannot be locked.
    _lock: Option<File>,
    /// Whose work tree lies where both are built and run.
    here: Cell<Option<usize>>,
    targets: OnceCell<Targets>,
}

/// Target folders that no other comparison writes to while this one builds and runs what is in them:
/// executables, and the files that these find beside themselves or by `OUT_DIR` or
/// `CARGO_BIN_EXE_<name>`.
struct Targets {
    path: PathBuf,
    /// Locked for as long as they are in use; `None` where files cannot be locked.
    _lock: Option<File>,
}

impl Targets {
    /// Those in `parent`, or if another comparison uses them, in a folder beside them that none uses.
    fn new(parent: &Path) -> io::Result<Self> {
        for number in 1.. {
            let path = match number {
                1 => parent.to_owned(),
                _ => parent.join(number.to_string()),
            };
            fs::create_dir_all(&path)?;
            let file = File::options()
                .create(true)
                .append(true)
                .open(path.join("lock"))?;
            let lock = match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(why)) => {
                    eprintln!(
                        "note: {} cannot be locked ({why}): start no other `crossover ab` here \
                         before this one ends",
                        path.display()
                    );
                    None
                }
                Ok(()) => Some(file),
            };
            return Ok(Self { path, _lock: lock });
        }
        unreachable!("there are fewer comparisons than numbers")
    }
}

impl Repository {
    pub(super) fn here() -> anyhow::Result<Self> {
        Self::around(Path::new("."))
    }

    fn around(dir: &Path) -> anyhow::Result<Self> {
        let path = |what: &str| {
            git_line(git_around(dir).args(["rev-parse", "--path-format=absolute", what]))
        };
        Ok(Self {
            top: path("--show-toplevel")?.into(),
            prefix: path("--show-prefix")?.into(),
            common: path("--git-common-dir")?.into(),
        })
    }

    /// The commit that a revision names.
    pub(super) fn commit(&self, revision: &str) -> anyhow::Result<String> {
        let parse = |revision: &str| {
            let args = ["rev-parse", "--verify", "--end-of-options", revision];
            git_line(git_around(&self.top).args(args))
        };
        // Behind `:/text` the braces would belong to the text.
        parse(&format!("{}^{{commit}}", parse(revision)?))
    }

    /// Whether it lacks the history before some commits.
    pub(super) fn is_shallow(&self) -> bool {
        let args = ["rev-parse", "--is-shallow-repository"];
        git_line(git_around(&self.top).args(args)).is_ok_and(|said| said == "true")
    }

    /// The folder above the target folders of both sides. They are kept: the next build finds its
    /// dependencies there.
    pub(super) fn targets(&self) -> PathBuf {
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.top.join("target"), PathBuf::from);
        std::path::absolute(&target).unwrap_or(target).join("ab")
    }

    /// The user's current folder, and the work tree around it.
    pub(super) fn users(&self) -> [PathBuf; 2] {
        [self.top.join(&self.prefix), self.top.clone()]
    }

    /// Where the user's current folder lies in it.
    pub(super) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Fills the folder with a work tree at `commit`; without one, with what the user's holds now:
    /// committed, changed and new files, without those that git ignores.
    pub(super) fn fill(&self, dir: &Path, commit: Option<&str>) -> anyhow::Result<()> {
        let filled = match commit {
            Some(commit) => self.check_out(commit, dir),
            None => self.copy_to(dir),
        };
        filled.map_err(|error| match try_to_write(dir) {
            Err(why) => error.context(format!(
                "{}: {why}; name a folder with more room in TMPDIR",
                std::env::temp_dir().display()
            )),
            Ok(()) => error,
        })
    }

    fn check_out(&self, commit: &str, dir: &Path) -> anyhow::Result<()> {
        self.borrow(commit, dir)?;
        reset(dir, "--hard")?;
        for (path, entry) in listed(&mut git_within(dir), &[])? {
            let Some(commit) = entry.submodule else {
                continue;
            };
            if let Some(submodule) = self.submodule(&path)? {
                submodule.commit(&commit).with_context(|| {
                    let path = path.display();
                    format!("the submodule {path} has no commit {commit}: `git -C {path} fetch`")
                })?;
                submodule.check_out(&commit, &dir.join(&path))?;
            }
        }
        Ok(())
    }

    fn copy_to(&self, dir: &Path) -> anyhow::Result<()> {
        self.borrow(&self.commit("HEAD")?, dir)?;
        let mut not_here = Vec::new();
        let new = ["--others", "--exclude-standard"];
        let files = listed(&mut git_around(&self.top), &new)?;
        for (path, entry) in files {
            let (from, to) = (self.top.join(&path), dir.join(&path));
            let Some(kind) = self.kind(&path) else {
                // Deleted in the work tree, or left out of it by a sparse checkout.
                if entry.sparse {
                    not_here.extend_from_slice(path.as_os_str().as_encoded_bytes());
                    not_here.push(0);
                }
                continue;
            };
            child::check()?;
            if kind.is_file() || kind.is_symlink() {
                copy(&from, &to, kind)
                    .with_context(|| format!("{} could not be copied", path.display()))?;
            } else if !kind.is_dir() {
                // To read a pipe would wait for a writer.
                eprintln!(
                    "note: {} is neither a file nor a link, and is not copied",
                    path.display()
                );
            } else if entry.submodule.is_some() {
                fs::create_dir_all(&to)?;
                if let Some(submodule) = self.submodule(&path)? {
                    submodule.copy_to(&to)?;
                }
            }
        }
        // The index of HEAD, so that git and a build script see what is changed.
        reset(dir, "--mixed")?;
        if !not_here.is_empty() {
            let list = dir.join(".git").join("left-out-by-a-sparse-checkout");
            fs::write(&list, not_here)?;
            let mut checkout = git_within(dir);
            checkout.args(["checkout-index", "-z", "--stdin"]);
            git_output(checkout.stdin(File::open(list)?))?;
        }
        Ok(())
    }

    /// What lies at `path` in the work tree. Behind a link that took the place of a folder lie other
    /// files, perhaps outside the repository, and the copy of the link would lead to them too.
    fn kind(&self, path: &Path) -> Option<fs::FileType> {
        let mut folders = path.ancestors().skip(1);
        // The last one is empty.
        if folders.any(|folder| folder != "" && self.top.join(folder).is_symlink()) {
            return None;
        }
        Some(fs::symlink_metadata(self.top.join(path)).ok()?.file_type())
    }

    /// Makes `dir` a repository at `commit`, without files, that has the refs and the settings of
    /// this one and reads its objects. `git worktree add` would write to this one, and leave the
    /// entry there after a kill.
    fn borrow(&self, commit: &str, dir: &Path) -> anyhow::Result<()> {
        let format = ["rev-parse", "--show-object-format"];
        let format = git_line(git_around(&self.top).args(format))?;
        let mut init = git_around(Path::new("."));
        init.args(["init", "--quiet", "--template="])
            .arg(format!("--object-format={format}"))
            .arg(dir)
            // The form of `packed-refs`.
            .env("GIT_DEFAULT_REF_FORMAT", "files");
        git_output(&mut init)?;
        let own = dir.join(".git");
        let refs = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let refs = git_output(git_around(&self.top).args(refs))?;
        fs::write(own.join("packed-refs"), refs)?;
        fs::write(own.join("HEAD"), format!("{commit}\n"))?;
        fs::create_dir_all(own.join("info"))?;
        for name in ["shallow", "info/attributes", "info/exclude"] {
            match fs::copy(self.common.join(name), own.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        let objects = quoted(&self.common.join("objects"));
        fs::write(own.join("objects/info/alternates"), objects)?;
        // Its settings, such as filters, without those that name its own files or leave some out.
        let mut config = fs::read(own.join("config"))?;
        config.extend(b"[include]\n\tpath = ");
        config.extend(quoted(&self.common.join("config")));
        // Relative to its own folder, since it moves.
        config.extend(b"[core]\n\tworktree = ..\n\tbare = false\n\tsparseCheckout = false\n");
        config.extend(b"\thooksPath = /dev/null\n\tfsmonitor = false\n");
        fs::write(own.join("config"), config)?;
        Ok(())
    }

    /// The submodule at `path`, if it is checked out.
    fn submodule(&self, path: &Path) -> anyhow::Result<Option<Self>> {
        let dir = self.top.join(path);
        if dir.is_dir() {
            let found = Self::around(&dir)?;
            // Where there is none, git finds the repository above.
            if found.prefix.as_os_str().is_empty() {
                return Ok(Some(found));
            }
        }
        let path = path.display();
        eprintln!(
            "note: the submodule {path} is not checked out and stays empty: \
             `git submodule update --init {path}`"
        );
        Ok(None)
    }
}

/// Sets the index, and with `--hard` the files, to those of HEAD.
fn reset(dir: &Path, how: &str) -> anyhow::Result<()> {
    let status = child::run(git_within(dir).args(["reset", "--quiet", how]))?;
    if !status.success() {
        bail!("git could not write the files of a commit ({status}); its message is above");
    }
    Ok(())
}

/// What git lists of a file.
struct Entry {
    /// Left out of the work tree by a sparse checkout.
    sparse: bool,
    /// The commit of a submodule.
    submodule: Option<String>,
}

/// The files of the index, and what `options` add to them; a file with conflicts only once.
fn listed(git: &mut Command, options: &[&str]) -> anyhow::Result<BTreeMap<PathBuf, Entry>> {
    let list = git_output(git.args(["ls-files", "-z", "-t", "--stage"]).args(options))?;
    list.split(|byte| *byte == 0)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            // `? path` for a new file, else `H mode object stage<tab>path`.
            let (tag, mut path) = entry.split_at_checked(2).context("git listed no file")?;
            let mut submodule = None;
            if tag != b"? " {
                let tab = path.iter().position(|byte| *byte == b'\t');
                let (staged, after) = path.split_at(tab.context("git listed no file")?);
                path = &after[1..];
                let commit = str::from_utf8(staged)?.strip_prefix("160000 ");
                submodule = commit.and_then(|commit| Some(commit.split_once(' ')?.0.to_owned()));
            }
            let sparse = tag == b"S ";
            let path = PathBuf::from(os_string(path));
            Ok((path, Entry { sparse, submodule }))
        })
        .collect()
}

/// A path as the value of a setting, and as git quotes one in a list.
fn quoted(path: &Path) -> Vec<u8> {
    let mut value = vec![b'"'];
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\n' => value.extend(b"\\n"),
            b'"' | b'\\' => value.extend([b'\\', *byte]),
            byte => value.push(*byte),
        }
    }
    value.extend(b"\"\n");
    value
}

fn copy(from: &Path, to: &Path, kind: fs::FileType) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if kind.is_symlink() {
        return symlink(&fs::read_link(from)?, to);
    }
    fs::copy(from, to).map(drop)
}

impl Place {
    pub(super) fn new() -> anyhow::Result<Self> {
        loop {
            // Outside the repository: cargo would take a manifest above for the workspace.
            let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
            let lock = File::open(dir.path()).and_then(|folder| {
                folder.lock()?;
                Ok(folder)
            });
            // Before it was locked, another process may have taken it for abandoned.
            if dir.path().exists() {
                return Ok(Self {
                    path: dir.path().canonicalize()?,
                    _dir: dir,
                    _lock: lock.ok(),
                    here: Cell::new(None),
                    targets: OnceCell::new(),
                });
            }
        }
    }

    /// The target folder of a side, which is ours as long as this place exists.
    pub(super) fn target(&self, repository: &Repository, side: usize) -> anyhow::Result<PathBuf> {
        if self.targets.get().is_none() {
            let parent = repository.targets();
            let targets = Targets::new(&parent).with_context(|| {
                format!(
                    "{}: set CARGO_TARGET_DIR to a folder that can be written",
                    parent.display()
                )
            })?;
            let _ = self.targets.set(targets);
        }
        let targets = self.targets.get().context("the target folders were set")?;
        Ok(targets.path.join(NAMES[side].to_string()))
    }

    /// Files that differ between the work trees of both sides, without texts for people.
    ///
    /// # Errors
    /// That git cannot compare them.
    pub(super) fn different_files(&self) -> anyhow::Result<Vec<String>> {
        self.bring(None)?;
        let mut diff = git_around(&self.path);
        diff.args([
            "diff",
            "--no-index",
            "--no-renames",
            "--name-only",
            "-z",
            "a",
            "b",
        ]);
        let listed = diff.output().context("git could not be started")?;
        let names = String::from_utf8_lossy(&listed.stdout).into_owned();
        let inner = names
            .split('\0')
            .filter_map(|name| Some(name.split_once('/')?.1));
        let is_read = |name: &&str| {
            let file = name.rsplit('/').next().unwrap_or(name);
            let is_text = ["LICENSE", "LICENCE", "COPYING"]
                .iter()
                .any(|text| file.starts_with(text));
            let is_gits = name.split('/').any(|part| part == ".git");
            // The executables were built with what a lock file says.
            !(is_gits || file.ends_with(".md") || is_text || file == "Cargo.lock")
        };
        let mut files: Vec<String> = inner.filter(is_read).map(str::to_owned).collect();
        files.dedup();
        Ok(files)
    }

    /// Where a side is built and runs.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join("tree")
    }

    /// Where the work tree of a side lies while the other one's is there.
    pub(super) fn aside(&self, side: usize) -> PathBuf {
        self.path.join(NAMES[side].to_string())
    }

    /// Has the work tree of this side lie at [`tree`](Self::tree), or none. A side that has none yet
    /// gets an empty folder.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn bring(&self, side: Option<usize>) -> io::Result<()> {
        if self.here.get() == side {
            return Ok(());
        }
        if let Some(other) = self.here.take() {
            fs::rename(self.tree(), self.aside(other))?;
        }
        if let Some(side) = side {
            match fs::rename(self.aside(side), self.tree()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir(self.tree())?;
                }
                other => other?,
            }
        }
        self.here.set(side);
        Ok(())
    }
}

/// Removes the work trees of processes that were killed before they could. Where a folder cannot
/// be locked, nothing is removed: it may be in use.
pub(super) fn remove_abandoned() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        if let Ok(folder) = File::open(entry.path())
            && folder.try_lock().is_ok()
        {
            // One of another user stays, and does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// git on the repository around `dir`. It runs no hook, takes no lock that it can do without, and
/// fetches nothing that a partial clone lacks.
fn git_around(dir: &Path) -> Command {
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
fn git_within(dir: &Path) -> Command {
    let mut command = git_around(dir);
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
fn git_output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
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
/// As [`git_output`].
fn git_line(command: &mut Command) -> anyhow::Result<String> {
    Ok(String::from_utf8(git_output(command)?)
        .context("git printed no UTF-8")?
        .trim_end_matches(['\n', '\r'])
        .to_owned())
}
