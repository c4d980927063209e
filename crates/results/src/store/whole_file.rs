//! Reading and writing a file whole: no reader ever sees half of one, and an error names its
//! path.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::record::SCHEMA;
use crate::store::layout::{CHANGE, REPORT, TEMPORARY};
use crossover_system::files::readable_by_all;
use crossover_words::text::{is_plain, visible};

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FileError {
    path: PathBuf,
    problem: Problem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
enum Problem {
    /// The file system refused.
    #[error("{0}")]
    Io(std::io::Error),
    /// Not JSON of the expected form.
    #[error("{0}")]
    Parse(serde_json::Error),
    /// Written by a newer crossover.
    #[error(
        "schema {found} is newer than {newest}, the newest this version reads; update crossover"
    )]
    Schema { found: u64, newest: u32 },
    /// The samples beside a sidecar are not the ones it describes.
    #[error("belongs to other samples than the sample.json beside it; run the benchmark again")]
    Stale,
}

impl FileError {
    /// What the system says of the file at `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::new(path, Problem::Io(with_remedy(source)))
    }

    /// A sidecar that belongs to other samples.
    pub(super) fn stale(path: &Path) -> Self {
        Self::new(path, Problem::Stale)
    }

    fn new(path: &Path, problem: Problem) -> Self {
        let path = path.into();
        Self { path, problem }
    }

    fn parse(path: &Path, error: serde_json::Error) -> Self {
        Self::new(path, Problem::Parse(error))
    }

    /// The error without its path, for a caller that names another.
    pub(super) fn into_io(self) -> std::io::Error {
        match self.problem {
            Problem::Io(error) => error,
            other => std::io::Error::other(other),
        }
    }

    /// Whether nothing can be written any more: the disk is full, a quota or the limit of a file is
    /// used up, or the file system became read-only.
    pub fn is_no_room(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let Problem::Io(error) = &self.problem else {
            return false;
        };
        matches!(
            error.kind(),
            StorageFull | QuotaExceeded | ReadOnlyFilesystem | FileTooLarge
        )
    }

    /// The error without the path that it begins with.
    pub fn reason(&self) -> String {
        self.problem.to_string()
    }
}

/// Writes `value` as JSON beside `path` and renames it, so that no reader ever sees half a
/// file. Creates the folder.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_vec_pretty(value);
    let mut text = text.map_err(|error| FileError::parse(path, error))?;
    text.push(b'\n');
    write_atomic(path, &text)
}

/// Writes `bytes` beside `path` and renames. Creates the folder. A link stays one, and what it
/// leads to is written; a device or a pipe is written to and not replaced.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let io = |source| FileError::io(path, source);
    let found = fs::symlink_metadata(path);
    let target = match &found {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            if fs::metadata(path).is_ok_and(|led_to| !led_to.is_file() && !led_to.is_dir()) {
                return fs::write(path, bytes).map_err(io);
            }
            fs::canonicalize(path).unwrap_or_else(|_| path.into())
        }
        _ => path.into(),
    };
    let path = target.as_path();
    let dir = path.parent().unwrap_or(Path::new("."));
    if found.is_err() {
        fs::create_dir_all(dir).map_err(io)?;
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    // Temporary files are private by default; results are for sharing.
    if let Some(permissions) = readable_by_all() {
        builder.permissions(permissions);
    }
    let file = builder.tempfile_in(dir).map_err(io)?;
    file.as_file().write_all(bytes).map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    Ok(())
}

/// Copies a file, as [`write_atomic`] writes one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), FileError> {
    let bytes = fs::read(from).map_err(|e| FileError::io(from, e))?;
    write_atomic(to, &bytes)
}

/// Tries whether anything can be written to a folder: a full disk makes an empty file without
/// complaint.
pub fn try_to_write(dir: &Path) -> std::io::Result<()> {
    let probe = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .tempfile_in(dir)
        .map_err(with_remedy)?;
    let mut file = probe.as_file();
    file.write_all(&[0; 4096]).map_err(with_remedy)
}

/// Of errors for which there is room on the disk, and without the names of temporary files.
fn with_remedy(error: std::io::Error) -> std::io::Error {
    match (error.kind(), error.to_string().split_once(" at path ")) {
        (kind @ std::io::ErrorKind::FileTooLarge, _) => {
            std::io::Error::new(kind, "the file is too large, raise the limit (`ulimit -f`)")
        }
        (kind, Some((why, _))) => std::io::Error::new(kind, why),
        _ => error,
    }
}

/// Whether this is the name of a file that is being written.
pub(super) fn is_temporary(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
}

/// Removes what was being written under `root` when a process was killed or the disk was full,
/// with the empty files among Criterion's pages and in its record of the change.
pub fn sweep(root: &Path) {
    let mut walk = walkdir::WalkDir::new(root).into_iter();
    while let Some(entry) = walk.next() {
        let Ok(entry) = entry else { continue };
        let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
        let unread = || below.iter().any(|part| part == REPORT || part == CHANGE);
        let empty = || entry.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
        if !(is_temporary(entry.file_name()) || unread() && empty()) {
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

/// Reads a JSON file with a `schema` field, unknown fields ignored. Its texts are made
/// [`visible`]: they go from here to terminals, plots and pages.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    read_json_up_to(SCHEMA, path)
}

/// As [`read_json`], for a kind of file with schema numbers of its own, up to `newest`.
pub(super) fn read_json_up_to<T: DeserializeOwned>(
    newest: u32,
    path: &Path,
) -> Result<T, FileError> {
    checked(path, newest, parsed(path, &read_bytes(path)?)?)
}

/// What a file holds as JSON, as [`read_json`] reads it.
pub(super) fn checked<T: DeserializeOwned>(
    path: &Path,
    newest: u32,
    mut value: Value,
) -> Result<T, FileError> {
    make_visible(&mut value);
    if let Some(found) = value.get("schema").and_then(|s| s.as_u64())
        && found > u64::from(newest)
    {
        return Err(FileError::new(path, Problem::Schema { found, newest }));
    }
    serde_json::from_value(value).map_err(|error| FileError::parse(path, error))
}

/// Reads a JSON file of another program, with its texts unchanged, for a reader that checks each of them
/// itself.
pub(crate) fn read_json_as_it_stands<T: DeserializeOwned>(path: &Path) -> Result<T, FileError> {
    parsed(path, &read_bytes(path)?)
}

pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let io = |source| FileError::io(path, source);
    // To open a pipe would wait for its writer.
    if fs::metadata(path).map_err(io)?.is_file() {
        return fs::read(path).map_err(io);
    }
    Err(io(std::io::Error::other("is not a file; move it away")))
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, FileError> {
    serde_json::from_slice(text).map_err(|error| FileError::parse(path, error))
}

/// Whether no text of this JSON would be made [`visible`]: it holds no such character, and no escape that
/// may stand for one.
pub(super) fn is_plain_json(text: &[u8]) -> bool {
    let escapes = |pair: &[u8]| pair[0] == b'\\' && !matches!(pair[1], b'"' | b'\\' | b'/');
    std::str::from_utf8(text).is_ok_and(is_plain) && !text.windows(2).any(escapes)
}

fn make_visible(value: &mut Value) {
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

pub(super) fn digest(path: &Path) -> Result<String, FileError> {
    let bytes = fs::read(path).map_err(|e| FileError::io(path, e))?;
    Ok(Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect())
}
