//! What limits a benchmark at its size: launches, the link, a cache, the memory or arithmetic.
//!
//! A share of a limit is the time that the work would take at that limit over the time that it
//! took. So the launches of an iteration compare with the other limits: the time that they take by
//! themselves, as this run measured it with an empty kernel, over the time of the iteration. The
//! nearest of all limits is what a faster machine would have to be faster at. An awaited launch
//! takes longer than the queued one that was measured, so its share is a lower bound.

use crate::analysis::limits::{self, Kind};
use crate::model::cost::{Cost, LinkBytes};
use crate::model::id::Device;
use crate::store::curves::{Benchmark, Series};
use crate::store::machine::MachineResults;
use crossover_words::Clock;
use crossover_words::units;

/// The nearest limit of a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub struct Bottleneck {
    /// The kind of limit.
    pub kind: Kind,
    /// The share that is reached; `None` where a cache serves a part that is not known.
    pub share: Option<f64>,
    /// `98 % of memory bandwidth`.
    pub words: String,
}

/// What limits `benchmark` of `series`; `None` where no limit is known.
pub fn of(series: &Series, benchmark: &Benchmark, machine: &MachineResults) -> Option<Bottleneck> {
    let nearest = limits::nearest(series, benchmark, machine);
    let launches = launches(series, benchmark, machine);
    match (nearest, launches) {
        (nearest, Some(launch)) if nearest.is_none_or(|(_, fraction)| launch > fraction) => {
            Some(Bottleneck {
                kind: Kind::Launch,
                share: Some(launch),
                words: format!(
                    "launches take at least {} of the time",
                    units::percent(launch)
                ),
            })
        }
        (nearest, _) => nearest.map(|(share, _)| Bottleneck {
            kind: share.kind(),
            share: share.fraction(),
            words: share.words(),
        }),
    }
}

/// What limits `series` at a size where it takes `ns`. Between measured sizes the cost is interpolated.
pub fn at(series: &Series, size: u64, ns: f64, machine: &MachineResults) -> Option<Bottleneck> {
    match series.at(size) {
        Some(benchmark) => of(series, benchmark, machine),
        None => of(series, &between(series, size, ns)?, machine),
    }
}

/// A benchmark between two measured sizes: amounts are straight in log-log.
fn between(series: &Series, size: u64, ns: f64) -> Option<Benchmark> {
    let above = series.points.partition_point(|b| b.size < size);
    let (a, b) = (
        series.points.get(above.checked_sub(1)?)?,
        series.points.get(above)?,
    );
    let t = (size as f64 / a.size as f64).ln() / (b.size as f64 / a.size as f64).ln();
    let amount = |a: f64, b: f64| match a > 0.0 && b > 0.0 {
        true => (a.ln() + t * (b / a).ln()).exp(),
        false => 0.0,
    };
    let known = |of: fn(&Cost) -> Option<f64>| Some(amount(of(&a.cost)?, of(&b.cost)?));
    let way =
        |of: fn(LinkBytes) -> f64| Some(amount(of(a.cost.link_bytes?), of(b.cost.link_bytes?)));
    let link_bytes = way(|bytes| bytes.to_device).zip(way(|bytes| bytes.to_host));
    let cost = Cost {
        flop: known(|cost| cost.flop),
        bytes: known(|cost| cost.bytes),
        written: known(|cost| cost.written),
        link_bytes: link_bytes.map(|(to_device, to_host)| LinkBytes { to_device, to_host }),
        ..a.cost
    };
    Some(Benchmark {
        size,
        median_ns: ns,
        cost,
        ..a.clone()
    })
}

/// The time of an iteration's launches over its own, at most one.
fn launches(series: &Series, benchmark: &Benchmark, machine: &MachineResults) -> Option<f64> {
    if series.device != Device::Gpu || !series.measures_work() {
        return None;
    }
    let each = match benchmark.clock? {
        // Behind a gate, the constant of each kernel is all that is left of a launch.
        Clock::EventsGated | Clock::EventsCold => "empty_kernel",
        _ => "launch_latency",
    };
    let each = machine.ceiling_of(benchmark, each)?;
    let count = f64::from(benchmark.cost.launches?);
    let share = count * each / benchmark.median_ns;
    (share.is_finite() && share > 0.0).then_some(share.min(1.0))
}
