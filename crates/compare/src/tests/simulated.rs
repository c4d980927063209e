//! Simulated comparisons: machines of several kinds, and how often their verdicts are true.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use crate::case::{Case, Launching, Median, RunPair};
use crate::evidence::{Drift, is_analysed_at};
use crate::judge::{Judged, judge};
use crate::verdict::{Location, Options, Verdict};
use crossover_results::model::id::Device;
use crossover_results::statistics::between_processes::Class;
use crossover_words::Clock;

/// As many as a whole run of the suite judges.
pub(super) const BENCHMARKS: usize = 200;

/// Shape of the samples within one process.
#[derive(Clone, Copy, Debug)]
pub(super) enum Noise {
    Normal,
    /// Student's t with 3 degrees of freedom: heavy tails on both sides.
    Heavy,
    /// Normal, and this share of the samples slower by up to five times.
    Outliers(f64),
    /// Each sample is correlated with the one before it, by 0.7.
    Following,
    /// Normal, and this share of the samples interrupted by other work, which makes them up to three
    /// times as long.
    Interrupted(f64),
}

/// How a simulated machine behaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Machine {
    /// `None` for results without a sidecar.
    pub(super) clock: Option<Clock>,
    pub(super) device: Device,
    pub(super) samples: usize,
    /// Standard deviation of the samples of one process: of the first benchmark, and how much more
    /// of the last.
    pub(super) spread: (f64, f64),
    pub(super) noise: Noise,
    /// What is taken from the samples.
    pub(super) location: Location,
    /// Standard deviation between processes, each benchmark on its own.
    pub(super) drift: f64,
    /// By how much (a standard deviation of the logarithm) that differs between benchmarks.
    pub(super) unlike: f64,
    /// Whether differences of two processes thin out as Student's t with two degrees of freedom.
    pub(super) is_loaded: bool,
    /// Standard deviation between processes, all benchmarks alike.
    pub(super) common: f64,
    /// How likely a busy neighbour slows a benchmark in one process, by up to half.
    pub(super) busy: f64,
    /// By how much (as a logarithm) every seventh benchmark is slower in half of the orders of functions.
    pub(super) orders: f64,
    /// Pairs of processes.
    pub(super) pairs: usize,
    /// Number of first pairs that choose what is run in the later ones.
    pub(super) screened: usize,
    /// Short kernels with a launch constant, instead of long ones without.
    pub(super) launching: Option<Planted>,
}

/// A change of the new side, planted in short kernels that have a launch constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    Nothing,
    /// Each kernel, but not the empty one.
    EveryRow,
    /// Two in three kernels, but not the empty one.
    TwoThirds,
    /// The empty kernel alone.
    EmptyKernel,
    /// Each kernel and the empty one, from a third of the benchmarks on: a ninth stream of the process.
    NinthStream,
}

/// The planted difference, ns.
const PLANTED_NS: f64 = 150.0;

/// Two levels of the empty kernel, and by how much it varies within a level, ns (H100).
const LEVELS_NS: [f64; 2] = [1640.0, 1870.0];
const WITHIN_LEVEL_NS: f64 = 15.0;

/// By how much the other kernels follow it, and how far they are off, ns (H200).
const SLOPE: f64 = 1.2;
const REMAINDER_NS: f64 = 30.0;

/// The standard deviation of a kernel between processes after the correction, ns: the same for kernels of 2 to
/// 20 µs (H200).
const OWN_NS: f64 = 40.0;

/// The times of the shortest and the longest short kernel per launch, ns.
const SHORT_NS: [f64; 2] = [2_080.0, 18_000.0];

impl Planted {
    /// Nanoseconds per launch that are added to benchmark `i` of `all`, and to the empty kernel beside it.
    pub(super) fn adds(self, i: usize, all: usize) -> [f64; 2] {
        let added = match self {
            Planted::Nothing => [false, false],
            Planted::EveryRow => [true, false],
            Planted::TwoThirds => [!i.is_multiple_of(3), false],
            Planted::EmptyKernel => [false, true],
            Planted::NinthStream => [3 * i >= all; 2],
        };
        added.map(|added| if added { PLANTED_NS } else { 0.0 })
    }
}

