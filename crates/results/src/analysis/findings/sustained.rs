//! What is held after the burst: at how many watts, and after how long.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::analysis::telemetry::{power_w, sm_clock_mhz};
use crate::model::group_info::GroupInfo;
use crate::model::role::Measures;
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock;
use crossover_words::units;

/// Within this share of the last rate it counts as settled.
const SETTLED: f64 = 0.02;

/// Up to this long after the start, ns, a newer device's power is an average over idle time too.
const AVERAGED: u64 = 1_000_000_000;

/// One curve.
struct Held<'a> {
    series: &'a Series,
    /// The fastest.
    burst: &'a Benchmark,
    /// The longest under load.
    last: &'a Benchmark,
    /// From here on within [`SETTLED`] of it.
    from: &'a Benchmark,
}

impl<'a> Held<'a> {
    fn of(series: &'a Series) -> Option<Self> {
        let points = &series.points;
        let (first, last) = (points.first()?, points.last()?);
        let settled = |b: &&Benchmark| (b.median_ns / last.median_ns - 1.0).abs() < SETTLED;
        let by_time = |a: &&Benchmark, b: &&Benchmark| a.median_ns.total_cmp(&b.median_ns);
        (first.size < last.size).then_some(Self {
            series,
            burst: points.iter().min_by(by_time)?,
            last,
            from: points.iter().rev().take_while(settled).last()?,
        })
    }

    /// Of the burst that is left.
    fn ratio(&self) -> f64 {
        self.burst.median_ns / self.last.median_ns
    }

    /// As cells of a table.
    fn row(&self, topic: &GroupInfo) -> Vec<String> {
        vec![
            self.series.role.format.name().to_owned(),
            speed(self.burst),
            speed(self.last),
            units::percent((1.0 - self.ratio()).max(0.0)),
            topic.at(self.from.size),
            watts(self.last).map_or(String::new(), |w| format!("{w:.0} W")),
            sm_clock_mhz(self.last).map_or(String::new(), units::megahertz),
        ]
    }
}

/// Power after a time that is the size, in nanoseconds.
fn watts(b: &Benchmark) -> Option<f64> {
    (b.size > AVERAGED).then(|| power_w(b)).flatten()
}

fn speed(b: &Benchmark) -> String {
    match b.cost.flop {
        Some(flop) => units::rate(b.rate(flop), "FLOP/s"),
        None => units::time(b.median_ns),
    }
}

pub(super) fn find(context: &Context, group: &Group) -> Option<Finding> {
    let sustained = gpu(group, Clock::Events).filter(|s| s.role.does == Measures::Sustains);
    let mut held: Vec<Held> = sustained.filter_map(Held::of).collect();
    held.sort_by_key(|held| held.series.role.format);
    let longest = held.iter().map(|held| held.last.size).max()?;
    let topic = &group.topic;
    let environment = context.machine.environment.as_ref();
    let limit = environment.and_then(|e| e.gpu.as_ref()?.power_limit_w);
    let limit = limit.map_or(String::new(), |w| format!("The device may draw {w:.0} W."));
    let rows = held.iter().map(|held| held.row(topic)).collect();
    let caption = format!(
        "{} without a pause, up to {}.",
        sentence(&topic.work),
        topic.at(longest)
    );
    let head = [
        "format",
        "burst",
        "held",
        "less",
        "held from",
        "power",
        "SM clock",
    ];
    let id = format!("sustained.{}", group.name);
    let mut finding = Finding::new(&group.name, id, String::new())
        .tabled(caption, &head, rows)
        .note(&limit);
    for held in &held {
        let format = held.series.role.format.name().to_lowercase();
        let figure = |name: &str| format!("{format}_{name}");
        finding = finding
            .figure(&figure("burst_ns"), held.burst.median_ns)
            .figure(&figure("held_ns"), held.last.median_ns)
            .figure(&figure("held_from_ns"), held.from.size as f64)
            .figure(&figure("ratio"), held.ratio())
            .figure(&figure("power_w"), watts(held.last));
    }
    Some(finding.rests_on(held.iter().flat_map(|h| [h.burst, h.from, h.last])))
}
