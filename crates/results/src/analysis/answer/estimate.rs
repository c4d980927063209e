//! From which size on side b is faster than side a, and by how much: the estimate of one process or
//! of several. CPU and GPU are one such pair of sides.
//!
//! A process contributes one crossing and one speedup at the largest size. The crossing is the root
//! of a straight line through the logarithms of the ratios at sizes close around it. Between sizes farther
//! apart it is the root of the two curves, each with a latency and a rate if the sizes show them. The estimate is the
//! median over the processes. Its interval contains the estimate of another run with a probability of 95 %.
//!
//! Two estimates differ by the spread between processes and by changes of the machine between two runs,
//! which no single run shows and which are assumed. The spread of the processes is moderated
//! ([`Spread`]) by that of other questions about data in the same place. One process shows no spread:
//! its interval is that of its benchmarks.

use crate::analysis::answer::curve::{Gap, Root, last_lost, middle, near};
use crate::analysis::answer::kind::{Speedup, WinnerChange, is_close, kind, winner};
use crate::model::role::Residency;
use crate::statistics::between_processes::{
    CLASS_FREEDOM, Spread, TWO_SIDED_95, freedom_of_sum, quantile,
};
use crate::statistics::mean;
use crate::statistics::median::median;
use crossover_advice::thresholds::CrossingKind;

/// Probability that another run's estimate lies in the interval.
const COVERAGE: f64 = 0.95;

/// Variance of a median of some normal samples over that of their mean: 1.35 for three, 1.43 for
/// five, π/2 in the limit.
const MEDIAN_OVER_MEAN: f64 = 1.45;

/// The assumed difference between runs a few minutes apart, besides the spread between their processes,
/// is at least this: the standard deviation of the logarithm of the ratio.
const ASSUMED_OF_A_RUN: f64 = 0.05;
/// That difference as a share of the processes' standard deviation. Causes of the spread, such as other work
/// on the host, also change over times longer than a run, and affect the calibrations that all
/// processes of a run share.
const RUN_OVER_PROCESSES: f64 = 0.5;

/// Fewer processes have no median and no spread.
pub const FEWEST_PROCESSES: usize = 3;

/// One question as the processes answered it.
pub struct Samples {
    /// Where the data are: questions about one place have a spread in common.
    pub place: Residency,
    /// The smallest and the largest size of interest.
    pub range: (f64, f64),
    /// Whether each process measured around the crossing that the ones before it found.
    pub is_searched: bool,
    /// The measured gaps of each process, by size, ascending. The last size of each is the largest.
    pub processes: Vec<Vec<Gap>>,
}

/// The estimate for one pair of sides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossing {
    /// Which side is faster where.
    pub answer: CrossingKind,
    /// All changes of the winner, by size; none where it is undecided.
    pub changes: Vec<WinnerChange>,
    /// Where the winner changes for good by the times around that size.
    pub root: Option<WinnerChange>,
    /// Smallest and largest size of both sides.
    pub range: (f64, f64),
    /// Number of processes.
    pub processes: usize,
    /// How many of the processes agree with the answer; none where there is no joint answer.
    pub agree: usize,
    /// Whether in some process b was faster at every size.
    pub or_always: bool,
    /// Whether in some process b was faster at none.
    pub or_never: bool,
    /// Time of a over that of b at the largest size.
    pub speedup: f64,
    /// Interval of the speedup.
    pub speedup_interval: (f64, f64),
    /// The largest size.
    pub largest: f64,
}

impl Crossing {
    /// The size, if both sides have only one in common.
    pub fn only_size(&self) -> Option<f64> {
        (self.range.0 == self.range.1).then_some(self.range.0)
    }

    /// The change from which on b wins for good; `None` where it does not.
    pub fn for_good(&self) -> Option<&WinnerChange> {
        let decided = self.answer != CrossingKind::Undecided;
        self.changes.last().filter(|c| c.to_b && decided)
    }

    /// The sizes that would decide an undecided answer.
    pub fn open(&self) -> (f64, f64) {
        match self.wins_at_the_largest() {
            None => (self.range.1, self.range.1),
            Some(_) => self.range,
        }
    }

