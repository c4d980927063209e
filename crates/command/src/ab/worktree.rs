//! Copies of the user's repository, one for each side, which are removed when dropped. Each is a
//! repository that borrows the objects of the user's, so nothing that runs in it writes there.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use regex::Regex;
use tempfile::TempDir;

use crate::ab::{NAMES, child, surroundings};
use crossover_results::store::whole_file::try_to_write;
use crossover_system::files::os_string;

/// Begins the names of our folders.
const PREFIX: &str = "crossover-ab-";

/// The repository around the current folder, or one of its submodules.
#[derive(Clone, Default)]
pub(super) struct Repository {
    /// The user's work tree.
    pub(super) top: PathBuf,
    /// The user's current folder, relative to `top`.
    pub(super) prefix: PathBuf,
    /// The index and HEAD of this worktree.
    git_dir: PathBuf,
    /// The parts that all its worktrees share: objects, refs, settings.
    common: PathBuf,
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
            git_dir: path("--git-dir")?.into(),
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

    /// Fills `dir` with the files of `commit`; without one, with the user's committed, changed and new
    /// files, except for those that git ignores.
    pub(super) fn copy_to(&self, dir: &Path, commit: Option<&str>) -> anyhow::Result<()> {
        self.write(dir, commit)
            .map_err(|error| match try_to_write(dir) {
                Err(why) => error.context(format!(
                    "{}: {why}; name a folder with more room in TMPDIR",
                    std::env::temp_dir().display()
                )),
                Ok(()) => error,
            })
    }

