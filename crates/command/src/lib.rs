//! The command `crossover` ([`run`]), one file per subcommand. It reports, compares, profiles and
//! exports the results of bench executables; statistics and pages are in other crates.

mod ab;
mod advise;
mod compare;
mod env;
mod export;
mod history;
mod profile;
mod report;
#[cfg(test)]
mod tests;
mod thresholds;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crossover_machine::peers;
use crossover_protocol::settings::unknown_variables;
use crossover_words::text::{visible_lines, with_causes};

/// Show when a GPU beats the CPU, by how much, and where the time goes.
///
/// The benchmarks run with `cargo bench`. This command reports, compares, profiles and exports their
/// results.
#[derive(Parser)]
#[command(version, after_help = VARIABLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Ab(ab::Args),
    Advise(advise::Args),
    Bundle(ab::bundle::BundleArgs),
    Compare(compare::Args),
    Env(env::Args),
    Export(export::Args),
    History(history::HistoryArgs),
    Keep(history::KeepArgs),
    Profile(profile::Args),
    Report(report::Args),
    Thresholds(thresholds::Args),
}

const VARIABLES: &str = "\
Environment variables:
  CROSSOVER_DEVICE  index of the GPU, several with commas between, `all`, or `none`
                                                            [default: 0]
  CRITERION_HOME    folder of the results                   [default: target-reports/criterion]
  CROSSOVER_THRESHOLDS
                    file that `advise` and programs ask     [default: the results]

Exit codes: 0 success, 1 a benchmark is slower (or what --fail-on names) or a run failed,
2 nothing could be done (settings, files), 130 interrupted";

/// The `main` of the command `crossover`: runs the subcommand that the command line names, and
/// returns the exit code: 0; 1 if a benchmark is slower (or what `--fail-on` names) or a run failed;
/// 2 if nothing could be done; 130 if the user interrupted.
pub fn run() -> ExitCode {
    if let Some(code) = peers::answer() {
        return code;
    }
    let outcome = ab::record().or_else(ab::link).unwrap_or_else(subcommand);
    outcome.unwrap_or_else(|error| {
        eprintln!("crossover: {}", visible_lines(&with_causes(error.as_ref())));
        ExitCode::from(2)
    })
}

/// The path in an environment variable. An empty one counts as unset, as in [`Settings`].
///
/// [`Settings`]: crossover_protocol::settings::Settings
fn path_in(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Parses a number in this range; `good` says which numbers are.
fn number(
    range: RangeInclusive<f64>,
    good: &'static str,
) -> impl Fn(&str) -> Result<f64, &'static str> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or(good)
    }
}

/// The folder of the results where none is named.
fn results_folder() -> PathBuf {
    path_in("CRITERION_HOME").unwrap_or_else(|| "target-reports/criterion".into())
}

fn subcommand() -> anyhow::Result<ExitCode> {
    crossover_system::output::end_with_the_reader();
    crossover_system::end_where_output_fails(2);
    let arguments = Arguments::parse();
    for remark in unknown_variables() {
        eprintln!("note: {remark}");
    }
    match arguments.command {
        Command::Ab(arguments) => ab::run(&arguments),
        Command::Advise(arguments) => advise::run(&arguments),
        Command::Bundle(arguments) => ab::bundle::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::History(arguments) => history::history(&arguments),
        Command::Keep(arguments) => history::keep(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Report(arguments) => report::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Thresholds(arguments) => thresholds::run(&arguments),
    }
}

/// A text as one word for sh.
fn quoted_for_sh(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
