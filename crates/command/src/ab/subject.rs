//! What is run: a bundle folder, or a revision built in its own work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use crate::ab::executable::{self, Executable, Present};
use crate::ab::worktree::{Place, Repository};
use crate::ab::{Args, NAMES, child};
use crossover_words::units;

/// Named by the user, not yet built.
pub(super) enum Subject {
    /// A folder with an executable `run`.
    Bundle(PathBuf),
    /// A commit.
    Commit {
        repository: Repository,
        name: String,
        commit: String,
    },
    /// The work tree with its uncommitted changes.
    WorkTree(Repository),
}

/// With its files in place, and then ready to run.
pub(super) struct Prepared {
    /// How it is named in the comparison.
    pub(super) label: String,
    /// In the order in which they run.
    pub(super) executables: Vec<Executable>,
    /// Packages that do not build.
    pub(super) broken: Vec<String>,
    /// What it is built from; `None` for a bundle.
    source: Option<Source>,
}

struct Source {
    repository: Repository,
    /// Where it is built.
    folder: PathBuf,
    /// What it has of what the user named; `None` where the folder came later, or is gone.
    present: Option<Present>,
    /// The versions of its dependencies by their names.
    dependencies: Option<Dependencies>,
    toolchain: Option<String>,
    /// Where they are not those of the user's lock file, which git ignores, a sentence.
    unpinned: Option<String>,
}

type Dependencies = BTreeMap<String, BTreeSet<String>>;

impl Subject {
    /// Side A: `HEAD` unless named.
    pub(super) fn old(name: Option<&str>) -> anyhow::Result<Self> {
        Self::named(name.unwrap_or("HEAD"))
    }

    /// Side B: the work tree unless named.
    pub(super) fn new(name: Option<&str>, a: &Subject) -> anyhow::Result<Self> {
        match (name, a) {
            (Some(name), _) => Self::named(name),
            (None, Subject::Bundle(a)) => bail!(
                "{} is a bundle: name the second one too, `crossover ab DIR_A DIR_B`",
                a.display()
            ),
            (None, _) => Ok(Subject::WorkTree(Repository::here()?)),
        }
    }

