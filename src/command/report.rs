//! `crossover report`: the page, the plots and `summary.json` from stored results.

use std::path::PathBuf;

use crate::report::assemble::Options;
use crate::report::{readme, write};

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
    /// Also refresh the results in a README, between `<!-- crossover:begin -->` and
    /// `<!-- crossover:end -->`: the first machine named with `--with`, else the
    /// reference, else these.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "README.md"
    )]
    readme: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    let options = Options {
        with: args.with,
        no_reference: args.no_reference,
    };
    let written = write::refresh(&args.root, &args.out, &options)?;
    print!("{written}");
    if let Some(readme) = &args.readme {
        readme::refresh(readme, &args.root, &args.out, &options)?;
        println!("refreshed: {}", readme.display());
    }
    Ok(())
}
