//! The share of the machine's limits that a benchmark reaches.
//!
//! A benchmark is compared with the limits that its own run measured ([`RunRecord::limits`],
//! [`RunRecord::curves`]) on its own device. Of those that apply, the nearest binds:
//!
//! | work | against |
//! | --- | --- |
//! | GPU, nothing crosses the link | `flop` over the peak of its format, `bytes` over the bandwidth at its working set |
//! | GPU, bytes cross the link | `link_bytes` of each way over `h2d_pinned` and `d2h_pinned`, the longer time |
//! | CPU | `flop` over `cpu_fma_all`, `bytes` over the bandwidth at half its working set |
//! | CPU, one thread, no answer | `flop` over `cpu_fma_1` |
//!
//! **Peak.** Multiprocessors times FLOP per clock of the format ([`flop_per_clock`]) times the
//! SM clock: the median of NVML's readings while it ran, or the device's highest without telemetry,
//! where the share is a lower bound. f32 on a device that the table does not know is compared with
//! `gpu_fma`. f64 by cuBLAS is compared with the tensor cores where these are faster than the FP64 cores,
//! and f64 on the CPU with half of `cpu_fma_1` and `cpu_fma_all`, which are of f32.
//! Emulated f32 counts its narrow products, against the narrow format's peak. A row that is far above the peak of the
//! format that it declares computes in another one, and has no share of that peak. A library's rate (`gpu_sgemm` of
//! older records) is not a limit.
//!
//! **Bandwidth.** The working set is `bytes` over the kernels of an iteration, each of which is
//! taken to pass over an equal part. The limit is the highest rate, reading or copying, at that
//! working set or a larger one: between two measured points that of the smaller. Where the cost says
//! which bytes are written, what is read is also held against the rate of reading, and what is written
//! against that of writing. What the iterations leave in a cache is in the curve as it is in the
//! benchmark.
//!
//! - Several kernels on one working set may go through it in an order that the cache serves
//!   better. Within the L2 cache their limit is the bandwidth at half their working set; beyond,
//!   up to `REUSED` times the cache, no limit is known and no share is given
//!   ([`Share::limit`]).
//! - On the CPU the limit is the bandwidth at half the working set: code that stores past the caches
//!   leaves them to what it reads.
//! - On the cold clock the data come from the memory, whatever their size. What is written may
//!   still stay in the cache: a rate above the memory's says that it did.
//!
//! **Link.** It carries both ways at once, so the way that takes longer is the limit. Code that copies
//! one way after the other stays below it. Code on one thread that may be an answer stands for the
//! whole CPU, and is compared with that.
//!
//! A result that exceeds a limit by more than noise ([`NOISE`]) shows that the limit was measured too
//! low or that the work is less than was declared, and has no share ([`Share::fraction`]).
//!
//! [`RunRecord::limits`]: crate::model::record::RunRecord::limits
//! [`RunRecord::curves`]: crate::model::record::RunRecord::curves

use crate::analysis::peak::{f64_on_tensor_cores, flop_per_clock};
use crate::analysis::telemetry::sm_clock_mhz;
use crate::model::cost::{Cost, LinkBytes};
use crate::model::id::Device;
use crate::model::record::DEVICES;
use crate::model::role::{Format, Library, Measures, Role, Threads};
use crate::statistics::positive;
use crate::store::curves::{Benchmark, Series};
use crate::store::machine_results::{Limits, MachineResults};
use crossover_advice::curve::log_log;
use crossover_words::Clock;
use crossover_words::units;

/// A limit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Arithmetic.
    Compute,
    /// The caches of the CPU, or the L2 cache of the GPU.
    Cache,
    /// Memory.
    Memory,
    /// Launching and waiting.
    Launch,
    /// Moving data between host and device.
    Link,
}

impl Limit {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Compute => "compute",
            Limit::Cache => "cache",
            Limit::Memory => "memory",
            Limit::Launch => "launch",
            Limit::Link => "link",
        }
    }
}