    /// Whether several processes answered.
    pub fn is_confirmed(&self) -> bool {
        self.processes >= FEWEST_PROCESSES
    }

    /// Whether a table shows the speedup: the answer is decided, and the winner at the largest size known.
    pub fn shows_speedup(&self) -> bool {
        self.answer != CrossingKind::Undecided && self.wins_at_the_largest().is_some()
    }

    /// Whether b is faster at the largest size; `None` where another run may find either.
    pub fn wins_at_the_largest(&self) -> Option<bool> {
        winner(self.speedup_interval)
    }

    /// At the largest size the interval of the answer, which includes the spread of similar questions.
    pub(super) fn at_the_largest(&self, at: Speedup) -> Speedup {
        let (low, high) = self.speedup_interval;
        if self.largest != at.size {
            return at;
        }
        Speedup {
            ratio: self.speedup,
            low,
            high,
            ..at
        }
    }

    /// Finds the kind of the answer from the speedups at all measured sizes up to the largest.
    pub(super) fn decide(&mut self, sizes: impl IntoIterator<Item = Speedup>) {
        let inside = self.range.0..=self.largest;
        let sizes = (sizes.into_iter()).filter(|at| at.processes > 0 && inside.contains(&at.size));
        let sizes: Vec<Speedup> = sizes.map(|at| self.at_the_largest(at)).collect();
        (self.answer, self.changes) = kind(&sizes, self.range, self.root);
    }

    /// Finds the kind again if sizes are open that were measured on both sides and decide nothing.
    pub(super) fn decide_again(&mut self, sizes: Vec<Speedup>, open: Vec<f64>) {
        if open.is_empty() {
            return;
        }
        let unsure = |size| Speedup::unknown(size, 1);
        let known = sizes.into_iter().filter(|at| at.processes > 0);
        let sizes = known.chain(open.into_iter().map(unsure));
        // The answer says nothing about sizes below its range.
        let mut sizes: Vec<Speedup> = sizes.filter(|at| at.size >= self.range.0).collect();
        sizes.sort_by(|a, b| a.size.total_cmp(&b.size));
        (self.answer, self.changes) = kind(&sizes, self.range, self.root);
    }

    /// Swaps the sides a and b. The speedups at `sizes` are those after the swap.
    pub(super) fn swap_sides(&mut self, sizes: &[Speedup]) {
        let (low, high) = self.speedup_interval;
        self.speedup_interval = (1.0 / high, 1.0 / low);
        self.speedup = 1.0 / self.speedup;
        std::mem::swap(&mut self.or_always, &mut self.or_never);
        if let Some(root) = &mut self.root {
            root.to_b = !root.to_b;
        }
        self.decide(sizes.iter().copied());
    }

    /// Whether the answer of another run has no crossing in common with this one, or another winner.
    pub fn contradicts(&self, other: &Crossing) -> bool {
        match (self.for_good(), other.for_good()) {
            (Some(own), Some(other)) => own.high < other.low || other.high < own.low,
            // An undecided answer contradicts none.
            _ => {
                let winners = (self.wins_at_the_largest(), other.wins_at_the_largest());
                matches!(winners, (Some(own), Some(other)) if own != other)
                    || self.answer == CrossingKind::Always
                        && other.for_good().is_some_and(|c| c.low > self.range.0)
                    || other.answer == CrossingKind::Always
                        && self.for_good().is_some_and(|c| c.low > other.range.0)
            }
        }
    }
}

/// One question, before the spread is known.
struct Pooled<'a> {
    asked: &'a Samples,
    roots: Vec<Root>,
    /// The roots that are known, because the sizes around them were measured.
    exact: Vec<f64>,
    /// Logarithm of the size of the median crossing; infinite where b is faster always or never.
    root: Option<f64>,
    /// By how much the bounds leave it uncertain on either side.
    unknown: f64,
    slope: Option<f64>,
    speedup: f64,
    /// Logarithms of the speedup of each process.
    speedups: Vec<f64>,
    of_speedups: Spread,
    of_crossings: Spread,
}

