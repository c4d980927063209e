//! The record of a machine: one file with the results for pages, comparisons of machines and programs,
//! without samples. It is JSON, packed by gzip, whose checksum detects a truncated file.
//! [`export`](crate::export) describes its content. Conclusions such as answers are computed anew, not
//! read from the file.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;
use serde_json::Value;

use crate::model::record::RunRecord;
use crate::store::curves::Benchmark;
use crate::store::profiles::Profiled;
use crate::store::stored_results::StoredResults;
use crate::store::whole_file::{FileError, Unreadable, of_schema, read_bytes, write_atomic};
use crossover_profile::Profile;
use crossover_words::text::is_plain;

/// Version of the form. A field may be added without raising it; none changes its meaning.
pub const SCHEMA: u32 = 1;

/// Tells a record from other files.
pub const KIND: &str = "crossover machine record";

/// Folder of the committed records, beside a page: a folder for each machine.
pub const MACHINES: &str = "machines";

/// How the name of a record ends.
pub const EXTENSION: &str = ".json.gz";

/// Upper bound on the bytes of a record once it is unpacked. The largest so far has 2 MB.
const LARGEST: u64 = 32 << 20;

/// The parts of a record that are read.
#[derive(Deserialize)]
struct RecordFile {
    kind: String,
    schema: u32,
    runs: Vec<RunRecord>,
    benchmarks: Vec<Benchmark>,
    profiles: Vec<Profile>,
    #[serde(default)]
    left_out: Vec<Unreadable>,
}

/// Whether the file has the name of a record.
pub(crate) fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().ends_with(EXTENSION)
}

/// Writes a record, replacing what is there as a whole. Equal records have equal bytes.
///
/// # Errors
/// A file that cannot be written.
pub fn write(path: &Path, record: &Value) -> Result<(), FileError> {
    let pack = || -> io::Result<Vec<u8>> {
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::best());
        // Each write clears the rest of the buffer of the encoder, so there is one.
        packed.write_all(&serde_json::to_vec(record)?)?;
        packed.finish()
    };
    let packed = pack().map_err(|error| FileError::io(path, error))?;
    write_atomic(path, &packed)
}

/// Reads a record.
///
/// # Errors
/// A file that cannot be read, or is damaged, newer, or no record of a machine.
pub fn read(path: &Path) -> Result<StoredResults, FileError> {
    let refuse = |reason: &str| FileError::other(path, reason);
    let text = unpacked(&read_bytes(path)?).map_err(refuse)?;
    let record = match as_written(&text) {
        Some(record) => record,
        None => checked(path, &text)?,
    };
    let mut contents = StoredResults {
        runs: record.runs,
        left_out: record.left_out,
        ..StoredResults::default()
    };
    let mut ids = BTreeSet::new();
    for benchmark in record.benchmarks {
        let is_known = ids.contains(&benchmark.id);
        let again = is_known.then_some("is there twice; only the first counts");
        match benchmark.flaw().or(again) {
            Some(reason) => (contents.problems).push(Unreadable::new(&benchmark.id, reason)),
            None => contents.add(benchmark),
        }
        // A result that was refused does not count as the first.
        ids.extend(contents.benchmarks.last().map(|b| b.id.clone()));
    }
    for profile in record.profiles {
        match Profiled::of(profile, Path::new(""), path) {
            Ok(profiled) => contents.profiles.push(profiled),
            Err(problem) => contents.problems.push(problem),
        }
    }
    Ok(contents)
}

/// The record, if it has this version's form and all its texts are plain, which most are: a tree of values
/// would take three times as long.
fn as_written(text: &[u8]) -> Option<RecordFile> {
    let text = std::str::from_utf8(text).ok()?;
    // Without an escape, a text has the characters that stand in the file.
    let is_plain = !text.contains('\\') && is_plain(text);
    let record: RecordFile = is_plain.then(|| serde_json::from_str(text).ok())??;
    (record.kind == KIND && record.schema <= SCHEMA).then_some(record)
}

/// The record with its texts made visible.
fn checked(path: &Path, text: &[u8]) -> Result<RecordFile, FileError> {
    let refuse = |reason: &str| FileError::other(path, reason);
    let foreign = "is no record of a machine: name a file that `crossover export` wrote";
    let value: Value = serde_json::from_slice(text).map_err(|_| refuse(foreign))?;
    if value["kind"] != KIND {
        return Err(refuse(foreign));
    }
    if !value["schema"].is_u64() {
        return Err(refuse("has no schema version; export the results again"));
    }
    of_schema(path, SCHEMA, value)
}

/// The JSON of a record, or why there is none.
pub(super) fn unpacked(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    if !packed.starts_with(&[0x1f, 0x8b]) {
        return Err("is not packed by gzip: name a file that `crossover export` wrote");
    }
    let mut text = Vec::new();
    let mut decoder = GzDecoder::new(packed);
    let damaged = "is damaged or incomplete; copy or export it again";
    let mut limited = decoder.by_ref().take(LARGEST + 1);
    limited.read_to_end(&mut text).map_err(|_| damaged)?;
    if text.len() as u64 > LARGEST {
        return Err("unpacks to more than 32 MiB, and no record of a machine does");
    }
    if !decoder.into_inner().is_empty() {
        return Err(damaged);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::curves::tests::benchmark;

    /// A benchmark as it is stored.
    fn stored() -> Benchmark {
        benchmark("a/cpu/b/1", &[1.0], None)
    }

    /// The record of these benchmarks, read again.
    fn read_again(benchmarks: &[Benchmark]) -> StoredResults {
        let record = json!({
            "kind": KIND,
            "schema": SCHEMA,
            "runs": [],
            "benchmarks": benchmarks,
            "profiles": [],
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json.gz");
        write(&path, &record).unwrap();
        read(&path).unwrap()
    }

    #[test]
    fn a_sound_result_counts_behind_a_refused_one_of_its_id() {
        let refused = Benchmark {
            median_ns: -1.0,
            ..stored()
        };
        let read = read_again(&[refused, stored(), stored()]);
        assert_eq!((read.benchmarks.len(), read.problems.len()), (1, 2));
        assert!(read.problems[1].reason.contains("twice"));
    }

    #[test]
    fn a_text_that_acts_on_a_terminal_is_made_visible() {
        for (note, shown) in [
            ("2 µs", "2 µs"),
            ("\"a\" \\u001b", "\"a\" \\u001b"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("\u{202e}txt", "\\u{202e}txt"),
        ] {
            let benchmark = Benchmark {
                notes: vec![note.to_owned()],
                extra: [(note.to_owned(), 1.0)].into(),
                ..stored()
            };
            let read = read_again(&[benchmark]).benchmarks.remove(0);
            assert_eq!(read.notes, [shown]);
            assert!(read.extra.into_keys().eq([shown]));
        }
    }
}