pub(super) const GATED: Machine = Machine {
    clock: Some(Clock::EventsGated),
    device: Device::Gpu,
    samples: 30,
    spread: (0.0005, 0.0),
    noise: Noise::Normal,
    location: Location::Median,
    drift: 0.0005,
    unlike: 0.0,
    is_loaded: false,
    common: 0.0,
    busy: 0.0,
    orders: 0.0,
    pairs: 1,
    screened: 0,
    launching: None,
};

pub(super) const EVENTS: Machine = Machine {
    clock: Some(Clock::Events),
    samples: 100,
    spread: (0.02, 0.0),
    noise: Noise::Normal,
    drift: 0.001,
    ..GATED
};

pub(super) const WALL: Machine = Machine {
    clock: Some(Clock::Wall),
    device: Device::Cpu,
    spread: (0.02, 0.0),
    noise: Noise::Heavy,
    drift: 0.01,
    unlike: 0.3,
    common: 0.005,
    ..GATED
};

/// Short gated kernels: 26 in fourteen processes of an H200.
pub(super) const LAUNCHED: Machine = Machine {
    launching: Some(Planted::Nothing),
    ..GATED
};

/// A virtual machine on a shared host.
pub(super) const SHARED: Machine = Machine { busy: 0.3, ..WALL };

/// Short processes of any Criterion project, as `ab` runs them.
pub(super) const SHORT: Machine = Machine {
    clock: None,
    samples: 10,
    spread: (0.01, 0.0),
    noise: Noise::Interrupted(0.1),
    location: Location::Fastest,
    pairs: 8 + 19,
    screened: 8,
    ..WALL
};

pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Student's t (Bailey, "Polar generation of random variates with the t-distribution", Mathematics of Computation
    /// 62, 1994).
    pub(crate) fn student(&mut self, freedom: f64) -> f64 {
        let square = freedom * (self.uniform().powf(-2.0 / freedom) - 1.0);
        square.sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// How far a process is off, as a logarithm.
    fn process(&mut self, m: &Machine, drift: f64) -> f64 {
        let is_busy = self.uniform() < m.busy;
        let busy = is_busy.then(|| (1.0 + 0.5 * self.uniform()).ln());
        busy.unwrap_or(0.0) + drift * self.normal()
    }

    /// The empty kernel of a process, and by how much its other kernels are longer than on the lower level,
    /// ns.
    fn constant(&mut self) -> [f64; 2] {
        let level = LEVELS_NS[usize::from(self.uniform() < 0.5)];
        let empty = level + WITHIN_LEVEL_NS * self.normal();
        let others = SLOPE * (empty - LEVELS_NS[0]) + REMAINDER_NS * self.normal();
        [empty, others]
    }

    pub(super) fn samples(&mut self, centre: f64, m: &Machine, spread: f64) -> Vec<f64> {
        let mut last = self.normal();
        (0..m.samples)
            .map(|_| {
                let z = match m.noise {
                    Noise::Heavy => self.student(3.0),
                    _ => self.normal(),
                };
                let deviation = match m.noise {
                    Noise::Outliers(share) if self.uniform() < share => {
                        z + 4.0 * self.uniform() / spread
                    }
                    Noise::Interrupted(share) if self.uniform() < share => {
                        z.abs() + 2.0 * self.uniform() / spread
                    }
                    Noise::Following => {
                        last = 0.7 * last + (1.0_f64 - 0.49).sqrt() * z;
                        last
                    }
                    _ => z,
                };
                centre * (spread * deviation).max(-0.9).mul_add(1.0, 1.0)
            })
            .collect()
    }
}

/// Kernels of an iteration of benchmark `i` with a launch constant: of every fourth one two.
fn kernels(i: usize) -> f64 {
    if i % 4 == 3 { 2.0 } else { 1.0 }
}

