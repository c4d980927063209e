//! What must not change by accident: what is said of stored results.
//!
//! | file | holds |
//! | --- | --- |
//! | `stored/` | results of a real machine |
//! | `summary.json` | what `crossover report` says of their record |
//! | `compare.json` | what `crossover compare` says of them against the same, some of it made slower or faster |
//!
//! New groups and fields may be added without touching any of these. A change that is meant is
//! written by `CROSSOVER_GOLDEN=write cargo test --test stored`, and its diff is read.

mod renamed;
mod results;

use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored")
}

/// Whether the files are to be written anew.
fn writes() -> bool {
    std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write")
}
