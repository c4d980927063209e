//! The profiles of benchmarks that ran with `--profile-time`, and the reasons for missing ones.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::suite::criterion_instance::RECORDS;
use crossover_profile::Profile;
use crossover_results::store::folder::BenchmarkFolder;
use crossover_results::store::profiles::{path, read};

/// The profiles of a run.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    made: Vec<(Profile, PathBuf)>,
    /// GPU benchmarks of which nothing was recorded.
    silent: Vec<String>,
    /// Profiles that were written and cannot be read, in sentences.
    unread: Vec<String>,
    /// Number of CPU benchmarks that were run.
    on_cpu: usize,
}

impl Profiles {
    /// Adds the profile that the recorder left of a benchmark. `before` is when an earlier profile of
    /// it was written.
    pub(super) fn add(
        &mut self,
        id: &str,
        is_gpu: bool,
        folder: &BenchmarkFolder,
        before: Option<SystemTime>,
    ) {
        if !is_gpu {
            self.on_cpu += 1;
        } else if folder.profiled_at() == before {
            self.silent.push(id.to_owned());
        } else {
            match read(folder.path()) {
                Ok(profile) => {
                    let file = path(folder.path());
                    let dir = file.parent().unwrap_or(folder.path());
                    self.made.push((profile, dir.to_owned()));
                }
                Err(error) => self.unread.push(error.to_string()),
            }
        }
    }

    /// Each profile with the folder that its files lie in, in the order of the benchmarks.
    pub(crate) fn made(&self) -> impl ExactSizeIterator<Item = (&Profile, &Path)> {
        self.made.iter().map(|(profile, dir)| (profile, &**dir))
    }

    /// Which benchmarks have no profile, and why, in sentences.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.unread.clone();
        if !RECORDS {
            let reason = "nothing was recorded: this was built without the feature `profiler`; \
                          build it with its default features";
            remarks.push(reason.to_owned());
        } else if !self.silent.is_empty() {
            let ids = self.silent.join(", ");
            remarks.push(format!("no profile of {ids}: see the lines above"));
        } else if self.made.is_empty() && self.on_cpu > 0 {
            let reason = "nothing ran on a GPU: the selected benchmarks are CPU code; select ids with /gpu/ \
             (--list shows them)";
            remarks.push(reason.to_owned());
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::Id;
    use crossover_results::store::planted::{plant_profile, recorded};

    #[test]
    fn a_profile_of_an_earlier_run_or_that_cannot_be_read_is_not_taken() {
        const ID: &str = "chain/gpu/each/64";
        let root = tempfile::tempdir().unwrap();
        let folder = BenchmarkFolder::new(root.path(), Id::new("chain", "gpu/each", 64), true);
        let added = |before| {
            let mut profiles = Profiles::default();
            profiles.add(ID, true, &folder, before);
            profiles
        };
        let before = folder.profiled_at();
        let dir = plant_profile(root.path(), &recorded(ID));
        let profiles = added(before);
        let (profile, made_in) = profiles.made().next().unwrap();
        let expected = root.path().join("chain/gpu_each/64/profile");
        assert_eq!((profile, made_in), (&recorded(ID), &*expected));
        let silent = added(folder.profiled_at());
        assert_eq!(silent.made().len(), 0);
        let reason = if RECORDS { ID } else { "without the feature" };
        assert!(silent.remarks()[0].contains(reason));

        std::fs::write(path(&dir), "{").unwrap();
        let unread = added(None);
        let remarks = unread.remarks();
        assert!(remarks[0].contains("profile.json: EOF"), "{remarks:?}");
        assert_eq!(unread.made().len(), 0);
    }
}
