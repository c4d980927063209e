//! Whole runs of suites of their own, each in a process of its own. This executable is the test
//! and, when it is started by one, a bench executable with the groups of that test; so it has a
//! main function of its own.

mod faults;
mod suite;

use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

use libtest_mimic::{Arguments, Trial};

/// A test and its name. Tests run beside each other, but for those that need the machine for
/// themselves: their routines take so long on purpose that what is steady is told from what is not.
pub(crate) enum Test {
    Beside(&'static str, fn()),
    Alone(&'static str, fn()),
}

impl Test {
    fn trial(&self, of: &str) -> Trial {
        static MACHINE: RwLock<()> = RwLock::new(());
        let (name, test, alone) = match *self {
            Test::Beside(name, test) => (name, test, false),
            Test::Alone(name, test) => (name, test, true),
        };
        Trial::test(format!("{of}::{name}"), move || {
            let _shared = (!alone).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
            let _own = alone.then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
            test();
            Ok(())
        })
    }
}

fn main() -> ExitCode {
    if std::env::var_os(faults::run::RUN).is_some() {
        return crossover::command::bench(faults::groups);
    }
    if std::env::var_os(suite::run::SUITE).is_some() {
        return crossover::command::bench(suite::groups::groups);
    }
    let faults = faults::TESTS.iter().map(|test| test.trial("faults"));
    let suite = suite::TESTS.iter().map(|test| test.trial("suite"));
    libtest_mimic::run(&Arguments::from_args(), faults.chain(suite).collect()).exit_code()
}
