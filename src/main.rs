//! The `crossover` command: one file a subcommand under `cmd/`.

mod cmd;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// When the GPU beats the CPU, by how much, and where the time goes.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Report(cmd::report::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Report(args) => cmd::report::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
