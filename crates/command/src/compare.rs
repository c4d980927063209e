//! `crossover compare BASE NEW`: verdicts over stored baselines.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use crate::verdict::VerdictArgs;
use crossover_compare::comparison::compare;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::source::Source;

/// Compare two stored baselines: faster, slower, same, unsure, new or gone
///
/// BASE and NEW are each the name of a baseline (`cargo bench -- --save-baseline NAME`), a
/// folder of results (its latest run), or FOLDER:NAME for a baseline in a folder. Give
/// several runs per side, separated by commas, to compare them pair by pair: `main-1,main-2
/// mine-1,mine-2`.
///
/// Exit code: 0 clean, 1 slower (see --fail-on), 2 nothing could be compared.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The old results
    base: String,
    /// The new results
    new: String,
    /// Folder of the results (CRITERION_HOME)
    #[arg(
        long,
        value_name = "FOLDER",
        default_value_os_t = crate::results_folder()
    )]
    results: PathBuf,
    #[command(flatten)]
    verdict: VerdictArgs,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let options = args.verdict.options()?;
    let mut named: Vec<Source> = Vec::new();
    let mut side = |names: &str| -> anyhow::Result<Vec<Baseline>> {
        names
            .split(',')
            .map(|name| {
                let source = Source::resolve(name.trim(), &args.results)?;
                let same = |other: &Source| {
                    (&other.root, &other.baseline) == (&source.root, &source.baseline)
                };
                if let Some(other) = named.iter().find(|other| same(other)) {
                    bail!(
                        "{} and {} are the same run: name each run once",
                        other.label,
                        source.label
                    );
                }
                let baseline = Baseline::read(&source);
                named.push(source);
                Ok(baseline)
            })
            .collect()
    };
    let (base, new) = (side(&args.base)?, side(&args.new)?);
    if base.len() != new.len() {
        bail!(
            "{} runs against {}: runs are compared in pairs, so name as many on one side as on the other",
            base.len(),
            new.len()
        );
    }
    args.verdict.show(&compare(&base, &new, &options))
}
