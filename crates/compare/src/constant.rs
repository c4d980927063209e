//! The launch constant: what each launch behind a gate costs in one process, whatever the kernel.
//!
//! Of two processes of one H100 the constant differs by up to 0.3 µs, as of the empty kernel that is
//! timed beside each benchmark. So a part of each change is known:
//!
//! ```text
//! kernels of an iteration × slope × (empty kernel of the new side - that of the base)
//! ```
//!
//! The slope is learnt from how the pairs disagree, which no true change touches: the shift of the
//! benchmarks from its mean over the pairs, against that of the empty kernel from its mean. The shift
//! that benchmarks share is never subtracted, since a true change of most of them would make the others
//! "faster".
//!
//! A change of the empty kernel alone would move all corrected benchmarks alike. So a benchmark counts with its
//! correction alone only if others contradict that ([`in_doubt`]).

use std::collections::BTreeMap;

use crate::case::{Case, LaunchSlope, Launching, RunPair};
use crate::estimate::Estimate;
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::mean;
use crossover_words::Clock;

/// The slope before any pair is seen, and its standard deviation: fourteen processes on an H200, 26 gated
/// benchmarks under 20 µs.
const PRIOR: (f64, f64) = (1.2, 0.2);

/// No clock shows the mean shift of a pair more finely than this, ns.
const FINEST_NS: f64 = 1.0;

/// Fewest pairs of a verdict about a change in doubt. The constant of a process has one of two levels by chance,
/// so three equal pairs are too frequent.
pub(super) const FEWEST_PAIRS: usize = 4;

/// Two changes that are this number of standard errors apart count as different.
const APART: f64 = 3.0;

/// The number of benchmarks with a change that outweighs one contradiction: then the empty kernel alone may have
/// changed.
const SUPPORT_PER_CONTRADICTION: usize = 4;

/// One of this number of benchmarks may contradict by chance.
const PER_CHANCE: usize = 10;

/// Factor of the probability of a change without the correction: five of six pairs may have the higher level on
/// one side.
pub(super) const MISLED: f64 = 4.0;

/// The corrected benchmarks by clock, with their numbers of kernels.
fn by_clock<'a>(
    cases: impl IntoIterator<Item = &'a Case>,
) -> BTreeMap<Clock, Vec<(&'a Case, f64)>> {
    let mut clocks: BTreeMap<Clock, Vec<(&Case, f64)>> = BTreeMap::new();
    for case in cases {
        if let (Some(clock), Launching::Kernels(kernels)) = (case.class.clock, case.launching) {
            clocks.entry(clock).or_default().push((case, kernels));
        }
    }
    clocks
}

/// The slope of each clock with corrected benchmarks.
pub(super) fn slopes(cases: &[Case]) -> BTreeMap<Clock, LaunchSlope> {
    let clocks = by_clock(cases).into_iter();
    (clocks.map(|(clock, cases)| (clock, learn(&cases)))).collect()
}

fn learn(cases: &[(&Case, f64)]) -> LaunchSlope {
    let rounds = deviations(cases, |pair, kernels| {
        vec![(pair.round, shifts(pair, kernels))]
    });
    let pairs = || rounds.values().map(|[row, empty]| (row, empty));
    let (expected, deviation) = PRIOR;
    let freedom = (rounds.len() as f64 - 1.0).max(1.0);
    // Around the expected slope: two pairs would always fit a slope of their own.
    let squares: f64 = pairs()
        .map(|(row, empty)| (row - expected * empty).powi(2))
        .sum();
    let variance = (squares / freedom).max(FINEST_NS.powi(2));
    let known: f64 = deviation.powi(-2);
    let seen = pairs().map(|(_, empty)| empty.powi(2)).sum::<f64>() / variance;
    let shown = pairs().map(|(row, empty)| row * empty).sum::<f64>() / variance;
    LaunchSlope {
        value: (expected * known + shown) / (known + seen),
        error: (known + seen).sqrt().recip(),
        freedom,
        fitted: seen / (known + seen),
        benchmarks: cases.len(),
    }
}

/// By round or by process, the nanoseconds per launch by which benchmarks and empty kernels exceed the mean of all
/// rounds or processes: weighted means over the benchmarks.
fn deviations<Key: Ord>(
    cases: &[(&Case, f64)],
    values: impl Fn(&RunPair, f64) -> Vec<(Key, [f64; 2])>,
) -> BTreeMap<Key, [f64; 2]> {
    // The sum of weights, and the weighted deviations.
    let mut sums: BTreeMap<Key, [f64; 3]> = BTreeMap::new();
    for (case, kernels) in cases {
        let values = || case.pairs.iter().flat_map(|pair| values(pair, *kernels));
        let [row, empty] = [0, 1].map(|i| mean(values().map(|(_, values)| values[i])));
        // Long benchmarks vary by more nanoseconds.
        let weight = (kernels / case.pairs[0].base.ns).powi(2);
        for (key, values) in values() {
            let more = [1.0, values[0] - row, values[1] - empty];
            for (sum, more) in sums.entry(key).or_default().iter_mut().zip(more) {
                *sum += weight * more;
            }
        }
    }
    let means = sums.into_iter();
    means
        .map(|(key, [weight, row, empty])| (key, [row / weight, empty / weight]))
        .collect()
}

