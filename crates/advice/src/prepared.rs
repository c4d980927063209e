//! Operations and places, prepared for decisions.

use crate::curve::{Interpolated, Interpolation, Position};
use crate::thresholds::{Choice, Place, Point, Residency, Shape};

/// An operation, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct PreparedOperation {
    pub name: String,
    pub shape: Shape,
    pub first_call_ns: Option<f64>,
    /// Whether the sides are two programs, whose times both depend on the place of the data. The time of
    /// a CPU does not depend on it.
    pub is_of_programs: bool,
    pub places: [Option<PreparedPlace>; Residency::ALL.len()],
}

/// A place, prepared for decisions.
#[derive(Clone, Debug)]
pub(crate) struct PreparedPlace {
    pub curve: Interpolation,
    /// The smallest and the largest measured size.
    pub range: (f64, f64),
    pub below: Option<Choice>,
    pub above: Option<Choice>,
}

impl PreparedPlace {
    pub(crate) fn new(place: &Place) -> Result<Self, &'static str> {
        let curve = curve(&place.points)?;
        let ends = [place.points.first(), place.points.last()];
        let [first, last] = ends.map(|point| point.map_or(0.0, |point| point.size));
        Ok(Self {
            curve,
            range: (first, last),
            below: place.below,
            above: place.above,
        })
    }
}

/// The speedup over the sizes, or the fault of the points.
fn curve(points: &[Point]) -> Result<Interpolation, &'static str> {
    if !points.iter().all(is_sound) {
        return Err("has a point that is no measurement");
    }
    if !points.windows(2).all(|pair| pair[0].size < pair[1].size) {
        return Err("has points whose sizes do not ascend");
    }
    Interpolation::new(points.iter().map(speedup)).ok_or("has no points")
}

fn is_sound(point: &Point) -> bool {
    let numbers = [
        point.size,
        point.cpu_ns,
        point.gpu_ns,
        point.low,
        point.high,
    ];
    // Far from the limits of f64, so that no quotient or product overflows.
    let is_time = |n: &f64| (1e-30..=1e30).contains(n);
    let speedup = point.cpu_ns / point.gpu_ns;
    // Numbers in the file are rounded.
    numbers.iter().all(is_time) && point.low <= 1.01 * speedup && speedup <= 1.01 * point.high
}

fn speedup(point: &Point) -> (f64, Interpolated) {
    let value = (point.cpu_ns / point.gpu_ns).ln();
    let is_measured = point.processes > 0;
    let at = Interpolated {
        time: point.cpu_ns.ln(),
        value,
        low: point.low.ln().min(value),
        high: point.high.ln().max(value),
        position: if is_measured {
            Position::Measured
        } else {
            Position::Between
        },
    };
    (point.size.ln(), at)
}

impl PreparedOperation {
    pub(crate) fn place(&self, data: Residency) -> Option<&PreparedPlace> {
        self.places[data as usize].as_ref()
    }
}
