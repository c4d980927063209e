//! The sidecar beside Criterion's files of a result, bound to its samples by their digest.

use std::path::Path;

use crate::model::record::{SCHEMA, Sidecar};
use crate::store::layout::{SAMPLE, SIDECAR};
use crate::store::whole_file::{FileError, digest, read_json, write_json};

/// Writes the sidecar into `dir`, a folder with a `sample.json`, and binds it to that file.
pub fn write(sidecar: &mut Sidecar, dir: &Path) -> Result<(), FileError> {
    sidecar.samples_sha256 = digest(&dir.join(SAMPLE))?;
    write_json(&dir.join(SIDECAR), sidecar)
}

/// Reads the sidecar of `dir`; `Ok(None)` where there is none.
pub fn read(dir: &Path) -> Result<Option<Sidecar>, FileError> {
    let path = dir.join(SIDECAR);
    if !path.exists() {
        return Ok(None);
    }
    let sidecar: Sidecar = read_json(&path, SCHEMA)?;
    if sidecar.samples_sha256 != digest(&dir.join(SAMPLE))? {
        let reason =
            "belongs to other samples than the sample.json beside it; run the benchmark again";
        return Err(FileError::other(&path, reason));
    }
    Ok(Some(sidecar))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_words::Clock;

    #[test]
    fn a_sidecar_of_other_samples_is_stale() {
        let dir = tempfile::tempdir().unwrap();
        let sample = dir.path().join(SAMPLE);
        std::fs::write(&sample, "{}").unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        let mut sidecar = Sidecar {
            extra: [("pool_peak_bytes".to_owned(), 1.5)].into(),
            notes: vec!["a note".into()],
            ..Sidecar::of("a/cpu/b/1", Clock::EventsGated)
        };
        write(&mut sidecar, dir.path()).unwrap();
        assert_eq!(read(dir.path()).unwrap(), Some(sidecar));
        std::fs::write(&sample, "{ }").unwrap();
        let error = read(dir.path()).unwrap_err();
        assert!(
            error.reason().starts_with("belongs to other samples"),
            "{error}"
        );
    }
}
