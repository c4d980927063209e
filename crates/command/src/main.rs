//! The `crossover` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    crossover::run()
}
