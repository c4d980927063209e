//! Reading and writing a file whole: no reader ever sees half of one, and an error names its
//! path. [`Unreadable`] names a file that could not be read, for the report, the comparison and the export.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crossover_words::files::{self, check_schema, replace};
use crossover_words::text::{is_plain, visible};

use crate::store::layout::{CHANGE, ESTIMATES, REPORT, SAMPLE, TEMPORARY, is_temporary};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {error}")]
pub struct FileError {
    path: PathBuf,
    error: io::Error,
}

impl FileError {
    /// The error of the system, or of a reader of JSON, about the file at `path`.
    pub fn io(path: &Path, error: impl Into<io::Error>) -> Self {
        let (path, error) = (path.into(), with_remedy(error.into()));
        Self { path, error }
    }

    /// A file that is not as it must be.
    pub(crate) fn other(path: &Path, reason: impl Into<String>) -> Self {
        Self::io(path, io::Error::other(reason.into()))
    }

    /// The error without its path, for a caller that names another.
    pub(super) fn into_io(self) -> io::Error {
        self.error
    }

    /// Whether nothing can be written any more: the disk is full, a quota or the limit of a file is
    /// used up, or the file system became read-only.
    pub fn is_no_room(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        matches!(
            self.error.kind(),
            StorageFull | QuotaExceeded | ReadOnlyFilesystem | FileTooLarge
        )
    }

    /// The error without the path that it begins with.
    pub fn reason(&self) -> String {
        self.error.to_string()
    }
}

/// The path becomes the subject.
impl From<FileError> for Unreadable {
    fn from(error: FileError) -> Self {
        Self::new(error.path.display(), error.error)
    }
}

/// Writes `value` as JSON beside `path` and renames it, so that no reader ever sees half a
/// file. Creates the folder.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_vec_pretty(value);
    let mut text = text.map_err(|error| FileError::io(path, error))?;
    text.push(b'\n');
    write_atomic(path, &text)
}

/// Writes `bytes` beside `path` and renames. Creates the folder. A link stays one, and what it
/// leads to is written; a device or a pipe is written to and not replaced.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = |source| FileError::io(path, source);
    let Some(file) = file_behind(path) else {
        return fs::write(path, bytes).map_err(io);
    };
    if !file.exists() {
        fs::create_dir_all(folder_of(&file)).map_err(io)?;
    }
    replace(&file, bytes).map_err(io)
}

/// The file that is replaced; `None` for a device or a pipe.
fn file_behind(path: &Path) -> Option<PathBuf> {
    let is_special = |found: &fs::Metadata| !found.is_file() && !found.is_dir();
    if !fs::symlink_metadata(path).is_ok_and(|found| is_special(&found)) {
        return Some(path.into());
    }
    let leads_to_file = !fs::metadata(path).is_ok_and(|found| is_special(&found));
    leads_to_file.then(|| fs::canonicalize(path).unwrap_or_else(|_| path.into()))
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

/// Tries whether [`write_atomic`] can write a file. Creates the folder.
pub fn try_to_replace(path: &Path) -> Result<(), FileError> {
    let try_file = |file: PathBuf| {
        if file.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let folder = folder_of(&file);
        fs::create_dir_all(folder).and_then(|()| try_to_write(folder))
    };
    let tried = file_behind(path).map_or(Ok(()), try_file);
    tried.map_err(|error| FileError::io(path, error))
}

/// Copies a file, as [`write_atomic`] writes one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    let bytes = fs::read(from).map_err(|e| FileError::io(from, e))?;
    write_atomic(to, &bytes)
}

/// Tries whether anything can be written to a folder: a full disk makes an empty file without
/// complaint.
pub fn try_to_write(dir: &Path) -> io::Result<()> {
    let probe = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(dir)
        .map_err(with_remedy)?;
    let mut file = probe.as_file();
    file.write_all(&[0; 4096]).map_err(with_remedy)
}

/// Adds the remedy to the error of a file that is too large, and removes the names of temporary files.
fn with_remedy(error: io::Error) -> io::Error {
    match (error.kind(), error.to_string().split_once(" at path ")) {
        (kind @ io::ErrorKind::FileTooLarge, _) => {
            io::Error::new(kind, "the file is too large, raise the limit (`ulimit -f`)")
        }
        (kind, Some((why, _))) => io::Error::new(kind, why),
        _ => error,
    }
}