    /// A revision if git knows it, else a bundle.
    fn named(name: &str) -> anyhow::Result<Self> {
        let dir = Path::new(name);
        let repository = Repository::here();
        let commit = repository.as_ref().ok().map(|here| here.commit(name));
        if let (Ok(repository), Some(Ok(commit))) = (&repository, &commit) {
            return Ok(Subject::Commit {
                repository: repository.clone(),
                name: name.to_owned(),
                commit: commit.clone(),
            });
        }
        if dir.join("run").is_file() {
            return Ok(Subject::Bundle(dir.canonicalize()?));
        }
        let repository = repository.map_err(|error| {
            match error.to_string().contains("not a git repository") {
                true => anyhow!(
                    "This is not a git repository. Run `crossover ab` inside one, or name two bundles"
                ),
                false => error.context(format!("{name}: git cannot read this repository")),
            }
        })?;
        let error = commit.and_then(Result::err).context("git knows it")?;
        Err(error.context(if dir.is_dir() {
            format!("{name}: a folder without an executable `run`, so no bundle; nor a revision")
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

    /// Has its files in place. `side` is 0 or 1.
    ///
    /// # Errors
    /// What git or the file system says.
    pub(super) fn prepare(
        self,
        side: usize,
        place: &Place,
        args: &Args,
    ) -> anyhow::Result<Prepared> {
        let (repository, label, commit) = match self {
            Subject::Bundle(dir) => {
                return Ok(Prepared {
                    label: dir.display().to_string(),
                    executables: vec![Executable::of_bundle(dir.join("run"))],
                    broken: Vec::new(),
                    source: None,
                });
            }
            Subject::Commit {
                repository,
                name,
                commit,
            } => {
                let short = commit.get(..12).unwrap_or(&commit);
                let label = if commit.starts_with(&name) {
                    short.to_owned()
                } else {
                    format!("{name} ({short})")
                };
                (repository, label, Some(commit))
            }
            Subject::WorkTree(repository) => (repository, "work tree".to_owned(), None),
        };
        place.bring(Some(side))?;
        repository.fill(&place.tree(), commit.as_deref())?;
        let folder = place.tree().join(repository.prefix());
        let present = (folder.is_dir())
            .then(|| executable::present(&folder, &args.packages, &args.benches))
            .transpose()?;
        let source = Source {
            dependencies: dependencies(&folder, &place.tree()),
            toolchain: above(
                &folder,
                &place.tree(),
                &["rust-toolchain.toml", "rust-toolchain"],
            ),
            repository,
            folder,
            present,
            unpinned: None,
        };
        Ok(Prepared {
            label,
            executables: Vec::new(),
            broken: Vec::new(),
            source: Some(source),
        })
    }
}

impl Prepared {
    /// Builds it, if it has to be built.
    ///
    /// # Errors
    /// That it does not build.
    pub(super) fn build(&mut self, side: usize, place: &Place, args: &Args) -> anyhow::Result<()> {
        let Some(source) = &mut self.source else {
            return Ok(());
        };
        eprintln!("building {}: {}", NAMES[side], self.label);
        let flags = source
            .present
            .as_ref()
            .and_then(|present| present.flags.clone());
        let Some(flags) = flags else {
            return Ok(());
        };
        place.bring(Some(side))?;
        let target = place.target(&source.repository, side)?;
        let build =
            |flags: &[String]| executable::build(&place.tree(), &source.folder, &target, flags);
        let all = [flags, args.build_flags()].concat();
        match build(&all) {
            Ok(executables) => self.executables = executables,
            Err(error) => {
                // Other packages of a workspace may build.
                let packages = match args.packages.is_empty() {
                    true => executable::packages(&source.folder, &args.benches).unwrap_or_default(),
                    false => Vec::new(),
                };
                let others = all.iter().filter(|flag| *flag != "--workspace");
                for package in packages.into_iter().filter(|_| !child::interrupted()) {
                    let one = ["--package".to_owned(), package.clone()];
                    match build(&others.clone().cloned().chain(one).collect::<Vec<_>>()) {
                        Ok(executables) => self.executables.extend(executables),
                        Err(_) => self.broken.push(package),
                    }
                }
                if self.executables.is_empty() {
                    return Err(error.context(self.label.clone()));
                }
            }
        }
        if source.dependencies.is_none() {
            source.dependencies = dependencies(&source.folder, &place.tree());
            let [folder, top] = source.repository.users();
            let differ = (dependencies(&folder, &top).as_ref())
                .zip(source.dependencies.as_ref())
                .and_then(|(users, built)| changed(users, built));
            source.unpinned = differ.map(|differ| {
                format!("git ignores Cargo.lock, so both sides were built without yours: {differ}")
            });
        }
        Ok(())
    }
}

/// Leaves out what the other side cannot build, and says so.
pub(super) fn leave_out_broken(sides: &mut [Prepared; 2]) -> Vec<String> {
    let mut remarks = Vec::new();
    for side in [0, 1] {
        for package in sides[side].broken.clone() {
            let label = &sides[side].label;
            remarks.push(format!(
                "left out: package {package}, whose benchmarks do not build in {label}, as cargo says above"
            ));
            let executables = &mut sides[1 - side].executables;
            executables.retain(|executable| !executable.is_of(&package));
        }
    }
    remarks
}

/// # Errors
/// Packages and bench targets that the user named and neither side has.
pub(super) fn check_names(sides: &[Prepared; 2]) -> anyhow::Result<()> {
    let missing = |side: &Prepared| {
        let present = side.source.as_ref()?.present.as_ref();
        Some(
            present
                .map(|present| present.missing.clone())
                .unwrap_or_default(),
        )
    };
    if let (Some(old), Some(new)) = (missing(&sides[0]), missing(&sides[1])) {
        let neither: Vec<&str> = old.intersection(&new).map(String::as_str).collect();
        if !neither.is_empty() {
            bail!("neither side has the {}", neither.join(" and the "));
        }
    }
    Ok(())
}

/// Whether both sides have the same executables.
pub(super) fn are_equal(sides: &[Prepared; 2]) -> bool {
    let [old, new] = [&sides[0].executables, &sides[1].executables];
    let equal = || old.iter().zip(new).all(|(old, new)| old.equals(new));
    !old.is_empty() && old.len() == new.len() && equal()
}

/// What is said where these files differ, and the executables do not.
pub(super) fn equal_but(files: &[String]) -> String {
    let others = match files.len() {
        1 => String::new(),
        more => format!(" and {}", units::counted(more - 1, "other file")),
    };
    let first = files.first().map_or("nothing", String::as_str);
    format!(
        "both sides have equal executables; they differ in {first}{others}, which these may read"
    )
}

/// The first of these files in a folder or above it, up to `top`.
fn above(folder: &Path, top: &Path, names: &[&str]) -> Option<String> {
    let mut folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(top));
    folders.find_map(|folder| {
        let mut texts = names
            .iter()
            .map(|name| fs::read_to_string(folder.join(name)));
        texts.find_map(Result::ok)
    })
}

/// What the `Cargo.lock` of the workspace around `folder` says.
fn dependencies(folder: &Path, tree: &Path) -> Option<Dependencies> {
    let lock = above(folder, tree, &["Cargo.lock"])?;
    let mut dependencies = Dependencies::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(text) = line.strip_prefix("name = ") {
            name = text.trim_matches('"');
        } else if let Some(text) = line.strip_prefix("version = ")
            && !name.is_empty()
        {
            let versions = dependencies.entry(name.to_owned()).or_default();
            versions.insert(text.trim_matches('"').to_owned());
        }
    }
    Some(dependencies)
}

/// What differs between two sides beside their code, a sentence each.
pub(super) fn differences(sides: &[Prepared; 2]) -> Vec<String> {
    let [Some(old), Some(new)] = sides.each_ref().map(|side| side.source.as_ref()) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    if let (Some(old), Some(new)) = (&old.dependencies, &new.dependencies)
        && let Some(differ) = changed(old, new)
    {
        lines.push(format!("Cargo.lock differs: {differ}"));
    }
    if old.toolchain != new.toolchain {
        let channel = |side: &Source| -> String {
            let text = side.toolchain.as_deref().unwrap_or("none");
            let channel = text
                .lines()
                .find_map(|line| line.trim().strip_prefix("channel"));
            let marks: &[char] = &['=', ' ', '"', '\''];
            channel
                .unwrap_or(text)
                .trim()
                .trim_matches(marks)
                .to_owned()
        };
        lines.push(format!(
            "rust-toolchain differs: {} → {}",
            channel(old),
            channel(new)
        ));
    }
    lines.extend(new.unpinned.clone().or(old.unpinned.clone()));
    lines
}

/// Where the dependencies `old` and `new` differ.
fn changed(old: &Dependencies, new: &Dependencies) -> Option<String> {
    /// More are counted.
    const NAMED: usize = 5;
    let none = BTreeSet::new();
    let versions = |side: &Dependencies, name: &str| {
        let versions = side.get(name).unwrap_or(&none);
        match versions.is_empty() {
            true => "none".to_owned(),
            false => Vec::from_iter(versions.iter().map(String::as_str)).join(" and "),
        }
    };
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differ: Vec<String> = (names.into_iter())
        .filter(|name| old.get(*name) != new.get(*name))
        .map(|name| format!("{name} {} → {}", versions(old, name), versions(new, name)))
        .collect();
    let more = match differ.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named = differ.get(..NAMED).unwrap_or(&differ).join(", ");
    (!differ.is_empty()).then(|| named + &more)
}
