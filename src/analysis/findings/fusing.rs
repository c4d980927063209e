//! What fusing kernels saves: launches at small sizes, memory traffic at large ones.

use crate::analysis::findings::finding::{Context, Finding, common, launched};
use crate::analysis::findings::technique::Technique;
use crate::model::role::Launches::Fused;
use crate::presentation::units;
use crate::results::curves::Group;
use crate::timing::Clock;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    let groups = &context.machine.groups;
    groups
        .iter()
        .flat_map(|group| [launches(context, group), traffic(group)])
        .flatten()
        .collect()
}

fn launches(context: &Context, group: &Group) -> Option<Finding> {
    let (apart, fused) = launched(group, &[Clock::Events, Clock::Wall], Fused)?;
    let (apart, fused) = *common(apart, fused).first()?;
    let saved = apart.median_ns - fused.median_ns;
    let spared = apart
        .cost
        .launches
        .zip(fused.cost.launches)
        .map(|(a, f)| a.saturating_sub(f))
        .filter(|n| *n > 0);
    let each = spared.map(|n| saved / f64::from(n));
    let verb = if saved >= 0.0 { "saves" } else { "costs" };
    // Of a step with products in it, several remain.
    let what = match (apart.cost.launches, fused.cost.launches) {
        (Some(before), Some(after @ 2..)) => format!("{before} {}s into {after}", group.topic.part),
        _ => format!("the {}s into one kernel", group.topic.part),
    };
    let mut text = format!(
        "Fusing {what} {verb} {} per call at {}, where launches dominate ({} against {})",
        units::time(saved.abs()),
        group.topic.at(fused.size),
        units::time(fused.median_ns),
        units::time(apart.median_ns),
    );
    if let (Some(n), Some(each)) = (spared, each) {
        let kernels = if n == 1 { "launch" } else { "launches" };
        text += &format!(
            ", {} for each of the {n} {kernels} that it avoids",
            units::time(each.abs())
        );
    }
    let launch = context.machine.ceiling_of(fused, "launch_latency");
    if let Some(launch) = launch {
        text += &format!("; launching an empty kernel takes {}", units::time(launch));
    }
    Some(
        Finding::new(&group.name, "fusing.launches", text + ".")
            .figure("size", fused.size as f64)
            .figure("saved_ns", saved)
            .figure("saved_each_ns", each.unwrap_or(f64::NAN))
            .figure("launch_latency_ns", launch.unwrap_or(f64::NAN))
            .gained(
                Technique::Fuse,
                apart.median_ns / fused.median_ns,
                group.topic.at(fused.size),
            )
            .rests_on([apart, fused]),
    )
}

fn traffic(group: &Group) -> Option<Finding> {
    let (apart, fused) = launched(group, &[Clock::EventsGated, Clock::Events], Fused)?;
    let pairs = common(apart, fused);
    // One size alone says nothing about small against large.
    let (apart, fused) = pairs.last().filter(|_| pairs.len() > 1)?;
    let ratio = apart.median_ns / fused.median_ns;
    let compared = units::speedup(ratio);
    let bytes = apart.cost.bytes.zip(fused.cost.bytes);
    let (rules, once) = match bytes {
        Some((apart, moved)) if moved < apart => match fused.cost.launches {
            Some(2..) => {
                let (moved, apart) = (units::bytes(moved), units::bytes(apart));
                (",", format!(": it moves {moved} in place of {apart}"))
            }
            _ => (
                ", where memory bandwidth dominates,",
                ": it reads and writes the data only once".to_owned(),
            ),
        },
        _ => (",", String::new()),
    };
    // What is fused: one of the parts, or a whole of several.
    let what = match fused.cost.launches {
        Some(2..) => group.topic.work.trim_start_matches("the "),
        _ => &group.topic.part,
    };
    let text = format!(
        "At {}{rules} the fused {what} is {compared} ({} against {}){once}.",
        group.topic.at(fused.size),
        units::time(fused.median_ns),
        units::time(apart.median_ns),
    );
    Some(
        Finding::new(&group.name, "fusing.traffic", text)
            .figure("size", fused.size as f64)
            .figure("ratio", ratio)
            .gained(Technique::Fuse, ratio, group.topic.at(fused.size))
            .rests_on([*apart, *fused]),
    )
}
