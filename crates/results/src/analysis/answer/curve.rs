//! Times over sizes, straight between neighbouring sizes in log-log, because times follow powers of the size. And the
//! size from which side b wins, from the gaps of one process: gaps at sizes close together lie on a line; between sizes
//! farther apart, times bend from a latency to a rate.

use std::f64::consts::LN_2;

use crossover_advice::curve::{Interpolated, Interpolation, Position};
use crossover_advice::thresholds::MINIMUM_EFFECT;

use crate::analysis::answer::kind::Speedup;
use crate::statistics::{mean, positive};

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

    /// Swaps the sides a and b.
    pub(super) fn swap_sides(&mut self) {
        self.log_time += self.log;
        self.log = -self.log;
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

/// Sizes that make the line on either side of a crossing.
pub(super) const ON_EITHER_SIDE: usize = 2;

/// The crossing of one process: logarithms of the sizes between which b begins to be faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Root {
    /// Both are infinite where b is faster at every size or at none.
    pub(super) high: f64,
    /// Equal to `high`, except where only larger sizes were measured: there it is where the line
    /// leads, at least to half of the bound, and else not a number.
    pub(super) low: f64,
    /// Change of the gap per logarithm of the size: below zero.
    pub(super) slope: Option<f64>,
    /// How far the crossing may lie from the root on either side, because the curve may bend between the
    /// measured sizes.
    pub(super) bend: f64,
}

impl Root {
    fn at(root: f64, slope: Option<f64>) -> Self {
        let (low, high) = (root, root);
        let bend = 0.0;
        Self {
            high,
            low,
            slope,
            bend,
        }
    }

    /// The crossing, where the sizes around it were measured.
    pub(super) fn exact(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.high)
    }

    /// Where b begins to be faster for good by the gaps of one process. If the crossing is searched, the next
    /// process measures closer to it.
    pub(super) fn of(gaps: &[Gap], range: (f64, f64), is_searched: bool) -> Option<Self> {
        let (first, largest) = (gaps.first()?, gaps.last()?);
        if largest.log >= 0.0 {
            // If the range continues, nothing is known beyond.
            return (largest.size >= range.1).then_some(Self::at(f64::INFINITY, None));
        }
        let Some(lost) = last_lost(gaps) else {
            if first.size <= range.0 {
                return Some(Self::at(f64::NEG_INFINITY, None));
            }
            let high = first.log_size();
            let (root, slope) = line(near(gaps, 0));
            let leads_there = slope < 0.0 && root >= high - LN_2;
            let within = || root.clamp(range.0.ln(), high);
            let low = if leads_there { within() } else { f64::NAN };
            return Some(Self {
                low,
                ..Self::at(high, None)
            });
        };
        let near = near(gaps, lost);
        let ends = [&near[0], &near[near.len() - 1]].map(Gap::log_size);
        let (root, slope) = line(near);
        let is_close = ends[1] - ends[0] <= CLOSE.ln();
        match slope < 0.0 && (is_searched || is_close) {
            // The signs enclose it.
            true => Some(Self::at(root.clamp(ends[0], ends[1]), Some(slope))),
            false => Some(Self::enclosed(gaps, lost, is_searched)),
        }
    }

    /// The crossing between the last size that b lost and the next one: by the latencies and rates of both
    /// sides if the sizes show them, or else on the straight line.
    fn enclosed(gaps: &[Gap], lost: usize, is_searched: bool) -> Self {
        let [from, to] = [lost, lost + 1].map(|at| gaps[at].log_size());
        let (straight, slope) = line(&gaps[lost..lost + 2]);
        let slope = Some(slope).filter(|slope| *slope < 0.0);
        if is_searched {
            return Self::at(straight.clamp(from, to), slope);
        }
        let root = modelled(gaps, lost).unwrap_or(straight).clamp(from, to);
        let knot = |gap: &Gap| Interpolated {
            time: gap.log_time,
            value: gap.log,
            low: gap.log,
            high: gap.log,
            position: Position::Measured,
        };
        let bent = Interpolation::new(gaps.iter().map(|gap| (gap.log_size(), knot(gap))));
        let bend = bent.map_or(0.0, |bent| {
            let ends: [fn(&Interpolated) -> f64; 2] = [|at| at.low, |at| at.high];
            let reach = |end: fn(&Interpolated) -> f64| {
                (zero(from, to, |size| end(&bent.at(size))) - root).abs()
            };
            ends.map(reach).into_iter().fold(0.0, f64::max)
        });
        Self {
            bend,
            ..Self::at(root, slope)
        }
    }
}