/// A benchmark's share of a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The limit.
    pub kind: Limit,
    /// The limit in words; `None` where the L2 cache serves part of the data, of which no limit is known.
    pub limit: Option<&'static str>,
    /// Achieved over limit, by which the nearest limit is found. Of data partly in a cache, over the memory's
    /// rate.
    ratio: f64,
}

impl Share {
    fn of(kind: Limit, limit: impl Into<Option<&'static str>>, ratio: f64) -> Option<Self> {
        let limit = limit.into();
        ratio.is_finite().then_some(Self { kind, limit, ratio })
    }

    /// `98 % of memory bandwidth`.
    pub fn words(&self) -> String {
        match (self.limit, self.fraction().map(units::percent)) {
            (None, _) => "partly from the L2 cache".to_owned(),
            (Some(limit), None) => format!("above the {limit}, so no share"),
            (Some(limit), Some(percent)) => match self.kind {
                Limit::Launch => format!("{limit} take at least {percent} of the time"),
                _ => format!("{percent} of {limit}"),
            },
        }
    }

    /// Achieved over limit, at most 1. A result that is faster than its limit by more than noise has no share.
    pub fn fraction(&self) -> Option<f64> {
        (self.limit.is_some() && self.ratio <= NOISE).then_some(self.ratio.min(1.0))
    }
}

/// Noise may raise a rate above its limit by this factor.
pub const NOISE: f64 = 1.03;

/// A rate above a peak by this factor must be of another format.
const OTHER_FORMAT: f64 = 1.2;

/// From this many times the L2 cache on, what it may keep from one pass over the data to the next
/// is within [`NOISE`] of them.
const REUSED: f64 = 32.0;

/// From this many times the L2 cache on, a pass over the data reads the memory.
const BEYOND: f64 = 8.0;

/// A working set lies in the CPU's caches where its bandwidth is this factor above the memory's.
const ABOVE_MEMORY: f64 = 1.25;

/// The share of the nearest limit that `benchmark` of `series` reaches; `None` where its cost or the limit
/// is unknown, or its clock does not measure the work. The limit of launches is their time, as the run
/// measured it with an empty kernel. An awaited launch takes longer, so its share is a lower bound.
pub fn share(series: &Series, benchmark: &Benchmark, machine: &MachineResults) -> Option<Share> {
    let of_work = nearest(series, benchmark, |b| machine.limits_of(b));
    let limits = launches(series, benchmark, machine).into_iter();
    limits
        .chain(of_work)
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

/// The limit of `series` at a size where it takes `ns`. Between measured sizes the cost is
/// interpolated.
pub fn at(series: &Series, size: u64, ns: f64, machine: &MachineResults) -> Option<Share> {
    match series.at(size) {
        Some(benchmark) => share(series, benchmark, machine),
        None => share(series, &between(series, size, ns)?, machine),
    }
}

/// The limit that the only point of a curve exceeds.
pub fn exceeded(series: &Series, limits: &Limits) -> Option<Share> {
    let share = nearest(series, series.points.last()?, |_| Some(limits))?;
    (share.limit.is_some() && share.fraction().is_none()).then_some(share)
}

fn nearest<'a>(
    series: &Series,
    benchmark: &Benchmark,
    limits_of: impl Fn(&Benchmark) -> Option<&'a Limits>,
) -> Option<Share> {
    if !series.measures_work() || matches!(series.role.measures, Measures::Exchanges(_)) {
        return None;
    }
    let limits = limits_of(benchmark)?;
    let flop = |limit, name| {
        // A vector holds half as many float64, and the limit is of f32.
        let lanes = match series.role.format {
            Format::F64 => 0.5,
            _ => 1.0,
        };
        let rate = rate(benchmark, benchmark.cost.flop)?;
        Share::of(Limit::Compute, limit, rate / (lanes * limits.limit(name)?))
    };
    let candidates = match (series.device, series.crosses_link()) {
        // The memory's limits are those of one device.
        (Device::Gpu, false) if devices(benchmark) > 1.0 => {
            [arithmetic(series, benchmark, limits_of), None]
        }
        (Device::Gpu, false) => [
            arithmetic(series, benchmark, limits_of),
            gpu_memory(benchmark, limits),
        ],
        (Device::Gpu, true) => [over_the_link(benchmark, limits), None],
        (Device::Cpu, _) if series.role.threads == Some(Threads::One) && !series.role.answers => {
            [flop("FMA peak of 1 core", "cpu_fma_1"), None]
        }
        (Device::Cpu, _) => [
            flop("FMA peak", "cpu_fma_all"),
            cpu_memory(benchmark, limits),
        ],
    };
    candidates
        .into_iter()
        .flatten()
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio))
}

