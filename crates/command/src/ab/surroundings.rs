//! What cargo and rustup find beside and above the user's work tree: settings, toolchains, workspaces and
//! packages. Copies are built with the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ab::executable::without_outer_cargo;
use crate::ab::repository::{Repository, git_around, git_output};
use crossover_system::files::{os_string, symlink};

/// Files that cargo and rustup look for in the current folder and in all folders above it.
const SETTINGS: [&str; 4] = [
    ".cargo/config.toml",
    ".cargo/config",
    "rust-toolchain.toml",
    "rust-toolchain",
];

/// Makes folders in `path` like those above `top`, with links to what lies in each, and returns the path
/// for a copy of `top` there.
pub(super) fn link(path: &Path, top: &Path) -> anyhow::Result<PathBuf> {
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
            let made = match name == "Cargo.lock" {
                true => fs::copy(&from, &to).map(drop),
                false => symlink(&from, &to),
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
pub(super) fn copy(repository: &Repository, tree: &Path, has_new: bool) -> anyhow::Result<()> {
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