/// Sizes whose smallest and largest differ by at most this factor: noise moves their times off a line by more
/// than a bend does.
const CLOSE: f64 = 2.5;

/// The least difference of the slopes before and behind two sizes, in log-log, that shows a bend.
const LEAST_BEND: f64 = 0.05;

/// The root between two sizes if each side has a latency and a rate, or is straight.
fn modelled(gaps: &[Gap], lost: usize) -> Option<f64> {
    let around = gaps.get(lost.checked_sub(1)?..lost + 3)?;
    let sides = [|gap: &Gap| gap.log_time, |gap: &Gap| gap.log_time + gap.log];
    let [a, b] = sides.map(|time| -> [(f64, f64); 4] {
        [0, 1, 2, 3].map(|at| (around[at].log_size(), time(&around[at])))
    });
    let bends = [&a, &b].map(latency_and_rate);
    if bends.iter().all(Option::is_none) {
        return None;
    }
    // Both sides have their measured times at the two sizes in the middle.
    let at = |points: &[(f64, f64); 4], bend: &Option<[f64; 3]>, size: f64| {
        let straight =
            |points: [(f64, f64); 2]| crossover_advice::curve::line(points[0], points[1], size);
        let middle = [points[1], points[2]];
        let Some([latency, rate, power]) = bend else {
            return straight(middle);
        };
        let model = |size: f64| (latency + rate * (power * size).exp()).ln();
        model(size) + straight(middle.map(|(size, time)| (size, time - model(size))))
    };
    let gap = |size: f64| at(&b, &bends[1], size) - at(&a, &bends[0], size);
    Some(zero(around[1].log_size(), around[2].log_size(), gap))
}

/// The largest error of a latency and a rate that times show.
const MODEL_ERROR: f64 = 0.03;

/// Latency, rate and power of times that grow as `latency + rate × size^power`, from logarithms at four sizes;
/// `None` where they are straight in log-log, or grow otherwise.
fn latency_and_rate(points: &[(f64, f64); 4]) -> Option<[f64; 3]> {
    let slope = |at: usize| (points[at + 1].1 - points[at].1) / (points[at + 1].0 - points[at].0);
    if slope(2) - slope(0) < LEAST_BEND {
        return None;
    }
    // Relative errors count, so each equation is divided by its time.
    let of_power = |power: f64| {
        let terms = points.map(|(size, time)| ((-time).exp(), (power * size - time).exp()));
        let sum = |of: fn(&(f64, f64)) -> f64| terms.iter().map(of).sum::<f64>();
        let (xx, xy, yy) = (sum(|t| t.0 * t.0), sum(|t| t.0 * t.1), sum(|t| t.1 * t.1));
        let (x, y) = (sum(|t| t.0), sum(|t| t.1));
        let determinant = xx * yy - xy * xy;
        let latency = (x * yy - y * xy) / determinant;
        let rate = (y * xx - x * xy) / determinant;
        let errors = terms.map(|(x, y)| (latency * x + rate * y - 1.0).abs());
        (
            errors.into_iter().fold(0.0, f64::max),
            [latency, rate, power],
        )
    };
    // Up to the arithmetic of a matrix product, and a little more.
    let powers = (5..=35).map(|tenths| of_power(f64::from(tenths) / 10.0));
    let sound = powers.filter(|(error, [latency, rate, _])| {
        *error <= MODEL_ERROR && *latency > 0.0 && *rate > 0.0
    });
    Some(sound.min_by(|a, b| a.0.total_cmp(&b.0))?.1)
}

/// Where a value falls from at least zero to at most zero.
fn zero(mut from: f64, mut to: f64, value: impl Fn(f64) -> f64) -> f64 {
    if value(from) <= 0.0 {
        return from;
    }
    if value(to) >= 0.0 {
        return to;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(from, to);
        if value(middle) > 0.0 {
            from = middle
        } else {
            to = middle
        }
    }
    f64::midpoint(from, to)
}

