//! What lies beside Criterion's files: the sidecar of a result and the record of a run.
//!
//! Criterion's files carry no clock, no cost and no machine. After each benchmark the suite
//! writes `crossover.json` next to `estimates.json`, and once a run `runs/<run>.json` under
//! the results root. This module is the only one that reads or writes them.
//!
//! ```text
//! <root>/                                     CRITERION_HOME, by default target-reports/criterion
//!   runs/<run>.json                           RunRecord: environment, ceilings, what was skipped
//!   <group>/<device>_<implementation>/<size>/
//!     new/crossover.json                      Sidecar, bound to sample.json by its digest
//!     <baseline>/crossover.json               the same in each named baseline
//! ```

mod clock;
mod strip;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::device::environment::Environment;
use crate::timing::Clock;

pub use strip::{Energy, Strip, StripEvent, StripEventKind};

/// Version of both file formats. A reader refuses a higher one.
pub const SCHEMA: u32 = 1;
/// File name of a [`Sidecar`].
pub const SIDECAR: &str = "crossover.json";
/// Folder of the [`RunRecord`]s under the results root.
pub const RUNS: &str = "runs";

/// What one iteration of a benchmark costs. `None` is unknown or not meaningful, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Floating-point operations (a fused multiply-add counts as two).
    pub flop: Option<f64>,
    /// Fewest bytes that must move through the memory the implementation works from.
    pub bytes: Option<f64>,
    /// Bytes that must cross the link between host and device, both ways together.
    #[serde(default)]
    pub link_bytes: Option<f64>,
    /// Kernel launches, graph launches counted as one.
    #[serde(default)]
    pub launches: Option<u32>,
}

/// How far an implementation was from the float64 reference, and how far it may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// The measured error, in the metric that `method` names.
    pub error: f64,
    /// The largest error accepted.
    pub bound: f64,
    /// The metric and how much of the output was looked at, for example
    /// `max error relative to the rms of the reference, every element`.
    pub method: String,
}

impl Verified {
    /// Whether the error lies within its bound. NaN never passes.
    pub fn passed(&self) -> bool {
        self.error <= self.bound
    }
}

/// State of the GPU around one benchmark, from NVML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// SM clock right after the last sample, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Memory clock right after the last sample, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power draw, watts.
    pub power_w: Option<f64>,
    /// Throttle reasons that slow the clock (idle and application settings left out).
    pub throttle_reasons: Vec<String>,
}

/// What the suite knows about one result and Criterion does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Full id, `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// SHA-256 of the `sample.json` beside it, in hex. A reader rejects a sidecar that does
    /// not match: its samples come from another run.
    pub samples_sha256: String,
    /// The clock the samples were taken on, by its name.
    #[serde(with = "clock")]
    pub clock: Clock,
    /// Problem size, the last part of the id.
    pub size: u64,
    /// Cost of one iteration.
    pub cost: Cost,
    /// Result of the check against float64; `None` where nothing is computed.
    pub verified: Option<Verified>,
    /// State of the GPU; `None` on the CPU and without NVML.
    pub device_state: Option<DeviceState>,
    /// What NVML saw meanwhile; `None` on the CPU, without NVML, and with
    /// `CROSSOVER_MONITOR=off`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Strip>,
    /// Figures beside the time, by name:
    ///
    /// | key | what |
    /// | --- | --- |
    /// | `device_busy` | share of the wall time in which a kernel ran on the device, by events around each, in iterations of their own after the samples |
    /// | `pool_reserved_bytes` | device memory that the memory pool holds after the samples |
    /// | `pool_peak_bytes` | the most that it held |
    /// | `pool_used_peak_bytes` | the most that was allocated from it at once |
    ///
    /// A unit ends the key; a figure without one is a number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// Remarks for the reader, such as the number of threads chosen.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Name of the run this came from: `<root>/runs/<run>.json`.
    pub run: String,
}

/// A benchmark or implementation that was left out, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skip {
    /// Id or prefix of ids.
    pub id: String,
    /// One sentence: the cause and what brings it in.
    pub reason: String,
}

/// A benchmark that failed: wrong result, CUDA error, or a panic in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Full id.
    pub id: String,
    /// The error with its causes.
    pub error: String,
}

/// A limit of the machine, measured by the suite itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Median of the measurement, in `unit`.
    pub value: f64,
    /// `B/s`, `FLOP/s` or `ns`.
    pub unit: String,
    /// How it was measured, in a sentence.
    pub method: String,
}

