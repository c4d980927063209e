//! The suite: one executable, one module a group. `cargo bench -- --help` lists the options,
//! `docs/architecture.md` the rooms behind it.

use std::process::ExitCode;

use crossover::suite::Suite;
use crossover::workload::run_child;

mod cold_start;
mod graph_replay;
mod host_sync;
mod loader;
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
    suite.add(matmul::group());
    suite.add(matmul_batched::group());
    suite.add(matmul_skinny::group());
    suite.add(precision::group());
    suite.add(nested_sine::group());
    suite.add(graph_replay::group());
    suite.add(cold_start::group());
    suite.add(timing_methods::spin());
    suite.add(timing_methods::product());
    suite.add(transfer::group());
    suite.add(streams::group());
    suite.add(loader::group());
    suite.add(host_sync::group());
    suite.add(memory::group());
    suite.run()
}
