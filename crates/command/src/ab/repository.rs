//! The user's repository, and copies of its files, for which git writes nothing there. A copy is a
//! repository that borrows the objects of the user's, so nothing that runs in it writes there either.
//!
//! Copies are built with what cargo and rustup find beside and above the user's work tree: settings, toolchains,
//! workspaces and packages.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crossover_results::store::whole_file::try_to_write;
use crossover_system::files::{os_string, symlink};
use crossover_words::units;

use crate::ab::child;
use crate::ab::executable::without_outer_cargo;

/// Begins a file whose data git-lfs keeps elsewhere.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

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
        git_line(git_around(&self.top).args(args)).is_ok_and(|answer| answer == "true")
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
        name_pointers(dir)?;
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
        // Files that the user has git take for unchanged may differ. A sparse checkout lacks others.
        let tagged = git_output(git_around(&self.top).args(["ls-files", "-v", "-z"]))?;
        let is_there = |path: &[u8]| self.top.join(os_string(path)).symlink_metadata().is_ok();
        type IsMarked<'a> = &'a dyn Fn(u8, &[u8]) -> bool;
        let marks: [(&str, IsMarked<'_>); 2] = [
            ("--no-assume-unchanged", &|tag, _| tag.is_ascii_lowercase()),
            ("--no-skip-worktree", &|tag, path| {
                tag.eq_ignore_ascii_case(&b'S') && is_there(path)
            }),
        ];
        let paths = dir.join(".git").join("paths");
        for (flag, is_marked) in marks {
            // `tag path`
            let entries = tagged.split(|byte| *byte == 0);
            let entries = entries.filter_map(|entry| Some((*entry.first()?, entry.get(2..)?)));
            let marked = entries.filter(|(tag, path)| is_marked(*tag, path));
            let marked = marked.flat_map(|(_, path)| [path, b"\0"]);
            fs::write(&paths, marked.collect::<Vec<_>>().concat())?;
            let mut mark = git_within(dir, &self.top);
            mark.args(["update-index", flag, "-z", "--stdin"]);
            git_output(mark.stdin(File::open(&paths)?))?;
        }
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
        let args = ["checkout-index", "--all", "--ignore-skip-worktree-bits"];
        write_files(git_within(dir, dir).args(args))
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

/// Names the files of the copy in `dir` whose content git-lfs has not fetched.
fn name_pointers(dir: &Path) -> anyhow::Result<()> {
    let mut list = git_within(dir, dir);
    let listed = git_output(list.args(["ls-files", "-z", ":(attr:filter=lfs)"]))?;
    let paths = listed.split(|byte| *byte == 0).map(os_string);
    let is_pointer = |path: &OsString| {
        let mut start = Vec::new();
        let file = File::open(dir.join(path));
        let read = file.and_then(|file| file.take(POINTER.len() as u64).read_to_end(&mut start));
        read.is_ok() && start == POINTER
    };
    let pointers: Vec<OsString> = paths.filter(is_pointer).collect();
    if let Some(first) = pointers.first() {
        eprintln!(
            "note: git-lfs has not fetched the data of {}, such as {}: `git lfs pull` fetches it",
            units::counted(pointers.len(), "file"),
            Path::new(first).display()
        );
    }
    Ok(())
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

/// git on the repository around `dir`. It runs no hook, takes no lock that it can do without, and
/// fetches nothing that a partial clone lacks.
pub(crate) fn git_around(dir: &Path) -> Command {
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
        let stderr = String::from_utf8_lossy(&out.stderr);
        let words: Vec<&str> = stderr.split_whitespace().collect();
        bail!("git: {}", words.join(" "));
    }
    Ok(out.stdout)
}

/// The line that it prints.
///
/// # Errors
/// As [`git_output`].
pub(crate) fn git_line(command: &mut Command) -> anyhow::Result<String> {
    Ok(String::from_utf8(git_output(command)?)
        .context("git printed no UTF-8")?
        .trim_end_matches(['\n', '\r'])
        .to_owned())
}

/// Files that cargo and rustup look for in the current folder and in all folders above it.
const SETTINGS: [&str; 4] = [
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain.toml",
    "rust-toolchain",
];

/// Makes folders in `path` like those above `top`, with links to what lies in each, and returns the path
/// for a copy of `top` there.
pub(super) fn link_surroundings(path: &Path, top: &Path) -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |dir: &Path| home.is_some() && dir.canonicalize().ok() == home;
    let is_above = |dir: &&Path| !top.parent().is_some_and(|parent| parent.starts_with(dir));
    for dir in path.ancestors().skip(1).filter(is_above) {
        let mut settings = SETTINGS.iter().map(|name| dir.join(name));
        if let Some(file) = settings.find(|it| it.is_file() && !it.parent().is_some_and(is_home)) {
            eprintln!(
                "note: {} lies above the temporary folder and applies to both sides, but not to \
                 `cargo bench` here: name another folder in TMPDIR",
                file.display()
            );
        }
    }
    let mut copy = path.join("root");
    let above: Vec<&Path> = top.ancestors().collect();
    for (inner, outer) in above.iter().zip(&above[1..]).rev() {
        fs::create_dir(&copy)?;
        // A folder that cannot be listed has nothing that cargo could find.
        for entry in fs::read_dir(outer).into_iter().flatten().flatten() {
            let (from, name) = (entry.path(), entry.file_name());
            // Cargo finds its own folder by itself, and settings above the copies too.
            let is_found = name == ".cargo" && (is_home(&from) || path.starts_with(outer));
            if from == *inner || name == ".git" || is_found {
                continue;
            }
            let to = copy.join(&name);
            // Cargo writes to it.
            let made = if name == "Cargo.lock" {
                fs::copy(&from, &to).map(drop)
            } else {
                symlink(&from, &to)
            };
            if let Err(why) = made {
                eprintln!(
                    "note: what cargo finds in {} does not apply: it cannot be linked to ({why})",
                    outer.display()
                );
                break;
            }
        }
        copy.push(inner.file_name().unwrap_or_default());
    }
    Ok(copy)
}

