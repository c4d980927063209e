//! Every implementation of every group, the example's among them, what must not change of them by
//! accident, and what goes wrong with a GPU.
//! Routines that measure a fresh process start this executable again, as the tests of whole runs
//! and of memory that another process holds do; so it has a main function of its own.

mod every;
mod example;
mod faults;
mod golden;
#[allow(dead_code, reason = "`faults::run` asks for one of them")]
#[path = "../../crates/command/tests/runs/printed.rs"]
mod printed;

use std::process::ExitCode;

use crossover::workload::run_child;
use libtest_mimic::Arguments;

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../benches/crossover/main.rs"]
mod suite;

fn main() -> ExitCode {
    if let Some(code) = run_child() {
        return code;
    }
    if std::env::var_os(example::RUN).is_some() {
        return crossover::suite::bench(crossover::package!(), || vec![example::group()]);
    }
    if std::env::var_os(faults::run::RUN).is_some() {
        return crossover::suite::bench(crossover::package!(), faults::groups);
    }
    if let Ok(leave) = std::env::var(faults::LEAVE) {
        return faults::hold(leave.parse().expect("a number of bytes"));
    }
    let mut arguments = Arguments::from_args();
    // There is one device. Without it rows of the CPU may run beside each other: they are not timed.
    if arguments.include_ignored || arguments.ignored {
        arguments.test_threads = Some(1);
    }
    // What takes longest comes first, so that no core waits for it at the end.
    let mut trials = golden::trials();
    trials.extend(example::trials());
    trials.extend(every::trials());
    trials.extend(faults::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
