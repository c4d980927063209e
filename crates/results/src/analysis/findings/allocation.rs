//! The memory that pools keep.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::model::role::{Allocator, Measures};
use crate::store::curves::{Group, Series};
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
    let of = units::binary(size);
    let caption = format!("Memory of a pool before and after an allocation of {of} is released.");
    let head = "pool and moment | in use | reserved";
    Some(Finding::table(&group.name, "allocation.{}.held", caption, head, rows).rests_on(rests))
}

fn curve(group: &Group, allocator: Allocator) -> Option<&Series> {
    gpu(group, Wall).find(|s| s.role.does == Measures::Allocates(allocator))
}
