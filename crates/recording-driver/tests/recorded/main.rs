//! The suite with the recording driver in place of NVIDIA's: this executable starts itself again with
//! the driver's library on `LD_LIBRARY_PATH`.

mod clocks;
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
        ("what_a_row_does_is_a_text", rows::text),
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
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
