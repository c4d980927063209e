//! The rows of a profile's tables.

use std::collections::{BTreeMap, HashMap};

use super::recording::{Part, Recording};
use super::report::{CallRow, DeviceRow, RangeRow, Work};

/// Work on the device, longest first.
pub(super) fn device(part: &Part<'_>) -> Vec<DeviceRow> {
    let mut times: BTreeMap<&Work, Vec<u64>> = BTreeMap::new();
    for record in &part.work {
        let time = record.end - record.start;
        times.entry(&record.work).or_default().push(time);
    }
    let total: u64 = times.values().flatten().sum();
    let each = per(part.iterations);
    let mut rows: Vec<DeviceRow> = (times.into_iter())
        .map(|(work, mut times)| {
            times.sort_unstable();
            let sum: u64 = times.iter().sum();
            DeviceRow {
                work: work.clone(),
                per_iteration: each(times.len() as f64),
                ns_per_iteration: each(sum as f64),
                share: share(sum, total),
                median_ns: median(&times),
                shortest_ns: times[0] as f64,
                longest_ns: times[times.len() - 1] as f64,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.ns_per_iteration.total_cmp(&a.ns_per_iteration));
    rows
}

/// Driver calls, longest first.
pub(super) fn calls(part: &Part<'_>) -> Vec<CallRow> {
    let mut calls: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for call in &part.calls {
        let (count, time) = calls.entry(&call.name).or_default();
        *count += 1;
        *time += call.end - call.start;
    }
    let each = per(part.iterations);
    let mut rows: Vec<CallRow> = (calls.into_iter())
        .map(|(name, (count, time))| CallRow {
            name: name.to_owned(),
            per_iteration: each(count as f64),
            ns_per_iteration: each(time as f64),
        })
        .collect();
    rows.sort_by(|a, b| b.ns_per_iteration.total_cmp(&a.ns_per_iteration));
    rows
}

/// Ranges in the order in which they began. Work that is launched in a range counts for those
/// around it too.
pub(super) fn ranges(recording: &Recording, part: &Part<'_>) -> Vec<RangeRow> {
    let range_of: HashMap<u32, u64> = recording.raw.in_range.iter().copied().collect();
    let mut on_device: HashMap<usize, u64> = HashMap::new();
    let mut total = 0;
    for work in &part.work {
        let time = work.end - work.start;
        total += time;
        let Some(&range) = range_of.get(&work.correlation) else {
            continue;
        };
        let range = usize::try_from(range).unwrap_or(usize::MAX);
        if range < recording.ranges.len() {
            for range in recording.and_around(range) {
                *on_device.entry(range).or_default() += time;
            }
        }
    }
    let mut order: Vec<String> = Vec::new();
    // By name: how often, on the host, on the device.
    let mut sums: HashMap<String, (u64, u64, u64)> = HashMap::new();
    for &range in &part.ranges {
        let record = &recording.ranges[range];
        let name = recording.path(range);
        let (count, host, device) = sums.entry(name.clone()).or_insert_with(|| {
            order.push(name);
            (0, 0, 0)
        });
        *count += 1;
        *host += record.end.unwrap_or(record.start) - record.start;
        *device += on_device.get(&range).copied().unwrap_or(0);
    }
    let each = per(part.iterations);
    (order.into_iter())
        .map(|name| {
            let (count, host, device) = sums[&name];
            RangeRow {
                per_iteration: each(count as f64),
                host_ns_per_iteration: each(host as f64),
                device_ns_per_iteration: each(device as f64),
                share: share(device, total),
                name,
            }
        })
        .collect()
}

fn per(iterations: usize) -> impl Fn(f64) -> f64 {
    move |sum| sum / iterations.max(1) as f64
}

fn share(part: u64, total: u64) -> f64 {
    if total == 0 {
        0.0
    } else {
        part as f64 / total as f64
    }
}

/// Median of sorted numbers, of which there must be one.
pub(super) fn median(sorted: &[u64]) -> f64 {
    let (low, high) = ((sorted.len() - 1) / 2, sorted.len() / 2);
    (sorted[low] as f64 + sorted[high] as f64) / 2.0
}
