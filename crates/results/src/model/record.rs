//! The files beside Criterion's: the sidecar of a result and the record of a run.
//!
//! Criterion's files carry no clock, no cost and no machine. After each benchmark the suite
//! writes a [`Sidecar`] next to `estimates.json`, and per run one [`RunRecord`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crossover_words::{Clock, units};

use crate::model::cost::Cost;
use crate::model::environment::{Environment, PcieLink};
use crate::model::group_info::GroupInfo;
use crate::model::id::{self, Device};
use crate::model::role::{Residency, Role};

/// Version of the form of [`Sidecar`] and [`RunRecord`]. A reader should refuse a higher one.
pub const SCHEMA: u32 = crossover_words::sidecar::SCHEMA;

/// The figure of a result that is the number of GPUs, where it may be more than one.
pub const DEVICES: &str = "devices";

/// The suite's addition to Criterion's files of one result: `crossover.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sidecar {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Full id, `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// Digest of the `sample.json` beside it, in hex. A reader rejects a sidecar that does
    /// not match: its samples come from another run.
    pub samples: String,
    /// The clock the samples were taken on, by its name.
    pub clock: Clock,
    /// Cost of one iteration.
    pub cost: Cost,
    /// The work of the implementation, and the way that it is done.
    pub role: Role,
    /// Result of the check against float64; `None` where nothing is computed, where
    /// `crossover ab` had an earlier process of the same executable verify, and where the device was
    /// [recorded](crate::model::GpuInfo::recorded).
    pub verified: Option<Verified>,
    /// State of the GPU; `None` on the CPU, without NVML, and where the routine recorded its own
    /// telemetry.
    pub device_state: Option<DeviceState>,
    /// The readings of NVML while it was sampled; `None` on the CPU, without NVML, and with
    /// `CROSSOVER_MONITOR=off`, unless the routine recorded its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Telemetry>,
    /// Why the samples are unsteady, in words, if they were taken twice and unsteady both times: they
    /// have two modes, or the interval of their median is wide. No answer and no finding uses such a
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<String>,
    /// Figures beside the time, by name:
    ///
    /// | key | what |
    /// | --- | --- |
    /// | `processors_busy_with_other_work` | processors that other work kept busy while its code was chosen and measured, where that was enough to show |
    /// | `kernel_running_share` | share of the wall time in which a kernel ran on the device, by events around each, in iterations of their own after the samples; what `nvidia-smi` calls utilisation. A device that only copies is busy too, and runs no kernel |
    /// | `copies_and_waits_share` | share of the wall time in which neither the GPU nor the CPU computes, but copies run or one waits for the other |
    /// | `launches` | kernels and graphs that an iteration on a gated or cold clock launches, counted by capturing one; a library's call may launch several |
    /// | `graphs` | those of the launches that are graphs |
    /// | `empty_kernel_before_ns`, `empty_kernel_after_ns` | time of an empty kernel on the same clock and stream, before and after the samples of a gated or cold clock: what each launch costs in this process |
    /// | `event_step_ns` | step of the clock of CUDA events, measured where the device was opened |
    /// | `launch_probe_before_ns`, `launch_probe_after_ns` | time of a graph of 32 small kernels behind a gate, before and after the samples of a GPU benchmark |
    /// | `long_launches` | 1 if that graph took more than 8 % longer after the samples than the shortest of the run |
    /// | `sample_bytes` | bytes of one of the samples that a batch consists of |
    /// | `pool_reserved_bytes` | device memory that the memory pool holds after the samples |
    /// | `pool_peak_bytes` | the most that it held |
    /// | `pool_used_peak_bytes` | the most that was allocated from it at once |
    /// | `pool_used_allocated_bytes`, `pool_reserved_allocated_bytes` | what is in use of a pool and what it holds while an allocation lives |
    /// | `pool_used_released_bytes`, `pool_reserved_released_bytes` | the same after its release and a synchronisation |
    /// | `pool_used_trimmed_bytes`, `pool_reserved_trimmed_bytes` | the same after the pool was told to release unused memory |
    /// | `parameters_bytes` | device memory of a network's parameters, with copies in other formats, gradients and moments |
    /// | `activations_bytes` | device memory of a batch and of the values between the layers, with gradients |
    /// | `workspace_bytes` | device memory that the library may use |
    /// | `peak_bytes` | the most device memory that a step has at once |
    /// | `largest_batch` | inputs, or tokens, of the largest batch that fits in the device's memory, by arithmetic: what activations leave of it beside the rest |
    /// | `devices` | GPUs that worked |
    /// | `calibration_ns` | time that choosing among its ways took; absent where an earlier benchmark had chosen |
    ///
    /// A key ends in its unit; without one it is a number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// Calibrated choices by name. Results with different choices are results of different code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<String, String>,
    /// Remarks for the reader, such as the number of threads chosen.
    pub notes: Vec<String>,
    /// Name of the run this came from: `<root>/runs/<run>.json`.
    pub run: String,
}