/// One run of the suite: the machine, its measured ceilings, and what was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the run: its start time, `20261121T093000Z-4711`.
    pub run: String,
    /// Start, RFC 3339.
    pub started: String,
    /// End, RFC 3339; `None` while it runs or when it was interrupted.
    pub finished: Option<String>,
    /// Profile: `quick`, `default` or `full`.
    pub profile: String,
    /// Command-line arguments of the bench executable.
    pub arguments: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// Measured ceilings by name (`gpu_copy`, `gpu_sgemm`, `h2d_pinned`, …).
    #[serde(default)]
    pub ceilings: BTreeMap<String, Ceiling>,
    /// What was left out.
    #[serde(default)]
    pub skipped: Vec<Skip>,
    /// What failed.
    #[serde(default)]
    pub failed: Vec<Failure>,
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Not JSON of the expected form.
    #[error("{path}: {source}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why the parser stopped.
        source: serde_json::Error,
    },
    /// Written by a newer crossover.
    #[error(
        "{path}: schema {found} is newer than {SCHEMA}, the newest this version reads; update crossover"
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Schema number found.
        found: u64,
    },
    /// The samples beside a sidecar are not the ones it describes.
    #[error(
        "{path}: describes other samples than the sample.json beside it; run the benchmark again"
    )]
    Stale {
        /// The sidecar.
        path: PathBuf,
    },
}

impl Sidecar {
    /// Writes the sidecar into `dir`, a folder with a `sample.json`, and binds it to that
    /// file by its digest.
    pub fn write(&mut self, dir: &Path) -> Result<(), RecordError> {
        self.samples_sha256 = digest(&dir.join("sample.json"))?;
        write_json(&dir.join(SIDECAR), self)
    }

    /// Reads the sidecar of `dir`; `Ok(None)` where there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, RecordError> {
        let path = dir.join(SIDECAR);
        if !path.exists() {
            return Ok(None);
        }
        let sidecar: Self = read_json(&path)?;
        if sidecar.samples_sha256 != digest(&dir.join("sample.json"))? {
            return Err(RecordError::Stale { path });
        }
        Ok(Some(sidecar))
    }
}

impl RunRecord {
    /// Writes the record under the results root, replacing an earlier state of the same run.
    pub fn write(&self, root: &Path) -> Result<(), RecordError> {
        write_json(&Self::path(root, &self.run), self)
    }

    /// Reads the record of a run that a sidecar names.
    pub fn read(root: &Path, run: &str) -> Result<Self, RecordError> {
        read_json(&Self::path(root, run))
    }

    fn path(root: &Path, run: &str) -> PathBuf {
        root.join(RUNS).join(format!("{run}.json"))
    }
}

/// Writes `value` as JSON beside `path` and renames it, so that no reader ever sees half a
/// file. Creates the folder.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RecordError> {
    let mut text = serde_json::to_vec_pretty(value).map_err(|source| RecordError::Parse {
        path: path.into(),
        source,
    })?;
    text.push(b'\n');
    write_atomic(path, &text)
}

/// Writes `bytes` beside `path` and renames. Creates the folder.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let io = |source| RecordError::Io {
        path: path.into(),
        source,
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir).map_err(io)?;
    let mut file = tempfile::Builder::new()
        .permissions(world_readable())
        .tempfile_in(dir)
        .map_err(io)?;
    file.write_all(bytes).map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    Ok(())
}

/// Temporary files are private by default; results are for sharing.
#[cfg(unix)]
fn world_readable() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o644)
}

#[cfg(not(unix))]
fn world_readable() -> fs::Permissions {
    // Outside Unix only the read-only flag exists, and a fresh file has it off.
    fs::metadata(".")
        .map(|m| m.permissions())
        .expect("the current folder has metadata")
}

/// Reads a JSON file with a `schema` field, unknown fields ignored.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RecordError> {
    let text = fs::read(path).map_err(|source| RecordError::Io {
        path: path.into(),
        source,
    })?;
    let parse = |source| RecordError::Parse {
        path: path.into(),
        source,
    };
    let value: serde_json::Value = serde_json::from_slice(&text).map_err(parse)?;
    if let Some(found) = value.get("schema").and_then(|s| s.as_u64())
        && found > u64::from(SCHEMA)
    {
        return Err(RecordError::Schema {
            path: path.into(),
            found,
        });
    }
    serde_json::from_value(value).map_err(parse)
}

fn digest(path: &Path) -> Result<String, RecordError> {
    let bytes = fs::read(path).map_err(|source| RecordError::Io {
        path: path.into(),
        source,
    })?;
    Ok(Sha256::digest(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect())
}