/// The estimates; `None` without a sound process, and where the range of sizes descends.
pub fn estimates(questions: &[Samples]) -> Vec<Option<Crossing>> {
    let pooled: Vec<Option<Pooled>> = questions.iter().map(Pooled::of).collect();
    let one = |one: &Option<Pooled>| {
        let one = one.as_ref()?;
        let peers = || {
            let known = pooled.iter().flatten();
            known.filter(|other| other.asked.place == one.asked.place && !std::ptr::eq(*other, one))
        };
        let of_speedup = half_width(
            one.of_speedups,
            peers().map(|o| o.of_speedups),
            one.asked.processes.len(),
        );
        let of_crossing = half_width(
            one.of_crossings,
            peers().map(|o| o.of_crossings),
            one.exact.len(),
        );
        Some(one.crossing(of_speedup, of_crossing))
    };
    pooled.iter().map(one).collect()
}

impl<'a> Pooled<'a> {
    fn of(asked: &'a Samples) -> Option<Self> {
        let processes = &asked.processes;
        if processes.first().is_none_or(Vec::is_empty) || asked.range.0 > asked.range.1 {
            return None;
        }
        let largest = processes.iter().filter_map(|gaps| gaps.last());
        let speedups: Vec<f64> = largest.map(|gap| -gap.log).collect();
        let roots: Vec<Root> = processes
            .iter()
            .filter_map(|gaps| Root::of(gaps, asked.range, asked.is_searched))
            .collect();
        let exact: Vec<f64> = (roots.iter().filter_map(Root::exact))
            .filter(|root| root.is_finite())
            .collect();
        let (root, unknown) = match &roots[..] {
            [only] => (only.exact(), 0.0),
            roots if roots.len() < FEWEST_PROCESSES => (None, 0.0),
            roots => middle(roots).map_or((None, 0.0), |(root, unknown)| (Some(root), unknown)),
        };
        // A process may have measured closer to the crossing than others.
        let bends = roots
            .iter()
            .filter(|own| own.exact().is_some_and(f64::is_finite));
        let unknown = unknown + bends.map(|root| root.bend).reduce(f64::min).unwrap_or(0.0);
        let slope = median(roots.iter().filter_map(|root| root.slope));
        let [of_speedups, of_crossings] = match &processes[..] {
            // A single process has only the spread of its benchmarks.
            [gaps] => {
                let spread = |gaps: &[Gap]| {
                    let half = mean(gaps.iter().map(|gap| gap.half_width));
                    Spread::known((half / TWO_SIDED_95).powi(2), CLASS_FREEDOM)
                };
                let lost = last_lost(gaps).unwrap_or(0);
                [spread(&gaps[gaps.len() - 1..]), spread(near(gaps, lost))]
            }
            _ => {
                let around = root.filter(|root| root.is_finite()).zip(slope);
                let around = around.map_or(Vec::new(), |(root, slope)| {
                    exact.iter().map(|other| slope * (other - root)).collect()
                });
                [Spread::of(&speedups), Spread::of(&around)]
            }
        };
        let speedup = median(speedups.iter().copied())?;
        Some(Self {
            asked,
            roots,
            exact,
            root,
            unknown,
            slope,
            speedup,
            speedups,
            of_speedups,
            of_crossings,
        })
    }

    fn crossing(&self, of_speedup: f64, of_crossing: f64) -> Crossing {
        let kind = |root: f64| if root.is_finite() { 0.0 } else { root };
        // A process that saw b win at each size that it measured does not contradict a crossing.
        let agrees = |root: f64, own: &Root| match own.exact() {
            Some(own) => kind(root) == kind(own),
            None => root < f64::INFINITY,
        };
        let (first, last) = self.asked.range;
        let mut crossing = Crossing {
            range: (first, last),
            processes: self.asked.processes.len(),
            or_always: self.roots.iter().any(|root| root.high == f64::NEG_INFINITY),
            or_never: self.roots.iter().any(|root| root.low == f64::INFINITY),
            speedup: self.speedup.exp(),
            speedup_interval: interval(self.speedup, of_speedup, &self.speedups),
            largest: self.largest(),
            ..Crossing::default()
        };
        crossing.root = self.root.filter(|root| root.is_finite()).map(|root| {
            let reach = of_crossing / self.slope.map_or(1.0, f64::abs) + self.unknown;
            let within = |log: f64| log.exp().clamp(first, last);
            self.change(within(root), (within(root - reach), within(root + reach)))
        });
        match &self.asked.processes[..] {
            [gaps] => crossing.decide(gaps.iter().map(Gap::speedup)),
            processes => crossing.decide(at_each_size(processes.concat())),
        }
        // Without a joint crossing there may be one between the other sizes.
        let root = self
            .root
            .or((crossing.answer == CrossingKind::From).then_some(0.0));
        let agree = |own: &&Root| root.is_some_and(|root| agrees(root, own));
        crossing.agree = self.roots.iter().filter(agree).count();
        crossing
    }

