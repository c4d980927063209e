//! The search on two curves of points with confidence intervals.
//!
//! Both curves are taken as straight between neighbouring sizes in log-log, since times
//! follow powers of the size. At each size that either has, inside the range that both
//! cover, the size is *decided* when the interval of their ratio excludes one (the two intervals
//! are of independent measurements, so their halves add as squares) and the medians differ by at
//! least [`MINIMUM_EFFECT`]; otherwise it is open. The decided sizes alone
//! make the answer, so that noise where the curves nearly touch is not taken for crossing
//! back. There is none while the largest size is open, nor does the CPU win everywhere while the GPU is ahead at
//! an open size below.
//! The crossing itself is where the medians cross last between the last size decided
//! for one side and the first decided for the other; its interval runs from the first size
//! at which the intervals allow the change to the last at which they do not force it.

use serde::{Deserialize, Serialize};

/// Differences of medians below this share decide nothing: two benchmarks of one run drift
/// against each other by more than the confidence intervals of either show.
pub const MINIMUM_EFFECT: f64 = 0.02;

/// Two bracketing sizes at most this far apart count as measured rather than interpolated.
/// A quarter of a power of two at its lower end.
const MEASURED_STEP: f64 = 1.25 + 1e-9;

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
    /// Sorts the points and drops what is not a positive finite number, and doubled sizes.
    pub fn new(points: impl IntoIterator<Item = Point>) -> Self {
        let sound = |n: f64| n.is_finite() && n > 0.0;
        let mut points: Vec<Point> = points
            .into_iter()
            .filter(|p| [p.size, p.median, p.low, p.high].into_iter().all(sound))
            .map(|p| Point {
                low: p.low.min(p.median),
                high: p.high.max(p.median),
                ..p
            })
            .collect();
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        points.dedup_by(|a, b| a.size == b.size);
        Self(points)
    }

    /// The points, smallest size first.
    pub fn points(&self) -> &[Point] {
        &self.0
    }

    /// The curve at `size`, straight in log-log between neighbours; `None` outside.
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

/// Who wins where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The CPU wins below one size, the GPU from there on.
    At,
    /// The GPU wins at the largest size and at all that show a difference, and is ahead at the smallest.
    Always,
    /// The CPU does.
    Never,
    /// The GPU wins somewhere and loses again at a larger size.
    CrossesBack,
    /// The largest size shows no difference; or the CPU wins at all that do, and the GPU is ahead at a
    /// smaller one.
    Undecided,
}

/// One change of the winner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Where the medians cross.
    pub size: f64,
    /// Smallest size at which the confidence intervals allow the change.
    pub low: f64,
    /// Largest size at which they do not force it.
    pub high: f64,
    /// True when the GPU wins above it.
    pub to_gpu: bool,
    /// Both curves were measured on both sides, at most a quarter apart.
    pub measured: bool,
    /// Last size decided for the old winner and first for the new one.
    pub bracket: (f64, f64),
}

/// The answer for one pair of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// Who wins where.
    pub answer: Answer,
    /// All changes of the winner, by size.
    pub changes: Vec<Change>,
    /// Smallest and largest size that both curves cover.
    pub range: (f64, f64),
    /// Smallest and largest of the sizes that would have to show a difference; `None` where the answer
    /// is decided.
    pub open: Option<(f64, f64)>,
}

impl Crossing {
    /// The only size that both curves cover, where there are no more.
    pub(crate) fn only_size(&self) -> Option<f64> {
        let (first, last) = self.range;
        (first == last).then_some(first)
    }

    /// The change from which on the GPU wins for good; `None` where it does not.
    pub fn for_good(&self) -> Option<&Change> {
        let decided = self.answer != Answer::Undecided;
        self.changes.last().filter(|c| c.to_gpu && decided)
    }

    /// Nothing crosses.
    pub(super) fn decide(&mut self, answer: Answer) {
        self.answer = answer;
        self.changes.clear();
        self.open = None;
    }

    /// The GPU wins from `size` on, measured between `low` and `high`.
    pub(super) fn move_to(&mut self, size: f64, low: f64, high: f64) {
        self.decide(Answer::At);
        self.changes.push(Change {
            size,
            low,
            high,
            to_gpu: true,
            measured: true,
            bracket: (low, high),
        });
    }
}

