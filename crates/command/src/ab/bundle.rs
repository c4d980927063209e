//! `crossover bundle DIR [REV]`: the bench executables of a version, for `crossover ab` on a machine that has
//! neither Rust nor the sources.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::ab::bundled::{Bundle, FOLDERS, RECORD, copy_folder, file_name};
use crate::ab::executable::Executable;
use crate::ab::layout::{self, Ordered, seed};
use crate::ab::subject::Version;
use crate::ab::worktree::{BuildPlace, Copies};
use crate::ab::{BuildArgs, child};
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

/// Where versions are built for bundles, in the folder for temporary files. One path for all, since paths
/// decide symbol names.
const PLACE: &str = "crossover-bundle";

/// Runs the subcommand.
pub(crate) fn run(args: &BundleArgs) -> anyhow::Result<ExitCode> {
    // From here on interrupts only set a flag, so that the copy is removed on the way out.
    crossover_system::interrupt::hold();
    match bundle(args) {
        Err(_) if child::interrupted() => {
            eprintln!(
                "interrupted: the bundle is not complete; remove {}",
                args.folder.display()
            );
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
    let place = BuildPlace::at(std::env::temp_dir().join(PLACE));
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
        if args.orders > 0 {
            write_orders(executable, &built, &orders, args.orders)?;
        }
        *executable = executable.moved(std::slice::from_ref(&target)).carried();
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

/// Links an executable in new orders, or says why it keeps its order.
///
/// # Errors
/// An interrupt, or that nothing can be written.
fn write_orders(
    executable: &Executable,
    built: &Path,
    folder: &Path,
    count: u32,
) -> anyhow::Result<()> {
    match Ordered::of(built) {
        Err(error) if child::interrupted() => return Err(error),
        Err(error) => {
            let why = with_causes(error.as_ref());
            eprintln!(
                "note: {} has one order of functions: {why}",
                executable.name
            );
        }
        Ok(ordered) => {
            fs::create_dir_all(folder)?;
            for number in 0..count {
                ordered.link(built, seed())?;
                fs::copy(layout::path(built), folder.join(format!("{number:04}")))?;
            }
        }
    }
    Ok(())
}

impl Bundle {
    /// A script that runs all executables without `crossover`.
    fn script(&self) -> String {
        let quoted = |text: &OsStr| crate::quoted_for_sh(&text.to_string_lossy());
        let place = quoted(self.place.path.as_os_str());
        let mut script = format!(
            "#!/bin/sh
# Runs all benchmarks of this bundle: run bench [ARGUMENTS OF CRITERION]
set -eu
here=$(cd -- \"$(dirname -- \"$0\")\" && pwd)
[ \"${{1-}}\" = bench ] || {{ echo 'usage: run bench [ARGUMENTS]' >&2; exit 2; }}
shift
export CRITERION_HOME=\"${{CRITERION_HOME-$PWD/criterion}}\"
# They read files at the path where they were built.
place={place}
mkdir \"$place\" || {{ echo \"$place: it is in use; remove it\" >&2; exit 2; }}
trap 'rm -rf \"$place\"' EXIT
"
        );
        for (folder, path) in FOLDERS.iter().zip([&self.place.tree, &self.place.target()]) {
            let parent = path.parent().unwrap_or(path).as_os_str();
            let [parent, path] = [parent, path.as_os_str()].map(quoted);
            script += &format!("mkdir -p {parent}\nln -s \"$here/{folder}\" {path}\n");
        }
        for executable in &self.executables {
            let (program, folder, environment) = executable.parts();
            let [program, folder] = [program, folder].map(|path| quoted(path.as_os_str()));
            let variables = environment.iter().map(|(name, value)| {
                let variable = [name.as_os_str(), OsStr::new("="), value];
                quoted(&OsString::from_iter(variable)) + " "
            });
            let variables = String::from_iter(variables);
            script += &format!("(cd {folder} && env {variables}{program} --bench \"$@\")\n");
        }
        script
    }
}
