//! `crossover report`: the page and the plots from stored results.

use std::path::PathBuf;

use crossover_protocol::settings;
use crossover_report::report::{self, Options};
use crossover_report::{readme, write};
use crossover_words::text::visible;

/// Make the report from stored results: answers, findings and plots.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of Criterion's results (CRITERION_HOME).
    #[arg(
        long,
        value_name = "DIR",
        default_value_os_t = crate::results_folder()
    )]
    root: PathBuf,
    /// Where index.html, plots/ and record.json.gz go [default: beside the results].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Records of other machines, or folders of their results. The first with a GPU is shown if this
    /// machine has none; claims of texts are compared with all of them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Leave out the machines whose records are in <OUT>/machines/.
    #[arg(long)]
    no_reference: bool,
    /// Also write results into a README, between `<!-- crossover:begin -->` and
    /// `<!-- crossover:end -->`: those of the machine with the most answers, of the machines named with
    /// `--with` and in <OUT>/machines/, or else of this machine.
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
    let beside = || settings::report_folder(&args.root).to_owned();
    let out = args.out.unwrap_or_else(beside);
    let report = report::read(&args.root, &out, &options)?;
    let written = write::write(&report, &args.root, &out)?;
    // First, since the process ends where its output cannot be printed.
    let refreshed = (args.readme.as_deref())
        .map(|readme| readme::refresh(readme, &args.root, &out, &options).map(|()| readme));
    print!("{written}");
    if let Some(readme) = refreshed {
        println!("refreshed: {}", visible(&readme?.to_string_lossy()));
    }
    Ok(())
}
