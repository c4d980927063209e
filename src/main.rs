//! The `crossover` command: what lies around a run of the benchmarks.

mod cmd;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Shows when a GPU beats the CPU, by how much, and where the time goes.
///
/// The benchmarks themselves run with `cargo bench`; this command is for what lies around
/// them.
#[derive(Parser)]
#[command(version, after_help = VARIABLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Ab(cmd::ab::Args),
    Compare(cmd::compare::Args),
    Env(cmd::env::Arguments),
    Export(cmd::export::Arguments),
    Report(cmd::report::Args),
}

const VARIABLES: &str = "\
Environment variables:
  CROSSOVER_DEVICE  index of the GPU, or `none`             [default: 0]
  CRITERION_HOME    folder of the results                   [default: target-reports/criterion]
  RUST_BACKTRACE    1 shows an error with all its details

Exit codes: 0 success, 1 a comparison found what it was told to fail on, 2 an error";

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Ab(arguments) => cmd::ab::run(&arguments),
        Command::Compare(arguments) => cmd::compare::run(&arguments),
        Command::Env(arguments) => cmd::env::run(&arguments),
        Command::Export(arguments) => cmd::export::run(&arguments),
        Command::Report(arguments) => cmd::report::run(arguments).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        // A reader that has seen enough (`crossover env | head -1`) is no failure.
        if is_broken_pipe(&error) {
            return ExitCode::SUCCESS;
        }
        if std::env::var("RUST_BACKTRACE").is_ok_and(|v| v == "1") {
            eprintln!("crossover: {error:?}");
        } else {
            eprintln!("crossover: {error:#}");
        }
        ExitCode::from(2)
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
