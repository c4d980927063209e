//! The suite with the recording driver in place of NVIDIA's: this executable starts itself again with
//! the driver's library on `LD_LIBRARY_PATH`.

mod devices;
mod faults;
mod fold;
mod golden;
mod prepared;
mod rows;
mod stand_in;
mod text;
mod timing;
mod whole;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use stand_in::TASK;

/// A group's file of what must not change.
#[path = "../../../../tests/groups/golden/part.rs"]
mod part;

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
        Ok("devices") => return devices::run(),
        Ok("faults") => return faults::run(),
        Ok("timing") => return timing::run(),
        Ok("rows") => return rows::run(),
        Ok("prepared") => return prepared::run(),
        Ok(other) => panic!("no task is called {other}"),
        Err(_) => {}
    }
    // What takes longest comes first, so that no core waits for it at the end.
    let tests: &[(&str, fn())] = &[
        ("a_call_that_fails_is_explained", faults::selected),
        ("rows_run_to_a_page", whole::page),
        ("a_run_has_few_streams", whole::streams),
        ("several_devices_are_compared_with_one", devices::answers),
        ("what_several_devices_lack_is_said", devices::absences),
        (
            "a_wait_of_another_device_that_is_missing_is_found",
            devices::waits,
        ),
        ("clocks_read_known_times_in_order", timing::known),
        ("a_wrong_number_of_launches_is_said", timing::launches),
        ("launches_are_counted_and_fit", timing::counted),
        ("what_cannot_be_timed_is_an_error", timing::errors),
        ("work_on_another_stream_is_an_error", timing::streams),
        ("a_gate_that_is_off_is_said_and_kept", timing::gate),
        ("a_stream_of_anyone_is_timed", timing::raw),
        ("each_clock_is_stored", timing::stored),
        ("a_routine_refuses_memory_of_another", prepared::refused),
        (
            "graphs_are_timed_and_take_rotating_inputs_in_turn",
            timing::graphs,
        ),
        ("streams_are_ordered_by_events", timing::tracked),
        ("no_graph_copies_memory_that_may_be_freed", timing::freed),
        ("each_cheat_gets_its_sentence", timing::guarded),
        ("what_a_machine_cannot_do_is_left_out", whole::incomplete),
        ("answers_are_confirmed_by_processes", whole::confirmed),
        ("a_profile_without_cupti_says_so", whole::profiled),
    ];
    // The second stage of CI runs it.
    let at_length: [(&str, fn()); 1] = [("every_call_that_fails_is_explained", faults::all)];
    let trial = |&(name, test): &(&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let at_length = (at_length.iter().map(trial)).map(|trial| trial.with_ignored_flag(true));
    let trials = tests.iter().map(trial).chain(at_length);
    let golden = (suite::groups().into_iter().enumerate()).map(|(at, group)| {
        Trial::test(format!("golden::{}", group.name()), move || {
            golden::group(at);
            Ok(())
        })
    });
    let trials: Vec<Trial> = trials.chain(golden).collect();
    let mut arguments = Arguments::from_args();
    // Their processes wait for some of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * cores);
    libtest_mimic::run(&arguments, trials).exit_code()
}
