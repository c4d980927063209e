//! Measured limits and curves by name, and how long to measure them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::record::{BandwidthCurve, Ceiling, RunRecord};

/// How long the CPU's limits are measured, before the first benchmark and again after the last. The
/// best repetition counts: other work on a CPU only slows it, and a limit must not be exceeded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Repetitions of the arithmetic, and the length of each.
    pub(super) arithmetic: (usize, Duration),
    /// The same for each point of the memory's curve.
    pub(super) memory: (usize, Duration),
    /// The largest working set in bytes.
    pub(super) largest: usize,
}

impl Effort {
    /// Two to three seconds on two cores. The largest working set exceeds the last-level cache of most
    /// processors; servers' caches of 256 MiB and more would otherwise pass for memory.
    pub(crate) const WHOLE: Self = Self {
        arithmetic: (10, Duration::from_millis(25)),
        memory: (3, Duration::from_millis(5)),
        largest: 1 << 30,
    };
    /// Some 50 ms, for runs whose shares of the limits nobody reads: caches only.
    pub(crate) const BRIEF: Self = Self {
        arithmetic: (1, Duration::from_millis(5)),
        memory: (1, Duration::from_millis(1)),
        largest: 4 << 20,
    };
}

/// Limits of one device, as a run measured them.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(super) ceilings: BTreeMap<String, Ceiling>,
    pub(super) curves: BTreeMap<String, BandwidthCurve>,
}

impl Measured {
    pub(super) fn insert(&mut self, name: &str, value: f64, unit: &str, method: String) {
        self.ceilings.insert(
            name.to_owned(),
            Ceiling {
                value,
                unit: unit.to_owned(),
                method,
            },
        );
    }

    /// Adds them to the record of a run. Of two values of a rate the higher one stays, because a limit
    /// must not be exceeded.
    pub(crate) fn raise(self, record: &mut RunRecord) {
        for (name, new) in self.ceilings {
            let slot = record.ceilings.entry(name).or_insert_with(|| new.clone());
            slot.value = slot.value.max(new.value);
        }
        for (name, new) in self.curves {
            let curve = record.curves.entry(name).or_insert_with(|| new.clone());
            for point in new.points {
                match curve.points.iter_mut().find(|p| p.bytes == point.bytes) {
                    Some(known) => known.rate = known.rate.max(point.rate),
                    None => curve.points.push(point),
                }
            }
            curve.points.sort_by_key(|point| point.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::BandwidthPoint;

    fn measured(rate: f64, points: &[(u64, f64)]) -> Measured {
        let mut measured = Measured::default();
        measured.insert("cpu_fma_1", rate, "FLOP/s", "planted".to_owned());
        let points = points.iter();
        let curve = BandwidthCurve {
            points: points
                .map(|&(bytes, rate)| BandwidthPoint { bytes, rate })
                .collect(),
            method: "planted".to_owned(),
        };
        measured.curves.insert("cpu_read".to_owned(), curve);
        measured
    }

    #[test]
    fn the_higher_of_two_measurements_stays() {
        // A run that has not measured the limits yet.
        let mut record = RunRecord::default();
        measured(1e9, &[(1 << 20, 5e9), (1 << 30, 2e9)]).raise(&mut record);
        measured(2e9, &[(1 << 10, 7e9), (1 << 20, 4e9), (1 << 30, 3e9)]).raise(&mut record);
        assert_eq!(record.ceilings["cpu_fma_1"].value, 2e9);
        let points = record.curves["cpu_read"].points.iter();
        let points: Vec<(u64, f64)> = points.map(|point| (point.bytes, point.rate)).collect();
        assert_eq!(points, [(1 << 10, 7e9), (1 << 20, 5e9), (1 << 30, 3e9)]);
    }
}