/// A benchmark between two measured sizes: amounts are straight in log-log.
fn between(series: &Series, size: u64, ns: f64) -> Option<Benchmark> {
    let above = series.points.partition_point(|b| b.size < size);
    let (a, b) = (
        series.points.get(above.checked_sub(1)?)?,
        series.points.get(above)?,
    );
    let amount = |of: fn(&Cost) -> Option<f64>| {
        let (from, to) = (of(&a.cost)?, of(&b.cost)?);
        let at = || log_log((a.size as f64, from), (b.size as f64, to), size as f64);
        Some(if from > 0.0 && to > 0.0 { at() } else { 0.0 })
    };
    let to_device = amount(|cost| Some(cost.link_bytes?.to_device));
    let ways = to_device.zip(amount(|cost| Some(cost.link_bytes?.to_host)));
    let cost = Cost {
        flop: amount(|cost| cost.flop),
        bytes: amount(|cost| cost.bytes),
        written: amount(|cost| cost.written),
        link_bytes: ways.map(|(to_device, to_host)| LinkBytes { to_device, to_host }),
        ..a.cost
    };
    Some(Benchmark {
        size,
        median_ns: ns,
        cost,
        ..a.clone()
    })
}

/// The time of an iteration's launches over its own, at most one.
fn launches(series: &Series, benchmark: &Benchmark, machine: &MachineResults) -> Option<Share> {
    if series.device != Device::Gpu || !series.measures_work() {
        return None;
    }
    let each = match benchmark.clock? {
        // Behind a gate, only the constant of each kernel is left of a launch.
        Clock::EventsGated | Clock::EventsCold => "empty_kernel",
        _ => "launch_latency",
    };
    let each = machine.limit_of(benchmark, each)?;
    let count = f64::from(benchmark.cost.launches?);
    let share = count * each / benchmark.median_ns;
    Share::of(Limit::Launch, "launches", share.min(1.0)).filter(|_| share > 0.0)
}

/// An amount of one iteration as a rate, where it is sound.
fn rate(benchmark: &Benchmark, amount: Option<f64>) -> Option<f64> {
    Some(benchmark.rate(positive(amount?)?))
}

/// The share of the peak of its format, unless a point of the curve is far above the peak that its own
/// run measured.
fn arithmetic<'a>(
    series: &Series,
    benchmark: &Benchmark,
    limits_of: impl Fn(&Benchmark) -> Option<&'a Limits>,
) -> Option<Share> {
    let fraction = |b: &Benchmark| -> Option<f64> {
        let peak = peak(&series.role, sm_clock_mhz(b), limits_of(b)?)?;
        Some(operations(series, b)? / peak)
    };
    let exceeds = |b: &Benchmark| fraction(b).is_some_and(|fraction| fraction > OTHER_FORMAT);
    if series.points.iter().any(exceeds) {
        return None;
    }
    let limit = match series.role.format {
        Format::F32 => "f32 peak",
        Format::F64 => "f64 peak",
        Format::Tf32 => "TF32 peak",
        Format::Fp16 => "FP16 peak",
        Format::Bf16 => "BF16 peak",
        Format::Fp8 => "FP8 peak",
    };
    Share::of(Limit::Compute, limit, fraction(benchmark)?)
}