/// Time per launch of short benchmark `i` of `all`, on the lower level.
fn short_ns(i: usize, all: usize) -> f64 {
    let [shortest, longest] = SHORT_NS;
    // In an order of its own, as in `run`.
    let place = (i * 7 % all) as f64 / (all - 1).max(1) as f64;
    shortest * (longest / shortest).powf(place)
}

/// All benchmarks of one comparison, pair by pair.
pub(super) struct Simulated<'m> {
    machine: &'m Machine,
    random: Random,
    /// What each benchmark's processes differ by.
    drifts: Vec<f64>,
    truths: Vec<f64>,
    pub(super) cases: Vec<Case>,
}

impl<'m> Simulated<'m> {
    pub(super) fn new(machine: &'m Machine, seed: u64, truths: Vec<f64>) -> Self {
        let mut random = Random::seeded(seed);
        let drift = |_: &f64| {
            let drift = machine.drift * (machine.unlike * random.normal()).exp();
            match machine.is_loaded {
                true => drift / (-random.uniform().ln()).sqrt(),
                false => drift,
            }
        };
        let drifts = truths.iter().map(drift).collect();
        let class = Class {
            clock: machine.clock,
            device: Some(machine.device),
            short: machine.launching.is_some(),
            is_count: false,
        };
        let case = |i: usize| Case {
            launching: match machine.launching {
                Some(_) => Launching::Kernels(kernels(i)),
                None => Launching::Hidden,
            },
            ..Case::new(class, Vec::new())
        };
        Self {
            machine,
            random,
            drifts,
            cases: (0..truths.len()).map(case).collect(),
            truths,
        }
    }

    /// One more pair of processes, of these benchmarks.
    pub(super) fn run(&mut self, round: usize, wanted: impl Fn(usize) -> bool) {
        let m = self.machine;
        let common = [0, 1].map(|_| m.common * self.random.normal());
        let all = self.cases.len();
        let constants =
            (m.launching).map(|planted| (planted, [0, 1].map(|_| self.random.constant())));
        for i in (0..self.cases.len()).filter(|i| wanted(*i)) {
            // In an order of its own: the changed ones are every so many.
            let place = (i * 7 % self.cases.len()) as f64 / self.cases.len() as f64;
            let spread = m.spread.0 + place * m.spread.1;
            let [base, new] = [0, 1].map(|side| {
                let ratio = if side == 1 { self.truths[i] } else { 1.0 };
                let is_slow = m.orders > 0.0 && i.is_multiple_of(7) && self.random.uniform() < 0.5;
                let order = if is_slow { m.orders } else { 0.0 };
                let process = common[side] + order + self.random.process(m, self.drifts[i]);
                let time = constants.map_or(1e5 * ratio, |(planted, constants)| {
                    let added = if side == 1 {
                        planted.adds(i, all)[0]
                    } else {
                        0.0
                    };
                    let own = OWN_NS * self.random.normal();
                    kernels(i) * (short_ns(i, all) * ratio + constants[side][1] + added + own)
                });
                let samples = self.random.samples(time * process.exp(), m, spread);
                Median::of(m.location, &samples).expect("enough samples")
            });
            let empty_ns =
                constants.map(|(planted, [base, new])| [base[0], new[0] + planted.adds(i, all)[1]]);
            self.cases[i].pairs.push(RunPair {
                empty_ns,
                ..RunPair::new(round, base, new)
            });
        }
    }

    pub(super) fn judge(&self) -> (Vec<Judged>, Vec<Drift>) {
        let options = Options {
            screened: self.machine.screened,
            ..Options::default()
        };
        let (judged, drifts) = judge(&self.cases, &vec![true; self.cases.len()], &options);
        (judged.into_iter().flatten().collect(), drifts)
    }

