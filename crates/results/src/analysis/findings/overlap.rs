//! What overlapping copies and kernels saves, and how many pieces do it best.

use crate::analysis::findings::finding::{Context, Finding, gpu, pair, sentence};
use crate::analysis::findings::technique::Technique;
use crate::analysis::limits::link_ns;
use crate::model::role::{Launches, Residency, Role};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::Wall;
use crossover_words::units;

/// From host memory and back, everything in one piece.
pub(super) fn in_sequence(role: &Role) -> bool {
    !role.data.on_device() && role.launches == Some(Launches::OneByOne) && role.pieces == 1
}

pub(super) fn pieces(context: &Context, group: &Group) -> Option<Finding> {
    let (sequence, _) = pair(
        group,
        &[Wall],
        in_sequence,
        |role| role.pieces > 1,
        |role| role.pieces = 1,
    )
    .filter(|(sequence, _)| sequence.computes())?;
    let bests: Vec<(&Benchmark, u32, &Benchmark)> = sequence
        .points
        .iter()
        .filter_map(|one| {
            let (pieces, best) = best(group, sequence, one.size)?;
            Some((one, pieces, best))
        })
        .collect();
    let &(one, count, best) = bests.last()?;
    let ratio = one.median_ns / best.median_ns;
    let pinned = sequence.role.data == Residency::Pinned;
    let limits = context.machine.limits_of(best);
    let copy = limits.and_then(|limits| link_ns(best.cost.link_bytes?, limits));
    let copy = copy.filter(|_| pinned);
    let to_limit = copy.map(|ns| best.median_ns / ns);
    let limit = match (copy, to_limit) {
        (Some(ns), Some(times)) => format!(
            ", {} the time of the copy one way alone, {}",
            units::factor_fine(times),
            units::time(ns)
        ),
        _ => String::new(),
    };
    let by_size: Vec<String> = bests
        .iter()
        .map(|(one, count, best)| {
            let at = group.topic.at(one.size);
            match best.median_ns < one.median_ns {
                true => format!("{count} at {at}"),
                false => format!("1 at {at}"),
            }
        })
        .collect();
    let text = format!(
        "{} in {count} pieces, with copies both ways overlapping the {}, is {} than in sequence at {} ({} \
         against {}{limit}). The best number of pieces: {}.",
        sentence(&group.topic.work),
        group.topic.part,
        units::speedup(ratio),
        group.topic.at(one.size),
        units::time(best.median_ns),
        units::time(one.median_ns),
        by_size.join(", "),
    );
    let rests = bests.iter().flat_map(|(one, _, best)| [*one, *best]);
    Some(
        Finding::new(&group.name, "overlap.pieces", text)
            .figure("size", one.size as f64)
            .figure("pieces", f64::from(count))
            .figure("ratio", ratio)
            .figure("one_way_ns", copy)
            .figure("to_limit", to_limit)
            .gained(Technique::Overlap, ratio, group.topic.at(one.size))
            .rests_on(rests),
    )
}

/// The number of pieces that is fastest at a size.
fn best<'a>(group: &'a Group, sequence: &Series, size: u64) -> Option<(u32, &'a Benchmark)> {
    let like = |role: &Role| {
        let whole = Role {
            pieces: 1,
            ..role.clone()
        };
        role.pieces > 1 && whole == sequence.role
    };
    gpu(group, Wall)
        .filter(|s| like(&s.role))
        .filter_map(|s| Some((s.role.pieces, s.at(size)?)))
        .min_by(|a, b| a.1.median_ns.total_cmp(&b.1.median_ns))
}
