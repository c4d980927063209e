//! `crossover compare BASE NEW`: verdicts over stored baselines. `ab` judges, shows and ends with the
//! functions here.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use regex::Regex;

use crossover_compare::comparison::{Comparison, FailOn, compare};
use crossover_compare::verdict::Options;
use crossover_results::store::baseline::{Baseline, BaselineSource};
use crossover_results::store::layout::baselines;
use crossover_results::store::whole_file::{try_to_replace, write_atomic};

use crate::ab::executable::Workspace;
use crate::{number, path_in};

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

/// How to judge and show a comparison.
#[derive(Debug, clap::Args)]
pub(crate) struct VerdictArgs {
    /// Only benchmarks whose id matches this regular expression
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Smallest change worth a verdict, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 100.0 * Options::default().threshold,
        value_parser = number(1e-9..=100.0 - 1e-9, "give a percentage between 0 and 100")
    )]
    threshold: f64,
    /// Which verdicts make the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
    /// List every benchmark, not only what changed
    #[arg(long)]
    all: bool,
    /// Print Markdown, for a pull request or the summary of a job
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON, for programs; docs/comparing.md describes it
    #[arg(long)]
    json: bool,
    /// Write a page with both curves and the change at each size
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl VerdictArgs {
    /// The options of the comparison.
    pub(crate) fn options(&self) -> Options {
        Options {
            filter: self.filter.clone(),
            threshold: self.threshold / 100.0,
            ..Options::default()
        }
    }

    /// Tries whether the page can be written, before anything is measured for it.
    pub(crate) fn check_page(&self) -> anyhow::Result<()> {
        let tried = self.html.as_deref().map_or(Ok(()), try_to_replace);
        tried.context("--html: choose another file")
    }

    /// Writes the page, prints the comparison, and returns the exit code.
    ///
    /// # Errors
    /// That the page cannot be written.
    pub(crate) fn show(&self, comparison: &Comparison) -> anyhow::Result<ExitCode> {
        // First, since the process ends where its output cannot be printed.
        let write_page = |path: &PathBuf| write(path, &comparison.page());
        let page = self.html.as_ref().map_or(Ok(()), write_page);
        let text = if self.json {
            comparison.json(self.fail_on)
        } else if self.markdown {
            comparison.markdown()
        } else {
            comparison.text(self.all)
        };
        print!("{text}");
        page?;
        let code = comparison.exit_code(self.fail_on);
        if code == 2 {
            let matching = self.filter.as_ref().map(|f| format!(" that matches `{f}`"));
            let matching = matching.unwrap_or_default();
            eprintln!(
                "error: nothing could be compared: no benchmark{matching} has comparable results on both sides"
            );
        }
        Ok(ExitCode::from(code))
    }

    /// Writes the forms for files into a folder, named `compare`.
    pub(crate) fn keep(&self, comparison: &Comparison, dir: &Path) -> anyhow::Result<()> {
        write(&dir.join("compare.html"), &comparison.page())?;
        write(&dir.join("compare.md"), &comparison.markdown())?;
        write(&dir.join("compare.json"), &comparison.json(self.fail_on))
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    write_atomic(path, text.as_bytes()).with_context(|| "the comparison could not be written")
}
