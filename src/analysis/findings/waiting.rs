//! What the host's waiting between the steps of a pipeline costs, what moving steps to the
//! CPU pays, and what a graph saves.

use crate::analysis::findings::finding::{Context, Finding, common, faster, wall};
use crate::presentation::units;
use crate::results::curves::Benchmark;

const GROUP: &str = "host_sync";

/// Steps of the pipeline, by the launches of the asynchronous one.
fn count(benchmark: &Benchmark) -> Option<f64> {
    benchmark.cost.launches.filter(|n| *n > 0).map(f64::from)
}

/// Whatever is done after each step, at the smallest size: there the work hides nothing.
pub(super) fn steps(context: &Context) -> Vec<Finding> {
    let kinds = [
        ("sync-each", "Waiting for the device after each of"),
        ("read-each", "Reading one value back after each of"),
    ];
    let one = |(name, words): (&str, &str)| {
        let group = context.machine.group(GROUP)?;
        let pairs = common(wall(group, "async")?, wall(group, name)?);
        let (free, held) = *pairs.first()?;
        let steps = count(free)?;
        let each = (held.median_ns - free.median_ns) / steps;
        let costs = if each >= 0.0 { "costs" } else { "saves" };
        let text = format!(
            "{words} {steps} steps {costs} {} a step: {} against {} at n = {}.",
            units::time(each.abs()),
            units::time(held.median_ns),
            units::time(free.median_ns),
            units::size(free.size),
        );
        Some(
            Finding::new(format!("host_sync.{name}"), text)
                .figure("size", free.size as f64)
                .figure("each_ns", each)
                .figure("ratio", held.median_ns / free.median_ns)
                .rests_on([free, held]),
        )
    };
    kinds.into_iter().filter_map(one).collect()
}

pub(super) fn hybrid(context: &Context) -> Vec<Finding> {
    hybrid_one(context).into_iter().collect()
}

fn hybrid_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let pairs = common(wall(group, "async")?, wall(group, "hybrid")?);
    let &(free, hybrid) = pairs.first()?;
    let steps = count(free)?;
    let moved = steps - count(hybrid)?;
    if moved <= 0.0 {
        return None;
    }
    let pays = |(free, hybrid): (&Benchmark, &Benchmark)| {
        let each = (hybrid.median_ns - free.median_ns) / moved;
        let sign = if each >= 0.0 { "" } else { "−" };
        let compared = match hybrid.median_ns / free.median_ns {
            r if r >= 1.0 => format!("{} slower", units::factor(r)),
            r => format!("{} faster", units::factor(1.0 / r)),
        };
        format!(
            "{compared} at n = {} ({sign}{} for each step moved)",
            units::size(free.size),
            units::time(each.abs())
        )
    };
    let mut parts = vec![pays((free, hybrid))];
    if let Some(largest) = pairs.last().filter(|_| pairs.len() > 1) {
        parts.push(pays(*largest));
    }
    let largest = pairs.last()?;
    let text = format!(
        "With {moved} of the {steps} steps on the CPU, the values going down and up again each time, \
         the pipeline is {}.",
        parts.join(" and ")
    );
    Some(
        Finding::new("host_sync.hybrid", text)
            .figure("size", free.size as f64)
            .figure("each_ns", (hybrid.median_ns - free.median_ns) / moved)
            .figure("ratio", hybrid.median_ns / free.median_ns)
            .figure("ratio_largest", largest.1.median_ns / largest.0.median_ns)
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}

pub(super) fn graph(context: &Context) -> Vec<Finding> {
    graph_one(context).into_iter().collect()
}

fn graph_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let graph = wall(group, "graph")?;
    let (free, graph) = *common(wall(group, "async")?, graph).first()?;
    let held = wall(group, "sync-each").and_then(|s| s.at(graph.size));
    let ratio = free.median_ns / graph.median_ns;
    let over_held = held.map(|held| held.median_ns / graph.median_ns);
    let against_held = over_held.map_or(String::new(), |r| {
        format!(" and {} waiting after each", faster(r))
    });
    let text = format!(
        "The pipeline as one graph takes {} at n = {}, {} launching its steps one by \
         one{against_held}.",
        units::time(graph.median_ns),
        units::size(graph.size),
        faster(ratio),
    );
    Some(
        Finding::new("host_sync.graph", text)
            .figure("size", graph.size as f64)
            .figure("ratio", ratio)
            .figure("ratio_to_sync_each", over_held.unwrap_or(f64::NAN))
            .rests_on([free, graph].into_iter().chain(held)),
    )
}
