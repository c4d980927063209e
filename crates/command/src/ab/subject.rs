//! What is run: a bundle folder, or a revision built in its own work tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};

use crate::ab::executable::{self, Executable};
use crate::ab::worktree::{Place, Repository};
use crate::ab::{Args, NAMES};

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

/// Ready to run.
pub(super) struct Prepared {
    /// How it is named in the comparison.
    pub(super) label: String,
    /// In the order in which they run.
    pub(super) executables: Vec<Executable>,
    /// The versions of its dependencies by their names; `None` where nothing says them.
    pub(super) dependencies: Option<Dependencies>,
}

pub(super) type Dependencies = BTreeMap<String, BTreeSet<String>>;

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

    /// Builds it, if it has to be built. `side` is 0 or 1.
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
                    dependencies: None,
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
        let name = NAMES[side];
        eprintln!("building {name}: {label}");
        let folder = place.tree().join(repository.prefix());
        let executables = match folder.is_dir() {
            true => build(
                &place.tree(),
                &folder,
                &place.target(&repository, side)?,
                args,
            )
            .with_context(|| label.clone())?,
            // The package came later, or is gone.
            false => Vec::new(),
        };
        Ok(Prepared {
            label,
            executables,
            dependencies: dependencies(&folder, &place.tree()),
        })
    }
}

fn build(
    tree: &Path,
    folder: &Path,
    target: &Path,
    args: &Args,
) -> anyhow::Result<Vec<Executable>> {
    let Some(mut flags) = executable::present(folder, &args.packages, &args.benches)? else {
        return Ok(Vec::new());
    };
    flags.extend(args.build_flags());
    executable::build(tree, folder, target, &flags)
}

/// What the `Cargo.lock` of the workspace around `folder` says.
fn dependencies(folder: &Path, tree: &Path) -> Option<Dependencies> {
    let mut folders = folder
        .ancestors()
        .take_while(|folder| folder.starts_with(tree));
    let lock = folders.find_map(|folder| fs::read_to_string(folder.join("Cargo.lock")).ok())?;
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
    different_dependencies(sides).into_iter().collect()
}

/// Where the dependencies of two sides differ, in a sentence.
fn different_dependencies(sides: &[Prepared; 2]) -> Option<String> {
    /// More are counted.
    const NAMED: usize = 5;
    let [old, new] = [
        sides[0].dependencies.as_ref()?,
        sides[1].dependencies.as_ref()?,
    ];
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
    (!differ.is_empty()).then(|| format!("Cargo.lock differs: {named}{more}"))
}
