//! What limits a benchmark at its size: launches, the link, a cache, the memory or arithmetic.
//!
//! A share of a limit is the time that the work would take at that limit over the time that it
//! took. So the launches of an iteration compare with the other limits: the time that they take by
//! themselves, as this run measured it with an empty kernel, over the time of the iteration. The
//! nearest of all limits is what a faster machine would have to be faster at. An awaited launch
//! takes longer than the queued one that was measured, so its share is a lower bound.

use crate::analysis::limits::{self, Kind};
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
