//! The measured limits of the machine. Every share of a limit refers to these, and on the GPU to
//! [`flop_per_clock`](crossover_results::analysis::peak::flop_per_clock) times the clock that NVML reads. A second
//! measurement only raises a limit.
//!
//! | limit | unit | what |
//! | --- | --- | --- |
//! | `gpu_fma` | FLOP/s | f32 fused multiply-adds in registers |
//! | `h2d_pinned`, `d2h_pinned` | B/s | copy between pinned host memory and the device |
//! | `launch_latency` | ns | an empty kernel launched eagerly, one after the other |
//! | `empty_kernel` | ns | an empty kernel behind a gate |
//! | `cpu_fma_1`, `cpu_fma_all` | FLOP/s | fused multiply-adds in registers, one thread and all |
//!
//! | curve over the working set, B/s | what |
//! | --- | --- |
//! | `gpu_read`, `gpu_copy` | the L2 cache and the device's memory, 256 KiB to 2 GiB |
//! | `cpu_read`, `cpu_write`, `cpu_copy` | the caches and the memory, all threads, 32 KiB to 1 GiB |

pub(crate) mod cpu;
pub(crate) mod gpu;

use std::time::Duration;

use crate::model::record::{BandwidthCurve, BandwidthPoint, MeasuredLimit, RunRecord};

pub use gpu::{LIMITS, fma_rate};

/// How long the CPU's limits are measured, before the first benchmark and again after the last. The
/// best repetition counts: other work on a CPU only slows it, and a limit must not be exceeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Repetitions of the arithmetic, and the length of each.
    pub(super) arithmetic: (usize, Duration),
    /// Repetitions and length of each, for each point of the memory's curve.
    pub(super) memory: (usize, Duration),
    /// The largest working set in bytes.
    pub(super) largest: usize,
}

impl Effort {
    /// Two seconds on two cores. The largest working set exceeds the last-level cache of most
    /// processors; servers' caches of 256 MiB and more would otherwise pass for memory.
    pub(crate) const WHOLE: Self = Self {
        arithmetic: (10, Duration::from_millis(10)),
        memory: (3, Duration::from_millis(5)),
        largest: 1 << 30,
    };
    /// Some 50 ms, for runs whose shares of the limits nobody reads: caches only. In a build for editing, which is not
    /// for measuring, 12 ms.
    pub(crate) const BRIEF: Self = {
        let shorter = if cfg!(debug_assertions) { 5 } else { 1 };
        Self {
            arithmetic: (1, Duration::from_micros(5_000 / shorter)),
            memory: (1, Duration::from_micros(1_000 / shorter)),
            largest: 4 << 20,
        }
    };
}

/// Adds a rate to the record of a run. Of two values of a rate the higher one stays, because a limit must
/// not be exceeded.
pub(super) fn raise(record: &mut RunRecord, name: &str, value: f64, unit: &str, method: String) {
    let unit = unit.to_owned();
    let new = MeasuredLimit {
        value: 0.0,
        unit,
        method,
    };
    let slot = record.limits.entry(name.to_owned()).or_insert(new);
    slot.value = slot.value.max(value);
}

/// Adds a curve to the record of a run, and keeps the higher rate at each point.
pub(super) fn raise_curve(
    record: &mut RunRecord,
    name: &str,
    points: Vec<BandwidthPoint>,
    method: String,
) {
    let new = BandwidthCurve {
        points: Vec::new(),
        method,
    };
    let curve = record.curves.entry(name.to_owned()).or_insert(new);
    for point in points {
        match curve.points.iter_mut().find(|p| p.bytes == point.bytes) {
            Some(known) => known.rate = known.rate.max(point.rate),
            None => curve.points.push(point),
        }
    }
    curve.points.sort_by_key(|point| point.bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_of_two_measurements_stays() {
        let mut record = RunRecord::default();
        let mut measured = |rate: f64, points: &[(u64, f64)]| {
            let planted = || "planted".to_owned();
            raise(&mut record, "cpu_fma_1", rate, "FLOP/s", planted());
            let points = points.iter();
            let points = points.map(|&(bytes, rate)| BandwidthPoint { bytes, rate });
            raise_curve(&mut record, "cpu_read", points.collect(), planted());
        };
        measured(1e9, &[(1 << 20, 5e9), (1 << 30, 2e9)]);
        measured(2e9, &[(1 << 10, 7e9), (1 << 20, 4e9), (1 << 30, 3e9)]);
        assert_eq!(record.limits["cpu_fma_1"].value, 2e9);
        let points = record.curves["cpu_read"].points.iter();
        let points: Vec<(u64, f64)> = points.map(|point| (point.bytes, point.rate)).collect();
        assert_eq!(points, [(1 << 10, 7e9), (1 << 20, 5e9), (1 << 30, 3e9)]);
    }
}
