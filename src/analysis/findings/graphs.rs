//! What replaying a graph saves, and what synchronising after each kernel costs.

use crate::analysis::findings::finding::{Context, Finding, common, faster, gpu};
use crate::analysis::topics::title;
use crate::presentation::units;
use crate::results::curves::Benchmark;
use crate::timing::Clock;

const GROUP: &str = "graph_replay";

pub(super) fn replay(context: &Context) -> Vec<Finding> {
    let chains = [
        (GROUP, "eager", Clock::Wall),
        ("nested_sine", "per-kernel", Clock::Events),
    ];
    chains
        .into_iter()
        .filter_map(|(name, eager, clock)| {
            let group = context.machine.group(name)?;
            let eager = gpu(group, eager, &[clock])?;
            let graph = gpu(group, "graph", &[clock])?;
            let (eager, graph) = *common(eager, graph).first()?;
            let saved = eager.median_ns - graph.median_ns;
            let ratio = eager.median_ns / graph.median_ns;
            let compared = faster(ratio);
            let each = kernels(eager).map(|n| saved / n);
            let of_each = each.map_or(String::new(), |each| {
                let less = if each >= 0.0 { "less" } else { "more" };
                format!(", {} {less} a kernel", units::time(each.abs()))
            });
            let text = format!(
                "{} at n = {}: replaying the kernels as one graph is {compared} launching them \
                 one by one ({} against {}{of_each}).",
                title(name),
                units::size(graph.size),
                units::time(graph.median_ns),
                units::time(eager.median_ns),
            );
            Some(
                Finding::new(format!("graph.{name}"), text)
                    .figure("size", graph.size as f64)
                    .figure("ratio", ratio)
                    .figure("saved_ns", saved)
                    .figure("saved_each_ns", each.unwrap_or(f64::NAN))
                    .rests_on([eager, graph]),
            )
        })
        .collect()
}

pub(super) fn synchronising(context: &Context) -> Vec<Finding> {
    synchronising_one(context).into_iter().collect()
}

fn synchronising_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let eager = gpu(group, "eager", &[Clock::Wall])?;
    let each = gpu(group, "sync-each", &[Clock::Wall])?;
    let (eager, synced) = *common(eager, each).first()?;
    let cost = synced.median_ns - eager.median_ns;
    let ratio = synced.median_ns / eager.median_ns;
    // The chain waits once at its end in either case.
    let each = kernels(synced)
        .filter(|n| *n > 1.0)
        .map(|n| cost / (n - 1.0));
    let of_each = each
        .filter(|each| *each > 0.0)
        .map_or(String::new(), |each| {
            format!("; each wait costs {}", units::time(each))
        });
    let compared = match ratio {
        r if r >= 1.0 => format!("makes the chain {} slower", units::factor(r)),
        r => format!("makes the chain {} faster", units::factor(1.0 / r)),
    };
    let text = format!(
        "{} at n = {}: synchronising after each kernel {compared} ({} against {}){of_each}.",
        title(GROUP),
        units::size(synced.size),
        units::time(synced.median_ns),
        units::time(eager.median_ns),
    );
    Some(
        Finding::new("synchronising.graph_replay", text)
            .figure("size", synced.size as f64)
            .figure("ratio", ratio)
            .figure("each_ns", each.unwrap_or(f64::NAN))
            .rests_on([eager, synced]),
    )
}

fn kernels(benchmark: &Benchmark) -> Option<f64> {
    benchmark.cost.launches.filter(|n| *n > 0).map(f64::from)
}
