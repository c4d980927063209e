//! By how much a host clock that does not wait for the device is wrong.

use crate::analysis::findings::finding::{Context, Finding};
use crate::model::id::Device;
use crate::store::curves::{Benchmark, Group};
use crossover_words::Clock;
use crossover_words::units;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in &context.machine.groups {
        if group.topic.truth.is_some() {
            // A finding of its own compares all clocks.
            continue;
        }
        let submits = group
            .on(Device::Gpu)
            .filter(|s| s.clock == Some(Clock::Submit));
        for series in submits {
            let pairs: Vec<_> = series
                .points
                .iter()
                .filter_map(|seen| Some((seen, truth(group, seen.size)?)))
                .collect();
            let wrong = |(seen, real): &(&Benchmark, &Benchmark)| real.median_ns / seen.median_ns;
            let Some(&(seen, real)) = pairs.last() else {
                continue;
            };
            let ratio = wrong(&(seen, real));
            let small = match pairs.first() {
                Some(first) if pairs.len() > 1 => format!(
                    " At {} the factor is {}.",
                    group.topic.at(first.0.size),
                    units::factor(wrong(first))
                ),
                _ => String::new(),
            };
            let text = format!(
                "{}, timed on the host without synchronising: {} seems to take {} and takes \
                 {}, so that clock is wrong by a factor of {}.{small}",
                group.topic.title,
                group.topic.at(seen.size),
                time(seen),
                units::time(real.median_ns),
                units::factor(ratio).trim_end_matches('×'),
            );
            let id = format!("submit.{}.{}", group.name, series.implementation);
            findings.push(
                Finding::new(&group.name, id, text)
                    .rests_on(pairs.iter().flat_map(|(s, r)| [*s, *r])),
            );
        }
    }
    findings
}

/// With its interval where that is wide, as it may be on this clock alone.
fn time(seen: &Benchmark) -> String {
    let time = units::time(seen.median_ns);
    match seen.interval_ns {
        Some((low, high)) if high > 1.1 * low => {
            format!("{time} ({} to {})", units::time(low), units::time(high))
        }
        _ => time,
    }
}

/// The fastest time of the same work on the device, launch included where it was measured.
fn truth(group: &Group, size: u64) -> Option<&Benchmark> {
    let fastest = |launch: bool| {
        group
            .on(Device::Gpu)
            .filter(|s| s.measures_work() && s.computes() && s.role.data.on_device())
            .filter(|s| s.includes_launch() || !launch)
            .filter_map(|s| s.at(size))
            .min_by(|a, b| a.median_ns.total_cmp(&b.median_ns))
    };
    fastest(true).or_else(|| fastest(false))
}
