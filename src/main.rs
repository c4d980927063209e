//! The `crossover` command: one small function a subcommand.

mod cmd;

use std::process::ExitCode;

use clap::Parser;

/// When does the GPU beat the CPU, by how much, and where does the time go?
#[derive(Debug, Parser)]
#[command(version)]
enum Command {
    Compare(cmd::compare::Args),
    Ab(cmd::ab::Args),
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Compare(args) => cmd::compare::run(&args),
        Command::Ab(args) => cmd::ab::run(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        // 1 says that something is slower.
        ExitCode::from(2)
    })
}
