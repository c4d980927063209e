//! Device memory: what pools keep, and what a network needs.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::model::id::Device;
use crate::model::role::{Allocator, Format, Measures};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::Wall;
use crossover_words::units;

/// The size that is shown, or the measured one nearest to it.
const SIZE: u64 = 64 << 20;

/// Pools, and their words.
const POOLS: [(Allocator, &str); 2] = [
    (
        Allocator::MallocAsync,
        "a pool that releases its memory at each synchronisation",
    ),
    (Allocator::MallocAsyncKept, "a pool told to keep its memory"),
];

/// Moments at which a pool was queried: their names in a result's figures, and their words.
const MOMENTS: [(&str, &str); 3] = [
    ("allocated", "while the allocation lives"),
    ("released", "after its release and a synchronisation"),
    (
        "trimmed",
        "after the pool was told to release unused memory",
    ),
];

/// The used and the reserved memory of a pool, before and after a release.
pub(super) fn held(_: &Context, group: &Group) -> Option<Finding> {
    let (mut rows, mut rests) = (Vec::new(), Vec::new());
    let kept = curve(group, Allocator::MallocAsyncKept)?;
    let sizes = kept.points.iter().map(|b| b.size);
    let size = sizes.min_by_key(|size| size.abs_diff(SIZE))?;
    for (allocator, pool) in POOLS {
        let Some(b) = curve(group, allocator).and_then(|s| s.at(size)) else {
            continue;
        };
        for (moment, when) in MOMENTS {
            let bytes = |what| b.extra.get(&format!("pool_{what}_{moment}_bytes")).copied();
            let (used, reserved) = (bytes("used")?, bytes("reserved")?);
            let [in_use, held] = [used, reserved].map(|bytes| units::binary(bytes as u64));
            rows.push(vec![format!("{}, {when}", sentence(pool)), in_use, held]);
        }
        rests.push(b);
    }
    let size = units::binary(size);
    let caption = format!("Memory of a pool before and after an allocation of {size} is released.");
    let head = "pool and moment | in use | reserved";
    Some(Finding::table(&group.name, "allocation.{}.held", caption, head, rows).rests_on(rests))
}

fn curve(group: &Group, allocator: Allocator) -> Option<&Series> {
    gpu(group, Wall).find(|s| s.role.measures == Measures::Allocates(allocator))
}

/// Purposes of the memory: keys of a result's figures.
const KEPT: [&str; 3] = ["parameters_bytes", "activations_bytes", "workspace_bytes"];
const PEAK: &str = "peak_bytes";

/// The memory of a network by number format, at the largest size that every format has.
pub(super) fn of_formats(_: &Context, group: &Group) -> Option<Finding> {
    let formats = [Format::F32, Format::Tf32, Format::Bf16, Format::Fp16];
    let at = |size| -> Vec<(Format, &Benchmark)> {
        let at = |format| Some((format, leanest(group, format, size)?));
        formats.into_iter().filter_map(at).collect()
    };
    let sizes: Vec<u64> = group.benchmarks().map(|b| b.size).collect();
    let found = (sizes.into_iter())
        .map(|size| (at(size), size))
        .max_by_key(|(found, size)| (found.len(), *size))?
        .0;
    let (_, first) = *found.first()?;
    let bytes = |b: &Benchmark, key: &str| b.extra.get(key).copied();
    let keys = || [PEAK].into_iter().chain(KEPT);
    if keys().any(|key| bytes(first, key).is_none()) {
        return None;
    }
    let row = |(format, b): &(Format, &Benchmark)| -> Vec<String> {
        let cell = |key| bytes(b, key).map_or(String::new(), units::bytes);
        let format = [format.name().to_owned()].into_iter();
        format.chain(keys().map(cell)).collect()
    };
    let caption = format!(
        "{} at {}: device memory by number format.",
        sentence(&group.topic.work),
        group.topic.at(first.size)
    );
    let head = "format | at most | parameters and their state | activations | workspace";
    let rows = found.iter().map(row).collect();
    let finding = Finding::table(&group.name, "device_memory.{}", caption, head, rows);
    Some(finding.rests_on(found.iter().map(|(_, b)| *b)))
}

/// The result with the least memory of those that report it, with data on the device.
fn leanest(group: &Group, format: Format, size: u64) -> Option<&Benchmark> {
    group
        .on(Device::Gpu)
        .filter(|s| s.role.format == format && s.role.data.on_device())
        .filter_map(|s| s.at(size))
        .filter_map(|b| Some((b, b.extra.get(PEAK).copied().filter(|v| v.is_finite())?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(b, _)| b)
}