    fn write(&self, dir: &Path, commit: Option<&str>) -> anyhow::Result<()> {
        let submodules = match commit {
            Some(commit) => {
                self.borrow(commit, dir)?;
                write_files(git_within(dir, dir).args(["reset", "--quiet", "--hard"]))?;
                submodules(&mut git_within(dir, dir))?
            }
            None => {
                self.borrow(&self.commit("HEAD")?, dir)?;
                self.copy_changes(dir)?;
                submodules(&mut git_around(&self.top))?
            }
        };
        for (path, its_commit) in submodules {
            let Some(submodule) = self.submodule(&path)? else {
                continue;
            };
            let its_commit = commit.map(|_| its_commit);
            if let Some(its_commit) = &its_commit {
                submodule.commit(its_commit).with_context(|| {
                    let path = path.display();
                    format!(
                        "the submodule {path} has no commit {its_commit}: `git -C {path} fetch`"
                    )
                })?;
            }
            submodule.write(&dir.join(path), its_commit.as_deref())?;
        }
        match commit {
            Some(_) => Ok(()),
            // The index of HEAD, so that git and a build script see the changes.
            None => write_files(git_within(dir, dir).args(["reset", "--quiet", "--mixed"])),
        }
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

    /// Writes the files of the user's work tree to `dir`, which borrows from this repository.
    fn copy_changes(&self, dir: &Path) -> anyhow::Result<()> {
        // The user's index tells which files are unchanged, and which a sparse checkout leaves out.
        for entry in fs::read_dir(&self.git_dir)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == "index" || name.as_encoded_bytes().starts_with(b"sharedindex.") {
                let copy = dir.join(".git").join(name);
                fs::copy(entry.path(), &copy)?;
                // git reads the files that changed in the second in which the index was written.
                let written = entry.metadata()?.modified()?;
                File::options()
                    .write(true)
                    .open(copy)?
                    .set_modified(written)?;
            }
        }
        // Files that the user has git take for unchanged may differ; their letters are small.
        let tagged = git_output(git_around(&self.top).args(["ls-files", "-v", "-z"]))?;
        let unchanged = (tagged.split_inclusive(|byte| *byte == 0))
            .filter(|entry| entry[0].is_ascii_lowercase())
            .filter_map(|entry| entry.get(2..));
        let paths = dir.join(".git").join("paths");
        fs::write(&paths, unchanged.collect::<Vec<_>>().concat())?;
        let mut mark = git_within(dir, &self.top);
        mark.args(["update-index", "--no-assume-unchanged", "-z", "--stdin"]);
        git_output(mark.stdin(File::open(paths)?))?;
        let mut add = git_within(dir, &self.top);
        // Line ends that git would refuse to commit are copied too.
        add.args(["-c", "core.compression=0", "-c", "core.safecrlf=false"])
            .args(["add", "--all"])
            .args(["--ignore-errors", "--no-warn-embedded-repo"]);
        let status = child::run(&mut add)?;
        match status.code() {
            Some(0) => {}
            // A pipe in place of a file, or a file that cannot be read.
            Some(1) => eprintln!("note: what git could not read above is as in HEAD"),
            _ => bail!("git could not read the work tree ({status}); its message is above"),
        }
        let all = ["checkout-index", "--all", "--ignore-skip-worktree-bits"];
        write_files(git_within(dir, dir).args(all))
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

/// The submodules in the index, and the commit of each.
fn submodules(git: &mut Command) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let entries = git_output(git.args(["ls-files", "-z", "--stage"]))?;
    let submodule = |entry: &[u8]| {
        // `mode object stage<tab>path`
        let entry = entry.strip_prefix(b"160000 ")?;
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let commit = str::from_utf8(&entry[..tab]).ok()?.split(' ').next()?;
        Some((os_string(&entry[tab + 1..]).into(), commit.to_owned()))
    };
    Ok(entries
        .split(|byte| *byte == 0)
        .filter_map(submodule)
        .collect())
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

/// A temporary folder with the copies of both sides, and the target folders of their builds.
///
/// Both sides are built, and short processes run, at one path, where one copy lies at a time: the path
/// goes into the names of symbols, and so into the order of functions.
pub(super) struct Copies {
    /// Without symbolic links, as a process sees its own path.
    path: PathBuf,
    /// Where a side is built and runs, among links to what surrounds the repository.
    tree: PathBuf,
    /// Which copy lies at the path where both are built and run.
    here: Cell<Option<usize>>,
    /// Where this comparison builds.
    target: PathBuf,
    _dir: TempDir,
    /// Keeps other comparisons out of `target`, where processes still read executables and the files
    /// beside them. Unlocked last.
    _lock: Option<File>,
}

impl Copies {
    /// Locks target folders for this comparison, removes the copies of a killed one that had locked
    /// them, and makes an empty folder. Builds nothing without a repository.
    pub(super) fn new(repository: Option<&Repository>) -> anyhow::Result<Self> {
        let (target, mut lock) = match repository {
            Some(repository) => {
                let target = std::env::var_os("CARGO_TARGET_DIR");
                let target = target.map_or_else(|| repository.top.join("target"), PathBuf::from);
                target_folder(&std::path::absolute(&target).unwrap_or(target))?
            }
            None => (PathBuf::new(), None),
        };
        if let Some(lock) = &mut lock {
            let mut earlier = Vec::new();
            lock.read_to_end(&mut earlier)?;
            let earlier = PathBuf::from(os_string(&earlier));
            let name = earlier.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                // Usually it is already gone. One of another user stays, and does no harm.
                let _ = fs::remove_dir_all(&earlier);
            }
        }
        // Outside the repository: cargo would take a manifest above for the workspace.
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        let path = dir.path().canonicalize()?;
        if let Some(lock) = &mut lock {
            lock.rewind()?;
            lock.set_len(0)?;
            lock.write_all(path.as_os_str().as_encoded_bytes())?;
        }
        let tree = match repository {
            Some(repository) => surroundings::link(&path, &repository.top)?,
            None => path.join("tree"),
        };
        Ok(Self {
            path,
            tree,
            here: Cell::new(None),
            target,
            _dir: dir,
            _lock: lock,
        })
    }

    /// The target folder of a side. It is kept: the next build finds its dependencies there.
    pub(super) fn target(&self, side: usize) -> PathBuf {
        self.target.join(NAMES[side].to_string())
    }

    /// Files that differ between the copies of both sides, except for texts that are not read by programs.
    ///
    /// # Errors
    /// That git cannot compare them.
    pub(super) fn different_files(&self) -> anyhow::Result<BTreeSet<String>> {
        self.bring(None)?;
        let mut diff = git_around(&self.path);
        let options = "diff --no-index --no-renames --name-only -z a b";
        let listed = diff.args(options.split(' ')).output();
        let listed = listed.context("git could not be started")?;
        // Texts, git's own files, and the lock file, with which the executables were built.
        let unread = r"/(\.git(/.*)?|[^/]*\.md|Cargo\.lock|(LICEN[SC]E|COPYING)[^/]*)$";
        let unread = Regex::new(unread)?;
        let names = String::from_utf8_lossy(&listed.stdout);
        let read = names.split('\0').filter(|name| !unread.is_match(name));
        let inner = read.filter_map(|name| Some(name.split_once('/')?.1.to_owned()));
        Ok(inner.collect())
    }

    /// Where a side is built and runs.
    pub(super) fn tree(&self) -> PathBuf {
        self.tree.clone()
    }

    /// A file that is removed with the copies.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the copy of a side lies while the other one's is at [`tree`](Self::tree).
    pub(super) fn aside(&self, side: usize) -> PathBuf {
        self.path.join(NAMES[side].to_string())
    }

    /// Moves the copy of this side, or of none, to [`tree`](Self::tree). A side without a copy gets an
    /// empty folder.
    ///
    /// # Errors
    /// The system's error.
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

/// A folder in `target` for target folders that no other comparison uses, with its lock; without a lock
/// where files cannot be locked.
fn target_folder(target: &Path) -> anyhow::Result<(PathBuf, Option<File>)> {
    let first = target.join("ab");
    let mut path = first.clone();
    for number in 2.. {
        let opened = fs::create_dir_all(&path).and_then(|()| {
            let mut options = File::options();
            options.create(true).read(true).write(true).truncate(false);
            options.open(path.join("lock"))
        });
        let file = opened.with_context(|| {
            let path = path.display();
            format!("{path}: set CARGO_TARGET_DIR to a folder that can be written")
        })?;
        match file.try_lock() {
            Ok(()) => return Ok((path, Some(file))),
            Err(TryLockError::WouldBlock) => path = first.join(number.to_string()),
            Err(TryLockError::Error(why)) => {
                eprintln!(
                    "note: {} cannot be locked ({why}): start no other `crossover ab` here before \
                     this one ends",
                    path.display()
                );
                return Ok((path, None));
            }
        }
    }
    unreachable!("there are fewer comparisons than numbers")
}

/// git on the repository around `dir`. It runs no hook, takes no lock that it can do without, and
/// fetches nothing that a partial clone lacks.
pub(super) fn git_around(dir: &Path) -> Command {
    let mut command = Command::new("git");
    child::without_repository(&mut command)
        .args(["-c", "core.hooksPath=/dev/null"])
        .args(["-c", "core.fsmonitor=false"])
        .arg("-C")
        .arg(dir)
        // Its messages are parsed.
        .env("LC_ALL", "C")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .stdin(Stdio::null());
    command
}

/// git on our repository in `dir`, and on no other one above it, with the files of `tree`. What a
/// partial clone lacks is fetched to it.
fn git_within(dir: &Path, tree: &Path) -> Command {
    let mut command = git_around(tree);
    command
        .arg("--git-dir")
        .arg(dir.join(".git"))
        .arg("--work-tree")
        .arg(tree)
        .env_remove("GIT_NO_LAZY_FETCH");
    command
}

/// Runs git where it may take long, until it ends or the user interrupts.
fn write_files(git: &mut Command) -> anyhow::Result<()> {
    let status = child::run(git)?;
    if !status.success() {
        bail!("git could not write the files of a copy ({status}); its message is above");
    }
    Ok(())
}

/// Its output.
///
/// # Errors
/// git's message, as one sentence.
pub(super) fn git_output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One builds the same code for both sides while the processes of another read executables.
    #[test]
    fn comparisons_at_once_build_in_folders_of_their_own() {
        let target = tempfile::tempdir().unwrap();
        let folder = || target_folder(target.path()).unwrap();
        let ((first, lock), (second, _second_lock)) = (folder(), folder());
        assert_ne!(first, second);
        drop(lock);
        // A process that another test starts has the lock too, until it runs its program.
        let is_free = |_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            folder().0 == first
        };
        assert!((0..1_000).any(is_free));
    }
}
