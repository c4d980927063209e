//! Times over sizes, straight between neighbouring sizes in log-log: times follow powers of the size.

use crossover_advice::curve::{Interpolated, Interpolation, Position};
use crossover_advice::thresholds::MINIMUM_EFFECT;

use crate::analysis::answer::kind::Speedup;
use crate::statistics::positive;

/// One size of a curve. Times in ns, `0 < low <= median <= high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Problem size, above zero.
    pub size: f64,
    /// Median.
    pub median: f64,
    /// Lower end of the median's confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether it was measured and not interpolated.
    pub measured: bool,
}

/// Points with ascending, distinct sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve(Vec<Point>);

impl Curve {
    /// Sorts the points, and drops points that are not positive finite numbers and repeated sizes.
    pub fn new(points: impl IntoIterator<Item = Point>) -> Self {
        let numbers = |p: &Point| [p.size, p.median, p.low, p.high];
        let sound = |p: &Point| numbers(p).into_iter().all(|n| positive(n).is_some());
        let points = points.into_iter().filter(sound);
        let ordered = |p: Point| Point {
            low: p.low.min(p.median),
            high: p.high.max(p.median),
            ..p
        };
        let mut points: Vec<Point> = points.map(ordered).collect();
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        points.dedup_by(|a, b| a.size == b.size);
        Self(points)
    }

    /// The points, smallest size first.
    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// The curve at `size`; `None` outside. Between two points the interval includes how the curve may bend.
    pub fn at(&self, size: f64) -> Option<Point> {
        let next = self.0.partition_point(|p| p.size < size);
        let b = *self.0.get(next)?;
        if b.size == size {
            return Some(b);
        }
        next.checked_sub(1)?;
        let knot = |p: &Point| Interpolated {
            time: p.median.ln(),
            value: p.median.ln(),
            low: p.low.ln(),
            high: p.high.ln(),
            position: Position::Measured,
        };
        let bent = Interpolation::new(self.0.iter().map(|p| (p.size.ln(), knot(p))))?;
        let at = bent.at(size.ln());
        Some(Point {
            size,
            median: at.value.exp(),
            low: at.low.exp(),
            high: at.high.exp(),
            measured: false,
        })
    }

    /// Whether the curve was measured at `size`.
    pub fn has(&self, size: f64) -> bool {
        self.at(size).is_some_and(|point| point.measured)
    }

    /// Whether `size` lies between its ends.
    pub fn covers(&self, size: f64) -> bool {
        self.at(size).is_some()
    }
}

/// Both sides at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Problem size, above zero.
    pub size: f64,
    /// Logarithm of the time of b over that of a: below zero where b is faster.
    pub log: f64,
    /// Logarithm of the time of a.
    pub log_time: f64,
    /// Half the width of the interval in which another process finds it; zero where several
    /// processes show it.
    pub half_width: f64,
    /// Whether both sides were measured, and not interpolated.
    pub measured: bool,
}

impl Gap {
    pub(super) fn log_size(&self) -> f64 {
        self.size.ln()
    }

    /// Whether b is faster; `None` where the interval contains both.
    pub(super) fn winner(&self) -> Option<bool> {
        (self.log.abs() >= self.half_width).then_some(self.log < 0.0)
    }

    /// The speedup that one process shows.
    pub(super) fn speedup(&self) -> Speedup {
        Speedup {
            size: self.size,
            ratio: (-self.log).exp(),
            low: (-self.log - self.half_width).exp(),
            high: (-self.log + self.half_width).exp(),
            processes: usize::from(self.measured),
        }
    }
}

/// Both sides at each size that either has, where both cover it. The two intervals are of
/// independent measurements, so their halves add as squares.
pub fn gaps(a: &Curve, b: &Curve) -> Vec<Gap> {
    let mut sizes: Vec<f64> = a.0.iter().chain(&b.0).map(|p| p.size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let gap = |size| {
        let (a, b) = (a.at(size)?, b.at(size)?);
        let half = |p: Point| (p.high / p.low).ln() / 2.0;
        Some(Gap {
            size,
            log: (b.median / a.median).ln(),
            log_time: a.median.ln(),
            half_width: half(a).hypot(half(b)).max(MINIMUM_EFFECT.ln_1p()),
            measured: a.measured && b.measured,
        })
    };
    sizes.into_iter().filter_map(gap).collect()
}