    fn largest(&self) -> f64 {
        let last = self.asked.processes.iter().filter_map(|gaps| gaps.last());
        last.map(|gap| gap.size).fold(0.0, f64::max)
    }

    /// A change at `size`, and whether one process alone measured around it.
    fn change(&self, size: f64, (low, high): (f64, f64)) -> WinnerChange {
        let (bracket, measured) = match &self.asked.processes[..] {
            [gaps] => {
                let above = gaps.partition_point(|gap| gap.size < size);
                let above = above.clamp(1, gaps.len().max(2) - 1);
                let bracket = (gaps[above - 1].size, gaps[above].size);
                (bracket, is_close(bracket))
            }
            _ => ((low, high), true),
        };
        WinnerChange {
            size,
            low,
            high,
            to_b: true,
            measured,
            bracket,
        }
    }
}

/// The speedup at each size that enough of several processes measured, by size.
pub(super) fn at_each_size(mut gaps: Vec<Gap>) -> Vec<Speedup> {
    gaps.sort_by(|a, b| a.size.total_cmp(&b.size));
    let at = |gaps: &[Gap]| {
        let logs: Vec<f64> = gaps.iter().map(|gap| -gap.log).collect();
        let middle = median(logs.iter().copied()).filter(|_| logs.len() >= FEWEST_PROCESSES)?;
        let half = half_width(Spread::of(&logs), std::iter::empty(), logs.len());
        let (low, high) = interval(middle, half, &logs);
        Some(Speedup {
            size: gaps[0].size,
            ratio: middle.exp(),
            low,
            high,
            processes: logs.len(),
        })
    };
    gaps.chunk_by(|a, b| a.size == b.size)
        .filter_map(at)
        .collect()
}

/// The interval of a speedup, from logarithms. It extends to 1 if its processes disagree about the winner.
fn interval(middle: f64, half: f64, processes: &[f64]) -> (f64, f64) {
    let ahead = processes.iter().filter(|log| **log > 0.0).count();
    let (low, high) = (middle - half, middle + half);
    if ahead == 0 || ahead == processes.len() {
        return (low.exp(), high.exp());
    }
    (low.min(0.0).exp(), high.max(0.0).exp())
}

/// How far from the median of `processes` another run's may lie, as a logarithm of a ratio of times.
/// `own` is the spread of the processes, `others` that of similar questions.
pub(super) fn half_width(
    own: Spread,
    others: impl Iterator<Item = Spread>,
    processes: usize,
) -> f64 {
    let spread = match median(others.filter_map(Spread::variance)) {
        Some(variance) => own.and(Spread::known(variance, CLASS_FREEDOM)),
        None => own,
    };
    let freedom = spread.freedom.max(1.0);
    // Each variance of both runs.
    let variance = spread.squares / freedom;
    let of_processes = match processes {
        // As the interval of a benchmark: where another process lies.
        0 | 1 => variance,
        n => 2.0 * MEDIAN_OVER_MEAN * variance / n as f64,
    };
    let of_a_run = (RUN_OVER_PROCESSES.powi(2) * variance).max(ASSUMED_OF_A_RUN.powi(2));
    let parts = [(of_processes, freedom), (2.0 * of_a_run, f64::INFINITY)];
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    let freedom = freedom_of_sum(&parts).min(200.0);
    quantile(freedom, f64::midpoint(1.0, COVERAGE)) * sum.sqrt()
}
