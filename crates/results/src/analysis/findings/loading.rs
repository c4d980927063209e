//! What pinning, prefetching and more threads bring to a loader, and how much of the time a kernel ran.

use crate::analysis::findings::finding::{Context, Finding, gpu};
use crate::analysis::findings::technique::Technique;
use crate::model::role::{Measures, Residency, Role};
use crate::store::curves::{Benchmark, Group};
use crossover_words::Clock::Wall;
use crossover_words::units;

const RUNNING: &str = "kernel_running_share";

/// Threads that prefetch, where it is a loader.
fn threads(role: &Role) -> Option<u32> {
    match role.does {
        Measures::Loads(threads) => Some(threads),
        _ => None,
    }
}

/// What a loader has beside the plainest one.
fn words(threads: u32) -> String {
    match threads {
        0 => "a pinned buffer".to_owned(),
        1 => "a thread that prefetches".to_owned(),
        n => format!("{n} threads that prefetch"),
    }
}

pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let plain = gpu(group, Wall)
        .find(|s| threads(&s.role) == Some(0) && s.role.data == Residency::Ordinary)?;
    let mut pinned: Vec<_> = gpu(group, Wall)
        .filter(|s| s.role.data == Residency::Pinned)
        .filter_map(|s| Some((threads(&s.role)?, s)))
        .collect();
    pinned.sort_by_key(|(threads, _)| *threads);
    let others = |size: u64| -> Vec<(&str, String, &Benchmark)> {
        let of = pinned.iter().copied();
        of.filter_map(|(threads, s)| Some((&*s.implementation, words(threads), s.at(size)?)))
            .collect()
    };
    let plain = plain
        .points
        .iter()
        .rev()
        .find(|b| !others(b.size).is_empty())?;
    let others = others(plain.size);
    let batches = f64::from(plain.cost.launches.filter(|n| *n > 0)?);
    let known = |b: &Benchmark, key| b.extra.get(key).copied().filter(|v: &f64| v.is_finite());
    let running = |b: &Benchmark| known(b, RUNNING);
    let (each, unit) = match known(plain, "sample_bytes").filter(|bytes| *bytes > 0.0) {
        Some(bytes) => (plain.size as f64 / bytes, "samples/s"),
        None => (1.0, "batches/s"),
    };
    let rate = |b: &Benchmark| b.rate(each * batches);
    let share = |b: &Benchmark| running(b).map_or(String::new(), units::percent);
    let row = |words: String, b: &Benchmark| {
        let gain = units::factor(plain.median_ns / b.median_ns);
        vec![words, units::count(rate(b)), gain, share(b)]
    };
    let first = row(
        "pageable memory, one batch after the other".to_owned(),
        plain,
    );
    let rows = others
        .iter()
        .map(|(name, words, b)| row(format!("{words} (gpu/{name})"), b));
    let caption = format!(
        "What a loader of batches of {} reaches; each line adds to the line above.",
        units::binary(plain.size)
    );
    let head = ["how it loads", unit, "gain", "a kernel runs"];
    let rows = [first].into_iter().chain(rows).collect();
    let id = format!("loading.{}", group.name);
    let finding = Finding::table(&group.name, id, caption, &head, rows);
    // What the threads bring beyond the pinned buffer that they fill.
    let alone =
        (pinned.iter().find(|(threads, _)| *threads == 0)).and_then(|(_, s)| s.at(plain.size));
    let threads = (pinned.iter().filter(|(threads, _)| *threads > 0))
        .filter_map(|(_, s)| s.at(plain.size))
        .map(|b| b.median_ns)
        .reduce(f64::min);
    let finding = match threads {
        Some(ns) => finding.gained(
            Technique::Prefetch,
            alone.unwrap_or(plain).median_ns / ns,
            group.topic.at(plain.size),
        ),
        None => finding,
    };
    let rests = others.iter().map(|o| o.2).chain([plain]);
    Some(finding.rests_on(rests))
}
