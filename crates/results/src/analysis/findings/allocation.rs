//! What an allocation in the loop costs.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::analysis::findings::technique::Technique;
use crate::model::role::{Allocator, Measures};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::Wall;
use crossover_words::units;

/// The size that the sentence is about, or the measured one nearest to it.
const SIZE: u64 = 64 << 20;

/// Allocators, their names in figures, and their words.
const ALLOCATORS: [(Allocator, &str, &str); 3] = [
    (Allocator::Malloc, "malloc", "with cuMemAlloc and cuMemFree"),
    (
        Allocator::MallocAsync,
        "malloc_async",
        "with cuMemAllocAsync from a pool that releases its memory at each synchronisation",
    ),
    (
        Allocator::MallocAsyncKept,
        "malloc_async_kept",
        "with cuMemAllocAsync from a pool told to keep its memory",
    ),
];

pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let reuse = curve(group, Allocator::Reuse)?;
    let away = |b: &&Benchmark| (b.size as f64 / SIZE as f64).log2().abs();
    let measured = |b: &&Benchmark| ALLOCATORS.iter().any(|a| at(group, a.0, b.size).is_some());
    let kept = reuse
        .points
        .iter()
        .filter(measured)
        .min_by(|a, b| away(a).total_cmp(&away(b)))?;
    let cost = |b: &Benchmark| b.median_ns - kept.median_ns;
    let cost_of = |allocator| at(group, allocator, kept.size).map(cost);
    let ratio = cost_of(Allocator::Malloc)
        .zip(cost_of(Allocator::MallocAsyncKept))
        .filter(|(a, b)| *a > 0.0 && *b > 0.0)
        .map(|(malloc, pool)| malloc / pool);
    let peak = at(group, Allocator::MallocAsyncKept, kept.size)
        .and_then(|b| b.extra.get("pool_peak_bytes").copied())
        .filter(|bytes| bytes.is_finite());
    let held = peak.map_or(String::new(), |bytes| {
        format!(
            "The last pool held {} at most.",
            units::binary(bytes as u64)
        )
    });
    let reused = vec![
        "A buffer that is reused".to_owned(),
        units::time(kept.median_ns),
        String::new(),
    ];
    let others = || {
        let known = ALLOCATORS.into_iter();
        known.filter_map(|(of, figure, words)| Some((figure, words, at(group, of, kept.size)?)))
    };
    let rows = others().map(|(_, words, b)| {
        let more = units::time(cost(b).max(0.0));
        vec![sentence(words), units::time(b.median_ns), more]
    });
    let rows = [reused].into_iter().chain(rows).collect();
    let caption = format!(
        "What an allocation of {} in the loop costs, with one word of it written.",
        units::binary(kept.size)
    );
    let time = |of| at(group, of, kept.size).map(|b| b.median_ns);
    let gain = (time(Allocator::Malloc).zip(time(Allocator::MallocAsyncKept)))
        .map_or(f64::NAN, |(malloc, pool)| malloc / pool);
    let head = ["memory from", "per iteration", "more than reuse takes"];
    let id = format!("allocation.{}", group.name);
    let finding = Finding::new(&group.name, id, String::new())
        .tabled(caption, &head, rows)
        .note(&held)
        .gained(Technique::KeepPool, gain, group.topic.at(kept.size))
        .figure("size", kept.size as f64)
        .figure("ratio", ratio)
        .figure("pool_peak_bytes", peak)
        .rests_on(others().map(|(_, _, b)| b).chain([kept]));
    let add = |finding: Finding, (figure, _, b)| finding.figure(&format!("{figure}_ns"), cost(b));
    Some(others().fold(finding, add))
}

/// Moments at which a pool was asked what it holds: their names in figures, and their words.
const MOMENTS: [(&str, &str); 3] = [
    ("allocated", "while the allocation lives"),
    ("released", "after its release and a synchronisation"),
    (
        "trimmed",
        "after the pool was told to release unused memory",
    ),
];

/// What of a pool's memory is in use and what it holds, before and after a release.
pub(super) fn held(_: &Context, group: &Group) -> Option<Finding> {
    let id = format!("allocation.{}.held", group.name);
    let mut finding = Finding::new(&group.name, id, String::new());
    let (mut rows, mut rests) = (Vec::new(), Vec::new());
    let kept = curve(group, Allocator::MallocAsyncKept)?;
    let sizes = kept.points.iter().map(|b| b.size);
    let size = sizes.min_by_key(|size| size.abs_diff(SIZE))?;
    for (allocator, name, words) in &ALLOCATORS[1..] {
        let Some(b) = at(group, *allocator, size) else {
            continue;
        };
        let pool = words.trim_start_matches("with cuMemAllocAsync from ");
        for (moment, when) in MOMENTS {
            let bytes = |what| b.extra.get(&format!("pool_{what}_{moment}_bytes")).copied();
            let (used, reserved) = (bytes("used")?, bytes("reserved")?);
            let [in_use, held] = [used, reserved].map(|bytes| units::binary(bytes as u64));
            rows.push(vec![format!("{}, {when}", sentence(pool)), in_use, held]);
            finding = finding
                .figure(&format!("{name}_used_{moment}_bytes"), used)
                .figure(&format!("{name}_reserved_{moment}_bytes"), reserved);
        }
        rests.push(b);
    }
    let of = units::binary(size);
    let caption = format!("Memory of a pool before and after an allocation of {of} is released.");
    let head = ["pool and moment", "in use", "reserved"];
    Some(finding.tabled(caption, &head, rows).rests_on(rests))
}

fn curve(group: &Group, allocator: Allocator) -> Option<&Series> {
    gpu(group, Wall).find(|s| s.role.does == Measures::Allocates(allocator))
}

fn at(group: &Group, allocator: Allocator, size: u64) -> Option<&Benchmark> {
    curve(group, allocator)?.at(size)
}
