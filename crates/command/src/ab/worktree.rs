//! Copies of the user's repository, one for each side, which are removed when dropped.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use regex::Regex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::ab::NAMES;
use crate::ab::repository::{Repository, git_around, link_surroundings};
use crossover_system::files::os_string;

/// Begins the names of our folders.
const PREFIX: &str = "crossover-ab-";
/// The target folder of the side that is built or runs.
const BUILD: &str = "build";

/// The paths at which executables of a bundle were built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BuildPlace {
    /// The temporary folder.
    pub(super) path: PathBuf,
    /// See [`Copies::tree`].
    pub(super) tree: PathBuf,
}

impl BuildPlace {
    /// A place in which nothing was built yet.
    pub(super) fn at(path: PathBuf) -> Self {
        let tree = path.join("tree");
        Self { path, tree }
    }

    /// The folder of executables where they run.
    pub(super) fn target(&self) -> PathBuf {
        self.path.join("target").join(BUILD)
    }

    /// Makes its temporary folder, in place of that of a killed comparison, and locks a file beside it. Without the
    /// lock, a folder that is left must be removed by hand.
    fn make(&self) -> anyhow::Result<(Option<File>, TempDir)> {
        let parent = self.path.parent().context("a place is in a folder")?;
        fs::create_dir_all(parent)?;
        let lock = File::create(self.path.with_extension("lock")).ok();
        let lock = lock.filter(|lock| lock.try_lock().is_ok());
        // The script of a bundle makes the folder too, without a lock.
        let mark = self.path.join("locked");
        if lock.is_some() && mark.exists() {
            let path = self.path.display();
            fs::remove_dir_all(&self.path)
                .with_context(|| format!("{path}: remove this folder of a killed comparison"))?;
        }
        let name = self.path.file_name().unwrap_or_default();
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(name).rand_bytes(0).tempdir_in(parent);
        let dir = made.with_context(|| {
            let path = self.path.display();
            format!("{path}: a running `crossover bundle` or `crossover ab` uses this folder; remove it if none runs")
        })?;
        if lock.is_some() {
            File::create(mark)?;
        }
        Ok((lock, dir))
    }
}

/// A temporary folder with the copies of both sides, and the target folders of their builds.
///
/// Both sides are built, and short processes run, at one path, where one copy and its target folder lie at a
/// time: the paths go into the names of symbols and into what build scripts write, and so into the order of
/// functions.
pub(super) struct Copies {
    /// Without symbolic links, as a process sees its own path.
    path: PathBuf,
    /// Where a side is built and runs, among links to what surrounds the repository.
    tree: PathBuf,
    /// Which copy lies at the path where both are built and run.
    active: Cell<Option<usize>>,
    /// The folder for the target folders of both sides; `None` where nothing is built.
    target: Option<PathBuf>,
    _dir: TempDir,
    /// The lock of the place of bundles, held while that is in use.
    _place_lock: Option<File>,
    /// Keeps other comparisons out of `target`, where processes still read executables and the files
    /// beside them. Unlocked last.
    _lock: Option<File>,
}

