//! The error of each way of timing: of a host clock that does not wait for the device, and at which
//! durations.

use std::collections::BTreeMap;

use crate::analysis::findings::finding::{Context, Finding, fastest, gpu, resident, sentence};
use crate::model::id::Device;
use crate::model::role::{Measures, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::{Clock, units};

pub(super) fn without_waiting(context: &Context) -> Vec<Finding> {
    let groups = context.machine.groups.iter();
    // If the true time is known, another finding compares all clocks.
    groups
        .filter(|group| group.topic.truth.is_none())
        .flat_map(|group| gpu(group, Clock::Submit).filter_map(|series| finding(group, series)))
        .collect()
}

fn finding(group: &Group, series: &Series) -> Option<Finding> {
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

/// An acceptable error.
const FAIR: f64 = 0.05;

/// In a group whose rows time the same work on different clocks: a row per way of timing, with what it
/// shows over the truth at the ends, and from where on it is fair.
pub(super) fn ways(_: &Context, group: &Group) -> Option<Finding> {
    let (name, topic) = (&group.name, &group.topic);
    topic.truth?;
    let mut ways: BTreeMap<String, BTreeMap<u64, &Benchmark>> = BTreeMap::new();
    for series in group.on(Device::Gpu).filter(|s| s.clock.is_some()) {
        // Without a gate two rows are on one clock.
        let of_way = ways.entry(way(series)).or_default();
        for b in &series.points {
            of_way.entry(b.size).or_insert(b);
        }
    }
    let sizes = || ways.values().flat_map(BTreeMap::keys);
    let (smallest, largest) = (*sizes().min()?, *sizes().max()?);
    let ratio = |b: &Benchmark| b.median_ns / b.size as f64;
    let row = |(way, points): (&String, &BTreeMap<u64, &Benchmark>)| {
        let at = |size| points.get(&size).map_or(String::new(), |b| over(ratio(b)));
        let is_fair = |b: &&&Benchmark| (ratio(b) - 1.0).abs() < FAIR;
        let from = match points.values().rev().take_while(is_fair).last() {
            Some(b) if points.len() == 1 => format!("at {}", topic.at(b.size)),
            Some(b) if b.size == smallest => "everywhere".to_owned(),
            Some(b) => format!("from {} on", topic.at(b.size)),
            None => "nowhere".to_owned(),
        };
        vec![way.clone(), at(smallest), at(largest), from]
    };
    let caption = format!(
        "{}: the time that each clock shows, over the true time.",
        sentence(&topic.work)
    );
    let rows = ways.iter().map(row).collect();
    let head = format!(
        "clock | at {} | at {} | within {:.0} %",
        topic.at(smallest),
        topic.at(largest),
        FAIR * 100.0
    );
    let finding = Finding::table(name, "timing.{}", caption, &head, rows);
    Some(finding.rests_on(ways.values().flat_map(BTreeMap::values).copied()))
}

/// Shown over true: `8.4×`, `1.002×`, `1/3,790`.
fn over(ratio: f64) -> String {
    match ratio {
        r if (r - 1.0).abs() < FAIR => format!("{r:.3}×"),
        r if r > 0.1 => units::factor(r),
        r => format!("1/{}", units::count(1.0 / r)),
    }
}

fn way(series: &Series) -> String {
    match series.role.measures {
        Measures::Starts(Phase::FirstCall) => Phase::FirstCall.to_string(),
        _ => series.clock_name().to_owned(),
    }
}
