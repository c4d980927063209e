//! `crossover bundle DIR [REV]`: the bench executables of a version, for `crossover ab` on a machine that has
//! neither Rust nor the sources.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::ab::executable::{Executable, Order};
use crate::ab::layout::{self, Ordered, seed};
use crate::ab::subject::Version;
use crate::ab::worktree::{Copies, Place};
use crate::ab::{BuildArgs, child};
use crossover_system::files::symlink;
use crossover_words::text::with_causes;
use crossover_words::units;

/// Build the benchmarks of a version for a machine without Rust
///
/// Writes a folder with the executables, the files that git tracks, and `run`, which runs them all.
/// `crossover ab OLD NEW` compares two such folders, on a machine of the same architecture with a glibc
/// at least as new as here. Build both from one folder and with one TMPDIR.
#[derive(Debug, clap::Args)]
pub(crate) struct BundleArgs {
    /// The new folder
    folder: PathBuf,
    /// A revision (the work tree with its uncommitted changes by default)
    revision: Option<String>,
    /// Leave out the files that git tracks, which benchmarks may read
    #[arg(long)]
    no_files: bool,
    /// Orders of functions in which each executable is linked: `ab` runs at most one pair with each; 0 for
    /// the order of cargo alone
    #[arg(long, default_value_t = 50)]
    orders: u32,
    #[command(flatten)]
    build: BuildArgs,
}

/// Names the record in a bundle.
const RECORD: &str = "bundle.json";
/// Folders of a bundle: the files that git tracks, the executables, and these in other orders.
const FOLDERS: [&str; 3] = ["files", "target", "orders"];
/// Where versions are built for bundles, in the folder for temporary files. One path for all, since paths
/// decide symbol names.
const PLACE: &str = "crossover-bundle";

/// The contents of a bundle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Bundle {
    #[serde(skip)]
    folder: PathBuf,
    commit: String,
    toolchain: String,
    /// Its target triple.
    machine: String,
    pub(super) place: Place,
    executables: Vec<Executable>,
}

impl Bundle {
    /// The bundle in a folder; `None` if there is none with a record.
    ///
    /// # Errors
    /// That its record or its folder cannot be read.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let file = folder.join(RECORD);
        let Ok(bytes) = fs::read(&file) else {
            return Ok(None);
        };
        let mut bundle: Self = (serde_json::from_slice(&bytes))
            .with_context(|| format!("{} cannot be read; build it again", file.display()))?;
        bundle.folder = folder.to_owned();
        for executable in &mut bundle.executables {
            let orders = fs::read_dir(folder.join(FOLDERS[2]).join(file_name(executable)));
            let orders = orders.into_iter().flatten().flatten();
            let mut orders = Vec::from_iter(orders.map(|entry| entry.path()));
            orders.sort_unstable();
            executable.order = (!orders.is_empty()).then(|| Rc::new(Order::Kept(orders)));
        }
        Ok(Some(bundle))
    }

    pub(super) fn executables(&self) -> Vec<Executable> {
        self.executables.clone()
    }

    pub(super) fn label(&self) -> String {
        format!("{} ({})", self.folder.display(), self.commit)
    }

    /// Copies its files to the paths where they were built.
    ///
    /// # Errors
    /// That they cannot be copied.
    pub(super) fn unpack(&self, copies: &Copies) -> anyhow::Result<()> {
        let places = [copies.tree(), copies.target()];
        for (name, to) in FOLDERS.iter().zip(places) {
            copy_folder(&self.folder.join(name), &to).with_context(|| self.label())?;
        }
        for executable in &self.executables {
            fs::create_dir_all(executable.parts().1)?;
            if let Some(order) = &executable.order {
                order.place(executable.parts().0, 1, 0, 0)?;
            }
        }
        Ok(())
    }

    /// How two bundles differ besides their code.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let [old, new] = [self, other].map(|it| [&it.commit, &it.toolchain, &it.machine]);
        let names = ["commit", "toolchain", "machine"].iter();
        let both = names.zip(old.into_iter().zip(new));
        let differ = both.filter(|(_, (old, new))| old != new);
        differ
            .map(|(name, (old, new))| format!("{name} of the bundles: {old}, then {new}"))
            .collect()
    }
}

/// Runs the subcommand.
pub(crate) fn run(args: &BundleArgs) -> anyhow::Result<ExitCode> {
    // From here on interrupts only set a flag, so that the copy is removed on the way out.
    crossover_system::interrupt::hold();
    match bundle(args) {
        Err(_) if child::interrupted() => {
            eprintln!("interrupted: the bundle is not complete");
            Ok(ExitCode::from(130))
        }
        other => other.map(|()| ExitCode::SUCCESS),
    }
}

