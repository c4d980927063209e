//! The one reader and the one writer of a single result: Criterion's files in the folder of a baseline, and
//! the sidecar beside them.
//!
//! Criterion's files are no declared interface: unknown fields are ignored, ids come from
//! `benchmark.json` and never from folder names (which Criterion shortens), and times come from the
//! samples alone (Criterion's estimates are for its own comparisons).

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::record::Sidecar;
use crate::statistics::positive;
use crate::statistics::unsteady::unsteady;
use crate::store::layout::{BENCHMARK, ESTIMATES, SAMPLE, SIDECAR, keeps};
use crate::store::whole_file::{
    FileError, Unreadable, make_visible, read_bytes, read_json_as_it_stands, write_json,
};
use crossover_words::Clock;
use crossover_words::sidecar::{self, LaunchConstant, digest};
use crossover_words::text::{is_plain, visible};

/// One benchmark of a baseline.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// Time of an iteration, nanoseconds, one per sample in the order in which they were taken.
    pub ns: Vec<f64>,
    /// Whether `ns` is known to contain no times, but another quantity, such as instructions.
    pub is_count: bool,
    /// The sidecar; `None` if it is missing or belongs to other samples.
    pub sidecar: Option<Sidecar>,
    /// The clock, if a file beside it names it.
    pub clock: Option<Clock>,
    /// The launches of an iteration and their constant, if a file beside it has them.
    pub launches: Option<LaunchConstant>,
    /// The measured step of a clock of events, ns, if a file beside it has it.
    pub event_step_ns: Option<f64>,
    /// The declared work of an iteration, such as `1024 Elements`.
    pub throughput: Option<String>,
}

impl Sampled {
    /// Reads the samples in `dir` and their sidecar. A sidecar that cannot be read is named in `problems`.
    pub(super) fn read(
        dir: &Path,
        id: &str,
        problems: &mut Vec<Unreadable>,
    ) -> Result<Self, Unreadable> {
        let path = dir.join(SAMPLE);
        let samples = read_bytes(&path)?;
        let ns = times(&path, &samples)?;
        let benchmark: Option<BenchmarkFile> = read_json_as_it_stands(&dir.join(BENCHMARK)).ok();
        let beside = sidecar_of(dir, &samples, id).unwrap_or_else(|error| {
            let mut problem = Unreadable::from(error);
            problem.reason += ": its clock is unknown";
            problems.push(problem);
            Self::default()
        });
        Ok(Self {
            ns,
            throughput: benchmark.and_then(|file| throughput(&file.throughput?)),
            ..beside
        })
    }

    /// Why its samples are unsteady, in words.
    pub fn unsteady(&self) -> Option<String> {
        let measured = self.sidecar.as_ref().and_then(|it| it.unsteady.clone());
        measured.or_else(|| unsteady(self.ns.clone(), self.clock.unwrap_or(Clock::Wall)))
    }

    /// The result in `dir`, if it has every file that the suite writes, each sound.
    pub fn whole(dir: &Path) -> Option<Self> {
        let id = id_of(dir).ok()?;
        let sampled = Self::read(dir, &id, &mut Vec::new()).ok()?;
        // The estimates are of no use here, but Criterion compares the next result with them.
        let estimates = read_json_as_it_stands::<IgnoredAny>(&dir.join(ESTIMATES));
        (sampled.sidecar.is_some() && estimates.is_ok()).then_some(sampled)
    }
}

/// Writes the sidecar into `dir`, a folder with a `sample.json`, and binds it to that file.
pub(crate) fn write_sidecar(sidecar: &mut Sidecar, dir: &Path) -> Result<(), FileError> {
    sidecar.samples = digest(&read_bytes(&dir.join(SAMPLE))?);
    write_json(&dir.join(SIDECAR), sidecar)
}

/// The sidecar of these samples in `dir`, and its facts. Its id must be `id`, if the suite wrote it.
fn sidecar_of(dir: &Path, samples: &[u8], id: &str) -> Result<Sampled, FileError> {
    let Some(file) = sidecar::read(dir, samples) else {
        return Ok(Sampled::default());
    };
    let (path, clock) = (&file.path, file.clock());
    let mut fields = file.fields.map_err(|error| FileError::io(path, error))?;
    let beside = Sampled {
        clock: clock.filter(|_| file.is_of_samples),
        launches: LaunchConstant::of(&fields).filter(|_| file.is_of_samples),
        event_step_ns: (fields["extra"][sidecar::EVENT_STEP].as_f64())
            .filter(|step| positive(*step).is_some() && file.is_of_samples),
        ..Sampled::default()
    };
    // A result of another Criterion project, whose clock `crossover-timing` wrote.
    if clock.is_some() && fields["id"].is_null() {
        return Ok(beside);
    }
    make_visible(&mut fields);
    let sidecar: Sidecar =
        serde_json::from_value(fields).map_err(|error| FileError::io(path, error))?;
    if !file.is_of_samples {
        let reason =
            "belongs to other samples than the sample.json beside it; run the benchmark again";
        return Err(FileError::other(path, reason));
    }
    if id != sidecar.id {
        let reason = format!("describes {}, not {id}", sidecar.id);
        return Err(FileError::other(path, reason));
    }
    Ok(Sampled {
        sidecar: Some(sidecar),
        ..beside
    })
}

