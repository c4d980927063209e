//! What was measured: ceilings and curves by name.

use std::collections::BTreeMap;

use crate::model::record::{BandwidthCurve, Ceiling, RunRecord};

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

    /// Adds them to the record of a run. Of a rate that it has already the higher one stays: a
    /// limit is what nothing exceeds.
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
