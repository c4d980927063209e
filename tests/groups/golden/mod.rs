//! What must not change by accident: the benchmarks of every profile, their inputs, kernels that
//! compile for every architecture and do not spill, and the documents' lists of groups.
//!
//! | part of `tests/golden/<group>.txt` | has |
//! | --- | --- |
//! | `[benchmarks]` | a line per row, [tab-separated](benchmarks::COLUMNS) |
//! | `[inputs]` | the SHA-256 of the inputs of each size, the first eight digits |
//! | `[recorded calls]` | what each GPU row asks of the driver, by the test `recorded` |
//!
//! `CROSSOVER_GOLDEN=write cargo test --test groups golden` writes a change that is meant; its diff is
//! read.

mod benchmarks;
mod kernels;
pub(crate) mod part;
mod readme;

use std::path::Path;

use libtest_mimic::Trial;

/// Tests with their names.
macro_rules! named {
    ($($test:path,)*) => { &[$((stringify!($test), $test)),*] };
}

const TESTS: &[(&str, fn())] = named![
    benchmarks::every_benchmark_is_what_it_was,
    benchmarks::every_input_is_what_it_was,
    benchmarks::every_file_is_of_a_group,
    readme::documents_list_the_groups_with_their_questions,
    readme::every_group_has_a_heading_and_a_question,
    kernels::compile::names_are_unique_since_modules_are_kept_by_name,
    kernels::compile::every_file_of_the_folder_is_of_a_group_or_of_the_limits,
];

/// Tests that compile kernels.
const COMPILING: &[(&str, fn())] = named![
    kernels::compile::every_source_compiles_for_each_architecture_it_claims_and_does_not_spill,
    kernels::compile::spills_are_seen_where_there_are_some,
    kernels::compile::a_rejected_source_shows_the_compilers_words,
    kernels::table::the_recording_driver_knows_every_kernel,
];

pub(crate) fn trials() -> Vec<Trial> {
    // A bundle travels without the sources.
    if part::folder().is_none() {
        return Vec::new();
    }
    let trial = |&(name, test): &(&str, fn())| {
        Trial::test(format!("golden::{name}"), move || {
            test();
            Ok(())
        })
    };
    let missing = kernels::nvrtc_is_missing();
    if let Some(why) = missing {
        eprintln!("{why}");
    }
    let compiling = |test| {
        trial(test)
            .with_kind("NVRTC")
            .with_ignored_flag(missing.is_some())
    };
    let compiling = COMPILING.iter().map(compiling);
    TESTS.iter().map(trial).chain(compiling).collect()
}

/// Fails where these are not the lines of a file, or writes them there.
fn hold_file(path: &Path, now: &[String]) {
    let now = now.join("\n") + "\n";
    if part::writes() {
        std::fs::write(path, &now).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    part::same(&path.display().to_string(), &golden, &now);
}