/// The last size at which b is not faster, before it is for good. Sizes whose intervals contain both
/// count only where they lie between a size that b loses and the first that it wins.
pub(super) fn last_lost(gaps: &[Gap]) -> Option<usize> {
    let decided = gaps.iter().rposition(|gap| gap.winner() == Some(false));
    let from = decided.map_or(0, |at| at + 1);
    let won = gaps[from..]
        .iter()
        .position(|gap| gap.winner() == Some(true));
    let until = won.map_or(gaps.len(), |at| from + at);
    let open = gaps[from..until].iter().rposition(|gap| gap.log >= 0.0);
    open.map(|at| from + at).or(decided)
}

/// The gaps of the line: of a long curve those on either side of the last lost size. The largest size
/// was measured for the speedup. It is part of the line if it is next to the others, or if all others
/// are lost.
pub(super) fn near(gaps: &[Gap], lost: usize) -> &[Gap] {
    let (last, before) = gaps.split_last().expect("there are gaps");
    let is_far = before.last().is_some_and(|gap| last.size > 1.5 * gap.size);
    let gaps = match (is_far, lost + 1 == before.len()) {
        (true, true) => return &gaps[lost..],
        (true, false) => before,
        (false, _) => gaps,
    };
    if gaps.len() <= 2 * ON_EITHER_SIDE + 1 {
        return gaps;
    }
    let next = lost + 1;
    &gaps[next.saturating_sub(ON_EITHER_SIDE)..(next + ON_EITHER_SIDE).min(gaps.len())]
}

/// The line of least squares through the gaps: where it is zero, and its slope.
fn line(gaps: &[Gap]) -> (f64, f64) {
    let mx = mean(gaps.iter().map(Gap::log_size));
    let my = mean(gaps.iter().map(|gap| gap.log));
    let (xx, xy) = gaps.iter().fold((0.0, 0.0), |(xx, xy), gap| {
        let x = gap.log_size() - mx;
        (xx + x * x, xy + x * (gap.log - my))
    });
    let slope = xy / xx;
    (mx - my / slope, slope)
}

/// The median root, where the next process should measure.
pub(super) fn centre(processes: &[Vec<Gap>], range: (f64, f64)) -> Option<f64> {
    let roots = processes
        .iter()
        .filter_map(|gaps| Root::of(gaps, range, true));
    // A root below the measured sizes: measure lower the next time.
    let roots = roots.map(|root| root.exact().unwrap_or(root.high - LN_2));
    let mut sorted: Vec<f64> = roots.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let lower = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
    Some(
        middle_of_sorted(&sorted)
            .filter(|middle| middle.is_finite())
            .unwrap_or(lower)
            .exp(),
    )
}

/// The median of the roots, and its uncertainty on either side. If the two in the middle are a crossing
/// and none, it is the crossing; `None` if one is always and the other never.
pub(super) fn middle(roots: &[Root]) -> Option<(f64, f64)> {
    let median_of = |end: fn(&Root) -> f64| {
        let mut ends: Vec<f64> = roots.iter().map(end).collect();
        // An unknown root may be the smallest.
        ends.sort_unstable_by(|a, b| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
        middle_of_sorted(&ends)
    };
    let (low, high) = (median_of(|root| root.low)?, median_of(|root| root.high)?);
    let distance = (high - low) / 2.0;
    let unknown = if distance.is_finite() { distance } else { 0.0 };
    Some((middle_of_sorted(&[low, high])?, unknown))
}

/// The median, as [`middle`] has it; `None` next to one that is not a number, which is not known.
fn middle_of_sorted(sorted: &[f64]) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let (a, b) = (sorted[last / 2], sorted[sorted.len() / 2]);
    match (a.is_finite(), b.is_finite()) {
        _ if a.is_nan() || b.is_nan() => None,
        (true, true) => Some(a.midpoint(b)),
        (true, false) => Some(a),
        (false, true) => Some(b),
        (false, false) => (a == b).then_some(a),
    }
}