impl Copies {
    /// Locks target folders for this comparison, removes the copies of a killed one that had locked
    /// them, and makes an empty folder, for bundles at their `place`. Builds nothing without a repository.
    pub(super) fn new(
        repository: Option<&Repository>,
        place: Option<&BuildPlace>,
    ) -> anyhow::Result<Self> {
        let (target, mut lock) = match repository {
            Some(repository) => {
                let target = std::env::var_os("CARGO_TARGET_DIR");
                let target = target.map_or_else(|| repository.top.join("target"), PathBuf::from);
                let target = std::path::absolute(&target).unwrap_or(target);
                let (target, lock) = target_folder(&target)?;
                put_aside(&target)?;
                (Some(target), lock)
            }
            None => (place.map(|place| place.path.join("target")), None),
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
        let (place_lock, dir) = match place {
            Some(place) => place.make()?,
            None => (None, tempfile::Builder::new().prefix(PREFIX).tempdir()?),
        };
        let path = dir.path().canonicalize()?;
        if let Some(lock) = &mut lock {
            lock.rewind()?;
            lock.set_len(0)?;
            lock.write_all(path.as_os_str().as_encoded_bytes())?;
        }
        let tree = match repository {
            Some(repository) => link_surroundings(&path, &repository.top)?,
            None => place.map_or_else(|| path.join("tree"), |place| place.tree.clone()),
        };
        Ok(Self {
            path,
            tree,
            active: Cell::new(None),
            target,
            _dir: dir,
            _place_lock: place_lock,
            _lock: lock,
        })
    }

    /// The target folder in which a side is built and runs. It is kept: the next build of the side finds its
    /// dependencies there.
    pub(super) fn target(&self) -> PathBuf {
        self.target
            .iter()
            .map(|target| target.join(BUILD))
            .collect()
    }

    /// Files that differ between the copies of both sides, except for texts that are not read by programs.
    ///
    /// # Errors
    /// That git cannot compare them.
    pub(super) fn different_files(&self) -> anyhow::Result<BTreeSet<String>> {
        self.bring(None)?;
        let mut diff = git_around(&self.path);
        // With `--name-only` a deleted file is `/dev/null`.
        let options = "diff --no-index --no-renames --name-status -z a b";
        let listed = diff.args(options.split(' ')).output();
        let listed = listed.context("git could not be started")?;
        // Texts, git's own files, and the lock file, with which the executables were built.
        let unread = r"/(\.git(/.*)?|[^/]*\.md|Cargo\.lock|(LICEN[SC]E|COPYING)[^/]*)$";
        let unread = Regex::new(unread)?;
        let names = String::from_utf8_lossy(&listed.stdout);
        // A status comes before each name.
        let names = names.split('\0').skip(1).step_by(2);
        let read = names.filter(|name| !unread.is_match(name));
        let inner = read.filter_map(|name| Some(name.split_once('/')?.1.to_owned()));
        Ok(inner.collect())
    }

    /// The paths that a bundle needs.
    pub(super) fn place(&self) -> BuildPlace {
        BuildPlace {
            path: self.path.clone(),
            tree: self.tree(),
        }
    }

    /// Where a side is built and runs.
    pub(super) fn tree(&self) -> PathBuf {
        self.tree.clone()
    }

    /// A file that is removed with the copies.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The paths at which a side is built and runs, each with the path to which it is moved while the other
    /// side is there.
    pub(super) fn places(&self, side: usize) -> Vec<[PathBuf; 2]> {
        let aside = NAMES[side].to_string();
        let target = (self.target.iter()).map(|target| [self.target(), target.join(&aside)]);
        target
            .chain([[self.tree(), self.path.join(&aside)]])
            .collect()
    }

    /// Moves the copy and the target folder of this side, or of none, to [`tree`](Self::tree) and
    /// [`target`](Self::target). A side without a copy gets an empty folder.
    ///
    /// # Errors
    /// The system's error.
    pub(super) fn bring(&self, side: Option<usize>) -> io::Result<()> {
        if self.active.get() == side {
            return Ok(());
        }
        if let Some(other) = self.active.take() {
            for [here, aside] in self.places(other) {
                rename_if_there(&here, &aside)?;
            }
        }
        if let Some(side) = side {
            for [here, aside] in self.places(side) {
                rename_if_there(&aside, &here)?;
            }
            fs::create_dir_all(self.tree())?;
        }
        self.active.set(side);
        Ok(())
    }
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Moves the target folder of the side that came last in an earlier comparison to its own name, which is the
/// one that no folder has.
fn put_aside(target: &Path) -> io::Result<()> {
    let build = target.join(BUILD);
    let mut names = NAMES.iter().map(|name| target.join(name.to_string()));
    match names.find(|aside| !aside.exists()) {
        Some(aside) => rename_if_there(&build, &aside),
        None if build.exists() => fs::remove_dir_all(build),
        None => Ok(()),
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
