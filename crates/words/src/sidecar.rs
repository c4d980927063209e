//! The sidecar: `crossover.json` beside Criterion's samples, with what they lack. `crossover-timing` writes
//! the clock, the suite its whole description of a result.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::files::{self, check_schema};
use crate::units::time_fine;
use crate::{Clock, fnv1a};

/// Lies in the folder of a result, beside Criterion's [`SAMPLES`].
pub const FILE: &str = "crossover.json";
/// Criterion's samples of a result.
pub const SAMPLES: &str = "sample.json";
/// Version of the file's form.
pub const SCHEMA: u32 = 1;

/// Keys of the figures in `extra` that the correction for the launch constant needs: the launches of an
/// iteration, those of them that are graphs, and the time of the empty kernel on the benchmark's clock.
pub const LAUNCHES: &str = "launches";
/// See [`LAUNCHES`]; absent if there are none.
pub const GRAPHS: &str = "graphs";
/// Keys of the time of a graph of 32 small kernels before and after the samples, ns.
pub const LAUNCH_PROBE: [&str; 2] = ["launch_probe_before_ns", "launch_probe_after_ns"];
/// Key of the mark on a result after whose samples launches took longer than in a new process.
pub const LONG_LAUNCHES: &str = "long_launches";
/// Key of the step of the clock of CUDA events, measured where the device was opened, ns.
pub const EVENT_STEP: &str = "event_step_ns";
/// Keys of the figures beside a time on the clock `activity`, of an iteration: kernels, the time from the first start
/// to the last end, the share of the device's time in which several streams worked, and how many streams and devices
/// took part.
pub const ACTIVITY: [&str; 5] = ["kernels", "span_ns", "overlap_share", "streams", "devices"];
/// See [`LAUNCHES`]: before and after the samples.
pub const EMPTY_KERNEL: [&str; 2] = ["empty_kernel_before_ns", "empty_kernel_after_ns"];

/// A launch constant that moves by more than this during a benchmark is reported: a quarter of the
/// distance between the two levels of a process (H100 and H200).
const MOVED_NS: f64 = 50.0;

/// The launches of a result's iteration, and what one costs there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaunchConstant {
    /// Kernels of an iteration; `None` if they were not counted, or a graph launches some.
    pub kernels: Option<f64>,
    /// Whether an iteration launches graphs.
    pub has_graphs: bool,
    /// The empty kernel before and after the samples, ns.
    pub empty_ns: [f64; 2],
}

impl LaunchConstant {
    /// From the fields of a sidecar; `None` if the empty kernel was not timed beside it.
    pub fn of(fields: &Value) -> Option<Self> {
        let figure = |key| fields["extra"][key].as_f64().filter(|it| it.is_finite());
        let before = figure(EMPTY_KERNEL[0])?;
        let has_graphs = figure(GRAPHS).is_some();
        Some(Self {
            kernels: figure(LAUNCHES).filter(|_| !has_graphs),
            has_graphs,
            empty_ns: [before, figure(EMPTY_KERNEL[1]).unwrap_or(before)],
        })
    }

    /// Nanoseconds of the empty kernel beside the samples: the shorter of its two times, because a disturbance
    /// only lengthens one. On an H200 the times of 38 of 41 benchmarks differ by less than 15 ns, and those of
    /// the others by 120 to 220 ns in half of the processes.
    pub fn empty_kernel_ns(&self) -> f64 {
        let [before, after] = self.empty_ns;
        before.min(after)
    }

    /// A sentence if the constant moved from `before` to `after`.
    pub fn moved([before, after]: [f64; 2]) -> Option<String> {
        ((after - before).abs() > MOVED_NS).then(|| {
            format!(
                "the launch constant moved during the samples: the empty kernel took {} before and {} after",
                time_fine(before),
                time_fine(after)
            )
        })
    }
}

/// A sidecar as it stands in its file.
#[derive(Debug)]
pub struct SidecarFile {
    /// The file.
    pub path: PathBuf,
    /// The fields, or why they cannot be read.
    pub fields: io::Result<Value>,
    /// Whether it is about the samples beside it.
    pub is_of_samples: bool,
}

impl SidecarFile {
    /// The clock; `None` if it cannot be read or names none.
    pub fn clock(&self) -> Option<Clock> {
        Clock::named(self.fields.as_ref().ok()?["clock"].as_str()?)
    }
}

/// The sidecar in `dir`, the folder of these samples.
pub fn read(dir: &Path, samples: &[u8]) -> Option<SidecarFile> {
    let path = Some(dir.join(FILE)).filter(|path| path.exists())?;
    let fields = read_fields(&path);
    let known = fields.as_ref().ok().and_then(|it| it["samples"].as_str());
    Some(SidecarFile {
        is_of_samples: known == Some(&*digest(samples)),
        path,
        fields,
    })
}

fn read_fields(path: &Path) -> io::Result<Value> {
    let fields: Value = serde_json::from_slice(&files::read(path)?)?;
    check_schema(fields["schema"].as_u64(), SCHEMA)?;
    Ok(fields)
}

/// A hash of the samples, to detect others.
pub fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", fnv1a(bytes.iter().map(|byte| u64::from(*byte))))
}
