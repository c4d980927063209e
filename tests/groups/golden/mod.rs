//! What must not change by accident: the benchmarks of every profile, their inputs, kernels that
//! compile for every architecture and do not spill, and the documents' lists of groups.
//!
//! | part of `tests/golden/<group>.txt` | has |
//! | --- | --- |
//! | `[benchmarks]` | a line per row, tab-separated |
//! | `[inputs]` | the SHA-256 of the inputs of each size, the first eight digits |
//!
//! A line has the row, its clock, its sizes (`q` is in the quick set, `d` in the default one), the largest that
//! fits on each of [`MEMORIES`](benchmarks::MEMORIES), and of the largest the throughput, FLOP, bytes, bytes to the
//! device and to the host, launches and role.
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
    benchmarks::every_benchmark_and_input_is_what_it_was,
    benchmarks::every_file_is_of_a_group,
    readme::the_document_lists_the_groups_with_their_questions,
    kernels::compile::every_file_of_the_folder_is_of_a_group_or_of_the_limits_once,
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
    if folder().is_none() {
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

/// The folder of the files of groups; `None` where the executable travels without the sources.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    folder.is_dir().then_some(folder)
}

/// Whether the files are to be written anew.
fn writes() -> bool {
    std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|value| value == "write")
}

/// Fails at the first line that is not the file's, or writes the lines there.
fn hold_file(path: &Path, now: &[String]) {
    if writes() {
        std::fs::write(path, now.join("\n") + "\n").unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    let golden: Vec<&str> = golden.lines().collect();
    for at in 0..golden.len().max(now.len()) {
        let now = now.get(at).map(String::as_str);
        let (line, file) = (at + 1, path.display());
        assert_eq!(
            now,
            golden.get(at).copied(),
            "line {line} of {file}. If that is meant, CROSSOVER_GOLDEN=write writes it; read the difference."
        );
    }
}
