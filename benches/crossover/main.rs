//! The suite: one executable, one module a group. `cargo bench -- --help` lists the options,
//! `docs/architecture.md` the rooms behind it.

use std::process::ExitCode;

use crossover::suite::Suite;

mod graph_replay;
mod matmul;
mod nested_sine;

fn main() -> ExitCode {
    let mut suite = match Suite::from_env() {
        Ok(suite) => suite,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    suite.run(matmul::group());
    suite.run(nested_sine::group());
    suite.run(graph_replay::group());
    suite.finish()
}
