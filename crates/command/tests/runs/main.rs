//! Whole runs of suites of their own, each in a process of its own. This executable is the test
//! and, when it is started by one, a bench executable with the groups of `groups`; so it has a
//! main function of its own.

mod faults;
mod full_disk;
mod groups;
mod printed;
mod suite;
mod test;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if std::env::var_os(faults::run::RUN).is_some() {
        faults::habits::before_it_answers();
        return crossover_suite::suite::bench(faults::run::package(), groups::groups);
    }
    let mut arguments = Arguments::from_args();
    // They wait for more than half of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(3 * cores);
    let faults = faults::TESTS.iter().map(|test| ("faults", test));
    let suite = suite::TESTS.iter().map(|test| ("suite", test));
    let mut tests: Vec<_> = faults.chain(suite).collect();
    // In the midst of the others each would wait until all that were begun are over.
    tests.sort_by_key(|(_, test)| !test.is_alone());
    let trials = tests.into_iter().map(|(module, test)| test.trial(module));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
