//! The measured sizes of one place, prepared so that a size is looked up without allocating.
//!
//! All curves are straight between neighbouring sizes in log-log, because times follow powers of the
//! size. Where the logarithm of the speedup is convex or concave, its value between two sizes lies
//! between their chord and the extension of a neighbouring chord: the interval is widened that far.

use crate::thresholds::{Place, Point};

/// If the CPU's time changes by more than this factor between two sizes, much may happen in between, so
/// the interval spans both.
const WIDE: f64 = 100.0;

/// A chord is extended if it is at least this share of the length that it is extended over. The
/// slope of a shorter one is noise.
const LONG_ENOUGH: f64 = 0.5;

/// Times and speedup at one size, as logarithms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub gpu: f64,
    pub speedup: f64,
    pub low: f64,
    pub high: f64,
    pub position: Position,
}

impl At {
    pub(crate) fn cpu(&self) -> f64 {
        self.gpu + self.speedup
    }
}

/// The position of a size among the measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Measured,
    Between,
    Below,
    Above,
}

#[derive(Clone, Copy, Debug)]
struct Knot {
    size: f64,
    at: At,
    /// Slopes of the speedup before this size and behind the next, if their chords are long enough to
    /// bound the speedup in between.
    before: Option<f64>,
    behind: Option<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Curve(Vec<Knot>);

impl Curve {
    /// # Errors
    /// The fault of the points.
    pub(crate) fn new(place: &Place) -> Result<Self, &'static str> {
        if place.points.is_empty() {
            return Err("has no points");
        }
        if !place.points.iter().all(is_sound) {
            return Err("has a point that is no measurement");
        }
        if !place
            .points
            .windows(2)
            .all(|pair| pair[0].size < pair[1].size)
        {
            return Err("has points whose sizes do not ascend");
        }
        let mut knots: Vec<Knot> = place.points.iter().map(knot).collect();
        for i in 0..knots.len().saturating_sub(1) {
            let width = knots[i + 1].size - knots[i].size;
            let is_long =
                |from: usize, to: usize| knots[to].size - knots[from].size >= LONG_ENOUGH * width;
            let before = (0..i).rev().find(|k| is_long(*k, i));
            let behind = (i + 2..knots.len()).find(|k| is_long(i + 1, *k));
            let (before, behind) = (
                before.map(|k| slope(&knots[k], &knots[i])),
                behind.map(|k| slope(&knots[i + 1], &knots[k])),
            );
            (knots[i].before, knots[i].behind) = (before, behind);
        }
        Ok(Self(knots))
    }

    /// The times at a size, by its logarithm; outside the measured range the times at its end.
    pub(crate) fn at(&self, size: f64) -> At {
        let next = self.0.partition_point(|knot| knot.size < size);
        let (Some(b), Some(a)) = (self.0.get(next), next.checked_sub(1).map(|i| &self.0[i])) else {
            return self.end(next, size);
        };
        if b.size == size {
            return b.at;
        }
        let t = (size - a.size) / (b.size - a.size);
        let chord = |of: fn(&At) -> f64| of(&a.at) + t * (of(&b.at) - of(&a.at));
        let speedup = chord(|at| at.speedup);
        let before = a
            .before
            .map(|slope| a.at.speedup + slope * (size - a.size) - speedup);
        let behind = a
            .behind
            .map(|slope| b.at.speedup - slope * (b.size - size) - speedup);
        let (ends_low, ends_high) = (
            a.at.speedup.min(b.at.speedup) - speedup,
            a.at.speedup.max(b.at.speedup) - speedup,
        );
        let (mut low, mut high) = match (before, behind) {
            // Both on one side: the curve bends one way, and the nearer one bounds it.
            (Some(x), Some(y)) if x * y > 0.0 => match x.abs() < y.abs() {
                true => (x.min(0.0), x.max(0.0)),
                false => (y.min(0.0), y.max(0.0)),
            },
            (Some(x), Some(y)) => (x.min(y), x.max(y)),
            (Some(x), None) | (None, Some(x)) => (x.min(0.0), x.max(0.0)),
            (None, None) => (ends_low, ends_high),
        };
        if (b.at.cpu() - a.at.cpu()).abs() > WIDE.ln() {
            (low, high) = (low.min(ends_low), high.max(ends_high));
        }
        At {
            gpu: chord(|at| at.gpu),
            speedup,
            low: chord(|at| at.low) + low,
            high: chord(|at| at.high) + high,
            position: Position::Between,
        }
    }

    /// The measured size that is nearest to a size outside of the range, by their logarithms.
    pub(crate) fn measured(&self, size: f64) -> f64 {
        size.clamp(self.0[0].size, self.0[self.0.len() - 1].size)
    }

    /// At or beyond an end.
    fn end(&self, next: usize, size: f64) -> At {
        let (knot, position) = match next {
            0 => (&self.0[0], Position::Below),
            _ => (&self.0[self.0.len() - 1], Position::Above),
        };
        match knot.size == size {
            true => knot.at,
            false => At {
                position,
                ..knot.at
            },
        }
    }
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

fn knot(point: &Point) -> Knot {
    let speedup = (point.cpu_ns / point.gpu_ns).ln();
    Knot {
        size: point.size.ln(),
        at: At {
            gpu: point.gpu_ns.ln(),
            speedup,
            low: point.low.ln().min(speedup),
            high: point.high.ln().max(speedup),
            position: match point.processes {
                0 => Position::Between,
                _ => Position::Measured,
            },
        },
        before: None,
        behind: None,
    }
}

fn slope(a: &Knot, b: &Knot) -> f64 {
    (b.at.speedup - a.at.speedup) / (b.size - a.size)
}
