//! The error of a host clock that does not wait for the device.

use crate::analysis::findings::finding::{Context, Finding, fastest, gpu, resident};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock;
use crossover_words::units;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    let groups = context.machine.groups.iter();
    // If the true time is known, another finding compares all clocks.
    groups
        .filter(|group| group.topic.truth.is_none())
        .flat_map(|group| gpu(group, Clock::Submit).filter_map(|series| of(group, series)))
        .collect()
}

fn of(group: &Group, series: &Series) -> Option<Finding> {
    let points = series.points.iter();
    let pairs: Vec<_> = points
        .filter_map(|seen| Some((seen, truth(group, seen.size)?)))
        .collect();
    let wrong = |(seen, real): (&Benchmark, &Benchmark)| real.median_ns / seen.median_ns;
    let (smallest, (seen, real)) = (*pairs.first()?, *pairs.last()?);
    let small = match pairs.len() {
        1 => String::new(),
        _ => format!(
            " At {} the factor is {}.",
            group.topic.at(smallest.0.size),
            units::factor(wrong(smallest))
        ),
    };
    let text = format!(
        "{}, timed on the host without synchronising: {} seems to take {} and takes {}, so that clock \
         is wrong by a factor of {}.{small}",
        group.topic.title,
        group.topic.at(seen.size),
        time(seen),
        units::time(real.median_ns),
        units::factor(wrong((seen, real))).trim_end_matches('×'),
    );
    let id = format!("submit.{{}}.{}", series.implementation);
    let finding = Finding::new(&group.name, &id, text);
    Some(finding.rests_on(pairs.into_iter().flat_map(|(seen, real)| [seen, real])))
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
    let with_launch = resident(group).filter(|s| s.includes_launch());
    fastest(with_launch, size).or_else(|| fastest(resident(group), size))
}
