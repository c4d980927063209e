//! Reading files and replacing them at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The names of unfinished files and folders begin with this.
pub const TEMPORARY: &str = ".crossover-unfinished-";

/// Reads a file. A pipe, whose writer this would wait for, is an error.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.is_file() {
        return fs::read(path);
    }
    Err(io::Error::other("is not a file; move it away"))
}

/// A schema above the newest known one is an error.
pub fn check_schema(found: Option<u64>, newest: u32) -> io::Result<()> {
    match found.filter(|found| *found > u64::from(newest)) {
        None => Ok(()),
        Some(found) => Err(io::Error::other(format!(
            "schema {found} is newer than {newest}, the newest this version reads; update crossover"
        ))),
    }
}

/// Writes a file beside `path` and renames it: a reader sees the old file until the new one is complete.
///
/// # Errors
/// The system's. No unfinished file is left.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Processes in two containers may have the same number.
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let (process, number) = (process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let unfinished =
        path.with_file_name(format!("{TEMPORARY}{process}-{}-{number}", now.as_nanos()));
    let mut file = File::create_new(&unfinished)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("crossover-words-{}", process::id()));
        // A process of this number that was killed may have left it.
        let _ = fs::remove_dir_all(&folder);
        let path = folder.join("x.json");
        assert!(replace(&path, b"new").is_err());
        fs::create_dir_all(path.join("a folder in place of the file")).unwrap();
        assert!(replace(&path, b"new").is_err());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&path).unwrap();
        replace(&path, b"old").unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), b"new");
        let error = read(&folder).unwrap_err();
        assert_eq!(error.to_string(), "is not a file; move it away");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
