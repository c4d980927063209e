//! The gains of a loader by pinning, prefetching and more threads, and the share of time in which a
//! kernel ran.

use crate::analysis::findings::finding::{Context, Finding, Technique, gpu};
use crate::model::role::{Measures, Residency, Role};
use crate::store::curves::{Benchmark, Group};
use crossover_words::Clock::Wall;
use crossover_words::units;

const RUNNING: &str = "kernel_running_share";

/// Threads that prefetch, where it is a loader.
fn threads(role: &Role) -> Option<u32> {
    match role.measures {
        Measures::Loads(threads) => Some(threads),
        _ => None,
    }
}

/// The techniques of a loader.
fn words(threads: u32) -> String {
    match threads {
        0 => "a pinned buffer".to_owned(),
        1 => "a thread that prefetches".to_owned(),
        n => format!("{n} threads that prefetch"),
    }
}

pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let loaders = |data| {
        let curves = gpu(group, Wall).filter(move |s| s.role.data == data);
        curves.filter_map(|s| Some((threads(&s.role)?, s)))
    };
    let (_, plain) = loaders(Residency::Ordinary).find(|(threads, _)| *threads == 0)?;
    let mut pinned: Vec<_> = loaders(Residency::Pinned).collect();
    pinned.sort_by_key(|(threads, _)| *threads);
    let pinned_at = |size| -> Vec<(u32, &Benchmark)> {
        let at = pinned
            .iter()
            .map(|(threads, s)| Some((*threads, s.at(size)?)));
        at.flatten().collect()
    };
    let plain = (plain.points.iter().rev()).find(|b| !pinned_at(b.size).is_empty())?;
    let pinned = pinned_at(plain.size);
    let batches = f64::from(plain.cost.launches.filter(|n| *n > 0)?);
    let known = |b: &Benchmark, key| b.extra.get(key).copied().filter(|v: &f64| v.is_finite());
    let (each, unit) = match known(plain, "sample_bytes").filter(|bytes| *bytes > 0.0) {
        Some(bytes) => (plain.size as f64 / bytes, "samples/s"),
        None => (1.0, "batches/s"),
    };
    let row = |words: String, b: &Benchmark| {
        let rate = units::count(b.rate(each * batches));
        let gain = units::factor(plain.median_ns / b.median_ns);
        let running = known(b, RUNNING).map_or(String::new(), units::percent);
        vec![words, rate, gain, running]
    };
    let first = "pageable memory, one batch after the other".to_owned();
    let rows = pinned
        .iter()
        .map(|(threads, b)| row(format!("{} (gpu/{})", words(*threads), b.implementation), b));
    let caption = format!(
        "What a loader of batches of {} reaches; each line adds to the line above.",
        units::binary(plain.size)
    );
    let head = format!("how it loads | {unit} | gain | a kernel runs");
    let rows = [row(first, plain)].into_iter().chain(rows).collect();
    // The gain of the threads beyond the pinned buffer that they fill.
    let (alone, threaded): (Vec<_>, Vec<_>) = pinned.iter().partition(|(threads, _)| *threads == 0);
    let alone = alone.first().map_or(plain, |(_, b)| b);
    let fastest = threaded
        .iter()
        .map(|(_, b)| b.median_ns)
        .fold(f64::NAN, f64::min);
    let at = group.topic.at(plain.size);
    let finding = Finding::table(&group.name, "loading.{}", caption, &head, rows)
        .gained(Technique::Prefetch, alone.median_ns / fastest, at)
        .rests_on(pinned.iter().map(|(_, b)| *b).chain([plain]));
    Some(finding)
}
