//! `crossover export`: results small enough to share, and thresholds for programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use crossover_advice::Advice;

use crossover_protocol::settings::Settings;
use crossover_report::assemble::{Options, assemble};
use crossover_report::thresholds;
use crossover_results::store::export::export;
use crossover_words::text::visible;
use crossover_words::units;

/// Copy the results, without Criterion's pages and history, to a folder to share, or write the
/// thresholds that programs ask with the crate `crossover-advice`.
///
/// The folder can be put into `target-reports/reference/` of a checkout, under the machine's
/// name, or be given to `crossover report --with`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A new or empty folder.
    #[arg(required_unless_present = "thresholds")]
    destination: Option<PathBuf>,
    /// Write the thresholds to this file [default: where programs look for those of this machine]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    thresholds: Option<Option<PathBuf>>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_env()?;
    if let Some(destination) = &arguments.destination {
        let exported = export(&settings.results, destination)?;
        for reason in &exported.left_out {
            eprintln!("left out: {reason}");
        }
        println!(
            "{} of {} in {}",
            units::counted(exported.benchmarks, "benchmark"),
            units::counted(exported.runs, "run"),
            visible(&destination.to_string_lossy())
        );
    }
    if let Some(file) = &arguments.thresholds {
        let of_this_machine =
            || Advice::data_file().context("there is no home folder: name a file");
        let file = file.clone().map_or_else(of_this_machine, Ok)?;
        export_thresholds(&settings, &file)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn export_thresholds(settings: &Settings, file: &Path) -> anyhow::Result<()> {
    let report = assemble(
        &settings.results,
        settings.report_folder(),
        &Options::default(),
    )?;
    if !thresholds::write(&report, file)? {
        bail!("the results answer no question: an operation needs rows on the CPU and on a GPU");
    }
    println!("thresholds: {}", visible(&file.to_string_lossy()));
    Ok(())
}