/// A process of either side: its empty kernel, and how much longer than in the mean process a launch of its
/// benchmarks took, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LaunchesOfProcess {
    pub(crate) empty_ns: f64,
    pub(crate) longer_ns: f64,
}

/// The processes of the base and of the new side, for each clock with corrected benchmarks.
pub(super) fn processes(cases: &[Case]) -> BTreeMap<Clock, [Vec<LaunchesOfProcess>; 2]> {
    let sides = |pair: &RunPair, kernels: f64| {
        let empty = pair.empty_ns.unwrap_or_default();
        let side = |side: usize, ns: f64| ((side, pair.round), [ns / kernels, empty[side]]);
        vec![side(0, pair.base.ns), side(1, pair.new.ns)]
    };
    let of_clock = |(clock, cases): (Clock, Vec<(&Case, f64)>)| {
        let pairs = cases.iter().flat_map(|(case, _)| &case.pairs);
        let typical = mean(pairs.filter_map(|pair| pair.empty_ns).flatten());
        let mut processes = [Vec::new(), Vec::new()];
        for ((side, _), [longer_ns, empty]) in deviations(&cases, sides) {
            let empty_ns = typical + empty;
            processes[side].push(LaunchesOfProcess {
                empty_ns,
                longer_ns,
            });
        }
        (clock, processes)
    };
    by_clock(cases).into_iter().map(of_clock).collect()
}

/// Nanoseconds per launch by which a pair's benchmark and its empty kernel changed.
fn shifts(pair: &RunPair, kernels: f64) -> [f64; 2] {
    [(pair.new.ns - pair.base.ns) / kernels, empty_shift(pair)]
}

fn empty_shift(pair: &RunPair) -> f64 {
    pair.empty_ns.map_or(0.0, |[base, new]| new - base)
}

/// The benchmarks with their corrections; `None` if no benchmark has one. After the correction,
/// the spread of a launch between two processes is the same for kernels of 2 and of 20 µs (44 to 70 ns on an
/// H200), so changes of short kernels have the scale of their time per launch.
pub(super) fn corrected(cases: &[Case]) -> Option<Vec<Case>> {
    let slopes = slopes(cases);
    let mut logarithms: BTreeMap<Class, Vec<f64>> = BTreeMap::new();
    for (case, kernels) in by_clock(cases).into_values().flatten() {
        let logarithms = logarithms.entry(case.class).or_default();
        logarithms.push(per_launch(case, kernels).ln());
    }
    let correct = |case: &Case| {
        let mut case = case.clone();
        let slope = case.class.clock.and_then(|clock| slopes.get(&clock));
        if let (Launching::Kernels(kernels), Some(slope)) = (case.launching, slope) {
            case.slope = Some(*slope);
            if case.class.short {
                let typical = mean(logarithms[&case.class].iter().copied());
                case.scale = per_launch(&case, kernels) / typical.exp();
            }
            for pair in &mut case.pairs {
                let ns = kernels * slope.value * empty_shift(pair);
                pair.correction = ns / logarithmic_mean(pair.base.ns, pair.new.ns);
            }
        }
        case
    };
    (!slopes.is_empty()).then(|| cases.iter().map(correct).collect())
}

/// The time of a kernel of the benchmark, ns.
fn per_launch(case: &Case, kernels: f64) -> f64 {
    case.pairs[0].base.ns / kernels
}

/// The logarithmic mean: the difference of two times over the difference of their logarithms.
fn logarithmic_mean(a: f64, b: f64) -> f64 {
    let change = (b / a).ln();
    if change.abs() < 1e-9 {
        return a;
    }
    (b - a) / change
}

/// A change of a benchmark per launch and its standard error, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchShift {
    ns: f64,
    error: f64,
}

impl LaunchShift {
    /// The shift of a benchmark that takes `per_launch` ns in a launch.
    pub(super) fn of(estimate: &Estimate, per_launch: f64) -> Self {
        Self {
            ns: estimate.centre() * per_launch,
            error: estimate.standard_error() * per_launch,
        }
    }

    /// Whether the change differs from another.
    fn is_apart(self, other: Self) -> bool {
        (self.ns - other.ns).abs() > APART * self.error.hypot(other.error)
    }
}

/// Whether a change of the empty kernel alone explains a change with the correction: it would move all
/// benchmarks of the clock by as much per launch.
pub(super) fn in_doubt(change: LaunchShift, of_clock: &[LaunchShift]) -> bool {
    let none = LaunchShift {
        ns: 0.0,
        error: 0.0,
    };
    let (mut support, mut contradictions) = (0, 0);
    for other in of_clock {
        if other.is_apart(change) {
            contradictions += 1;
        } else if other.is_apart(none) {
            support += 1;
        }
    }
    let by_chance = of_clock.len() / PER_CHANCE;
    contradictions <= by_chance || support > SUPPORT_PER_CONTRADICTION * contradictions
}
