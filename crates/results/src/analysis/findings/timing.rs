//! The error of each way of timing, and at which durations.

use std::collections::BTreeMap;

use crate::analysis::findings::finding::{Context, Finding, sentence};
use crate::model::id::Device;
use crate::model::role::{Measures, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::units;

/// An acceptable error.
const FAIR: f64 = 0.05;

/// In a group whose rows time the same work on different clocks: a row per way of timing, with what it
/// shows over the truth at the ends, and from where on it is fair.
pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let (name, topic) = (&group.name, &group.topic);
    topic.truth?;
    let mut ways: BTreeMap<&str, BTreeMap<u64, &Benchmark>> = BTreeMap::new();
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
    let row = |(way, points): (&&str, &BTreeMap<u64, &Benchmark>)| {
        let at = |size| points.get(&size).map_or(String::new(), |b| over(ratio(b)));
        let is_fair = |b: &&&Benchmark| (ratio(b) - 1.0).abs() < FAIR;
        let from = match points.values().rev().take_while(is_fair).last() {
            Some(b) if points.len() == 1 => format!("at {}", topic.at(b.size)),
            Some(b) if b.size == smallest => "everywhere".to_owned(),
            Some(b) => format!("from {} on", topic.at(b.size)),
            None => "nowhere".to_owned(),
        };
        vec![(*way).to_owned(), at(smallest), at(largest), from]
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

fn way(series: &Series) -> &'static str {
    match series.role.does {
        Measures::Starts(Phase::FirstCall) => Phase::FirstCall.name(),
        _ => series.clock_name(),
    }
}
