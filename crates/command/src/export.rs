//! `crossover export`: the record of a machine, and thresholds for programs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use crossover_advice::Advice;

use crossover_protocol::settings::Settings;
use crossover_report::report::{self, Options};
use crossover_report::thresholds;
use crossover_results::export::export;
use crossover_words::text::visible;
use crossover_words::units;

/// Copy the record of this machine that lies beside its page, or write the thresholds that programs
/// ask with the crate `crossover-advice`.
///
/// A record is one file with everything that a page shows. It has no samples, paths or serial
/// numbers. On a machine without a GPU, pages show the GPU of `crossover report --with FILE`, or of a
/// record in `target-reports/machines`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the record, such as `target-reports/machines`: it goes to
    /// `<gpu>--<cpu>/<time>--<commit>.json.gz` there, and replaces an earlier one of the same run.
    #[arg(required_unless_present = "thresholds")]
    destination: Option<PathBuf>,
    /// Write the thresholds to this file [default: where programs look for those of this machine]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    thresholds: Option<Option<PathBuf>>,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_env()?;
    let destination = arguments.destination.as_ref();
    let record = destination
        .map(|folder| export(settings.report_folder(), folder))
        .transpose()?;
    // First, since the process ends where its output cannot be printed.
    let thresholds = (arguments.thresholds.clone()).map(|file| export_thresholds(&settings, file));
    if let Some(record) = record {
        for reason in &record.left_out {
            eprintln!("left out: {reason}");
        }
        println!(
            "{} of {} in {} ({})",
            units::counted(record.benchmarks, "benchmark"),
            units::counted(record.runs, "run"),
            visible(&record.path.to_string_lossy()),
            units::bytes(record.bytes as f64)
        );
    }
    if let Some(file) = thresholds {
        println!("thresholds: {}", visible(&file?.to_string_lossy()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes them to this file, or where programs look for them, and returns its path.
fn export_thresholds(settings: &Settings, file: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let of_this_machine = || Advice::data_file().context("there is no home folder: name a file");
    let file = file.map_or_else(of_this_machine, Ok)?;
    let report = report::read(
        &settings.results,
        settings.report_folder(),
        &Options::default(),
    )?;
    let Some(thresholds) = thresholds::thresholds(&report) else {
        bail!("the results have no answers: measure an operation on the CPU and on a GPU");
    };
    thresholds::write(&thresholds, &file)?;
    Ok(file)
}
