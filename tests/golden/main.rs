//! What must not change by accident: the benchmarks of every profile, their inputs, the
//! kernels' machine code, and the README's list of groups.
//!
//! | file | holds |
//! | --- | --- |
//! | `benchmarks.tsv` | a line per benchmark: profiles (and `untried`, where no device has run it), memories that it fits, clock, throughput, cost, Criterion's folder, role |
//! | `inputs.tsv` | SHA-256 of the inputs of each group and size |
//!
//! New benchmarks, groups and fields may be added without touching any of these. A change that
//! is meant is written by `CROSSOVER_GOLDEN=write cargo test --test golden`, and its diff is
//! read.

mod benchmarks;
mod kernels;
mod readme;

use std::path::{Path, PathBuf};

/// The suite's own list of groups.
#[allow(dead_code, reason = "its main function is the bench executable's")]
#[path = "../../benches/crossover/main.rs"]
mod suite;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Whether the files are to be written anew.
fn writes() -> bool {
    std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write")
}

/// The golden lines of a file, or the lines that are now its content.
fn golden_lines(file: &str, now: &[String]) -> Vec<String> {
    let path = folder().join(file);
    if writes() {
        std::fs::write(&path, now.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(str::to_owned).collect()
}