/// FLOP/s of a device in the format of the arithmetic.
fn operations(series: &Series, benchmark: &Benchmark) -> Option<f64> {
    let products = series.role.split.map_or(1, |split| split.products);
    Some(f64::from(products) * rate(benchmark, benchmark.cost.flop)? / devices(benchmark))
}

/// The number of devices that worked.
fn devices(benchmark: &Benchmark) -> f64 {
    let devices = benchmark.extra.get(DEVICES);
    devices.map_or(1.0, |devices| devices.max(1.0))
}

/// A sentence if the only point of a curve is faster than NVIDIA's documents allow at the highest
/// clock: then it does less work than it declares.
pub fn impossible(series: &Series, limits: &Limits) -> Option<String> {
    if series.device != Device::Gpu || !series.measures_work() {
        return None;
    }
    let format = series.role.format;
    let (rate, peak) = (
        operations(series, series.points.last()?)?,
        of_table(&series.role, None, limits)?,
    );
    (rate > NOISE * peak).then(|| {
        format!(
            "{} is more than the {} that the device can do in {format:?}: it computes less than it declares, \
             or in another format",
            units::rate(rate, "FLOP/s"),
            units::rate(peak, "FLOP/s")
        )
    })
}

/// The peak of a role's arithmetic at an SM clock, or at the highest one, FLOP/s.
pub fn peak(role: &Role, clock_mhz: Option<f64>, limits: &Limits) -> Option<f64> {
    let measured = || match role.format {
        Format::F32 => limits.limit("gpu_fma"),
        _ => None,
    };
    of_table(role, clock_mhz, limits).or_else(measured)
}

/// The peak of NVIDIA's documents. cuBLAS uses tensor cores in float64 if they are faster.
fn of_table(role: &Role, clock_mhz: Option<f64>, limits: &Limits) -> Option<f64> {
    let gpu = limits.gpu.as_ref()?;
    let clock = clock_mhz.or(gpu.max_sm_clock_mhz.map(f64::from))?;
    let per_clock = flop_per_clock(gpu.compute_capability, role.format)?;
    let cores = match (role.format, role.library) {
        (Format::F64, Some(Library::Cublas)) => f64_on_tensor_cores(gpu.compute_capability),
        _ => 1.0,
    };
    let peak = f64::from(gpu.multiprocessors) * cores * per_clock * clock * 1e6;
    (peak > 0.0).then_some(peak)
}

/// The share of the bandwidth of the L2 cache and the device's memory.
fn gpu_memory(benchmark: &Benchmark, limits: &Limits) -> Option<Share> {
    let kernels = benchmark.cost.launches.unwrap_or(1).max(1);
    let set = benchmark.cost.bytes? / f64::from(kernels);
    let moved = |set| moved(benchmark, limits, Device::Gpu, set);
    let cache = limits.gpu.as_ref()?.l2_bytes.filter(|bytes| *bytes > 0)? as f64;
    if benchmark.clock == Some(Clock::EventsCold) {
        let fraction = moved(f64::INFINITY)?;
        return if fraction > NOISE && set <= cache {
            Share::of(Limit::Cache, None, fraction)
        } else {
            Share::of(Limit::Memory, "memory bandwidth", fraction)
        };
    }
    if set <= cache {
        let within = if kernels == 1 { set } else { set / 2.0 };
        return Share::of(Limit::Cache, "L2 bandwidth", moved(within)?);
    }
    if kernels > 1 && set < REUSED * cache {
        return Share::of(Limit::Cache, None, moved(set)?);
    }
    if set >= BEYOND * cache {
        Share::of(Limit::Memory, "memory bandwidth", moved(set)?)
    } else {
        Share::of(Limit::Memory, "L2 and memory bandwidth", moved(set)?)
    }
}

