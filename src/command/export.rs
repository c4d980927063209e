//! `crossover export`: results small enough to share.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::presentation::text::visible;
use crate::presentation::units;
use crate::results::export::export;
use crate::suite::settings::Settings;

/// Copy the results, without Criterion's pages and history, to a folder to share.
///
/// The folder can be put into `target-reports/reference/` of a checkout, under the machine's
/// name, or be given to `crossover report --with`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A new or empty folder.
    destination: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let results = Settings::from_env()?.results;
    let exported = export(&results, &arguments.destination)?;
    for reason in &exported.left_out {
        eprintln!("left out: {reason}");
    }
    println!(
        "{} of {} in {}",
        units::counted(exported.benchmarks, "benchmark"),
        units::counted(exported.runs, "run"),
        visible(&arguments.destination.to_string_lossy())
    );
    Ok(ExitCode::SUCCESS)
}
