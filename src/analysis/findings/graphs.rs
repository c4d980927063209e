//! What replaying a graph saves, and what the host's waiting costs: after each kernel, and with
//! some of the work on the CPU.

use crate::analysis::findings::finding::{Context, Finding, common, launched};
use crate::analysis::findings::technique::Technique;
use crate::model::role::Launches::{Graph, PartlyOnCpu, ReadBack, Synchronised};
use crate::presentation::units;
use crate::results::curves::{self, Benchmark};
use crate::timing::Clock;

pub(super) fn replay(context: &Context) -> Vec<Finding> {
    context.each_group(replay_one)
}

fn replay_one(group: &curves::Group) -> Option<Finding> {
    // On a clock that has the launches in it: behind a gate they cost nothing.
    let (eager, graph) = launched(group, &[Clock::Wall, Clock::Events], Graph)?;
    let (eager, graph) = *common(eager, graph).first()?;
    let saved = eager.median_ns - graph.median_ns;
    let ratio = eager.median_ns / graph.median_ns;
    // Where the graph's kernels are fused from more, no launch can be told from what fusing saves.
    // Some that count their graph as one launch are not.
    let fused =
        (kernels(eager).zip(kernels(graph))).filter(|(apart, fused)| *fused > 1.0 && fused < apart);
    let each = (kernels(eager).filter(|_| fused.is_none())).map(|n| saved / n);
    let of_each = each.map_or(String::new(), |each| {
        let less = if each >= 0.0 { "less" } else { "more" };
        format!(", {} {less} per kernel", units::time(each.abs()))
    });
    let (replayed, launched) = match fused {
        None => ("the kernels".to_owned(), "them".to_owned()),
        Some((apart, fused)) => (
            format!("{fused} fused kernels"),
            format!("the {apart} that they are fused from"),
        ),
    };
    let text = format!(
        "{} at {}: replaying {replayed} as one graph is {} than launching {launched} one by one ({} \
         against {}{of_each}).",
        group.topic.title,
        group.topic.at(graph.size),
        units::speedup(ratio),
        units::time(graph.median_ns),
        units::time(eager.median_ns),
    );
    Some(
        Finding::new(&group.name, format!("graph.{}", group.name), text)
            .figure("size", graph.size as f64)
            .figure("ratio", ratio)
            .figure("saved_ns", saved)
            .figure("saved_each_ns", each.unwrap_or(f64::NAN))
            .gained(Technique::ReplayGraph, ratio, group.topic.at(graph.size))
            .rests_on([eager, graph]),
    )
}

/// Whatever is done after each kernel, at the smallest size: there the work hides nothing.
pub(super) fn synchronising(context: &Context) -> Vec<Finding> {
    let each = |group: &curves::Group| {
        let kinds = [
            (Synchronised, "synchronising", "synchronising after each"),
            (ReadBack, "reading", "reading one value back after each"),
        ];
        kinds.map(|(launches, id, words)| {
            // Where data come from the host, copies wait as well: that is told of overlapping.
            let (eager, each) = launched(group, &[Clock::Wall], launches)
                .filter(|(eager, _)| eager.role.data.on_device())?;
            let (eager, synced) = *common(eager, each).first()?;
            let cost = synced.median_ns - eager.median_ns;
            let ratio = synced.median_ns / eager.median_ns;
            // The host waits once at the end in either case.
            let each = kernels(synced)
                .filter(|n| *n > 1.0)
                .map(|n| cost / (n - 1.0));
            let of_each = each
                .filter(|each| *each > 0.0)
                .map_or(String::new(), |each| {
                    format!("; each wait costs {}", units::time(each))
                });
            let compared = match ratio {
                r if r >= 1.0 => format!("{} slower", units::factor(r)),
                r => format!("{} faster", units::factor(1.0 / r)),
            };
            let text = format!(
                "{} at {}: {words} {} makes {} {compared} ({} against {}){of_each}.",
                group.topic.title,
                group.topic.at(synced.size),
                group.topic.part,
                group.topic.work,
                units::time(synced.median_ns),
                units::time(eager.median_ns),
            );
            Some(
                Finding::new(&group.name, format!("{id}.{}", group.name), text)
                    .figure("size", synced.size as f64)
                    .figure("ratio", ratio)
                    .figure("each_ns", each.unwrap_or(f64::NAN))
                    .gained(Technique::DoNotWait, ratio, group.topic.at(synced.size))
                    .rests_on([eager, synced]),
            )
        })
    };
    let groups = context.machine.groups.iter();
    groups.flat_map(each).flatten().collect()
}

pub(super) fn hybrid(context: &Context) -> Vec<Finding> {
    context.each_group(hybrid_one)
}

fn hybrid_one(group: &curves::Group) -> Option<Finding> {
    let (free, hybrid) = launched(group, &[Clock::Wall], PartlyOnCpu)?;
    let pairs = common(free, hybrid);
    let &(free, hybrid) = pairs.first()?;
    let steps = kernels(free)?;
    let moved = steps - kernels(hybrid)?;
    if moved <= 0.0 {
        return None;
    }
    let part = &group.topic.part;
    let pays = |(free, hybrid): (&Benchmark, &Benchmark)| {
        let each = (hybrid.median_ns - free.median_ns) / moved;
        let sign = if each >= 0.0 { "" } else { "−" };
        let compared = match hybrid.median_ns / free.median_ns {
            r if r >= 1.0 => format!("{} slower", units::factor(r)),
            r => format!("{} faster", units::factor(1.0 / r)),
        };
        format!(
            "{compared} at {} ({sign}{} for each {part} moved)",
            group.topic.at(free.size),
            units::time(each.abs())
        )
    };
    let mut parts = vec![pays((free, hybrid))];
    if let Some(largest) = pairs.last().filter(|_| pairs.len() > 1) {
        parts.push(pays(*largest));
    }
    let largest = pairs.last()?;
    let text = format!(
        "With {moved} of the {steps} {part}s on the CPU, with the values copied to the host and back each time, \
         {} is {}.",
        group.topic.work,
        parts.join(" and ")
    );
    Some(
        Finding::new(&group.name, format!("{}.hybrid", group.name), text)
            .figure("size", free.size as f64)
            .figure("each_ns", (hybrid.median_ns - free.median_ns) / moved)
            .figure("ratio", hybrid.median_ns / free.median_ns)
            .figure("ratio_largest", largest.1.median_ns / largest.0.median_ns)
            .rests_on(pairs.iter().flat_map(|(a, b)| [*a, *b])),
    )
}

fn kernels(benchmark: &Benchmark) -> Option<f64> {
    benchmark.cost.launches.filter(|n| *n > 0).map(f64::from)
}
