//! A test of whole runs.

use std::sync::{PoisonError, RwLock};

use libtest_mimic::Trial;

/// A test and its name. Tests run beside each other, but for those that need the machine for
/// themselves: their routines take so long on purpose that what is steady is told from what is not.
pub(crate) enum Test {
    Beside(&'static str, fn()),
    Alone(&'static str, fn()),
}

/// The tests of a module by their functions, each with whether others run beside it.
macro_rules! tests {
    ($($kind:ident $test:path,)*) => {
        pub(crate) const TESTS: &[crate::test::Test] =
            &[$(crate::test::Test::$kind(stringify!($test), $test)),*];
    };
}
pub(crate) use tests;

impl Test {
    pub(crate) fn is_alone(&self) -> bool {
        matches!(self, Test::Alone(..))
    }

    pub(crate) fn trial(&self, module: &str) -> Trial {
        static MACHINE: RwLock<()> = RwLock::new(());
        let (name, test, alone) = match *self {
            Test::Beside(name, test) => (name, test, false),
            Test::Alone(name, test) => (name, test, true),
        };
        Trial::test(format!("{module}::{name}"), move || {
            let _shared = (!alone).then(|| MACHINE.read().unwrap_or_else(PoisonError::into_inner));
            let _own = alone.then(|| MACHINE.write().unwrap_or_else(PoisonError::into_inner));
            test();
            Ok(())
        })
    }
}
