//! Faults on purpose: what a user does wrong, and what goes wrong beside the measurement, each by
//! its command, exit code and sentence, with the earlier results unharmed.

mod confirmed;
mod cut_short;
mod files;
pub(crate) mod habits;
pub(crate) mod run;
mod settings;
mod signals;
mod turns;

use crate::test::tests;

tests! {
    Beside settings::bad_options_end_the_run_before_it_starts,
    Beside settings::a_device_that_was_asked_for,
    Beside settings::the_commit_of_another_package,
    Beside settings::a_small_container,
    Beside settings::a_loaded_baseline_is_not_measured,
    Beside settings::a_benchmark_that_would_take_too_long_is_left_out,
    Beside files::a_folder_that_cannot_be_written_to,
    Beside files::a_page_that_is_larger_than_a_file_may_be,
    Beside files::a_folder_whose_name_is_no_text,
    Beside files::two_runs_in_one_folder,
    Beside files::output_that_cannot_be_written,
    Beside files::limits_below_those_of_an_earlier_run,
    Beside files::records_that_are_missing_or_lead_elsewhere,
    Alone files::a_busy_host,
    Beside signals::a_closed_pipe,
    Beside signals::signals_end_a_run_in_order,
    Beside signals::a_signal_while_it_is_measured_once_more,
    Beside signals::a_killed_run_says_what_it_did_not_reach,
    Beside cut_short::a_full_disk,
    Beside cut_short::a_kill_between_any_two_bytes,
    Beside cut_short::an_interrupt_at_any_moment,
    Beside turns::messages_have_the_same_form_in_each_version,
    Beside turns::only_what_it_is_told_to_run,
    Beside turns::choices_are_said_and_taken,
    Beside turns::two_sides_take_turns_without_what_failed,
    Beside turns::what_is_undecided_is_run_again,
    Beside turns::one_side_fails,
    Beside turns::an_interrupt_between_turns,
    Beside confirmed::answers_of_several_processes,
    Beside confirmed::a_main_and_a_library_that_print_and_leave_a_process,
    Beside confirmed::processes_that_are_killed,
    Beside confirmed::what_is_not_asked,
    Beside confirmed::a_signal_while_processes_answer,
}
