//! The sides of a comparison: named by the user, copied, built, and their differences besides the code.

use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::EXE_EXTENSION;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use crate::ab::bundled::Bundle;
use crate::ab::executable::{self, Executable, Order, Workspace, cargo};
use crate::ab::layout::{LayoutChoice, Ordered};
use crate::ab::linker::{self, UserLinker};
use crate::ab::repository::{Repository, copy_surroundings, overriding};
use crate::ab::worktree::{BuildPlace, Copies};
use crate::ab::{Args, BuildArgs, NAMES, child};
use crossover_compare::verdict::Layout;
use crossover_words::text::with_causes;
use crossover_words::units;

/// One side.
pub(super) struct Version {
    /// How it is named in the comparison.
    pub(super) label: String,
    /// In the order in which they run.
    pub(super) executables: Vec<Executable>,
    /// `None` for a bundle.
    source: Option<Origin>,
    /// The bundle, if `crossover bundle` wrote it; `None` for a program `run` of another origin.
    bundle: Option<Bundle>,
}

/// The code that a side is built from.
#[derive(Default)]
struct Origin {
    repository: Repository,
    /// `None` for the work tree with its uncommitted changes.
    commit: Option<String>,
    /// The user's current folder in the copy.
    folder: PathBuf,
    /// `None` where `folder` does not exist at that commit.
    workspace: Option<Workspace>,
    /// Its text of each of the [`DECIDING`] files.
    deciding: [Option<String>; 3],
    /// The toolchain that takes precedence over a file.
    overriding: Option<String>,
    /// Packages that do not build.
    broken: Vec<String>,
}

/// Files that decide how the same code is built: the lock file, and those of the toolchain.
const DECIDING: [&str; 3] = ["Cargo.lock", "rust-toolchain.toml", "rust-toolchain"];

/// The sides that the user names: `HEAD` and the work tree by default.
///
/// # Errors
/// That a name is neither a revision nor a bundle.
pub(super) fn named(a: Option<&str>, b: Option<&str>) -> anyhow::Result<[Version; 2]> {
    let a = Version::named(a.unwrap_or("HEAD"))?;
    let b = match b {
        Some(b) => Version::named(b)?,
        None if a.source.is_none() => bail!(
            "{} is a bundle: name the second one too, `crossover ab DIR_A DIR_B`",
            a.label
        ),
        None => Version::of("work tree".to_owned(), Repository::here()?, None),
    };
    Ok([a, b])
}

impl Version {
    fn of(label: String, repository: Repository, commit: Option<String>) -> Self {
        Self {
            label,
            executables: Vec::new(),
            source: Some(Origin {
                repository,
                commit,
                ..Origin::default()
            }),
            bundle: None,
        }
    }

    /// A revision if git knows it, else a bundle.
    fn named(name: &str) -> anyhow::Result<Self> {
        let dir = Path::new(name);
        let repository = Repository::here();
        let commit = repository.as_ref().ok().map(|here| here.commit(name));
        if let (Ok(repository), Some(Ok(commit))) = (&repository, &commit) {
            let short = commit.get(..12).unwrap_or(commit);
            let label = if commit.starts_with(name) {
                short.to_owned()
            } else {
                format!("{name} ({short})")
            };
            return Ok(Self::of(label, repository.clone(), Some(commit.clone())));
        }
        let run = Path::new("run").with_extension(EXE_EXTENSION);
        if dir.join(&run).is_file() {
            let dir = dir.canonicalize()?;
            if let Some(bundle) = Bundle::read(&dir)? {
                return Ok(Self {
                    label: bundle.label(),
                    executables: bundle.executables.clone(),
                    source: None,
                    bundle: Some(bundle),
                });
            }
            return Ok(Self {
                label: dir.display().to_string(),
                executables: vec![Executable::of_bundle(dir.join(run))],
                source: None,
                bundle: None,
            });
        }
        let repository = repository.map_err(|error| {
            let no_repository =
                "This is not a git repository. Run `crossover ab` inside one, or name two bundles";
            if error.to_string().contains("not a git repository") {
                anyhow!(no_repository)
            } else {
                error.context(format!("{name}: git cannot read this repository"))
            }
        })?;
        let error = commit.and_then(Result::err).context("git knows it")?;
        Err(error.context(if dir.is_dir() {
            format!("{name}: neither a revision nor a bundle: the folder has no executable `run`")
        } else if name == "HEAD" {
            "nothing to compare with: make a first commit (`git commit --no-verify`, if a hook runs \
             this)"
                .to_owned()
        } else if repository.is_shallow() {
            format!(
                "{name}: this clone is shallow and may lack the revision; `git fetch --deepen=100` \
                 fetches 100 commits more"
            )
        } else {
            format!("{name}: neither a bundle folder nor a revision; name a commit, a branch or a tag")
        }))
    }

