//! The suite with the recording driver in place of NVIDIA's: this executable starts itself again with
//! the driver's library on `LD_LIBRARY_PATH`.

mod clocks;
mod fold;
mod golden;
mod rows;
mod stand_in;
mod whole;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use stand_in::TASK;

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../../../benches/crossover/main.rs"]
mod suite;

fn main() -> ExitCode {
    if let Some(code) = crossover::workload::run_child() {
        return code;
    }
    match std::env::var(TASK).as_deref() {
        // The processes that the suite starts inherit the task.
        Ok("bench") => return crossover::suite::bench(crossover::package!(), suite::groups),
        Ok("crossover") => return crossover_command::run(),
        Ok("clocks") => return clocks::measure(),
        Ok("rows") => return rows::run(),
        Ok("corrupts") => return rows::corrupt(),
        Ok(other) => panic!("no task is called {other}"),
        Err(_) => {}
    }
    let tests: &[(&str, fn())] = &[
        ("clocks_read_the_virtual_time", clocks::exact),
        ("a_gated_window_is_in_order", clocks::order),
        ("the_nth_call_fails", rows::fault),
        (
            "what_would_corrupt_memory_ends_the_process",
            rows::corrupted,
        ),
        ("rows_run_to_a_page", whole::page),
    ];
    let trials = tests.iter().map(|&(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let golden = (suite::groups().into_iter().enumerate()).map(|(at, group)| {
        Trial::test(format!("golden::{}", group.name()), move || {
            golden::group(at);
            Ok(())
        })
    });
    let trials = golden.collect::<Vec<_>>().into_iter().chain(trials);
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
