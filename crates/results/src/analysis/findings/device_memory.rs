//! What a network keeps in device memory.

use crate::analysis::findings::finding::{Context, Finding, sentence};
use crate::model::id::Device;
use crate::model::role::Format;
use crate::store::curves::{Benchmark, Group};
use crossover_words::units;

/// What it is kept for: keys of a result's figures, and their words.
const KEPT: [(&str, &str); 3] = [
    ("parameters_bytes", "of parameters and what belongs to them"),
    ("activations_bytes", "of activations"),
    ("workspace_bytes", "of workspace for the library"),
];
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
    let ((first_format, first), others) = found.split_first()?;
    let bytes = |b: &Benchmark, key: &str| b.extra.get(key).copied();
    let parts: Option<Vec<String>> = KEPT
        .iter()
        .map(|(key, words)| Some(format!("{} {words}", units::bytes(bytes(first, key)?))))
        .collect();
    let mut text = format!(
        "{} at {} takes {} of device memory in {}: {}",
        sentence(&group.topic.work),
        group.topic.at(first.size),
        units::bytes(bytes(first, PEAK)?),
        first_format.name(),
        parts?.join(", "),
    );
    for (format, other) in others {
        let peak = units::bytes(bytes(other, PEAK)?);
        text.push_str(&format!("; in {} {peak}", format.name()));
    }
    text.push('.');
    let id = format!("device_memory.{}", group.name);
    let mut finding = Finding::new(&group.name, id, text).figure("size", first.size as f64);
    for key in KEPT.map(|(key, _)| key).into_iter().chain([PEAK]) {
        finding = finding.figure(key, bytes(first, key));
    }
    finding = finding.figure("largest_batch", bytes(first, "largest_batch"));
    let row = |(format, b): &(Format, &Benchmark)| -> Vec<String> {
        let cell = |key| bytes(b, key).map_or(String::new(), units::bytes);
        let cells = [PEAK]
            .into_iter()
            .chain(KEPT.map(|(key, ..)| key))
            .map(cell);
        [format.name().to_owned()]
            .into_iter()
            .chain(cells)
            .collect()
    };
    let caption = format!(
        "{} at {}: device memory by number format.",
        sentence(&group.topic.work),
        group.topic.at(first.size)
    );
    let finding = finding.tabled(
        caption,
        &[
            "format",
            "at most",
            "parameters and their state",
            "activations",
            "workspace",
        ],
        found.iter().map(row).collect(),
    );
    Some(finding.rests_on(found.iter().map(|(_, b)| *b)))
}

/// The result that says what it keeps and keeps the least, of data on the device.
fn leanest(group: &Group, format: Format, size: u64) -> Option<&Benchmark> {
    group
        .on(Device::Gpu)
        .filter(|s| s.role.format == format && s.role.data.on_device())
        .filter_map(|s| s.at(size))
        .filter_map(|b| Some((b, b.extra.get(PEAK).copied().filter(|v| v.is_finite())?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(b, _)| b)
}