    /// The version for a bundle: a revision, or the work tree.
    ///
    /// # Errors
    /// That it is not a revision.
    pub(super) fn to_bundle(revision: Option<&str>) -> anyhow::Result<Self> {
        let version = match revision {
            Some(name) => Self::named(name)?,
            None => Self::of("work tree".to_owned(), Repository::here()?, None),
        };
        match version.source {
            Some(_) => Ok(version),
            None => bail!("{} is a bundle, not a revision", version.label),
        }
    }

    /// The version of rustc that built it, and its target.
    ///
    /// # Errors
    /// That rustc cannot be asked.
    pub(super) fn toolchain(&self) -> anyhow::Result<[String; 2]> {
        let source = self.source.as_ref().context("a bundle is not built")?;
        let mut rustc = std::process::Command::new("rustc");
        executable::without_outer_cargo(rustc.current_dir(&source.folder)).arg("-vV");
        rustc.envs((source.overriding.as_deref()).map(|name| ("RUSTUP_TOOLCHAIN", name)));
        let printed = child::output(&mut rustc, Duration::from_secs(60))?;
        let field = |name: &str| {
            let value = printed
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix(name));
            value
                .map(str::to_owned)
                .with_context(|| format!("`rustc -vV` {}", printed.failure()))
        };
        Ok([field("rustc ")?, field("host: ")?])
    }

    /// Its repository; `None` for a bundle.
    pub(super) fn repository(&self) -> Option<&Repository> {
        Some(&self.source.as_ref()?.repository)
    }

    /// Whether it is the user's work tree.
    pub(super) fn is_work_tree(&self) -> bool {
        (self.source.as_ref()).is_some_and(|source| source.commit.is_none())
    }

    /// Copies its files, and the user's settings around them.
    ///
    /// # Errors
    /// The message of git, cargo or the file system.
    pub(super) fn copy(
        &mut self,
        side: usize,
        copies: &Copies,
        has_new: bool,
    ) -> anyhow::Result<()> {
        let Some(source) = &mut self.source else {
            copies.bring(Some(side))?;
            return self.bundle.iter().try_for_each(|it| it.unpack(copies));
        };
        copies.bring(Some(side))?;
        let tree = copies.tree();
        (source.repository).copy_to(&tree, source.commit.as_deref())?;
        copy_surroundings(&source.repository, &tree, has_new)?;
        source.folder = tree.join(&source.repository.prefix);
        source.deciding = DECIDING.map(|name| above(&source.folder, &tree, name));
        let has_file = source.deciding[1..].iter().any(Option::is_some);
        source.overriding = overriding(&source.repository, has_file);
        if source.folder.is_dir() {
            let workspace = Workspace::read(cargo(&source.folder, source.overriding.as_deref()));
            source.workspace = Some(workspace.with_context(|| self.label.clone())?);
        }
        Ok(())
    }

    /// Builds its executables.
    ///
    /// # Errors
    /// That it does not build.
    pub(super) fn build(
        &mut self,
        side: usize,
        copies: &Copies,
        args: &BuildArgs,
    ) -> anyhow::Result<()> {
        let Some(source) = &mut self.source else {
            return Ok(());
        };
        eprintln!("building {}: {}", NAMES[side], self.label);
        let Some(workspace) = &source.workspace else {
            return Ok(());
        };
        let Some(selected) = workspace.selected(args).0 else {
            return Ok(());
        };
        copies.bring(Some(side))?;
        let record = copies.file("built");
        let cargo = || cargo(&source.folder, source.overriding.as_deref());
        let has_benches = workspace.packages(args).next().is_some();
        // For every layout: with another linker cargo would build the dependencies anew.
        let linker = if has_benches {
            UserLinker::find(cargo, &copies.file("linker"))?
        } else {
            None
        };
        let build = |flags: &[String]| {
            executable::build(cargo(), &record, &copies.target(), flags, linker.as_ref())
        };
        self.executables = match build(&[selected, args.build_flags(args.workspace)].concat()) {
            Ok(executables) => executables,
            Err(error) => {
                let packages = workspace.packages(args).map(|package| package.name.clone());
                let (executables, broken) = build_one_by_one(packages, args, build);
                if executables.is_empty() {
                    return Err(error.context(self.label.clone()));
                }
                source.broken = broken;
                executables
            }
        };
        if has_benches && self.executables.is_empty() && workspace.skipped(args, &[]).is_empty() {
            bail!(
                "{}: cargo started no bench executable by the runner that `ab` gives it, since cargo's \
                 settings name a `runner` for this target: remove it, or the environment variable \
                 CARGO_TARGET_<TRIPLE>_RUNNER",
                self.label
            );
        }
        check_files(&self.executables, &copies.target())?;
        // Where git has no lock file, cargo has made one.
        let made = || above(&source.folder, &copies.tree(), DECIDING[0]);
        source.deciding[0] = source.deciding[0].take().or_else(made);
        Ok(())
    }
}

