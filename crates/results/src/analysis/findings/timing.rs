//! By how much each way of timing is wrong, and where.

use crate::analysis::findings::finding::{Context, Finding, sentence};
use crate::model::group_info::GroupInfo;
use crate::model::id::Device;
use crate::model::role::{Measures, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::units;

/// An error that a reader may live with.
const FAIR: f64 = 0.05;

/// One way at one size.
struct Reading<'a> {
    way: &'a str,
    benchmark: &'a Benchmark,
    /// Shown over true.
    ratio: f64,
}

/// In a group whose rows time the same work on different clocks.
pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let (name, topic) = (&group.name, &group.topic);
    topic.truth?;
    let mut readings: Vec<Reading> = Vec::new();
    for series in group.on(Device::Gpu).filter(|s| s.clock.is_some()) {
        for benchmark in &series.points {
            let way = way(series);
            // Without a gate two rows are on one clock.
            let again = |r: &Reading| r.way == way && r.benchmark.size == benchmark.size;
            if !readings.iter().any(again) {
                readings.push(Reading {
                    way,
                    benchmark,
                    ratio: benchmark.median_ns / benchmark.size as f64,
                });
            }
        }
    }
    // Whatever the curves are called.
    readings.sort_by_key(|r| r.way);
    let sizes = readings.iter().map(|r| r.benchmark.size);
    let (smallest, largest) = (sizes.clone().min()?, sizes.max()?);
    let caption = format!(
        "{}: the time that each clock shows, over the true time.",
        sentence(&topic.work)
    );
    let small = format!("at {}", topic.at(smallest));
    let large = format!("at {}", topic.at(largest));
    let fair = format!("within {:.0} %", FAIR * 100.0);
    let rows = rows(&readings, topic, (smallest, largest));
    let head = ["clock", &small, &large, &fair];
    let finding = Finding::table(name, format!("timing.{name}"), caption, &head, rows);
    Some(finding.rests_on(readings.iter().map(|r| r.benchmark)))
}

/// A row per way of timing: what it shows over the truth at the ends, and from where on it is fair.
fn rows(
    readings: &[Reading],
    topic: &GroupInfo,
    (smallest, largest): (u64, u64),
) -> Vec<Vec<String>> {
    let mut ways: Vec<&str> = readings.iter().map(|r| r.way).collect();
    ways.dedup();
    ways.into_iter()
        .map(|way| {
            let of_way: Vec<&Reading> = readings.iter().filter(|r| r.way == way).collect();
            let at = |size: u64| {
                let here = of_way.iter().find(|r| r.benchmark.size == size);
                here.map_or(String::new(), |r| over(r.ratio))
            };
            let is_fair = |r: &&&Reading| (r.ratio - 1.0).abs() < FAIR;
            let from = of_way.iter().rev().take_while(is_fair).last();
            let from = match from {
                Some(r) if of_way.len() == 1 => format!("at {}", topic.at(r.benchmark.size)),
                Some(r) if r.benchmark.size == smallest => "everywhere".to_owned(),
                Some(r) => format!("from {} on", topic.at(r.benchmark.size)),
                None => "nowhere".to_owned(),
            };
            vec![way.to_owned(), at(smallest), at(largest), from]
        })
        .collect()
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
