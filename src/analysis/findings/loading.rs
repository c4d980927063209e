//! What pinning, prefetching and more threads bring to a loader, and how busy the device was.

use crate::analysis::findings::finding::{Context, Finding, list, wall};
use crate::presentation::units;
use crate::results::curves::Benchmark;

const GROUP: &str = "loader";
/// Beside the plainest one.
const LOADERS: [(&str, &str); 4] = [
    ("pinned", "a pinned buffer"),
    ("prefetch", "a thread that prefetches"),
    ("threads-2", "two such threads"),
    ("threads-4", "four"),
];
const BUSY: &str = "device_busy";

pub(super) fn find(context: &Context) -> Vec<Finding> {
    one(context).into_iter().collect()
}

fn one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let plain = wall(group, "pageable")?;
    let others = |size: u64| -> Vec<(&str, &str, &Benchmark)> {
        LOADERS
            .into_iter()
            .filter_map(|(name, words)| Some((name, words, wall(group, name)?.at(size)?)))
            .collect()
    };
    let plain = plain
        .points
        .iter()
        .rev()
        .find(|b| !others(b.size).is_empty())?;
    let others = others(plain.size);
    let batches = f64::from(plain.cost.launches.filter(|n| *n > 0)?);
    let (name, _, best) = others
        .iter()
        .min_by(|a, b| a.2.median_ns.total_cmp(&b.2.median_ns))?;
    let gains: Vec<String> = others
        .iter()
        .map(|(_, words, b)| {
            let gain = units::factor(plain.median_ns / b.median_ns);
            format!("{gain} with {words}")
        })
        .collect();
    let busy = |b: &Benchmark| b.extra.get(BUSY).copied().filter(|b| b.is_finite());
    let was_busy = match (busy(plain), busy(best)) {
        (Some(plain), Some(best)) => format!(
            " The device was busy {} of the time, and {} with gpu/{name}.",
            units::percent(plain),
            units::percent(best)
        ),
        _ => String::new(),
    };
    let rate = |b: &Benchmark| b.rate(batches);
    let text = format!(
        "Batches of {}, loaded in sequence from pageable memory, arrive at {} a second, at best {} a \
         second (gpu/{name}): {}.{was_busy}",
        units::binary(plain.size),
        units::count(rate(plain)),
        units::count(rate(best)),
        list(&gains),
    );
    let mut finding = Finding::new("loading.loader", text)
        .figure("size", plain.size as f64)
        .figure("batches_a_second", rate(plain))
        .figure("best_batches_a_second", rate(best))
        .figure("ratio", plain.median_ns / best.median_ns);
    for (name, value) in [("busy", busy(plain)), ("best_busy", busy(best))] {
        finding = finding.figure(name, value.unwrap_or(f64::NAN));
    }
    let rests = others.iter().map(|o| o.2).chain([plain]);
    Some(finding.rests_on(rests))
}