impl Sidecar {
    /// The sidecar of a benchmark of which only the id and the clock are known.
    pub fn of(id: &str, clock: Clock) -> Self {
        Self {
            schema: SCHEMA,
            id: id.to_owned(),
            samples: String::new(),
            clock,
            cost: Cost::default(),
            role: match id::device(id) {
                Some(Device::Gpu) => Role::gpu(),
                _ => Role::cpu(),
            },
            verified: None,
            device_state: None,
            monitor: None,
            unsteady: None,
            extra: BTreeMap::new(),
            choices: BTreeMap::new(),
            notes: Vec::new(),
            run: String::new(),
        }
    }
}

/// A benchmark or implementation that was left out, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Skip {
    /// Id or prefix of ids.
    pub id: String,
    /// One sentence: the cause and the remedy.
    pub reason: String,
}

impl Skip {
    /// Whether it is about this benchmark.
    pub fn covers(&self, id: &str) -> bool {
        let rest = id.strip_prefix(&self.id);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// A benchmark that failed: wrong result, CUDA error, or a panic in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Full id.
    pub id: String,
    /// The error with its causes.
    pub error: String,
}

/// A limit of the machine, or a rate that a library reaches, as the suite measured it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLimit {
    /// Median of the measurement, in `unit`.
    pub value: f64,
    /// `B/s`, `FLOP/s` or `ns`.
    pub unit: String,
    /// How it was measured, in a sentence.
    pub method: String,
}

/// One question of a group with the answers of several child processes, in each of which the best CPU
/// code and the GPU code took turns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confirmation {
    /// Name of the group.
    pub group: String,
    /// Where the data start and end.
    pub question: Residency,
    /// Name of the GPU implementation.
    pub gpu: String,
    /// Clock of the GPU implementation.
    pub clock: Clock,
    /// The machine that the GPU's times come from, where this one has no GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_machine: Option<String>,
    /// The run of that machine in which they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_run: Option<String>,
    /// The smallest and the largest size that were measured on both.
    pub range: (u64, u64),
    /// The times of each process, by ascending size. The speedup is that at the largest size.
    pub processes: Vec<Vec<PairedTimes>>,
}

/// CPU and GPU at one size in one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedTimes {
    /// Problem size.
    pub size: u64,
    /// Name of the CPU implementation: the fastest of the run at this size.
    pub cpu: String,
    /// Median time of its iterations, ns.
    pub cpu_ns: f64,
    /// Median time of the GPU's iterations, ns.
    pub gpu_ns: f64,
}

/// The highest bandwidth of a memory and its caches, by the working set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BandwidthCurve {
    /// In the order of their working sets, ascending.
    pub points: Vec<BandwidthPoint>,
    /// How it was measured, in a sentence.
    pub method: String,
}

/// One point of a [`BandwidthCurve`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BandwidthPoint {
    /// The working set, bytes: everything that is read or written, once.
    pub bytes: u64,
    /// Bytes read plus bytes written, B/s.
    pub rate: f64,
}

/// One run of the suite: the machine, its measured limits, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Name of the run: its start time, `20261121T093000Z-4711`.
    pub run: String,
    /// Start, RFC 3339.
    pub started: String,
    /// End, RFC 3339; `None` while it runs or when it was interrupted.
    pub finished: Option<String>,
    /// The size set: `quick`, `default` or `full`.
    #[serde(rename = "profile")]
    pub size_set: String,
    /// Command-line arguments of the bench executable.
    pub arguments: Vec<String>,
    /// The machine.
    pub environment: Environment,
    /// The groups of the executable, in their order, whether or not they were run.
    pub groups: Vec<GroupInfo>,
    /// Measured limits by name (`gpu_fma`, `h2d_pinned`, …).
    #[serde(rename = "ceilings")]
    pub limits: BTreeMap<String, MeasuredLimit>,
    /// The answers of child processes to the questions of the groups; empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmations: Vec<Confirmation>,
    /// Ids of the planned benchmarks, from the first benchmark to the end of the run. In a run without
    /// an end, planned benchmarks that have no result of this run and were neither skipped nor failed
    /// were not reached. Empty in a finished run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<String>,
    /// Measured bandwidth over the working set by name (`gpu_read`, `gpu_copy`, `cpu_read`,
    /// `cpu_write`, `cpu_copy`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub curves: BTreeMap<String, BandwidthCurve>,
    /// Seconds of the run by activity; empty in a run without an end.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activities: BTreeMap<Activity, f64>,
    /// Skipped benchmarks and implementations.
    pub skipped: Vec<Skip>,
    /// Failed benchmarks.
    pub failed: Vec<Failure>,
    /// Digest of the confirmations, limits and curves, which decide answers; empty in the record of a
    /// machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
}