/// Builds each package of a workspace that does not build as a whole. Returns the executables, and the packages
/// that do not build.
fn build_one_by_one(
    packages: impl Iterator<Item = String>,
    args: &BuildArgs,
    build: impl Fn(&[String]) -> anyhow::Result<Vec<Executable>>,
) -> (Vec<Executable>, Vec<String>) {
    let (mut executables, mut broken) = (Vec::new(), Vec::new());
    for package in packages {
        if child::interrupted() || !args.packages.is_empty() {
            break;
        }
        let one = ["--package".to_owned(), package.clone()];
        let benches = args.benches.iter().flat_map(|name| ["--bench", name]);
        let benches = benches.map(str::to_owned).collect();
        match build(&[one.to_vec(), benches, args.build_flags(false)].concat()) {
            Ok(built) => executables.extend(built),
            Err(_) => broken.push(package),
        }
    }
    (executables, broken)
}

/// # Errors
/// That an executable lies outside the folder `target`, where the other side would replace it.
fn check_files(executables: &[Executable], target: &Path) -> anyhow::Result<()> {
    let target = target.canonicalize().unwrap_or(target.to_owned());
    let mut files = executables.iter().filter_map(Executable::built);
    match files.find(|file| !file.starts_with(&target)) {
        None => Ok(()),
        Some(file) => bail!(
            "both sides would be built to one file, {}: `ab` gives each side a folder in CARGO_TARGET_DIR and \
             CARGO_BUILD_BUILD_DIR, so have no wrapper of cargo name another one",
            file.display()
        ),
    }
}

/// Where the executables of bundles were built.
///
/// # Errors
/// That they were built at different paths.
pub(super) fn place(sides: &[Version; 2]) -> anyhow::Result<Option<&BuildPlace>> {
    let places = sides
        .each_ref()
        .map(|side| Some(&side.bundle.as_ref()?.place));
    match places {
        [Some(old), Some(new)] if old == new => Ok(Some(old)),
        [None, None] => Ok(None),
        _ => bail!(
            "the sides were not built at one path: build both with `crossover bundle`, from one folder and with \
             one TMPDIR"
        ),
    }
}

/// # Errors
/// Packages and bench targets that the user named and neither side has.
pub(super) fn check_names(sides: &[Version; 2], args: &BuildArgs) -> anyhow::Result<()> {
    let [Some(old), Some(new)] = sides.each_ref().map(|side| {
        let workspace = side.source.as_ref()?.workspace.as_ref();
        Some(workspace.map_or_else(BTreeSet::new, |workspace| workspace.selected(args).1))
    }) else {
        return Ok(());
    };
    let neither: Vec<&str> = old.intersection(&new).map(String::as_str).collect();
    if !neither.is_empty() {
        bail!("neither side has the {}", neither.join(" and the "));
    }
    Ok(())
}