/// Removes unfinished files under `root` of a process that was killed or had a full disk, and the empty
/// files among Criterion's pages and in its record of the change.
pub fn sweep(root: &Path) {
    let mut walk = walkdir::WalkDir::new(root).into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        let empty = || entry.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
        if !(is_temporary(entry.file_name()) || empty() && is_unread(root, entry.path())) {
            continue;
        }
        // A file that cannot be removed does no harm: readers ignore it.
        let _ = if entry.file_type().is_dir() {
            walk.skip_current_dir();
            fs::remove_dir_all(entry.path())
        } else {
            fs::remove_file(entry.path())
        };
    }
}

/// Whether this is one of Criterion's pages or its record of a change, by its name and the results beside it:
/// under a root that has other files too, a user may have named a folder so.
fn is_unread(root: &Path, path: &Path) -> bool {
    let mut above = path.ancestors().skip(1).take_while(|above| *above != root);
    let is_named = |folder: &&Path| folder.ends_with(REPORT) || folder.ends_with(CHANGE);
    let Some(folder) = above.find(is_named) else {
        return false;
    };
    let beside = folder_of(folder);
    if beside == root {
        return path == root.join(REPORT).join("index.html");
    }
    let kind = path.extension().unwrap_or_default();
    let is_criterions = if folder.ends_with(REPORT) {
        kind == "html" || kind == "svg"
    } else {
        path == folder.join(ESTIMATES)
    };
    // `<group>/<function>/<size>/new/sample.json`, seen from the group.
    let near = walkdir::WalkDir::new(beside).max_depth(4).into_iter();
    is_criterions && near.flatten().any(|entry| entry.file_name() == SAMPLE)
}

/// Reads a JSON file with a `schema` field of at most `newest`, unknown fields ignored. Its texts are made
/// [`visible`]: they go from here to terminals, plots and pages.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path, newest: u32) -> Result<T, FileError> {
    of_schema(path, newest, read_json_as_it_stands(path)?)
}

/// The content of a JSON file, as [`read_json`] reads it.
pub(super) fn of_schema<T: DeserializeOwned>(
    path: &Path,
    newest: u32,
    mut value: Value,
) -> Result<T, FileError> {
    make_visible(&mut value);
    let schema = value.get("schema").and_then(Value::as_u64);
    check_schema(schema, newest).map_err(|error| FileError::io(path, error))?;
    serde_json::from_value(value).map_err(|error| FileError::io(path, error))
}

/// Reads a JSON file of another program, with its texts unchanged, for a reader that checks each of them
/// itself.
pub(crate) fn read_json_as_it_stands<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    serde_json::from_slice(&read_bytes(path)?).map_err(|error| FileError::io(path, error))
}

pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    files::read(path).map_err(|error| FileError::io(path, error))
}

pub(super) fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) if !is_plain(text) => *text = visible(text),
        Value::Array(values) => values.iter_mut().for_each(make_visible),
        Value::Object(fields) => {
            if !fields.keys().all(|key| is_plain(key)) {
                let named = std::mem::take(fields).into_iter();
                fields.extend(named.map(|(key, value)| (visible(&key), value)));
            }
            fields.values_mut().for_each(make_visible);
        }
        _ => {}
    }
}

/// Something that was left out while reading, and why. Both texts are safe to show, whatever the
/// name of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The file, folder or id.
    pub what: String,
    /// The cause, and the remedy where there is one.
    pub reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

impl Unreadable {
    /// A file or result that could not be read, and why.
    pub fn new(what: impl ToString, reason: impl ToString) -> Self {
        Self {
            what: visible(&what.to_string()),
            reason: visible(&reason.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root is the folder of a project.
    #[test]
    fn a_sweep_removes_what_runs_left_and_no_file_of_a_user() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let left = [
            "g/cpu/1/.crossover-unfinished-1",
            "g/cpu/1/report/both/pdf.svg",
            "g/cpu/1/change/estimates.json",
            "g/report/index.html",
            "report/index.html",
        ];
        let others = [
            "g/cpu/1/new/sample.json",
            "g/cpu/1/report/.gitkeep",
            "g/cpu/1/change/.gitkeep",
            "report/empty.svg",
            "src/report/index.html",
            "src/change/estimates.json",
            ".crossover-thresholds.json",
        ];
        for name in left.into_iter().chain(others) {
            write_atomic(&root.join(name), b"").unwrap();
        }
        sweep(root);
        for name in left {
            assert!(!root.join(name).exists(), "{name}");
        }
        for name in others {
            assert!(root.join(name).exists(), "{name}");
        }
    }
}
