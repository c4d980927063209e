//! Profiles of benchmarks, which the recorder wrote beside the results.

use std::fs;
use std::path::{Path, PathBuf};

use crate::model::id::{Id, NotAnId};
use crate::store::layout::{PROFILE, PROFILE_FILE, TRACE, walk};
use crate::store::whole_file::{FileError, Unreadable, read_json};
use crossover_profile::{Profile, SCHEMA};

/// Upper bound on the bytes of a file that is read; the recorder writes far less.
const LARGEST: u64 = 32 << 20;

/// A benchmark with a profile in its folder. It may have no result.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// The benchmark.
    pub id: Id,
    /// Folder of the profile; empty where a record of a machine holds it.
    pub dir: PathBuf,
    /// The recorded profile.
    pub profile: Profile,
}

impl Profiled {
    /// The profile in the file at `path`, of a benchmark in `dir`.
    pub(super) fn of(profile: Profile, dir: &Path, path: &Path) -> Result<Self, Unreadable> {
        let id = profile.benchmark.parse().map_err(|not: NotAnId| {
            let reason = format!(
                "is of {}, which {not}; name the benchmark so to have its profile in the report",
                profile.benchmark
            );
            Unreadable::new(path.display(), reason)
        })?;
        Ok(Self {
            id,
            dir: dir.to_owned(),
            profile,
        })
    }

    /// The trace that was recorded with it; it may not be there.
    pub fn trace(&self) -> PathBuf {
        trace(&self.dir)
    }
}

/// Where the profile of the benchmark in this folder lies.
pub fn path(dir: &Path) -> PathBuf {
    dir.join(PROFILE).join(PROFILE_FILE)
}

/// Where its trace lies.
pub fn trace(dir: &Path) -> PathBuf {
    dir.join(PROFILE).join(TRACE)
}

/// Reads the profile of the benchmark in this folder.
pub fn read(dir: &Path) -> Result<Profile, FileError> {
    let path = path(dir);
    let bytes = fs::metadata(&path).map_err(|e| FileError::io(&path, e))?;
    if bytes.len() > LARGEST {
        let reason = format!("is larger than {} MiB; profile it again", LARGEST >> 20);
        return Err(FileError::other(&path, reason));
    }
    read_json(&path, SCHEMA)
}

/// Every profile under `root`, in order of the folders, and what could not be read.
pub fn read_all(root: &Path) -> (Vec<Profiled>, Vec<Unreadable>) {
    let (mut profiles, mut problems) = (Vec::<Profiled>::new(), Vec::new());
    // Folders that cannot be read are named by the reader of results.
    for entry in walk(root).flatten() {
        let is_one = entry.file_name() == PROFILE && entry.path().join(PROFILE_FILE).is_file();
        let Some(dir) = entry.path().parent().filter(|_| is_one) else {
            continue;
        };
        let read = read(dir).map_err(Unreadable::from);
        match read.and_then(|profile| Profiled::of(profile, dir, &path(dir))) {
            Ok(profiled) => match profiles.iter().find(|first| first.id == profiled.id) {
                Some(first) => {
                    let reason = format!(
                        "is a profile of {}, as {} is, which is used; delete one of the two",
                        profiled.id,
                        path(&first.dir).display()
                    );
                    problems.push(Unreadable::new(path(dir).display(), reason));
                }
                None => profiles.push(profiled),
            },
            Err(problem) => problems.push(problem),
        }
    }
    (profiles, problems)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::planted::{plant_profile, recorded};

    const ID: &str = "chain/gpu/each/64";

    /// A file that cannot be read is named. Of two profiles of a benchmark the first counts.
    #[test]
    fn a_profile_is_read_or_its_file_is_named() {
        let replaced = |from: &'static str, to: &'static str| {
            move |path: &Path| fs::write(path, fs::read_to_string(path).unwrap().replace(from, to))
        };
        let torn = |path: &Path| fs::write(path, "{\"schema\": 1,");
        let larger = |path: &Path| {
            let file = fs::File::options().write(true).open(path)?;
            file.set_len(LARGEST + 1)
        };
        let twice = |path: &Path| {
            let folder = path.ancestors().nth(2).unwrap();
            let other = folder.with_file_name("65/profile");
            fs::create_dir_all(&other)?;
            fs::copy(path, other.join(PROFILE_FILE)).map(drop)
        };
        type Change<'a> = &'a dyn Fn(&Path) -> std::io::Result<()>;
        let changes: [(Change, usize, &str); 6] = [
            (&|_| Ok(()), 1, ""),
            (&twice, 1, "delete one of the two"),
            (
                &replaced("\"schema\": 1", "\"schema\": 2"),
                0,
                "schema 2 is newer than 1",
            ),
            (&torn, 0, "EOF"),
            (&replaced(ID, "a sort"), 0, "is of a sort, which is not"),
            (&larger, 0, "is larger than 32 MiB"),
        ];
        for (change, count, reason) in changes {
            let root = tempfile::tempdir().unwrap();
            let dir = plant_profile(root.path(), &recorded(ID));
            change(&path(&dir)).unwrap();
            let (profiles, problems) = read_all(root.path());
            assert_eq!(profiles.len(), count, "{reason}");
            assert!(profiles.iter().all(|found| found.profile == recorded(ID)));
            assert_eq!(problems.len(), usize::from(!reason.is_empty()));
            for problem in problems {
                assert!(problem.reason.contains(reason), "{}", problem.reason);
                assert!(problem.what.ends_with(PROFILE_FILE), "{}", problem.what);
            }
        }
        assert_eq!(read_all(Path::new("/no such folder")).0.len(), 0);
    }
}
