//! Results as Criterion and the suite leave them, of planted times.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::model::Sidecar;
use crate::store::layout::{BENCHMARK, SAMPLE};
use crate::store::sampled::write_sidecar;

/// Writes a result into `dir`, the folder of a baseline: how many iterations each of its samples has, and
/// how long each takes, ns.
///
/// # Panics
/// If the id has no group and no size, or the files cannot be written.
pub fn plant(dir: &Path, id: &str, iters: &[f64], times: &[f64], sidecar: Option<Sidecar>) {
    let (group, rest) = id.split_once('/').expect("an id has a group");
    let (function, size) = rest.rsplit_once('/').expect("an id has a size");
    fs::create_dir_all(dir).expect("a folder");
    let benchmark = json!({
        "group_id": group,
        "function_id": function,
        "value_str": size,
        "throughput": null,
        "full_id": id,
        "directory_name": "not to be trusted",
        "title": id,
        "of_a_later_version": 1,
    });
    let samples = json!({ "sampling_mode": "Flat", "iters": iters, "times": times });
    for (file, value) in [(BENCHMARK, benchmark), (SAMPLE, samples)] {
        fs::write(dir.join(file), value.to_string()).expect("a file");
    }
    if let Some(mut sidecar) = sidecar {
        write_sidecar(&mut sidecar, dir).expect("a sidecar");
    }
}
