//! Faults on purpose: what a user does wrong, and what goes wrong beside the measurement, each by
//! its command, exit code and sentence, with the earlier results unharmed.

mod confirmed;
mod cut_short;
mod driven;
pub(crate) mod files;
pub(crate) mod habits;
pub(crate) mod run;
mod settings;
mod signals;
mod turns;

use crate::test::tests;

tests! {
    Beside bad_options_end_the_run_before_it_starts: settings::bad_options,
    Beside a_folder_that_cannot_be_written_to: files::unwritable_folder,
    Beside ceilings_below_those_of_an_earlier_run: files::low_ceilings,
    Beside a_page_that_is_larger_than_a_file_may_be: files::too_large_a_page,
    Beside a_folder_whose_name_is_no_text: files::name_that_is_no_text,
    Beside two_runs_in_one_folder: files::two_runs,
    Beside a_filter_that_selects_nothing: settings::selects_nothing,
    Beside a_device_that_was_asked_for: settings::device_asked_for,
    Beside the_commit_of_another_package: settings::commit_of_another,
    Beside a_folder_without_locks: files::no_locks,
    Alone a_busy_host: files::busy_host,
    Beside output_that_cannot_be_written: files::unwritable_output,
    Beside records_that_are_missing_or_lead_elsewhere: files::records,
    Beside a_closed_pipe: signals::closed_pipe,
    Beside signals_end_a_run_in_order: signals::signals,
    Beside a_run_outlives_the_connection_under_nohup: signals::nohup,
    Beside a_signal_while_it_is_measured_once_more: signals::once_more,
    Beside a_killed_run_says_what_it_did_not_reach: signals::killed,
    Beside a_full_disk: cut_short::full_disk,
    Beside a_kill_between_any_two_bytes: cut_short::killed_at_a_byte,
    Beside an_interrupt_at_any_moment: cut_short::interrupted_at_a_moment,
    Beside two_sides_take_turns_without_what_failed: turns::in_turns,
    Beside what_is_undecided_is_run_again: turns::confirmed,
    Beside one_side_fails: turns::one_side_fails,
    Beside an_interrupt_between_turns: turns::interrupted,
    Beside only_what_it_is_told_to_run: driven::only,
    Beside choices_are_said_and_taken: driven::choices,
    Beside answers_of_several_processes: confirmed::answered,
    Beside a_main_and_a_library_that_print_and_leave_a_process: habits::confirmed_with_all,
    Beside processes_that_are_killed: confirmed::killed,
    Beside what_is_not_asked: confirmed::not_asked,
    Beside a_signal_while_processes_answer: confirmed::after_another,
    Beside a_small_container: settings::little_memory,
    Beside a_panic_is_one_failure_and_one_cause_one_line: settings::one_cause_one_line,
    Beside what_would_take_too_long_is_left_out: settings::too_long,
    Beside what_was_loaded_is_not_measured: settings::load_baseline,
}
