//! The command line: `crossover` and its subcommands on results that are planted, and the scripts.

// These tests send signals, plant scripts of a shell, and link.
#[cfg(unix)]
mod ab;
#[cfg(unix)]
mod ab_hooks;
#[cfg(unix)]
mod ab_null;
#[cfg(unix)]
mod ab_projects;
#[cfg(unix)]
mod ab_settings;
mod baselines;
#[cfg(unix)]
mod bundle;
mod command;
mod compare;
#[cfg(unix)]
#[path = "../runs/full_disk.rs"]
mod full_disk;
mod h200;
#[cfg(unix)]
mod history;
#[path = "../runs/printed.rs"]
mod printed;
#[cfg(unix)]
mod release;
#[cfg(unix)]
mod repositories;
mod stored;
#[cfg(unix)]
mod thresholds;

use std::process::ExitCode;

use libtest_mimic::Arguments;

use crate::printed::named;

fn main() -> ExitCode {
    // `ab` links to all that lies beside a repository and the folders around it, in `/tmp` often thousands of
    // files.
    #[cfg(unix)]
    let _temporary = {
        let of_caller = std::env::var_os("TMPDIR");
        let parent = of_caller.unwrap_or_else(|| "/var/tmp".into());
        let folder = tempfile::tempdir_in(parent).or_else(|_| tempfile::tempdir());
        let folder = folder.expect("a temporary folder");
        let path = folder.path().canonicalize().expect("it is there");
        // SAFETY: this is the only thread.
        unsafe { std::env::set_var("TMPDIR", path) };
        folder
    };
    // The tests that wait longest come first.
    #[cfg(unix)]
    let mut trials = named![
        ab_projects::slow_benchmarks_leave_the_others_their_time,
        ab::a_benchmark_that_fails_is_an_error_whatever_the_verdict,
        ab_projects::a_benchmark_that_takes_far_longer_on_one_side_fails,
        ab_hooks::a_commit_holds_what_was_staged,
        ab_projects::bundles_of_a_project_are_compared_without_its_sources,
        ab_projects::packages_targets_and_features_are_those_that_a_side_has,
        ab_settings::each_process_has_an_order_of_functions_of_its_own,
        ab_settings::sides_never_share_an_executable_whatever_folder_the_settings_name,
        ab::short_processes_run_in_turn_and_are_compared_pair_by_pair,
        ab::benchmarks_that_cannot_be_compared_are_named,
        ab::what_is_neither_a_revision_nor_a_bundle_has_its_remedy,
        ab::a_name_is_a_revision_if_git_knows_it,
        ab::revisions_are_built_and_run_at_one_path_and_the_work_tree_is_left_alone,
        ab::a_second_comparison_builds_elsewhere,
        ab::complete_pairs_are_compared_where_nothing_more_can_be_written,
        ab::a_comparison_that_cannot_be_shown_is_kept,
        ab::equal_executables_are_not_run,
        ab::another_toolchain_and_another_lock_file_are_named,
        ab::a_temporary_folder_that_is_too_small_is_named,
        ab_hooks::an_alias_a_rebase_and_a_commit_of_all_changes_go_on,
        ab_hooks::a_repository_of_another_user_needs_the_users_consent,
        ab_hooks::submodules_are_compared_too,
        ab_hooks::the_work_tree_is_compared_as_it_is,
        ab_hooks::repositories_of_all_kinds_are_compared,
        ab_hooks::a_build_is_stamped_with_the_commit_of_its_own_repository,
        ab_null::a_revision_compared_with_itself_shows_what_to_trust,
        ab_projects::an_executable_is_asked_for_what_it_knows,
        ab_projects::every_bench_target_is_compared_or_named,
        ab_projects::a_benchmark_that_reads_standard_input_finds_it_empty,
        ab_projects::a_name_that_acts_on_a_terminal_is_left_out_and_never_printed,
        ab_projects::the_action_leaves_a_summary_a_comment_and_a_folder,
        ab_projects::the_action_compares_what_its_event_changed,
        ab_projects::the_action_compiles_the_command_once_and_for_itself,
        ab_projects::the_action_keeps_results_and_shows_their_history,
        ab_settings::sides_that_were_built_to_one_file_are_refused,
        ab_settings::both_sides_are_built_with_what_cargo_finds_around_the_repository,
        ab_settings::both_sides_get_the_toolchain_of_the_users_shell,
        ab_settings::settings_and_files_that_cannot_apply_are_named,
        bundle::the_launcher_calls_each_executable_as_cargo_would,
        bundle::bundling_refuses_what_it_would_spoil,
        command::profile::in_a_checkout_cargo_runs_it,
        command::profile::in_a_bundle_its_launcher_runs_it,
        command::profile::impossible_options_are_refused_before_building,
        command::absent_and_broken_libraries_are_named_with_the_remedy,
        command::advise_answers_with_the_record_of_another_machine_and_says_whose_it_is,
        compare::baselines_of_a_workspace_are_found_from_each_of_its_folders,
        history::a_step_is_suspected_once_with_the_command_that_confirms_it,
        release::a_release_that_is_ready_has_its_commands_in_order,
        release::what_a_release_lacks_is_named,
        stored::files_are_written_where_nothing_can_be_printed,
        thresholds::a_table_becomes_answers_and_a_file,
        thresholds::each_fault_is_one_sentence,
        thresholds::sizes_that_do_not_count_are_named_and_end_the_answer,
        thresholds::the_results_of_hyperfine_become_answers,
        thresholds::the_table_is_not_overwritten_and_sides_are_two_names,
    ];
    #[cfg(not(unix))]
    let mut trials = Vec::new();
    trials.extend(named![
        command::the_machine_is_listed_with_or_without_a_gpu,
        compare::a_table_is_as_wide_and_as_coloured_as_it_is_asked_to_be,
        compare::a_slower_kernel_is_found_and_nothing_else,
        compare::sides_are_baselines_and_folders_or_have_a_remedy,
        compare::baselines_are_found_where_criterion_puts_them,
        compare::broken_files_are_named_and_the_rest_compared,
        compare::a_renamed_benchmark_is_gone_and_new_and_a_skip_says_why,
        compare::throttling_and_unlike_machines_are_named,
        compare::results_without_our_sidecar_compare_too,
        stored::a_report_answers_from_stored_results,
        stored::another_name_changes_no_answer,
    ]);
    let mut arguments = Arguments::from_args();
    // Processes that they start wait for some of their time.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(3 * cores);
    libtest_mimic::run(&arguments, trials).exit_code()
}
