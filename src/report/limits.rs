//! How much of the machine's measured limit a benchmark reaches.
//!
//! The limits are the suite's own measurements ([`RunRecord::ceilings`]), never a
//! datasheet's. Of the limits that apply, the one that is nearest binds:
//!
//! | work | against |
//! | --- | --- |
//! | GPU, data on the device | `flop` over `gpu_sgemm`, `bytes` over `gpu_copy` |
//! | GPU, data on the host | `link_bytes` over the mean of `h2d_pinned` and `d2h_pinned` |
//! | CPU | `flop` over `cpu_fma_all`, `bytes` over `cpu_memory` |
//!
//! Data that fits a cache may exceed a memory limit, and copies both ways at once that of
//! the link: such a share is above one and stands as it is.
//!
//! [`RunRecord::ceilings`]: crate::record::RunRecord::ceilings

use super::model::{Benchmark, Device, Machine, Question, Series};

/// The share of the binding limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// What binds, in words.
    pub limit: &'static str,
    /// Achieved over limit.
    pub fraction: f64,
}

/// The share that `benchmark` of `series` reaches; `None` where its cost or the limit is
/// unknown, or its clock does not measure the work.
pub fn share(series: &Series, benchmark: &Benchmark, machine: &Machine) -> Option<Share> {
    if !series.measures_work() {
        return None;
    }
    let cost = &benchmark.cost;
    let of = |amount: Option<f64>, ceiling: Option<f64>, limit| {
        let amount = amount.filter(|a| a.is_finite() && *a > 0.0)?;
        Some(Share {
            limit,
            fraction: benchmark.rate(amount) / ceiling?,
        })
    };
    let limits = match (series.device, series.question()) {
        (Device::Gpu, Question::Device) => [
            of(cost.flop, machine.ceiling("gpu_sgemm"), "SGEMM rate"),
            of(cost.bytes, machine.ceiling("gpu_copy"), "copy bandwidth"),
        ],
        (Device::Gpu, Question::Host) => [of(cost.link_bytes, link(machine), "PCIe rate"), None],
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

/// The link's rate one way at a time, B/s.
pub fn link(machine: &Machine) -> Option<f64> {
    let ways = ["h2d_pinned", "d2h_pinned"].map(|name| machine.ceiling(name));
    let known: Vec<f64> = ways.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// A measured limit in words, for tables and plots; the name itself for later ones.
pub fn words(name: &str) -> &str {
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
