//! What the report computes on: benchmarks, gathered into curves, groups and machines.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::device::environment::Environment;
use crate::record::{Ceiling, Cost, Failure, RunRecord, Skip, Strip, Verified};
use crate::timing::Clock;

/// Where a benchmark's work runs: the second part of its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The processor.
    Cpu,
    /// The GPU.
    Gpu,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Cpu => "cpu",
            Device::Gpu => "gpu",
        })
    }
}

/// Where the data lies when the clock starts: the question a GPU time answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Inputs and outputs stay in GPU memory.
    Device,
    /// Inputs come from host memory and the result goes back there.
    Host,
}

impl Question {
    /// `data on the device` or `data on the host`.
    pub fn phrase(self) -> &'static str {
        match self {
            Question::Device => "data on the device",
            Question::Host => "data on the host",
        }
    }
}

/// One result of Criterion with what our sidecar knows about it.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// First part of the id.
    pub group: String,
    /// Second part.
    pub device: Device,
    /// Third part.
    pub implementation: String,
    /// Last part.
    pub size: u64,
    /// The clock; `None` without a sound sidecar.
    pub clock: Option<Clock>,
    /// Median time of one iteration, ns: finite and above zero.
    pub median_ns: f64,
    /// Mean time of one iteration, ns.
    pub mean_ns: Option<f64>,
    /// Criterion's confidence interval of the median, ns, where it is sound.
    pub interval_ns: Option<(f64, f64)>,
    /// Spread of the samples: 1.4826 times the median absolute deviation, over the median.
    pub spread: Option<f64>,
    /// Number of samples.
    pub samples: Option<usize>,
    /// Cost of one iteration.
    pub cost: Cost,
    /// The check against float64.
    pub verified: Option<Verified>,
    /// Why the GPU's clock was held down right after the samples; `None` where nobody looked.
    pub throttle_reasons: Option<Vec<String>>,
    /// What NVML saw while it was sampled.
    pub strip: Option<Strip>,
    /// Figures beside the time, by name: [`Sidecar::extra`](crate::record::Sidecar::extra).
    pub extra: BTreeMap<String, f64>,
    /// Remarks of the suite.
    pub notes: Vec<String>,
    /// The run it comes from.
    pub run: Option<String>,
    /// Its folder, the parent of `new/`.
    pub dir: PathBuf,
}

impl Benchmark {
    /// Lower end of the interval, or the median without one, ns.
    pub fn low_ns(&self) -> f64 {
        self.interval_ns.map_or(self.median_ns, |i| i.0)
    }

    /// Upper end of the interval, or the median without one, ns.
    pub fn high_ns(&self) -> f64 {
        self.interval_ns.map_or(self.median_ns, |i| i.1)
    }

    /// `amount` of one iteration as a rate a second.
    pub fn rate(&self, amount: f64) -> f64 {
        amount / (self.median_ns * 1e-9)
    }
}

/// All sizes of one implementation on one clock, smallest first: a curve. A gate that had
/// to stay off at some sizes makes two curves of one implementation, since their times
/// answer different questions.
#[derive(Clone, Debug)]
pub struct Series {
    /// Where it runs.
    pub device: Device,
    /// Name of the implementation.
    pub implementation: String,
    /// The clock of each of its points.
    pub clock: Option<Clock>,
    /// At least one, sizes ascending and distinct.
    pub points: Vec<Benchmark>,
}

impl Series {
    /// `gpu/cublas`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.device, self.implementation)
    }

    /// The result at exactly this size.
    pub fn at(&self, size: u64) -> Option<&Benchmark> {
        self.points
            .binary_search_by_key(&size, |b| b.size)
            .ok()
            .map(|i| &self.points[i])
    }

    /// The clock's name, `unknown` without one.
    pub fn clock_name(&self) -> &'static str {
        self.clock.map_or("unknown", Clock::name)
    }

    /// Whether its times may take part in a speedup. A GPU time on an unknown clock may be
    /// queueing alone, so it does not; CPU code has no such trap.
    pub fn measures_work(&self) -> bool {
        match self.clock {
            Some(clock) => clock.measures_work(),
            None => self.device == Device::Cpu,
        }
    }

    /// Whether it is CPU code kept to one core, to be held against that core's peak. Beside
    /// the same code on all cores it takes no part in what is the best CPU code.
    pub fn one_thread(&self) -> bool {
        self.device == Device::Cpu && self.implementation.ends_with("-1-thread")
    }

    /// Whether a time includes what a caller pays to launch the work.
    pub fn includes_launch(&self) -> bool {
        matches!(self.clock, Some(Clock::Wall | Clock::Events))
    }

    /// Where the data lies: on the host for implementations that move bytes over the link
    /// or whose name starts with `transfer`.
    pub fn question(&self) -> Question {
        let moves = |b: &Benchmark| b.cost.link_bytes.is_some_and(|bytes| bytes > 0.0);
        if self.implementation.starts_with("transfer") || self.points.iter().any(moves) {
            Question::Host
        } else {
            Question::Device
        }
    }
}

/// All curves of one group, CPU first, then by name with numbers in their order.
#[derive(Clone, Debug)]
pub struct Group {
    /// First part of the ids.
    pub name: String,
    /// At least one.
    pub series: Vec<Series>,
}

impl Group {
    /// The curve of that name, `gpu/cublas`; the first of several clocks.
    pub fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.name() == name)
    }

    /// All curves of a device.
    pub fn on(&self, device: Device) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |s| s.device == device)
    }

    /// All benchmarks.
    pub fn benchmarks(&self) -> impl Iterator<Item = &Benchmark> {
        self.series.iter().flat_map(|s| &s.points)
    }
}

/// Something that was left out while reading, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, folder or id.
    pub what: String,
    /// The cause, and the remedy where there is one.
    pub reason: String,
}

/// One results root, read.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Short name: the GPU, or the CPU without one, or the folder.
    pub name: String,
    /// True for another machine's results, drawn beside the local ones.
    pub other: bool,
    /// Criterion's root.
    pub root: PathBuf,
    /// The machine at its newest run.
    pub environment: Option<Environment>,
    /// Newest run that left a record.
    pub run: Option<RunRecord>,
    /// Measured limits: of each, the newest.
    pub ceilings: BTreeMap<String, Ceiling>,
    /// By name.
    pub groups: Vec<Group>,
    /// What was left out while reading.
    pub problems: Vec<Problem>,
}

impl Machine {
    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// All benchmarks.
    pub fn benchmarks(&self) -> impl Iterator<Item = &Benchmark> {
        self.groups.iter().flat_map(Group::benchmarks)
    }

    /// What the newest run skipped.
    pub fn skipped(&self) -> &[Skip] {
        self.run.as_ref().map_or(&[], |r| &r.skipped)
    }

    /// What failed in the newest run.
    pub fn failed(&self) -> &[Failure] {
        self.run.as_ref().map_or(&[], |r| &r.failed)
    }

    /// A measured limit by name, where it is a sound number.
    pub fn ceiling(&self, name: &str) -> Option<f64> {
        let value = self.ceilings.get(name)?.value;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// The GPU's name, else the CPU's, else the folder's.
    pub fn hardware(&self) -> String {
        self.environment
            .as_ref()
            .and_then(|e| match &e.gpu {
                Some(gpu) => Some(gpu.name.clone()),
                None => (!e.cpu.model.is_empty()).then(|| e.cpu.model.clone()),
            })
            .unwrap_or_else(|| self.name.clone())
    }
}