/// The share of the bandwidth of the CPU's caches and memory.
fn cpu_memory(benchmark: &Benchmark, limits: &Limits) -> Option<Share> {
    let set = benchmark.cost.bytes? / 2.0;
    let share = moved(benchmark, limits, Device::Cpu, set)?;
    let limit = bandwidth(limits, Device::Cpu, set)?;
    let memory = bandwidth(limits, Device::Cpu, f64::INFINITY)?;
    if limit > ABOVE_MEMORY * memory {
        Share::of(Limit::Cache, "cache bandwidth", share)
    } else {
        Share::of(Limit::Memory, "memory bandwidth", share)
    }
}

/// The least time in which the bytes of an iteration move, over the time that it takes: all of them at
/// the highest rate, and where it is known which are read and which written, each at the rate of that;
/// the longest counts.
fn moved(benchmark: &Benchmark, limits: &Limits, device: Device, set: f64) -> Option<f64> {
    let Cost { bytes, written, .. } = benchmark.cost;
    let share = rate(benchmark, bytes)? / bandwidth(limits, device, set)?;
    let (read_at, written_at) = match device {
        Device::Gpu => ("gpu_read", None),
        Device::Cpu => ("cpu_read", Some("cpu_write")),
    };
    let read = bytes.zip(written).map(|(bytes, written)| bytes - written);
    let way = |bytes, at: Option<&str>| Some(rate(benchmark, bytes)? / rate_of(limits, at?, set)?);
    let ways = [way(read, Some(read_at)), way(written, written_at)];
    Some(ways.into_iter().flatten().fold(share, f64::max))
}

/// The highest rate, reading, writing or copying, at a working set of this size or a larger one, B/s;
/// that of the largest measured one where it is larger still.
pub fn bandwidth(limits: &Limits, device: Device, set: f64) -> Option<f64> {
    let names: &[&str] = match device {
        Device::Gpu => &["gpu_read", "gpu_copy"],
        Device::Cpu => &["cpu_read", "cpu_write", "cpu_copy"],
    };
    let rates = names.iter().filter_map(|name| rate_of(limits, name, set));
    rates.max_by(f64::total_cmp)
}

/// As [`bandwidth`], of one curve.
fn rate_of(limits: &Limits, curve: &str, set: f64) -> Option<f64> {
    let curve = limits.curves.get(curve)?;
    let points = || (curve.points.iter()).filter(|point| positive(point.rate).is_some());
    let below = points().filter(|point| point.bytes as f64 <= set);
    let from = below.map(|point| point.bytes).max().unwrap_or(0);
    let rates = points().filter(|point| point.bytes >= from);
    rates.map(|point| point.rate).max_by(f64::total_cmp)
}

/// The share of the link's rate, one way or the other.
fn over_the_link(benchmark: &Benchmark, limits: &Limits) -> Option<Share> {
    let least = link_ns(benchmark.cost.link_bytes?, limits)?;
    Share::of(Limit::Link, "PCIe rate", least / benchmark.median_ns)
}

/// The least time in which bytes cross the link, ns: both ways at once, the longer one counts.
pub fn link_ns(bytes: LinkBytes, limits: &Limits) -> Option<f64> {
    let way = |bytes: f64, rate| match bytes {
        0.0 => Some(0.0),
        bytes => Some(bytes / limits.limit(rate)? * 1e9),
    };
    let up = way(bytes.to_device, "h2d_pinned")?;
    positive(up.max(way(bytes.to_host, "d2h_pinned")?))
}

/// A measured figure of the machine in words, for tables and plots; the name itself for later
/// ones.
pub fn words(name: &str) -> &str {
    match name {
        "gpu_fma" => "GPU f32 multiply-adds",
        "gpu_copy" => "GPU memory copy",
        "gpu_sgemm" => "cuBLAS SGEMM, the rate of a library",
        "h2d_pinned" => "host to device, pinned",
        "d2h_pinned" => "device to host, pinned",
        "launch_latency" => "launch latency",
        "empty_kernel" => "empty kernel",
        "cpu_fma_1" => "CPU FMA, 1 core",
        "cpu_fma_all" => "CPU FMA, all cores",
        "cpu_memory" => "CPU memory copy",
        other => other,
    }
}
