//! A profile that was recorded on an H200, for tests.

use std::path::{Path, PathBuf};

use crate::model::id::Id;
use crate::store::profiles::path;
use crate::store::whole_file::write_json;
use crossover_profile::Profile;

/// Copies to the device, a kernel and copies back, as the profile of this benchmark.
pub fn recorded(id: &str) -> Profile {
    let recorded = serde_json::from_str(include_str!("planted.json"));
    Profile {
        benchmark: id.to_owned(),
        ..recorded.expect("a profile")
    }
}

/// Writes a profile to its place under `root`; gives the benchmark's folder.
pub fn plant(root: &Path, profile: &Profile) -> PathBuf {
    let id: Id = profile.benchmark.parse().expect("an id");
    let dir = root.join(id.directory());
    write_json(&path(&dir), profile).expect("a temporary folder can be written");
    dir
}