/// One size with the logarithm of GPU over CPU time: negative where the GPU wins.
#[derive(Clone, Copy)]
pub(super) struct Gap {
    pub(super) size: f64,
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Gap {
    /// True for the GPU, false for the CPU, `None` while open.
    fn winner(&self) -> Option<bool> {
        let enough = self.median.abs() >= MINIMUM_EFFECT.ln_1p();
        match () {
            () if enough && self.high < 0.0 => Some(true),
            () if enough && self.low > 0.0 => Some(false),
            () => None,
        }
    }
}

/// Finds who wins where. `None` when no size lies inside both curves.
pub fn search(cpu: &Curve, gpu: &Curve) -> Option<Crossing> {
    let gaps = gaps(cpu, gpu);
    let (first, last) = (gaps.first()?, gaps.last()?);
    let range = (first.size, last.size);
    let decided: Vec<(usize, bool)> = gaps
        .iter()
        .enumerate()
        .filter_map(|(i, g)| Some((i, g.winner()?)))
        .collect();
    let mut changes: Vec<Change> = Vec::new();
    // Open sizes before the first decided one, with a median for the other side: the
    // crossing is there, and its interval reaches down to the smallest size.
    if let Some(&(i, true)) = decided.first()
        && gaps[..i].iter().any(|g| g.median >= 0.0)
    {
        changes.push(change(&gaps[..=i], true, cpu, gpu));
    }
    for pair in decided.windows(2) {
        let [(i, before), (j, after)] = *pair else {
            continue;
        };
        if before != after {
            changes.push(change(&gaps[i..=j], after, cpu, gpu));
        }
    }
    let before = decided.first().map_or(gaps.len(), |(i, _)| *i);
    let after = decided.last().map_or(0, |(i, _)| i + 1);
    let never = changes.is_empty() && !decided.last().is_some_and(|(_, gpu)| *gpu);
    let may_win = never && gaps[..before].iter().any(|g| g.median < 0.0);
    let open = match (may_win, after < gaps.len()) {
        (true, true) => Some(range),
        (true, false) => Some((first.size, gaps[before - 1].size)),
        (false, true) => Some((gaps[after].size, last.size)),
        (false, false) => None,
    };
    let answer = match changes.as_slice() {
        _ if open.is_some() => Answer::Undecided,
        [] if never => Answer::Never,
        [] => Answer::Always,
        [only] if only.to_gpu => Answer::At,
        _ => Answer::CrossesBack,
    };
    Some(Crossing {
        answer,
        changes,
        range,
        open,
    })
}

/// The gap at each size that either curve has, where both cover it.
pub(super) fn gaps(cpu: &Curve, gpu: &Curve) -> Vec<Gap> {
    let mut sizes: Vec<f64> = cpu.0.iter().chain(&gpu.0).map(|p| p.size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    sizes
        .into_iter()
        .filter_map(|size| {
            let (cpu, gpu) = (cpu.at(size)?, gpu.at(size)?);
            let median = (gpu.median / cpu.median).ln();
            let below = (gpu.median / gpu.low)
                .ln()
                .hypot((cpu.high / cpu.median).ln());
            let above = (gpu.high / gpu.median)
                .ln()
                .hypot((cpu.median / cpu.low).ln());
            Some(Gap {
                size,
                median,
                low: median - below,
                high: median + above,
            })
        })
        .collect()
}

/// The change of winner inside `gaps`, whose ends are decided (or the first size there is).
fn change(gaps: &[Gap], to_gpu: bool, cpu: &Curve, gpu: &Curve) -> Change {
    // For the CPU a change back is the same with the sign reversed.
    let turned: Vec<Gap> = gaps
        .iter()
        .map(|g| match to_gpu {
            true => *g,
            false => Gap {
                size: g.size,
                median: -g.median,
                low: -g.high,
                high: -g.low,
            },
        })
        .collect();
    let (first, last) = (turned[0].size, turned[turned.len() - 1].size);
    let size = last_crossing(&turned, |g| g.median);
    let (at, bracket) = size.unwrap_or((first, (first, last)));
    let low = first_crossing(&turned, |g| g.low).unwrap_or(first);
    let high = last_crossing(&turned, |g| g.high).map_or(last, |c| c.0);
    let measured = bracket.1 <= (bracket.0 * MEASURED_STEP).max(bracket.0 + 1.0)
        && [bracket.0, bracket.1]
            .iter()
            .all(|&size| cpu.has(size) && gpu.has(size));
    Change {
        size: at,
        // Interpolating each separately may leave them a rounding error apart.
        low: low.min(at),
        high: high.max(at),
        to_gpu,
        measured,
        bracket: (first, last),
    }
}

/// Where `value` last goes from at least zero to below, and between which sizes.
fn last_crossing(gaps: &[Gap], value: impl Fn(&Gap) -> f64) -> Option<(f64, (f64, f64))> {
    gaps.windows(2)
        .rev()
        .find(|w| value(&w[0]) >= 0.0 && value(&w[1]) < 0.0)
        .map(|w| (zero(&w[0], &w[1], &value), (w[0].size, w[1].size)))
}

/// Where `value` first goes from at least zero to below.
fn first_crossing(gaps: &[Gap], value: impl Fn(&Gap) -> f64) -> Option<f64> {
    gaps.windows(2)
        .find(|w| value(&w[0]) >= 0.0 && value(&w[1]) < 0.0)
        .map(|w| zero(&w[0], &w[1], &value))
}

/// The size at which the straight line from `a` (not below zero) to `b` (below) is zero.
fn zero(a: &Gap, b: &Gap, value: impl Fn(&Gap) -> f64) -> f64 {
    let (from, to) = (value(a), value(b));
    let t = from / (from - to);
    (a.size.ln() + t * (b.size / a.size).ln())
        .exp()
        .clamp(a.size, b.size)
}
