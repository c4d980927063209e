//! Measured values over sizes, prepared so that a size is looked up without allocating.
//!
//! All curves are straight between neighbouring sizes in log-log, because times follow powers of the
//! size. Where the logarithm of a value is convex or concave, it lies between two sizes between their
//! chord and the extension of a neighbouring chord: the interval is widened that far.
//!
//! Prepared operations and places consist of such curves.

use crate::thresholds::{Choice, Place, Point, Residency, Shape};

/// If the time changes by more than this factor between two sizes, much may happen in between, so
/// the interval spans both.
const WIDE: f64 = 100.0;

/// A chord is extended if it is at least this share of the length that it is extended over. The
/// slope of a shorter one is noise.
const LONG_ENOUGH: f64 = 0.5;

/// The value at `x` of the straight line through two points.
pub fn line((from, start): (f64, f64), (to, end): (f64, f64), x: f64) -> f64 {
    start + (end - start) * (x - from) / (to - from)
}

/// The value at a size between two sizes, on a straight line in log-log. All numbers are above zero.
pub fn log_log(from: (f64, f64), to: (f64, f64), size: f64) -> f64 {
    let ln = |(size, value): (f64, f64)| (size.ln(), value.ln());
    line(ln(from), ln(to), size.ln()).exp()
}

/// A value with its interval, as logarithms.
#[derive(Clone, Copy, Debug)]
pub struct Interpolated {
    /// The time that the value is, or that a speedup divides.
    pub time: f64,
    /// The value.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether it was measured there.
    pub position: Position,
}

/// The position of a size among the measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// The size was measured.
    Measured,
    /// It lies between two measured sizes.
    Between,
    /// It lies below all of them.
    Below,
    /// It lies above all of them.
    Above,
}

#[derive(Clone, Copy, Debug)]
struct Knot {
    size: f64,
    at: Interpolated,
    /// Slopes of the value before this size and behind the next, if their chords are long enough to
    /// bound the value in between.
    before: Option<f64>,
    behind: Option<f64>,
}

/// A curve through at least one value.
#[derive(Clone, Debug)]
pub struct Interpolation(Vec<Knot>);

impl Interpolation {
    /// Through values at ascending sizes, which are logarithms too; `None` without any.
    pub fn new(values: impl IntoIterator<Item = (f64, Interpolated)>) -> Option<Self> {
        let knot = |(size, at)| Knot {
            size,
            at,
            before: None,
            behind: None,
        };
        let mut knots: Vec<Knot> = values.into_iter().map(knot).collect();
        for i in 0..knots.len().saturating_sub(1) {
            let width = knots[i + 1].size - knots[i].size;
            let is_long =
                |from: usize, to: usize| knots[to].size - knots[from].size >= LONG_ENOUGH * width;
            let slope = |from: usize, to: usize| {
                let (a, b) = (&knots[from], &knots[to]);
                (b.at.value - a.at.value) / (b.size - a.size)
            };
            let before = (0..i).rev().find(|k| is_long(*k, i));
            let behind = (i + 2..knots.len()).find(|k| is_long(i + 1, *k));
            let before = before.map(|k| slope(k, i));
            let behind = behind.map(|k| slope(i + 1, k));
            (knots[i].before, knots[i].behind) = (before, behind);
        }
        (!knots.is_empty()).then_some(Self(knots))
    }

    /// The value at a size, by its logarithm; outside the measured range the value at its end.
    pub fn at(&self, size: f64) -> Interpolated {
        let next = self.0.partition_point(|knot| knot.size < size);
        let (Some(b), Some(a)) = (self.0.get(next), next.checked_sub(1).map(|i| &self.0[i])) else {
            return self.end(next, size);
        };
        if b.size == size {
            return b.at;
        }
        let chord =
            |of: fn(&Interpolated) -> f64| line((a.size, of(&a.at)), (b.size, of(&b.at)), size);
        let value = chord(|at| at.value);
        let before = (a.before).map(|slope| a.at.value + slope * (size - a.size) - value);
        let behind = (a.behind).map(|slope| b.at.value - slope * (b.size - size) - value);
        let ends_low = a.at.value.min(b.at.value) - value;
        let ends_high = a.at.value.max(b.at.value) - value;
        let (mut low, mut high) = match (before, behind) {
            // Both on one side: the curve bends one way, and the nearer one bounds it.
            (Some(x), Some(y)) if x * y > 0.0 => {
                let nearer = if x.abs() < y.abs() { x } else { y };
                (nearer.min(0.0), nearer.max(0.0))
            }
            (Some(x), Some(y)) => (x.min(y), x.max(y)),
            (Some(x), None) | (None, Some(x)) => (x.min(0.0), x.max(0.0)),
            (None, None) => (ends_low, ends_high),
        };
        if (b.at.time - a.at.time).abs() > WIDE.ln() {
            (low, high) = (low.min(ends_low), high.max(ends_high));
        }
        Interpolated {
            time: chord(|at| at.time),
            value,
            low: chord(|at| at.low) + low,
            high: chord(|at| at.high) + high,
            position: Position::Between,
        }
    }

    /// Interpolated or beyond an end.
    fn end(&self, next: usize, size: f64) -> Interpolated {
        let (knot, position) = match next {
            0 => (&self.0[0], Position::Below),
            _ => (&self.0[self.0.len() - 1], Position::Above),
        };
        let is_measured = knot.size == size;
        let position = if is_measured {
            knot.at.position
        } else {
            position
        };
        Interpolated {
            position,
            ..knot.at
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two sizes it lies between their chord and the nearer extension of a neighbouring chord.
    #[test]
    fn a_bend_widens_the_interval() {
        let exact = |(size, value)| {
            let at = Interpolated {
                time: 0.0,
                value,
                low: value,
                high: value,
                position: Position::Measured,
            };
            (size, at)
        };
        let values = [(0.0, 0.0), (1.0, 2.0), (2.0, 3.0), (3.0, 3.5)];
        let curve = Interpolation::new(values.map(exact)).unwrap();
        for (size, chord, extension) in [(1.25, 2.25, 2.5), (1.75, 2.75, 2.875)] {
            let at = curve.at(size);
            assert_eq!([at.value, at.low, at.high], [chord, chord, extension]);
        }
        // Without neighbours the ends bound it.
        let two = Interpolation::new([values[0], values[1]].map(exact)).unwrap();
        let at = two.at(0.5);
        assert_eq!([at.value, at.low, at.high], [1.0, 0.0, 2.0]);
    }
}