/// Leaves out packages that one side cannot build, and says how the sides differ beside their code, a
/// sentence each.
pub(super) fn differences(sides: &mut [Version; 2], args: &BuildArgs) -> Vec<String> {
    if let [Some(old), Some(new)] = sides.each_ref().map(|side| side.bundle.as_ref()) {
        return old.differences(new);
    }
    let mut remarks = BTreeSet::new();
    for side in [0, 1] {
        let Some(source) = &sides[side].source else {
            return Vec::new();
        };
        for package in source.broken.clone() {
            remarks.insert(format!(
                "left out: package {package}, whose benchmarks do not build in {}, as cargo says above",
                sides[side].label
            ));
            sides[1 - side]
                .executables
                .retain(|other| !other.is_of(&package));
        }
    }
    let [Some(old), Some(new)] = sides.each_ref().map(|side| side.source.as_ref()) else {
        return Vec::new();
    };
    for (side, source) in sides.iter().zip([old, new]) {
        let workspace = source.workspace.iter();
        remarks.extend(workspace.flat_map(|workspace| workspace.skipped(args, &side.executables)));
    }
    let both = old.deciding.iter().zip(&new.deciding);
    let differ = DECIDING
        .iter()
        .zip(both)
        .filter(|(_, (old, new))| old != new);
    remarks.extend(differ.map(|(name, _)| format!("{name} differs between the sides")));
    remarks.into_iter().collect()
}

/// Whether both sides have the same executables.
///
/// # Errors
/// That the copies cannot be moved.
pub(super) fn are_equal(sides: &[Version; 2], copies: &Copies) -> anyhow::Result<bool> {
    // The files that the benchmarks of two bundles read may differ.
    if sides.iter().any(|side| side.source.is_none()) {
        return Ok(false);
    }
    copies.bring(None)?;
    let [old, new] = [0, 1].map(|side| {
        let (executables, places) = (sides[side].executables.iter(), copies.places(side));
        Vec::from_iter(executables.map(|executable| executable.moved(&places)))
    });
    let equal = || old.iter().zip(&new).all(|(old, new)| old.equals(new));
    Ok(!old.is_empty() && old.len() == new.len() && equal())
}

/// The remark on equal executables of sides that differ in these files, if they do.
pub(super) fn equal_but(files: &BTreeSet<String>) -> Option<String> {
    let first = files.first()?;
    let further = match files.len() {
        1 => String::new(),
        more => format!(" and {}", units::counted(more - 1, "other file")),
    };
    Some(format!(
        "both sides have equal executables; they differ in {first}{further}, which these may read"
    ))
}

/// Has executables that can be linked in new orders on both sides be linked in these.
///
/// # Errors
/// An interrupt, or that the copies cannot be moved.
pub(super) fn order_functions(
    args: &Args,
    copies: &Copies,
    sides: &mut [Version; 2],
) -> anyhow::Result<Layout> {
    if args.layout == LayoutChoice::Fixed {
        for executable in sides.iter_mut().flat_map(|side| &mut side.executables) {
            executable.order = None;
        }
        return Ok(Layout::Fixed("`--layout fixed`".to_owned()));
    }
    // Of each executable. The other side's may say the same of files of other names.
    let mut fixed = BTreeMap::<String, String>::new();
    for (side, version) in sides.iter_mut().enumerate() {
        copies.bring(Some(side))?;
        let built = version.executables.iter().filter_map(Executable::built);
        linker::remove_others(&copies.target(), &Vec::from_iter(built));
        for executable in &mut version.executables {
            if executable.order.is_some() {
                continue;
            }
            let built = executable.built().filter(|_| version.source.is_some());
            let built = built.context("a bundle without orders is not linked again");
            match built.and_then(|built| Ordered::of(&built)) {
                Ok(ordered) => executable.order = Some(Rc::new(Order::Linked(ordered))),
                Err(error) if child::interrupted() => return Err(error),
                Err(error) => {
                    let why = fixed.entry(executable.name.clone());
                    why.or_insert_with(|| with_causes(error.as_ref()));
                }
            }
        }
    }
    let mut has_random = false;
    for executable in sides.iter_mut().flat_map(|side| &mut side.executables) {
        if fixed.contains_key(&executable.name) {
            executable.order = None;
        }
        has_random |= executable.order.is_some();
    }
    let mut reasons = BTreeMap::<String, Vec<String>>::new();
    for (name, why) in fixed {
        reasons.entry(why).or_default().push(name);
    }
    let reasons = reasons.into_iter().map(|(why, names)| {
        if has_random {
            format!("{}: {why}", names.join(", "))
        } else {
            why
        }
    });
    let reasons = Vec::from_iter(reasons).join("; ");
    Ok(if reasons.is_empty() {
        Layout::Random
    } else {
        Layout::Fixed(reasons)
    })
}

/// The text of a file in a folder or the nearest folder above it, up to `top`.
fn above(folder: &Path, top: &Path, name: &str) -> Option<String> {
    let mut folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(top));
    folders.find_map(|folder| fs::read_to_string(folder.join(name)).ok())
}
