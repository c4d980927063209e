//! What is run: a bundle folder, or a revision built in its own worktree.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::ab::child;
use crate::ab::worktree::{self, Repository, Worktree};

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
pub(super) enum Prepared {
    Bundle {
        run: PathBuf,
        label: String,
    },
    Built {
        tree: Worktree,
        label: String,
        target: PathBuf,
        benches: Vec<String>,
    },
}

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

    fn named(name: &str) -> anyhow::Result<Self> {
        let dir = Path::new(name);
        if dir.join("run").is_file() {
            return Ok(Subject::Bundle(dir.canonicalize()?));
        }
        let repository = Repository::here().with_context(|| {
            format!("{name} is no bundle folder, and git can read no repository here that has it")
        })?;
        let commit = repository.commit(name).with_context(|| {
            if dir.is_dir() {
                format!(
                    "{name}: a folder without an executable `run`, so no bundle; nor a revision"
                )
            } else if name == "HEAD" {
                "nothing to compare with: make a first commit (`git commit --no-verify`, if a \
                 hook runs this)"
                    .to_owned()
            } else {
                format!("{name}: neither a bundle folder nor a revision")
            }
        })?;
        Ok(Subject::Commit {
            repository,
            name: name.to_owned(),
            commit,
        })
    }

    /// Builds it, if it has to be built.
    pub(super) fn prepare(self, side: &str, benches: &[String]) -> anyhow::Result<Prepared> {
        worktree::remove_abandoned();
        let (tree, label, target) = match self {
            Subject::Bundle(dir) => {
                return Ok(Prepared::Bundle {
                    run: dir.join("run"),
                    label: dir.display().to_string(),
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
                let target = repository.target(side);
                (repository.checkout(&commit)?, label, target)
            }
            Subject::WorkTree(repository) => {
                let target = repository.target(side);
                (repository.snapshot()?, "work tree".to_owned(), target)
            }
        };
        let built = Prepared::Built {
            tree,
            label,
            target,
            benches: benches.to_vec(),
        };
        eprintln!("building {side}: {}", built.label());
        let status = child::run(built.cargo().arg("--no-run"))?;
        if !status.success() {
            bail!("{} does not build ({status})", built.label());
        }
        Ok(built)
    }
}

impl Prepared {
    /// How it is named in the comparison.
    pub(super) fn label(&self) -> &str {
        match self {
            Prepared::Bundle { label, .. } | Prepared::Built { label, .. } => label,
        }
    }

    /// What runs the benchmarks once, with their results in `home`.
    pub(super) fn command(&self, home: &Path, bench_args: &[String]) -> Command {
        let mut command = match self {
            Prepared::Bundle { run, .. } => {
                let mut command = Command::new(run);
                command.arg("bench").args(bench_args);
                command
            }
            Prepared::Built { .. } => {
                let mut command = self.cargo();
                command.arg("--").args(bench_args);
                command
            }
        };
        // A comparison has no use for telemetry, whose thread would run in the other side's turn.
        command.env("CROSSOVER_MONITOR", "off");
        // A revision that cannot take turns runs alone, and would start child processes for its
        // answers.
        command.env("CROSSOVER_PROCESSES", "0");
        command.env("CRITERION_HOME", home);
        command
    }

    /// `cargo bench` in the worktree.
    fn cargo(&self) -> Command {
        // Set where this very command was started through cargo.
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.arg("bench");
        if let Prepared::Built {
            tree,
            target,
            benches,
            ..
        } = self
        {
            command
                .current_dir(tree.package())
                .env("CARGO_TARGET_DIR", target);
            for bench in benches {
                command.args(["--bench", bench]);
            }
        }
        command
    }
}
