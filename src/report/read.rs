//! Reads a results root: Criterion's files, leniently, with our sidecars and run records.
//!
//! Criterion's files are not a declared interface, so unknown fields are ignored and ids
//! come from `benchmark.json`, never from folder names (which Criterion shortens). A file
//! that cannot be used is named in [`Machine::problems`] and the rest is read.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use walkdir::WalkDir;

use super::model::{Benchmark, Device, Group, Machine, Problem, Series};
use crate::record::{self, Cost, RUNS, RecordError, RunRecord, Sidecar};

/// `<group>/<function>/<value>/new` lies at depth 4; a little more for odd names.
const MAX_DEPTH: usize = 8;

#[derive(Deserialize)]
struct BenchmarkFile {
    group_id: String,
    function_id: Option<String>,
    value_str: Option<String>,
}

/// serde_json writes NaN as null, so each number is optional.
#[derive(Deserialize)]
struct EstimatesFile {
    mean: Option<EstimateFile>,
    median: EstimateFile,
    median_abs_dev: Option<EstimateFile>,
}

#[derive(Deserialize)]
struct EstimateFile {
    point_estimate: Option<f64>,
    confidence_interval: Option<IntervalFile>,
}

#[derive(Deserialize)]
struct IntervalFile {
    lower_bound: Option<f64>,
    upper_bound: Option<f64>,
}

#[derive(Deserialize)]
struct SampleFile {
    times: Vec<Option<f64>>,
}

/// Reads everything under `root`. A root that is not there gives a machine without groups.
pub fn read(root: &Path, name: &str, other: bool) -> Machine {
    let mut reader = Reader::default();
    let mut runs = reader.runs(root);
    runs.sort_by(|a, b| (&a.started, &a.run).cmp(&(&b.started, &b.run)));
    let benchmarks = reader.benchmarks(root, &runs);
    let mut ceilings = BTreeMap::new();
    for run in &runs {
        ceilings.extend(run.ceilings.clone());
    }
    let newest = runs.pop();
    let mut environment = newest.as_ref().map(|r| r.environment.clone());
    if let Some(environment) = &mut environment
        && environment.gpu.is_none()
    {
        // A later run without the GPU does not undo what an earlier one measured on it.
        environment.gpu = runs.iter().rev().find_map(|run| {
            let used = |b: &Benchmark| b.device == Device::Gpu && b.run.as_ref() == Some(&run.run);
            let gpu = run.environment.gpu.clone()?;
            benchmarks.iter().any(used).then_some(gpu)
        });
    }
    Machine {
        name: name.to_owned(),
        other,
        root: root.into(),
        environment,
        run: newest,
        ceilings,
        groups: gather(benchmarks),
        problems: reader.problems,
    }
}

