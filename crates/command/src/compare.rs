//! `crossover compare BASE NEW`: verdicts over stored baselines.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::bail;

use crate::ab::Workspace;
use crate::path_in;
use crate::verdict::VerdictArgs;
use crossover_compare::comparison::compare;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::baselines;
use crossover_results::store::source::BaselineSource;

/// Compare two stored baselines: faster, slower, same, unsure, new, gone or unreadable
///
/// BASE and NEW are each the name of a baseline (`cargo bench --bench TARGET -- --save-baseline NAME`), a
/// folder of results (its latest run), or FOLDER:NAME for a baseline in a folder. Give
/// several runs per side, separated by commas, to compare them pair by pair: `main-1,main-2
/// mine-1,mine-2`.
///
/// Exit code: 0 clean, 1 slower (see --fail-on), failed or unreadable, 2 nothing could be compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The old results
    base: String,
    /// The new results
    new: String,
    /// Folder of the results [default: CRITERION_HOME, or target-reports/criterion and the folder
    /// `criterion` in cargo's target folder]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    #[command(flatten)]
    verdict: VerdictArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = args.verdict.options();
    let mut roots = (args.results.clone()).map_or_else(results_folders, |folder| vec![folder]);
    // Both sides come from one folder where one has both.
    let names = || args.base.split(',').chain(args.new.split(','));
    roots.sort_by_cached_key(|root| {
        let there = baselines(root);
        names().filter(|name| !there.contains(name.trim())).count()
    });
    let mut named: Vec<BaselineSource> = Vec::new();
    let mut side = |names: &str| -> anyhow::Result<Vec<Baseline>> {
        names
            .split(',')
            .map(|name| {
                let source = BaselineSource::resolve(name.trim(), &roots)?;
                let same = |other: &BaselineSource| {
                    (&other.root, &other.baseline) == (&source.root, &source.baseline)
                };
                if let Some(other) = named.iter().find(|other| same(other)) {
                    bail!(
                        "{} and {} are the same run: name each run once",
                        other.label,
                        source.label
                    );
                }
                let mut baseline = Baseline::read(&source.root, &source.baseline);
                baseline.label.clone_from(&source.label);
                named.push(source);
                Ok(baseline)
            })
            .collect()
    };
    let (base, new) = (side(&args.base)?, side(&args.new)?);
    for other in roots.iter().filter(|root| *root != &named[0].root) {
        let there = baselines(other);
        if names().all(|name| there.contains(name.trim())) {
            let other = other.display();
            eprintln!(
                "note: these baselines are also in {other}: `--results {other}` compares them"
            );
        }
    }
    if base.len() != new.len() {
        bail!(
            "{} runs against {}: runs are compared in pairs, so name as many on one side as on the other",
            base.len(),
            new.len()
        );
    }
    args.verdict.show(&compare(&base, &new, &options))
}

/// Where Criterion and the suite write results in this package or workspace. Bench executables run in the
/// folder of their package, so a relative path may lead into each of them.
pub(crate) fn results_folders() -> Vec<PathBuf> {
    let home = path_in("CRITERION_HOME");
    if let Some(home) = home.as_ref().filter(|home| home.is_absolute()) {
        return vec![home.clone()];
    }
    let workspace = Workspace::read(Command::new("cargo")).ok();
    let homes = home.map_or_else(
        || {
            let target = path_in("CARGO_TARGET_DIR")
                .or_else(|| Some(workspace.as_ref()?.target_directory.clone()));
            let target = target.unwrap_or_else(|| "target".into());
            vec!["target-reports/criterion".into(), target.join("criterion")]
        },
        |home| vec![home],
    );
    let here = std::env::current_dir().unwrap_or_default();
    let shown = |path: &Path| path.strip_prefix(&here).unwrap_or(path).to_owned();
    let mut found: Vec<PathBuf> = homes.iter().map(|home| shown(home)).collect();
    for package in workspace.iter().flat_map(Workspace::folders) {
        for home in &homes {
            let folder = shown(&package.join(home));
            if folder.is_dir() && !found.contains(&folder) {
                found.push(folder);
            }
        }
    }
    found
}