fn bundle(args: &BundleArgs) -> anyhow::Result<()> {
    let folder = std::path::absolute(&args.folder)?;
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    if fs::read_dir(&folder)?.next().is_some() {
        bail!("{} is not empty; name another folder", folder.display());
    }
    let mut version = Version::to_bundle(args.revision.as_deref())?;
    let place = Place::at(std::env::temp_dir().join(PLACE));
    let copies = Copies::new(version.repository(), Some(&place))?;
    version.copy(0, &copies, version.is_work_tree())?;
    version.build(0, &copies, &args.build)?;
    if version.executables.is_empty() {
        bail!("{}: it has no bench target", version.label);
    }
    let [toolchain, machine] = version.toolchain()?;
    let target = [copies.target(), copies.place().target()];
    for executable in &mut version.executables {
        let built = executable.built().context("it was built here")?;
        let to = folder
            .join(FOLDERS[1])
            .join(built.strip_prefix(target[0].canonicalize()?)?);
        fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        fs::copy(&built, to)?;
        let orders = folder.join(FOLDERS[2]).join(file_name(executable));
        executable.fixed = match args.orders {
            0 => Some("the bundle has one order".to_owned()),
            count => write_orders(&built, &orders, count)?,
        };
        *executable = executable.moved(std::slice::from_ref(&target));
        *executable = executable.clone().carried();
    }
    if !args.no_files {
        copy_folder(&copies.tree(), &folder.join(FOLDERS[0]))?;
    }
    let bundle = Bundle {
        folder: folder.clone(),
        commit: version.label,
        toolchain,
        machine,
        place: copies.place(),
        executables: version.executables,
    };
    let run = folder.join("run");
    fs::write(&run, bundle.script())?;
    // Executable, as what is copied from an executable file.
    fs::set_permissions(
        &run,
        fs::metadata(crossover_system::own_executable()?)?.permissions(),
    )?;
    // Last, since it marks a complete bundle.
    fs::write(folder.join(RECORD), serde_json::to_vec_pretty(&bundle)?)?;
    let count = units::counted(bundle.executables.len(), "executable");
    eprintln!("{count} of {}: {}", bundle.commit, folder.display());
    Ok(())
}

/// Links an executable in new orders, and returns why it keeps its order if it does.
///
/// # Errors
/// An interrupt, or that nothing can be written.
fn write_orders(built: &Path, folder: &Path, count: u32) -> anyhow::Result<Option<String>> {
    let ordered = match Ordered::of(built) {
        Err(error) if child::interrupted() => return Err(error),
        Err(error) => return Ok(Some(with_causes(error.as_ref()))),
        Ok(ordered) => ordered,
    };
    fs::create_dir_all(folder)?;
    for number in 0..count {
        ordered.link(built, seed())?;
        fs::rename(layout::path(built), folder.join(format!("{number:04}"))).or_else(|_| {
            fs::copy(layout::path(built), folder.join(format!("{number:04}"))).map(drop)
        })?;
    }
    Ok(None)
}

impl Bundle {
    /// A script that runs all executables without `crossover`.
    fn script(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let place = path(&self.place.path);
        let mut script = format!(
            "#!/bin/sh
# Runs all benchmarks of this bundle: run bench [ARGUMENTS OF CRITERION]
set -eu
here=$(cd -- \"$(dirname -- \"$0\")\" && pwd)
[ \"${{1-}}\" = bench ] || {{ echo 'usage: run bench [ARGUMENTS]' >&2; exit 2; }}
shift
export CRITERION_HOME=\"${{CRITERION_HOME-$PWD/criterion}}\"
# They read files at the path where they were built.
mkdir {place} || {{ echo {place}': it is in use; remove it' >&2; exit 2; }}
trap 'rm -rf '{} EXIT
mkdir -p {} {}
ln -s \"$here/files\" {}
ln -s \"$here/target\" {}
",
            quoted(&place),
            path(self.place.tree.parent().unwrap_or(&self.place.tree)),
            path(self.place.target().parent().unwrap_or(&self.place.path)),
            path(&self.place.tree),
            path(&self.place.target()),
        );
        for executable in &self.executables {
            let (program, folder, environment) = executable.parts();
            let variables = environment.iter().map(|(name, value)| {
                quoted(&format!(
                    "{}={}",
                    name.to_string_lossy(),
                    value.to_string_lossy()
                )) + " "
            });
            script += &format!(
                "(cd {} && env {}{} --bench \"$@\")\n",
                path(folder),
                variables.collect::<String>(),
                path(program)
            );
        }
        script
    }
}

/// The name of its file, which is that of its folder of orders.
fn file_name(executable: &Executable) -> &OsStr {
    executable.parts().0.file_name().unwrap_or_default()
}

/// Copies a folder, if it is there, without what belongs to git.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    let Ok(entries) = fs::read_dir(from) else {
        return Ok(());
    };
    fs::create_dir_all(to)?;
    for entry in entries {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if entry.file_name() == ".git" {
            continue;
        } else if kind.is_dir() {
            copy_folder(&path, &to)?;
        } else if kind.is_symlink() {
            symlink(&fs::read_link(&path)?, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