#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn leave_out(&mut self, what: impl ToString, reason: impl ToString) {
        self.problems.push(Problem {
            what: what.to_string(),
            reason: reason.to_string(),
        });
    }

    /// Names an error that carries its path in front: the path becomes the subject.
    fn leave_out_file(&mut self, path: &Path, error: &RecordError) {
        let text = error.to_string();
        let prefix = format!("{}: ", path.display());
        let reason = text.strip_prefix(&prefix).unwrap_or(&text).to_owned();
        self.leave_out(path.display(), reason);
    }

    fn runs(&mut self, root: &Path) -> Vec<RunRecord> {
        let mut runs = Vec::new();
        let Ok(entries) = fs::read_dir(root.join(RUNS)) else {
            return runs;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            // A benchmark group may be called `runs` as well: its entries are folders.
            if path.extension().is_none_or(|e| e != "json") || path.is_dir() {
                continue;
            }
            match record::read_json(&path) {
                Ok(run) => runs.push(run),
                Err(error) => self.leave_out_file(&path, &error),
            }
        }
        runs
    }

    fn benchmarks(&mut self, root: &Path, runs: &[RunRecord]) -> Vec<Benchmark> {
        let mut found: Vec<Benchmark> = Vec::new();
        let mut by_id: HashMap<String, PathBuf> = HashMap::new();
        for entry in WalkDir::new(root).max_depth(MAX_DEPTH).sort_by_file_name() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    if root.exists() {
                        self.leave_out(
                            error.path().unwrap_or(root).display(),
                            "cannot be read; check its permissions",
                        );
                    }
                    continue;
                }
            };
            if !entry.file_type().is_dir() || entry.file_name() != "new" {
                continue;
            }
            let Some(benchmark) = self.benchmark(entry.path()) else {
                continue;
            };
            if let Some(reason) = unfit(&benchmark, runs) {
                self.leave_out(&benchmark.id, reason);
                continue;
            }
            if let Some(first) = by_id.get(&benchmark.id) {
                let reason = format!(
                    "has the id {} of {}, which is shown; delete one of the two",
                    benchmark.id,
                    first.display()
                );
                self.leave_out(benchmark.dir.display(), reason);
                continue;
            }
            by_id.insert(benchmark.id.clone(), benchmark.dir.clone());
            found.push(benchmark);
        }
        found
    }

    fn benchmark(&mut self, new: &Path) -> Option<Benchmark> {
        let path = new.join("benchmark.json");
        if !path.exists() && has_folders(new) {
            // A benchmark or group that is itself called `new`.
            return None;
        }
        let file: BenchmarkFile = self.json(&path)?;
        let Some((device, implementation, id)) = parts(&file) else {
            self.leave_out(
                path.display(),
                "its id is not <group>/<cpu|gpu>/<implementation>/<size>; \
                 name a benchmark so to have it in the report",
            );
            return None;
        };
        let path = new.join("estimates.json");
        let estimates: EstimatesFile = self.json(&path)?;
        let sound = |n: Option<f64>| n.filter(|n| n.is_finite() && *n > 0.0);
        let Some(median_ns) = sound(estimates.median.point_estimate) else {
            self.leave_out(
                path.display(),
                "the median is not a positive number; run the benchmark again",
            );
            return None;
        };
        let sidecar = match Sidecar::read(new) {
            Ok(sidecar) => sidecar,
            Err(error) => {
                self.leave_out_file(&new.join(record::SIDECAR), &error);
                None
            }
        };
        let sidecar = sidecar.filter(|s| {
            let own = s.id == id;
            if !own {
                self.leave_out(
                    new.join(record::SIDECAR).display(),
                    format!("describes {}, not {id}", s.id),
                );
            }
            own
        });
        let size = file.value_str.as_deref().and_then(|v| v.parse().ok());
        let Some(size) = size.or(sidecar.as_ref().map(|s| s.size)) else {
            self.leave_out(
                new.join("benchmark.json").display(),
                "the last part of its id is not a size",
            );
            return None;
        };
        let interval_ns = estimates
            .median
            .confidence_interval
            .and_then(|i| Some((sound(i.lower_bound)?, sound(i.upper_bound)?)))
            .filter(|(low, high)| *low <= median_ns && median_ns <= *high);
        let spread = estimates
            .median_abs_dev
            .and_then(|e| e.point_estimate)
            .filter(|d| d.is_finite() && *d >= 0.0)
            .map(|d| d / median_ns);
        let path = new.join("sample.json");
        let samples = match path.exists() {
            true => self.json::<SampleFile>(&path).map(|s| s.times.len()),
            false => None,
        };
        Some(Benchmark {
            id,
            group: file.group_id,
            device,
            implementation,
            size,
            clock: sidecar.as_ref().map(|s| s.clock),
            median_ns,
            mean_ns: sound(estimates.mean.and_then(|e| e.point_estimate)),
            interval_ns,
            spread,
            samples,
            cost: sidecar.as_ref().map_or(Cost::default(), |s| s.cost),
            verified: sidecar.as_ref().and_then(|s| s.verified.clone()),
            throttle_reasons: sidecar
                .as_ref()
                .and_then(|s| s.device_state.as_ref())
                .map(|state| state.throttle_reasons.clone()),
            strip: sidecar.as_ref().and_then(|s| s.monitor.clone()),
            extra: sidecar
                .as_ref()
                .map_or(BTreeMap::new(), |s| s.extra.clone()),
            notes: sidecar.as_ref().map_or(Vec::new(), |s| s.notes.clone()),
            run: sidecar.map(|s| s.run),
            dir: new.parent().unwrap_or(new).into(),
        })
    }

    fn json<T: DeserializeOwned>(&mut self, path: &Path) -> Option<T> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) => {
                self.leave_out(path.display(), error);
                return None;
            }
        };
        match serde_json::from_slice(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.leave_out(path.display(), error);
                None
            }
        }
    }
}

