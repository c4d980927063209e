//! The suite: one executable, one module a group. `cargo bench -- --help` lists the options,
//! `docs/architecture.md` the rooms behind it.

use std::process::ExitCode;

use crossover::suite::Suite;
use crossover::workload::run_child;

mod cold_start;
mod graph_replay;
mod host_sync;
mod matmul;
mod matmul_batched;
mod matmul_skinny;
mod memory;
mod nested_sine;
mod precision;
mod streams;
mod timing_methods;
mod transfer;

fn main() -> ExitCode {
    if let Some(code) = run_child() {
        return code;
    }
    let mut suite = match Suite::from_env() {
        Ok(suite) => suite,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    suite.run(matmul::group());
    suite.run(matmul_batched::group());
    suite.run(matmul_skinny::group());
    suite.run(precision::group());
    suite.run(nested_sine::group());
    suite.run(graph_replay::group());
    suite.run(cold_start::group());
    suite.run(timing_methods::spin());
    suite.run(timing_methods::product());
    suite.run(transfer::group());
    suite.run(streams::group());
    suite.run(host_sync::group());
    suite.run(memory::group());
    suite.finish()
}
