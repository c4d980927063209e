//! What must not change by accident: the benchmarks of every profile, their inputs, kernels that
//! compile for every architecture and do not spill, and the documents' lists of groups.
//!
//! | file | holds |
//! | --- | --- |
//! | `benchmarks.tsv` | a line per row: its clock, its sizes (`q` those of the quick profile, `d` of the default one), the largest one that fits in 2, 8, 24 and 128 GiB of host memory with 4, 8, 24 and 139 GiB on the device, throughput and cost of the largest, role |
//! | `inputs.txt` | a line per group: the SHA-256 of the inputs of each size, the first eight digits |
//!
//! `CROSSOVER_GOLDEN=write cargo test --test groups golden` writes a change that is meant; its diff is
//! read.

mod benchmarks;
mod kernels;
mod readme;

use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

/// Tests with their names.
macro_rules! named {
    ($($test:path,)*) => { &[$((stringify!($test), $test)),*] };
}

const TESTS: &[(&str, fn())] = named![
    benchmarks::every_benchmark_is_what_it_was,
    benchmarks::every_input_is_what_it_was,
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
    if !folder().is_dir() {
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

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/groups/golden")
}

/// Whether the files are to be written anew.
fn writes() -> bool {
    std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|value| value == "write")
}

/// Fails where these are not the lines of a golden file, or writes them there.
fn hold(file: &str, now: &[String]) {
    let path = folder().join(file);
    if writes() {
        std::fs::write(&path, now.join("\n") + "\n").unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let golden: Vec<&str> = golden.lines().collect();
    for at in 0..golden.len().max(now.len()) {
        let (was, is) = (golden.get(at), now.get(at).map(String::as_str));
        assert_eq!(is, was.copied(), "line {} of {file}", at + 1);
    }
}