fn has_folders(dir: &Path) -> bool {
    fs::read_dir(dir).is_ok_and(|entries| entries.flatten().any(|e| e.path().is_dir()))
}

/// Device, implementation and full id; `None` where the id is not of this suite's form.
fn parts(file: &BenchmarkFile) -> Option<(Device, String, String)> {
    let function = file.function_id.as_deref()?;
    let value = file.value_str.as_deref()?;
    let (device, implementation) = function.split_once('/')?;
    let device = match device {
        "cpu" => Device::Cpu,
        "gpu" => Device::Gpu,
        _ => return None,
    };
    let named = !implementation.is_empty() && !file.group_id.is_empty();
    named.then(|| {
        let id = format!("{}/{function}/{value}", file.group_id);
        (device, implementation.to_owned(), id)
    })
}

/// Why a well-formed result must not be shown, if so.
fn unfit(benchmark: &Benchmark, runs: &[RunRecord]) -> Option<String> {
    if let Some(verified) = &benchmark.verified
        && !verified.passed()
    {
        return Some(format!(
            "its result is wrong: error {:.3e}, at most {:.3e} accepted ({})",
            verified.error, verified.bound, verified.method
        ));
    }
    let own = benchmark
        .run
        .as_ref()
        .and_then(|name| runs.iter().position(|r| r.run == *name));
    // Without a sidecar the run is unknown, and any failure may be this one's.
    let since = &runs[own.unwrap_or(0)..];
    if let Some(failure) = since
        .iter()
        .flat_map(|r| &r.failed)
        .rfind(|f| f.id == benchmark.id)
    {
        return Some(format!("failed: {}", failure.error));
    }
    let (own, newest) = (&runs[own?].environment, &runs.last()?.environment);
    if own.cpu.model != newest.cpu.model {
        return Some(elsewhere(&own.cpu.model, &newest.cpu.model));
    }
    match (&own.gpu, &newest.gpu) {
        (Some(own), Some(newest)) if own.name != newest.name => {
            Some(elsewhere(&own.name, &newest.name))
        }
        _ => None,
    }
}

fn elsewhere(own: &str, newest: &str) -> String {
    format!(
        "measured on another machine ({own}, the newest run on {newest}); \
         run it again here, or keep each machine's results in a folder of its own"
    )
}

/// Curves and groups of loose benchmarks.
pub fn gather(benchmarks: Vec<Benchmark>) -> Vec<Group> {
    let mut groups: BTreeMap<String, BTreeMap<_, Vec<Benchmark>>> = BTreeMap::new();
    for benchmark in benchmarks {
        let curve = (
            benchmark.device,
            benchmark.implementation.clone(),
            benchmark.clock,
        );
        groups
            .entry(benchmark.group.clone())
            .or_default()
            .entry(curve)
            .or_default()
            .push(benchmark);
    }
    let series = |((device, implementation, clock), mut points): (_, Vec<Benchmark>)| {
        points.sort_by_key(|b| b.size);
        points.dedup_by_key(|b| b.size);
        Series {
            device,
            implementation,
            clock,
            points,
        }
    };
    groups
        .into_iter()
        .map(|(name, curves)| {
            let mut series: Vec<Series> = curves.into_iter().map(series).collect();
            series.sort_by_cached_key(|s| (s.device, numbered(&s.implementation)));
            Group { name, series }
        })
        .collect()
}

/// A name and the number at its end, so that `chunks-8` comes before `chunks-16`.
fn numbered(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[stem.len()..].parse() {
        Ok(number) => (stem.into(), number),
        Err(_) => (name.into(), 0),
    }
}
