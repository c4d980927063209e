//! How much of the machine's measured limit a benchmark reaches.
//!
//! The limits are the suite's own measurements ([`RunRecord::ceilings`]), never a
//! datasheet's. Of the limits that apply, the one that is nearest binds:
//!
//! | work | against |
//! | --- | --- |
//! | GPU, nothing crosses the link | `flop` over `gpu_sgemm`, `bytes` over `gpu_copy` |
//! | GPU, bytes cross the link | `link_bytes` over the mean of `h2d_pinned` and `d2h_pinned` |
//! | CPU | `flop` over `cpu_fma_all`, `bytes` over `cpu_memory` |
//! | CPU, one thread, no answer | `flop` over `cpu_fma_1` |
//!
//! Code on one thread that may be an answer stands for the whole CPU, and is held against it.
//!
//! A curve that exceeds the link's rate at some size copies both ways at once, and its share is
//! that of both ways together. One that is far above the SGEMM rate computes in another precision,
//! and that limit is not its own. Data that fits a cache may exceed a memory limit: such a
//! share is above one, and [`Share::words`] says so.
//!
//! [`RunRecord::ceilings`]: crate::model::record::RunRecord::ceilings

use crate::model::id::Device;
use crate::model::role::Threads;
use crate::presentation::units;
use crate::results::curves::{Benchmark, Series};
use crate::results::machine::Machine;

/// The share of the binding limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    /// What binds, in words.
    pub limit: &'static str,
    /// Achieved over limit.
    pub fraction: f64,
    /// The data come from the GPU's L2 cache, faster than memory could give them.
    pub cached: bool,
}

impl Share {
    /// `98 % of copy bandwidth`.
    pub(crate) fn words(&self) -> String {
        match self.cached {
            true => format!("in cache, above {}", self.limit),
            false => format!("{} of {}", units::percent(self.fraction), self.limit),
        }
    }
}

/// How far noise may carry a rate above its limit.
const NOISE: f64 = 1.03;

/// How far above the SGEMM rate a product must be to be one of another precision: the limit is
/// measured at one order, and SGEMM itself is a few percent faster at others.
const OTHER_PRECISION: f64 = 1.2;

/// The share that `benchmark` of `series` reaches; `None` where its cost or the limit is
/// unknown, or its clock does not measure the work.
pub(crate) fn share(series: &Series, benchmark: &Benchmark, machine: &Machine) -> Option<Share> {
    if !series.measures_work() {
        return None;
    }
    let cost = &benchmark.cost;
    let of = |amount: Option<f64>, ceiling: Option<f64>, limit| {
        let amount = amount.filter(|a| a.is_finite() && *a > 0.0)?;
        Some(Share {
            limit,
            fraction: benchmark.rate(amount) / ceiling?,
            cached: false,
        })
    };
    let limits = match (series.device, series.crosses_link()) {
        (Device::Gpu, false) => [
            of(cost.flop, sgemm(series, machine), "SGEMM rate"),
            of(cost.bytes, machine.ceiling("gpu_copy"), "copy bandwidth").map(|share| Share {
                cached: share.fraction > NOISE && fits_cache(benchmark, machine),
                ..share
            }),
        ],
        (Device::Gpu, true) => match both_ways(series, machine) {
            true => {
                let both = link(machine).map(|rate| 2.0 * rate);
                [of(cost.link_bytes, both, "PCIe rate, both ways"), None]
            }
            false => [of(cost.link_bytes, link(machine), "PCIe rate"), None],
        },
        (Device::Cpu, _) if series.role.threads == Some(Threads::One) && !series.role.answers => {
            let peak = machine.ceiling("cpu_fma_1");
            [of(cost.flop, peak, "FMA peak of 1 core"), None]
        }
        (Device::Cpu, _) => [
            of(cost.flop, machine.ceiling("cpu_fma_all"), "FMA peak"),
            of(
                cost.bytes,
                machine.ceiling("cpu_memory"),
                "memory bandwidth",
            ),
        ],
    };
    limits
        .into_iter()
        .flatten()
        .max_by(|a, b| a.fraction.total_cmp(&b.fraction))
}

/// The SGEMM rate, unless a point of the curve is far above it.
fn sgemm(series: &Series, machine: &Machine) -> Option<f64> {
    let limit = machine.ceiling("gpu_sgemm")?;
    let exceeds = |b: &Benchmark| {
        let rate = b.cost.flop.map(|flop| b.rate(flop));
        rate.is_some_and(|rate| rate > OTHER_PRECISION * limit)
    };
    (!series.points.iter().any(exceeds)).then_some(limit)
}

/// Whether the bytes of one launch fit the L2 cache.
fn fits_cache(benchmark: &Benchmark, machine: &Machine) -> bool {
    let gpu = machine.environment.as_ref().and_then(|e| e.gpu.as_ref());
    let launches = f64::from(benchmark.cost.launches.unwrap_or(1).max(1));
    let bytes = benchmark.cost.bytes.map(|bytes| bytes / launches);
    let cache = gpu.and_then(|gpu| gpu.l2_bytes);
    bytes
        .zip(cache)
        .is_some_and(|(bytes, cache)| bytes <= cache as f64)
}

/// Whether a curve carries more than the link does one way at a time.
pub(crate) fn both_ways(series: &Series, machine: &Machine) -> bool {
    let Some(limit) = link(machine) else {
        return false;
    };
    series.points.iter().any(|b| {
        b.cost
            .link_bytes
            .is_some_and(|bytes| b.rate(bytes) > NOISE * limit)
    })
}

/// The link's rate one way at a time, B/s.
pub(crate) fn link(machine: &Machine) -> Option<f64> {
    let ways = ["h2d_pinned", "d2h_pinned"].map(|name| machine.ceiling(name));
    let known: Vec<f64> = ways.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// A measured limit in words, for tables and plots; the name itself for later ones.
pub(crate) fn words(name: &str) -> &str {
    match name {
        "gpu_copy" => "GPU memory copy",
        "gpu_sgemm" => "GPU SGEMM (cuBLAS)",
        "h2d_pinned" => "host to device, pinned",
        "d2h_pinned" => "device to host, pinned",
        "launch_latency" => "launch latency",
        "empty_kernel" => "empty kernel",
        "cpu_fma_1" => "CPU FMA, 1 core",
        "cpu_fma_all" => "CPU FMA, all cores",
        "cpu_memory" => "CPU memory",
        other => other,
    }
}
