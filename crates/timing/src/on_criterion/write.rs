//! Atomic replacement of files.

use std::path::Path;
use std::{fs, io};

/// Writes a file in `folder`, and creates the folder if need be. A reader sees the old file until
/// the new one is complete.
///
/// # Errors
/// A sentence that names the path.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = folder.join(name);
    let unfinished = folder.join(format!(".{name}.{}", std::process::id()));
    let write = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(&unfinished, text)?;
        fs::rename(&unfinished, &path)
    };
    write().map_err(|e| {
        // It does not exist where the folder could not be created.
        let _ = fs::remove_file(&unfinished);
        format!("{} could not be written: {e}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_in_whole_and_a_failure_names_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        write(&folder, "x.json", "old").unwrap();
        write(&folder, "x.json", "new").unwrap();
        assert_eq!(fs::read_to_string(folder.join("x.json")).unwrap(), "new");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // A file stands where the folder should be.
        let error = write(&folder.join("x.json"), "y.json", "").unwrap_err();
        assert!(error.contains("y.json could not be written"), "{error}");
    }
}
