//! What overlapping copies and kernels saves, and how many pieces do it best.

use crate::analysis::findings::finding::{Context, Finding, common, faster, wall};
use crate::model::id::Device;
use crate::presentation::units;
use crate::results::curves::{Benchmark, Group};

const GROUP: &str = "streams";

pub(super) fn pieces(context: &Context) -> Vec<Finding> {
    pieces_one(context).into_iter().collect()
}

fn pieces_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let sequence = wall(group, "sequence")?;
    let bests: Vec<(&Benchmark, u64, &Benchmark)> = sequence
        .points
        .iter()
        .filter_map(|one| {
            let (pieces, best) = best(group, one.size)?;
            Some((one, pieces, best))
        })
        .collect();
    let &(one, count, best) = bests.last()?;
    let ratio = one.median_ns / best.median_ns;
    let copy = one_way_ns(context, best);
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
            let size = units::size(one.size);
            match best.median_ns < one.median_ns {
                true => format!("{count} at n = {size}"),
                false => format!("1 at n = {size}"),
            }
        })
        .collect();
    let text = format!(
        "Nested sine from host memory in {count} pieces, copies both ways overlapping the kernel, is \
         {} in sequence at n = {} ({} against {}{limit}). The best number of pieces: {}.",
        faster(ratio),
        units::size(one.size),
        units::time(best.median_ns),
        units::time(one.median_ns),
        by_size.join(", "),
    );
    let rests = bests.iter().flat_map(|(one, _, best)| [*one, *best]);
    Some(
        Finding::new("overlap.pieces", text)
            .figure("size", one.size as f64)
            .figure("pieces", count as f64)
            .figure("ratio", ratio)
            .figure("one_way_ns", copy.unwrap_or(f64::NAN))
            .figure("to_limit", to_limit.unwrap_or(f64::NAN))
            .rests_on(rests),
    )
}

/// The number of pieces that is fastest at a size.
fn best(group: &Group, size: u64) -> Option<(u64, &Benchmark)> {
    group
        .on(Device::Gpu)
        .filter(|s| s.measures_work())
        .filter_map(|s| {
            let pieces = s.implementation.strip_prefix("chunks-")?.parse().ok()?;
            Some((pieces, s.at(size)?))
        })
        .min_by(|a, b| a.1.median_ns.total_cmp(&b.1.median_ns))
}

/// Half of the bytes go each way; the slower way bounds.
fn one_way_ns(context: &Context, benchmark: &Benchmark) -> Option<f64> {
    let ways = ["h2d_pinned", "d2h_pinned"].map(|name| context.machine.ceiling(name));
    let [Some(up), Some(down)] = ways else {
        return None;
    };
    let bytes = benchmark.cost.link_bytes.filter(|b| *b > 0.0)? / 2.0;
    Some(bytes / up.min(down) * 1e9)
}

pub(super) fn synced(context: &Context) -> Vec<Finding> {
    synced_one(context).into_iter().collect()
}

fn synced_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let pairs = common(wall(group, "sequence")?, wall(group, "synced")?);
    let (one, synced) = *pairs.last()?;
    let ratio = one.median_ns / synced.median_ns;
    let hides = match ratio {
        r if r < 1.05 => "hides nothing: the work takes",
        _ => "hides something all the same: the work takes",
    };
    let text = format!(
        "The same on three streams with the host waiting after each stage {hides} {} at n = {}, \
         {} in sequence.",
        units::time(synced.median_ns),
        units::size(one.size),
        units::time(one.median_ns),
    );
    Some(
        Finding::new("overlap.synced", text)
            .figure("size", one.size as f64)
            .figure("ratio", ratio)
            .rests_on([one, synced]),
    )
}
