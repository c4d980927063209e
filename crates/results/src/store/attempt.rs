//! An attempt at a benchmark writes several files, and may be cut short between any two of them:
//! a kill, a full disk. Until it has left a whole result, the one that it replaces lies beside
//! it in `.earlier-<baseline>/`, an empty folder where there was none.
//!
//! While that folder exists, `<baseline>/` counts only if it is whole; otherwise the kept result
//! counts. So a reader never sees half an attempt, and a failed attempt never removes a result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::store::layout::{TEMPORARY, earlier};
use crate::store::sampled::Sampled;
use crate::store::whole_file::{FileError, copy};

/// An attempt under way, by the folders that it may write to.
#[must_use]
pub struct Attempt(Vec<PathBuf>);

impl Attempt {
    /// Sets the result in `folder` under `new` aside, and keeps a copy of `copied`, a baseline that
    /// Criterion reads before it replaces it. An attempt that was cut short is undone first.
    ///
    /// # Errors
    /// The file that the system refuses to move; then everything is as it was.
    pub(crate) fn begin(folder: &Path, new: &str, copied: Option<&str>) -> Result<Self, FileError> {
        fs::create_dir_all(folder).map_err(|e| FileError::io(folder, e))?;
        let mut this = Self(Vec::new());
        let copied = copied.map(|name| (name, true));
        for (name, stays) in [(new, false)].into_iter().chain(copied) {
            let dir = folder.join(name);
            settle(&dir);
            if let Err(error) = keep(&dir, stays) {
                this.undo();
                return Err(FileError::io(&dir, error));
            }
            this.0.push(dir);
        }
        Ok(this)
    }

    /// Commits the attempt and removes the replaced result.
    pub fn done(self) {
        for dir in &self.0 {
            // If this fails, the next attempt removes it.
            let _ = fs::remove_dir_all(earlier(dir));
        }
    }

    /// Undoes a failed attempt and restores the replaced result.
    pub fn undo(self) {
        self.0.iter().for_each(|dir| restore(dir));
    }
}

/// Ends an attempt that was cut short.
fn settle(dir: &Path) {
    let earlier = earlier(dir);
    if earlier.exists() {
        match Sampled::whole(dir) {
            Some(_) => drop(fs::remove_dir_all(&earlier)),
            None => restore(dir),
        }
    }
}

/// Whatever fails here leaves a state that readers understand and the next attempt settles.
fn restore(dir: &Path) {
    let earlier = earlier(dir);
    let _ = fs::remove_dir_all(dir);
    // An empty folder means that there was no result.
    if fs::remove_dir(&earlier).is_err() {
        let _ = fs::rename(&earlier, dir);
    }
}

fn keep(dir: &Path, stays: bool) -> io::Result<()> {
    if !dir.is_dir() {
        return fs::create_dir(earlier(dir));
    }
    if !stays {
        return fs::rename(dir, earlier(dir));
    }
    let making = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempdir_in(dir.parent().unwrap_or(Path::new(".")))?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &making.path().join(entry.file_name()))
                .map_err(FileError::into_io)?;
        }
    }
    // Whole from the moment it has the name.
    fs::rename(making.path(), earlier(dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::layout::{NEW, SAMPLE};

    fn write(dir: &Path, text: &str) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(SAMPLE), text).unwrap();
    }

    fn sample(dir: &Path) -> String {
        fs::read_to_string(dir.join(SAMPLE)).unwrap()
    }

    #[test]
    fn a_failed_attempt_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join(NEW), "earlier");
        write(&folder.join("main"), "earlier");
        let attempt = Attempt::begin(folder, NEW, Some("main")).unwrap();
        assert_eq!(
            sample(&folder.join("main")),
            "earlier",
            "Criterion reads it"
        );
        write(&folder.join(NEW), "torn");
        write(&folder.join("main"), "torn");
        attempt.undo();
        for name in [NEW, "main"] {
            assert_eq!(sample(&folder.join(name)), "earlier");
        }
        let whole = Attempt::begin(folder, NEW, None).unwrap();
        write(&folder.join(NEW), "whole");
        whole.done();
        let first = Attempt::begin(folder, "first", None).unwrap();
        write(&folder.join("first"), "torn");
        first.undo();
        assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
    }

    #[test]
    fn one_that_was_cut_short_is_undone_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write(&folder.join(NEW), "earlier");
        let _killed = Attempt::begin(folder, NEW, None).unwrap();
        write(&folder.join(NEW), "torn");
        let next = Attempt::begin(folder, NEW, None).unwrap();
        assert_eq!(sample(&earlier(&folder.join(NEW))), "earlier");
        next.undo();
        assert_eq!(sample(&folder.join(NEW)), "earlier");
    }
}
