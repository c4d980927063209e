//! Every implementation of every group, the example's among them, and what must not change of them by
//! accident. Routines that measure a fresh process start this executable again, as the test of the
//! example does; so it has a main function of its own.

#[cfg(feature = "profiler")]
mod activity;
mod every;
mod example;
mod golden;

use std::process::ExitCode;

use crossover_suite::suite::AnyGroup;
use crossover_suite::workload::run_child;
use libtest_mimic::{Arguments, Trial};

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../benches/crossover/main.rs"]
mod suite;

/// The suite's groups and the example's.
fn groups() -> Vec<AnyGroup> {
    let mut groups = suite::groups();
    groups.push(example::group());
    groups
}

fn main() -> ExitCode {
    crossover_machine::nccl::switch_multicast_off();
    if let Some(code) = run_child() {
        return code;
    }
    if std::env::var_os(example::RUN).is_some() {
        return crossover_suite::suite::bench(crossover_suite::package!(), || {
            vec![example::group()]
        });
    }
    // Beside a driver, NVRTC takes kernels that it compiled before from a cache, and its log is empty.
    // SAFETY: there is no other thread yet.
    unsafe { std::env::set_var("CUDA_CACHE_DISABLE", "1") };
    let mut arguments = Arguments::from_args();
    // There is one device. Without it rows of the CPU may run beside each other: they are not timed.
    if arguments.include_ignored || arguments.ignored {
        arguments.test_threads = Some(1);
    }
    // What takes longest comes first, so that no core waits for it at the end.
    let mut trials = golden::trials();
    trials.push(Trial::test(
        "the_page_has_what_the_example_declares",
        || {
            example::page();
            Ok(())
        },
    ));
    trials.extend(every::trials());
    #[cfg(feature = "profiler")]
    trials.push(
        Trial::test("activity_agrees_with_the_gated_clock", || {
            activity::agrees_with_gated().map_err(|error| error.to_string().into())
        })
        .with_ignored_flag(true),
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}