/// The activities of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// The machine's limits.
    #[serde(rename = "ceilings")]
    Limits,
    /// Inputs, routines, their verification before and after the samples, the files of the results.
    SetUp,
    /// Checks of GPU benchmarks besides their results.
    Checks,
    /// Probes of the launches, and second contexts that make them short.
    Launches,
    /// Criterion's warm-up.
    WarmUp,
    /// The timed samples.
    Samples,
    /// Criterion's analysis and plots.
    Analysis,
    /// Child processes that confirm answers.
    Confirming,
}

impl Activity {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Activity::Limits => "limits",
            Activity::SetUp => "set-up and verification",
            Activity::Checks => "checks",
            Activity::Launches => "keeping launches short",
            Activity::WarmUp => "warm-up",
            Activity::Samples => "samples",
            Activity::Analysis => "Criterion's analysis",
            Activity::Confirming => "confirming",
        }
    }
}

/// The error of an implementation against the float64 reference, and its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// The measured error, in the metric that `method` names.
    pub error: f64,
    /// The largest error accepted.
    pub bound: f64,
    /// The metric and how much of the output was compared, for example
    /// `max error relative to the rms of the reference, every element`.
    pub method: String,
}

impl Verified {
    /// Whether the error lies within its bound. NaN never passes.
    pub fn passed(&self) -> bool {
        self.error <= self.bound
    }

    /// The error with its unit, as the metric has it: `1.2 ulp`, `3.4e-7 relative`.
    pub fn words(&self) -> String {
        let is = |metric: &str| self.method.contains(metric);
        match self.error {
            error if is("in ulp") => format!("{} ulp", units::number(error)),
            error if is("nanoseconds") => units::time(error),
            error if is("relative") => format!("{error:.1e} relative"),
            error if is("absolute") => format!("{error:.1e} absolute"),
            error => units::number(error),
        }
    }

    /// What is wrong, in words; `None` where it passed.
    pub fn failure(&self) -> Option<String> {
        (!self.passed()).then(|| {
            format!(
                "wrong result: error {:.3e} is over the bound {:.3e} ({})",
                self.error, self.bound, self.method
            )
        })
    }
}

/// The readings of NVML during warm-up and samples of a GPU benchmark, ten per second, thinned to at
/// most [`Telemetry::MOST_POINTS`].
///
/// A series has an entry for each of `time_ms`, or is empty where the device does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// Milliseconds since the warm-up began, or since a routine began to record its own, ascending.
    pub time_ms: Vec<u32>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Vec<Option<u32>>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Vec<Option<u32>>,
    /// Share of NVML's own last sample period (up to a second) in which a kernel ran, percent.
    pub utilisation_percent: Vec<Option<u32>>,
    /// Power draw, watts; newer devices report the average of the last second.
    pub power_w: Vec<Option<f64>>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Vec<Option<u32>>,
    /// The PCIe link at the last reading, under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<PcieLink>,
    /// Throttling and falls of the clock that began or ended meanwhile, by time. Thinning loses
    /// none, and at most [`Telemetry::MOST_EVENTS`] are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TelemetryEvent>,
    /// Whether no reading had the reasons of throttling: then missing events mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub throttling_unknown: bool,
    /// Energy that the device took; `None` where it has no counter, and where the samples took less
    /// time than the counter resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
}

impl Telemetry {
    /// Upper bound on its points, since it is committed with the results.
    pub const MOST_POINTS: usize = 60;
    /// Upper bound on its events.
    pub const MOST_EVENTS: usize = 16;
}

/// Something that began or ended while a benchmark ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetryEvent {
    /// Milliseconds since the warm-up began.
    pub time_ms: u32,
    /// Kind of the event.
    pub kind: TelemetryEventKind,
    /// The reasons of the throttling, or the clocks before and after.
    pub detail: String,
}

/// Kinds of [`TelemetryEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TelemetryEventKind {
    /// The device began to slow its clock, or the reasons for it changed.
    ThrottlingSetIn,
    /// The device no longer slows its clock.
    ThrottlingEnded,
    /// The SM clock fell by more than 3 % below the highest seen before.
    ClockFell,
    /// The SM clock came back after such a fall.
    ClockRecovered,
}

/// Energy over the samples of a benchmark and the gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Joules by the device's own counter.
    pub joules: f64,
    /// Seconds between the first and the last reading of the counter.
    pub seconds: f64,
    /// Iterations that ran between these readings.
    pub iterations: u64,
}

impl Energy {
    /// Joules per iteration.
    pub fn per_iteration(&self) -> f64 {
        self.joules / self.iterations as f64
    }
}

/// State of the GPU around one benchmark, from NVML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// SM clock right after the last sample, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Throttle reasons that slow the clock (idle and application settings left out); `None` where the
    /// driver does not tell.
    pub throttle_reasons: Option<Vec<String>>,
}
