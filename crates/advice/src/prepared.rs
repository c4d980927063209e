//! Operations and places, prepared for decisions.

use crate::curve::Curve;
use crate::thresholds::{Choice, Place, Point, Residency, Shape};

/// An operation, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub name: String,
    pub shape: Shape,
    pub first_call_ns: Option<f64>,
    pub places: [Option<PreparedPlace>; Residency::ALL.len()],
}

/// A place, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct PreparedPlace {
    pub curve: Curve,
    /// Logarithms of sizes and of the CPU's times, from all places of the operation: where the data are
    /// for the GPU makes no difference to the CPU.
    cpu: Vec<(f64, f64)>,
    /// The smallest and the largest measured size.
    pub range: (f64, f64),
    pub below: Option<Choice>,
    pub above: Option<Choice>,
}

impl PreparedPlace {
    /// A place of `places`, which are those of its operation.
    pub(crate) fn new(place: &Place, places: &[Place]) -> Result<Self, &'static str> {
        let curve = Curve::new(place)?;
        let mut points: Vec<&Point> = places.iter().flat_map(|other| &other.points).collect();
        points.sort_by(|a, b| (a.size.total_cmp(&b.size)).then(b.processes.cmp(&a.processes)));
        // Of several times at a size, the one from the most processes stays.
        points.dedup_by_key(|point| point.size);
        let logarithms = |point: &Point| (point.size.ln(), point.cpu_ns.ln());
        let ends = [place.points.first(), place.points.last()];
        let [first, last] = ends.map(|point| point.map_or(0.0, |point| point.size));
        Ok(Self {
            curve,
            range: (first, last),
            cpu: points.into_iter().map(logarithms).collect(),
            below: place.below,
            above: place.above,
        })
    }

    /// Logarithm of the CPU's time at a size, by its logarithm; outside the measured range the time at
    /// its end.
    pub(crate) fn cpu(&self, size: f64) -> f64 {
        let size = self.curve.measured(size);
        let next = self.cpu.partition_point(|(at, _)| *at < size);
        let (to, end) = self.cpu[next.min(self.cpu.len() - 1)];
        let (from, start) = self.cpu[next.saturating_sub(1)];
        match to > from {
            true => start + (end - start) * (size - from) / (to - from),
            false => end,
        }
    }
}

impl Measured {
    pub(crate) fn place(&self, data: Residency) -> Option<&PreparedPlace> {
        self.places[data as usize].as_ref()
    }
}