    /// As `ab` does: what an interim analysis decides is not run any more.
    pub(super) fn compare(mut self) -> (Vec<Judged>, Vec<Drift>) {
        let mut done = vec![false; self.cases.len()];
        for round in 0..self.machine.pairs {
            self.run(round, |i| !done[i]);
            let screened = self.machine.screened;
            let confirmed = (round + 1).checked_sub(screened).filter(|_| screened > 0);
            if confirmed.is_some_and(|pairs| pairs == 0 || is_analysed_at(pairs)) {
                for (done, judged) in done.iter_mut().zip(self.judge().0) {
                    *done |= judged.verdict != Verdict::Unsure;
                }
            }
        }
        self.judge()
    }
}

/// One comparison on that machine; `truth` gives the true ratio of each of 200 benchmarks.
pub(super) fn compare(
    m: &Machine,
    seed: u64,
    truth: impl Fn(usize) -> f64,
) -> (Vec<Judged>, Vec<Drift>) {
    Simulated::new(m, seed, (0..BENCHMARKS).map(truth).collect()).compare()
}

/// Verdicts over many simulated comparisons.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) families: usize,
    /// Comparisons with any false 'slower' or 'faster'.
    pub(super) false_families: usize,
    /// Sum over the comparisons of the share of false ones among 'slower' and 'faster'.
    pub(super) false_share: f64,
    pub(super) changed: usize,
    pub(super) found: usize,
    /// Changed, and called the same.
    pub(super) missed: usize,
    pub(super) unchanged: usize,
    pub(super) same: usize,
}

impl Tally {
    pub(super) fn power(&self) -> f64 {
        self.found as f64 / self.changed as f64
    }

    /// Expected share of false ones among the verdicts given.
    pub(super) fn false_rate(&self) -> f64 {
        self.false_share / self.families as f64
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.families += other.families;
        self.false_families += other.false_families;
        self.false_share += other.false_share;
        self.changed += other.changed;
        self.missed += other.missed;
    }

    fn count(&mut self, judged: &[Judged], truths: &[f64], planted: Planted) {
        let (mut called, mut wrong) = (0_usize, 0_usize);
        for (i, (judged, truth)) in judged.iter().zip(truths).enumerate() {
            let [of_row, of_empty] = planted.adds(i, truths.len());
            let change = (truth - 1.0) + of_row;
            let right = match judged.verdict {
                Verdict::Slower => Some(change > 0.0),
                Verdict::Faster => Some(change < 0.0),
                _ => None,
            };
            called += usize::from(right.is_some());
            wrong += usize::from(right == Some(false));
            let is_same = judged.verdict == Verdict::Same;
            if change == 0.0 {
                self.unchanged += 1;
                self.same += usize::from(is_same);
            } else if of_empty == 0.0 {
                // The part that its launch constant explains is the constant's.
                self.changed += 1;
                self.found += usize::from(right == Some(true));
                self.missed += usize::from(is_same);
            }
        }
        self.families += 1;
        self.false_families += usize::from(wrong > 0);
        self.false_share += wrong as f64 / called.max(1) as f64;
    }
}

/// The true ratios of benchmarks, one in `every` of which is `effect` and the others 1.
pub(super) fn truths(benchmarks: usize, effect: f64, every: usize) -> Vec<f64> {
    let truth = |i: usize| if i.is_multiple_of(every) { effect } else { 1.0 };
    (0..benchmarks).map(truth).collect()
}

/// Compares `families` times; one benchmark in `every` has a true ratio of `effect`.
pub(super) fn tally(m: &Machine, families: usize, effect: f64, every: usize) -> Tally {
    tally_of(m, families, &truths(BENCHMARKS, effect, every))
}

pub(super) fn tally_of(m: &Machine, families: usize, truths: &[f64]) -> Tally {
    let judged = |seed| Simulated::new(m, seed as u64, truths.to_vec()).compare().0;
    let comparisons: Vec<Vec<Judged>> = (0..families).into_par_iter().map(judged).collect();
    let mut tally = Tally::default();
    for judged in comparisons {
        tally.count(&judged, truths, m.launching.unwrap_or(Planted::Nothing));
    }
    tally
}
