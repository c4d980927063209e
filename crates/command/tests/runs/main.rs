//! Whole runs of suites of their own, each in a process of its own. This executable is the test
//! and, when it is started by one, a bench executable with the groups of `groups`; so it has a
//! main function of its own.

mod faults;
mod full_disk;
mod groups;
mod printed;
mod suite;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use crate::printed::named;

fn main() -> ExitCode {
    if std::env::var_os(faults::run::RUN).is_some() {
        faults::habits::before_it_answers();
        return crossover_suite::suite::bench(faults::run::package(), groups::groups);
    }
    let mut arguments = Arguments::from_args();
    // These need the machine for themselves: their routines take so long on purpose that what is steady is told
    // from what is not.
    let alone = named![
        faults::files::a_busy_host,
        suite::state_is_restored_before_each_sample_and_not_inside,
        suite::an_unsteady_benchmark_is_measured_again,
    ];
    let one_by_one = Arguments {
        test_threads: Some(1),
        ..arguments.clone()
    };
    let first = libtest_mimic::run(&one_by_one, alone);
    // The others wait for more than half of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(3 * cores);
    let trials = named![
        faults::settings::bad_options_end_the_run_before_it_starts,
        faults::settings::a_device_that_was_asked_for,
        faults::settings::the_commit_of_another_package,
        faults::settings::a_small_container,
        faults::settings::a_loaded_baseline_is_not_measured,
        faults::settings::a_benchmark_that_would_take_too_long_is_left_out,
        faults::files::a_folder_that_cannot_be_written_to,
        faults::files::a_page_that_is_larger_than_a_file_may_be,
        faults::files::a_folder_whose_name_is_no_text,
        faults::files::two_runs_in_one_folder,
        faults::files::output_that_cannot_be_written,
        faults::files::limits_below_those_of_an_earlier_run,
        faults::files::records_that_are_missing_or_lead_elsewhere,
        faults::signals::a_closed_pipe,
        faults::signals::signals_end_a_run_in_order,
        faults::signals::a_signal_while_it_is_measured_once_more,
        faults::signals::a_killed_run_says_what_it_did_not_reach,
        faults::cut_short::a_full_disk,
        faults::cut_short::a_kill_between_any_two_bytes,
        faults::cut_short::an_interrupt_at_any_moment,
        faults::turns::messages_have_the_same_form_in_each_version,
        faults::turns::choices_are_said_and_taken,
        faults::turns::nothing_to_run_is_no_error,
        faults::turns::two_sides_take_turns_without_what_failed,
        faults::turns::one_side_fails,
        faults::turns::an_interrupt_between_turns,
        faults::confirmed::answers_of_several_processes,
        faults::confirmed::a_main_and_a_library_that_print_and_leave_a_process,
        faults::confirmed::processes_that_are_killed,
        faults::confirmed::what_is_not_asked,
        faults::confirmed::a_signal_while_processes_answer,
        suite::a_run_prints_what_is_asked_for_and_writes_no_more,
        suite::a_run_leaves_its_files,
        suite::failures_are_named_and_the_rest_goes_on,
        suite::inputs_that_are_not_timed_are_verified,
        suite::a_saved_baseline_compares_with_a_later_one,
    ];
    let second = libtest_mimic::run(&arguments, trials);
    match first.has_failed() {
        true => first.exit_code(),
        false => second.exit_code(),
    }
}