/// Copies the settings and the lock file in the user's work tree that belong to neither side, such as ignored
/// ones, to a side's work tree `tree`, where that has none of its own. New ones that git does not ignore belong
/// to a side if one is the user's work tree (`has_new`).
pub(super) fn copy_surroundings(
    repository: &Repository,
    tree: &Path,
    has_new: bool,
) -> anyhow::Result<()> {
    if !tree.join(&repository.prefix).is_dir() {
        return Ok(());
    }
    let mut list = git_around(&repository.top);
    list.env("GIT_LITERAL_PATHSPECS", "1")
        .args(["ls-files", "--others", "-z"]);
    if has_new {
        list.args(["--ignored", "--exclude-standard"]);
    }
    let folders = repository.prefix.ancestors();
    let names = || SETTINGS.iter().chain(["Cargo.lock"].iter());
    let files = folders.flat_map(|folder| names().map(|name| folder.join(name)));
    let listed = git_output(list.arg("--").args(files))?;
    for path in listed.split(|byte| *byte == 0).filter(|it| !it.is_empty()) {
        let path = os_string(path);
        let to = tree.join(&path);
        if !to.exists() {
            fs::create_dir_all(to.parent().unwrap_or(tree))?;
            fs::copy(repository.top.join(path), to)?;
        }
    }
    Ok(())
}

/// The toolchain that `rustup override set` names for the user's current folder. A toolchain file of a side
/// (`has_file`) precedes an override of a folder above the repository.
pub(super) fn overriding(repository: &Repository, has_file: bool) -> Option<String> {
    let find = |dir: &Path| {
        let mut rustup = Command::new("rustup");
        let show = rustup.args(["show", "active-toolchain"]).current_dir(dir);
        let show = without_outer_cargo(show);
        let shown = String::from_utf8(show.output().ok()?.stdout).ok()?;
        let (toolchain, folder) = shown.trim().split_once(" (directory override for '")?;
        let folder = PathBuf::from(folder.trim_end_matches("')"));
        Some((toolchain.to_owned(), folder))
    };
    let top = &repository.top;
    let inner = find(&top.join(&repository.prefix)).filter(|it| it.1.starts_with(top));
    let outer = || find(top.parent()?).filter(|_| !has_file);
    Some(inner.or_else(outer)?.0)
}
