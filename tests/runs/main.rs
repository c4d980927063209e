//! Whole runs of suites of their own, each in a process of its own. This executable is the test
//! and, when it is started by one, a bench executable with the groups of that test; so it has a
//! main function of its own.

mod faults;
mod suite;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    if std::env::var_os(faults::run::RUN).is_some() {
        return crossover::command::bench(faults::groups);
    }
    if std::env::var_os(suite::run::SUITE).is_some() {
        return crossover::command::bench(suite::groups::groups);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let named = |of: &str, tests: &[(&str, fn())]| -> Vec<Trial> {
        let trial = |&(name, test): &(&str, fn())| {
            Trial::test(format!("{of}::{name}"), move || {
                test();
                Ok(())
            })
        };
        tests.iter().map(trial).collect()
    };
    let mut trials = named("faults", faults::TESTS);
    trials.extend(named("suite", suite::TESTS));
    libtest_mimic::run(&arguments, trials).exit_code()
}
