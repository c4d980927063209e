//! Times over sizes, straight between neighbouring sizes in log-log: times follow powers of the size.

use crate::analysis::answer::estimate::Gap;
use crate::statistics::positive;

/// Differences below this share decide nothing, because two benchmarks of one run drift by more than
/// the confidence intervals of either show.
const MINIMUM_EFFECT: f64 = 0.02;

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
    /// Whether it was measured and not interpolated; for the fastest of several curves, whether all
    /// of them were measured there.
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

    /// The curve at `size`; `None` outside.
    pub fn at(&self, size: f64) -> Option<Point> {
        let next = self.0.partition_point(|p| p.size < size);
        let b = *self.0.get(next)?;
        if b.size == size {
            return Some(b);
        }
        let a = self.0[next.checked_sub(1)?];
        let t = (size / a.size).ln() / (b.size / a.size).ln();
        let between = |a: f64, b: f64| (a.ln() + t * (b / a).ln()).exp();
        Some(Point {
            size,
            median: between(a.median, b.median),
            low: between(a.low, b.low),
            high: between(a.high, b.high),
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
            half_width: half(a).hypot(half(b)).max(MINIMUM_EFFECT.ln_1p()),
            measured: a.measured && b.measured,
        })
    };
    sizes.into_iter().filter_map(gap).collect()
}
