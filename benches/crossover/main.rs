//! The suite: one executable with all groups. `cargo bench -- --help` lists the options.

use std::process::ExitCode;

mod groups;

pub(crate) use groups::all as groups;

fn main() -> ExitCode {
    crossover_suite::suite::bench(crossover_suite::package!(), groups)
}
