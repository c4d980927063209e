//! The device memory of a network.

use crate::analysis::findings::finding::{Context, Finding, sentence};
use crate::model::id::Device;
use crate::model::role::Format;
use crate::store::curves::{Benchmark, Group};
use crossover_words::units;

/// Purposes of the memory: keys of a result's figures.
const KEPT: [&str; 3] = ["parameters_bytes", "activations_bytes", "workspace_bytes"];
const PEAK: &str = "peak_bytes";

/// At the largest size that every format has.
pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
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
