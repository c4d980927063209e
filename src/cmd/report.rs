//! `crossover report`: the page, the plots and `summary.json` from stored results.

use std::path::PathBuf;

use crossover::report::{self, Options};

/// Make the report from stored results: crossovers, findings, plots and summary.json.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Criterion's results.
    #[arg(
        long,
        value_name = "DIR",
        env = "CRITERION_HOME",
        default_value = "target-reports/criterion"
    )]
    root: PathBuf,
    /// Where index.html, plots/ and summary.json go.
    #[arg(long, value_name = "DIR", default_value = "target-reports")]
    out: PathBuf,
    /// Another machine's results to draw beside these; may be given several times.
    #[arg(long, value_name = "DIR")]
    with: Vec<PathBuf>,
    /// Leave out the reference machines in <OUT>/reference/.
    #[arg(long)]
    no_reference: bool,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let options = Options {
        with: args.with,
        no_reference: args.no_reference,
    };
    let written = report::refresh(&args.root, &args.out, &options)?;
    print!("{written}");
    Ok(())
}