/// The id of the result in the folder of a baseline, `<group>/<function>/<value>`: the parts that there are.
pub(super) fn id_of(dir: &Path) -> Result<String, Unreadable> {
    if is_empty(dir) {
        let reason = if is_kept(dir) {
            "a run was cut short here before it left a result; run the benchmark again"
        } else {
            "the folder is empty, as some caches restore it; run the benchmark again"
        };
        return Err(Unreadable::new(dir.display(), reason));
    }
    let file: BenchmarkFile = read_json_as_it_stands(&dir.join(BENCHMARK))?;
    let parts = [Some(file.group_id), file.function_id, file.value_str];
    let id = Vec::from_iter(parts.into_iter().flatten()).join("/");
    // Ids are compared, filtered and printed unchanged, so ids that would act on a terminal are
    // refused.
    if !is_plain(&id) {
        let reason = format!(
            "its id, {}, holds a character that cannot be shown; rename the benchmark and run it again",
            visible(&id)
        );
        return Err(Unreadable::new(dir.join(BENCHMARK).display(), reason));
    }
    Ok(id)
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a folder keeps the result before an attempt; it is empty if there was none.
fn is_kept(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    keeps(&name).is_some()
}

#[derive(Deserialize)]
struct BenchmarkFile {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
    #[serde(default)]
    throughput: Option<Value>,
}

/// Criterion's `{"Elements": 1024}` in words, whatever the kinds of its version.
fn throughput(value: &Value) -> Option<String> {
    let kinds = value.as_object()?.iter();
    let words = kinds.map(|(kind, number)| visible(&format!("{number} {kind}")));
    Some(Vec::from_iter(words).join(" and "))
}

#[derive(Deserialize)]
struct SampleFile {
    iters: Vec<f64>,
    /// serde_json writes NaN as null.
    times: Vec<Option<f64>>,
}

/// Times of an iteration in the samples of the file at `path`, ns.
fn times(path: &Path, samples: &[u8]) -> Result<Vec<f64>, Unreadable> {
    let file: Result<SampleFile, _> = serde_json::from_slice(samples);
    let file = file.map_err(|error| FileError::io(path, error))?;
    let bad = |reason: &str| Unreadable::new(path.display(), reason);
    if file.iters.len() != file.times.len() {
        return Err(bad(
            "its times and its iteration counts are not equally many; run the benchmark again",
        ));
    }
    if file.times.is_empty() {
        return Err(bad("no samples; run the benchmark again"));
    }
    let ns = file.times.iter().zip(&file.iters);
    let ns: Option<Vec<f64>> = ns
        .map(|(time, iterations)| positive((*time)? / iterations))
        .collect();
    ns.ok_or_else(|| bad("a time is not a positive number; run the benchmark again"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::store::baseline::Baseline;
    use crate::store::planted::plant;

    #[test]
    fn results_of_the_suite_and_of_other_projects_are_read_side_by_side() {
        let root = tempfile::tempdir().unwrap();
        let plant = |function: &str, times: &[f64], sidecar| {
            let dir = root.path().join(format!("a/{function}/1/new"));
            let id = format!("a/{function}/1");
            plant(&dir, &id, &[1.0, 1.0], times, sidecar);
            dir
        };
        let of_suite = Some(Sidecar {
            notes: vec!["a note".into()],
            ..Sidecar::of("a/cpu/suite/1", Clock::Wall)
        });
        let suite = plant("cpu/suite", &[5.0, 6.0], of_suite);
        let text = fs::read_to_string(suite.join(SIDECAR)).unwrap();
        assert!(text.contains("\"samples\": \"3ffa76fc7a652221\""), "{text}");
        for (function, times, file) in [
            ("other", [5.0, 6.0], SIDECAR),
            ("other-stale", [5.0, 7.0], SIDECAR),
            ("unknown", [5.0, 6.0], "notes.txt"),
        ] {
            let text = r#"{"clock":"events","samples":"3ffa76fc7a652221","schema":1}"#;
            fs::write(plant(function, &times, None).join(file), text).unwrap();
        }
        let read = Baseline::without_runs(root.path(), "new");
        assert_eq!(read.problems, []);
        let clocks = read.results.iter();
        let clocks = clocks.map(|(id, it)| (&id[2..id.len() - 2], it.clock));
        let expected = BTreeMap::from([
            ("cpu/suite", Some(Clock::Wall)),
            ("other", Some(Clock::Events)),
            ("other-stale", None),
            ("unknown", None),
        ]);
        assert_eq!(clocks.collect::<BTreeMap<_, _>>(), expected);
        let of_suite = read.results.values().filter_map(|it| it.sidecar.as_ref());
        let notes: Vec<_> = of_suite.map(|sidecar| &*sidecar.notes).collect();
        assert_eq!(notes, [["a note"]]);
        fs::write(suite.join(SAMPLE), "{\"iters\":[1],\"times\":[4]}").unwrap();
        let read = Baseline::without_runs(root.path(), "new");
        let [stale] = &read.problems[..] else {
            panic!("{:?}", read.problems);
        };
        assert!(stale.reason.contains("belongs to other samples"), "{stale}");
        // An id that would clear a terminal.
        let benchmark = suite.join(BENCHMARK);
        let text = fs::read_to_string(&benchmark).unwrap();
        fs::write(benchmark, text.replace("\"a\"", "\"\\u001bc\"")).unwrap();
        let reason = &Baseline::without_runs(root.path(), "new").problems[0].reason;
        assert!(reason.contains("cannot be shown"), "{reason}");
    }
}
