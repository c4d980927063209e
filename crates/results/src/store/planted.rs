//! Results for tests: as Criterion and the suite leave them, of planted times, and a profile that was recorded
//! on an H200.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::model::Sidecar;
use crate::model::id::Id;
use crate::store::layout::{BENCHMARK, SAMPLE};
use crate::store::profiles::path;
use crate::store::sampled::write_sidecar;
use crate::store::whole_file::write_json;
use crossover_profile::Profile;

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

/// Copies to the device, a kernel and copies back, as the profile of this benchmark.
pub fn recorded(id: &str) -> Profile {
    let recorded = serde_json::from_str(include_str!("planted.json"));
    Profile {
        benchmark: id.to_owned(),
        ..recorded.expect("a profile")
    }
}

/// Writes a profile to its place under `root`; gives the benchmark's folder.
///
/// # Panics
/// If the profile has no id, or the file cannot be written.
pub fn plant_profile(root: &Path, profile: &Profile) -> PathBuf {
    let id: Id = profile.benchmark.parse().expect("an id");
    let dir = root.join(id.directory());
    write_json(&path(&dir), profile).expect("a temporary folder can be written");
    dir
}
