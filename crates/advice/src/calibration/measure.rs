//! Times closures in turns and decides from the ratios of each pair. On Linux the load of the machine by other
//! programs is read.

use std::convert::Infallible;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use crate::thresholds::{BETWEEN_PROCESSES, Choice, Point};
use crate::turns::take_turns;

/// One way to do the work. It returns when the result is there.
pub type Way<'a, I> = &'a mut dyn FnMut(&I) -> Result<(), Box<dyn std::error::Error>>;

/// Calls are repeated until a sample takes this long, thousands of times the resolution of the clock.
const SAMPLE: Duration = Duration::from_micros(200);

/// The two-sided quantile of the normal distribution for 95 %.
const NORMAL: f64 = 1.96;

/// More pairs than this gain nothing beside what processes differ by.
const MOST_PAIRS: usize = 60;

/// Pairs that are enough if one side is [`BEYOND_NOISE`] faster in each of them.
const FEW_PAIRS: usize = 3;

/// A factor beyond any noise.
const BEYOND_NOISE: f64 = 3.0;

/// No two ways to do the same work differ by this factor.
const IMPLAUSIBLE: f64 = 1e5;

/// Measurements of one process.
pub(super) struct Measured {
    /// The points of each way but the first, against the first.
    pub(super) points: Vec<Vec<Point>>,
    /// Whether every size has them.
    pub(super) is_complete: bool,
    /// The time of each way's first call in this process beyond its later calls, ns.
    pub(super) first_call_ns: Vec<f64>,
}

/// Times the ways at each size, the smallest first. A size has its share of the time that is left, and
/// leaves what it does not need to the others; those that are undecided then share the rest.
pub(super) fn measure<I>(
    sizes: &[usize],
    budget: Duration,
    mut prepare: impl FnMut(usize) -> I,
    ways: &mut [Way<'_, I>],
    names: &[String],
) -> Result<Measured, String> {
    if sizes.is_empty() || sizes[0] == 0 {
        return Err("there is nothing to measure: name sizes above zero".to_owned());
    }
    let start = Instant::now();
    let mut prepare = |size| {
        let prepared = catch_unwind(AssertUnwindSafe(|| prepare(size)));
        prepared.map_err(|_| format!("`prepare` panicked at size {size}, so nothing is decided"))
    };
    let mut first_calls = Vec::new();
    let mut ratios = vec![Ratios::new(ways.len()); sizes.len()];
    loop {
        let is_open = |at: &usize| !ratios[*at].are_decided();
        let open: Vec<usize> = (0..sizes.len()).filter(is_open).collect();
        for (done, at) in open.iter().enumerate() {
            let left = budget.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            let share = left / (open.len() - done) as u32;
            ratios[*at].measure(
                sizes[*at],
                share,
                &mut prepare,
                ways,
                names,
                &mut first_calls,
            )?;
        }
        if open.is_empty() || start.elapsed() >= budget {
            break;
        }
    }
    let of_way = |way: usize| {
        let sizes = sizes.iter().zip(&ratios);
        let points = sizes.filter_map(|(size, ratios)| ratios.point(*size, way));
        points.collect::<Vec<_>>()
    };
    let points: Vec<Vec<Point>> = (1..ways.len()).map(of_way).collect();
    let is_complete = points.iter().all(|points| points.len() == sizes.len());
    let first_call_ns = first_calls.iter().enumerate().map(|(way, first)| {
        let later = if ratios[0].0[way].is_empty() {
            0.0
        } else {
            ratios[0].seconds(way)
        };
        1e9 * (first - later).max(0.0)
    });
    Ok(Measured {
        points,
        is_complete: is_complete && ways.len() > 1,
        first_call_ns: first_call_ns.collect(),
    })
}

/// The samples of one size: seconds per call of each way, by pair.
#[derive(Clone)]
struct Ratios(Vec<Vec<f64>>);

impl Ratios {
    fn new(ways: usize) -> Self {
        Self(vec![Vec::new(); ways])
    }

    /// Lets the ways take turns until this size is decided or its time is over.
    fn measure<I>(
        &mut self,
        size: usize,
        share: Duration,
        prepare: &mut impl FnMut(usize) -> Result<I, String>,
        ways: &mut [Way<'_, I>],
        names: &[String],
        first_calls: &mut Vec<f64>,
    ) -> Result<(), String> {
        let start = Instant::now();
        let input = &prepare(size)?;
        let mut sides = Vec::with_capacity(ways.len());
        for (way, name) in ways.iter_mut().zip(names) {
            // The first call makes what later calls find: threads, memory, a device.
            let begin = Instant::now();
            call(way, input, name, size)?;
            if first_calls.len() < names.len() {
                first_calls.push(begin.elapsed().as_secs_f64());
            }
            let is_short = start.elapsed() < SAMPLE;
            sides.push(side(is_short, || call(way, input, name, size)));
        }
        let left = share.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let mut sides: Vec<&mut _> = sides.iter_mut().collect();
        let earlier = self.clone();
        let is_decided = |samples: &[Vec<f64>]| earlier.with(samples).are_decided();
        let samples = take_turns(&mut sides, left, is_decided)?;
        *self = earlier.with(&samples);
        match (1..self.0.len()).find_map(|way| self.implausible(way)) {
            Some(at) => Err(format!(
                "{} takes less than a hundred-thousandth of the other's time at size {size}, so nothing \
                 is decided: does it return before its result is there?",
                names[at]
            )),
            None => Ok(()),
        }
    }

    fn with(&self, samples: &[Vec<f64>]) -> Self {
        let both = self.0.iter().zip(samples);
        Self(
            both.map(|(a, b)| a.iter().chain(b).copied().collect())
                .collect(),
        )
    }

    /// Logarithms of the time of the first way over that of another, ascending.
    fn logarithms(&self, way: usize) -> Vec<f64> {
        let pairs = self.0[0].iter().zip(&self.0[way]);
        let mut logarithms: Vec<f64> = pairs.map(|(first, other)| (first / other).ln()).collect();
        logarithms.sort_unstable_by(f64::total_cmp);
        logarithms
    }

    /// The median time of a call of one way.
    fn seconds(&self, way: usize) -> f64 {
        let mut times = self.0[way].clone();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// Returns whether more pairs would change nothing: each way is decided against the first, or as certain
    /// as the difference between processes allows.
    fn are_decided(&self) -> bool {
        (1..self.0.len()).all(|way| {
            let logarithms = self.logarithms(way);
            let is_certain = Interval::of(&logarithms).is_some_and(|found| {
                found.high - found.low < BETWEEN_PROCESSES || found.between_processes().is_decided()
            });
            is_certain || logarithms.len() >= MOST_PAIRS
        })
    }

    fn point(&self, size: usize, way: usize) -> Option<Point> {
        let interval = Interval::of(&self.logarithms(way))?.between_processes();
        let ns = 1e9 * self.seconds(way);
        Some(Point {
            size: size as f64,
            cpu_ns: ns * interval.middle.exp(),
            gpu_ns: ns,
            low: interval.low.exp(),
            high: interval.high.exp(),
            processes: 1,
        })
    }

    /// The index of the faster way, if it cannot do the same work.
    fn implausible(&self, way: usize) -> Option<usize> {
        let middle = Interval::of(&self.logarithms(way))?.middle;
        let faster = if middle > 0.0 { way } else { 0 };
        (middle.abs() > IMPLAUSIBLE.ln()).then_some(faster)
    }
}

/// The median of the logarithms of speedups, and its interval.
#[derive(Clone, Copy)]
struct Interval {
    middle: f64,
    low: f64,
    high: f64,
}

impl Interval {
    /// From ascending values: the order statistics between which the median lies with at least 95 %, for
    /// whatever distribution, so that a pair during which something else ran decides nothing. `None` if
    /// there are too few.
    fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let clear =
            |value: &f64| value.abs() > BEYOND_NOISE.ln() && value.signum() == values[0].signum();
        let mut rank = usize::from(n >= FEW_PAIRS && values.iter().all(clear));
        // The probability that at most `below` of the values are below the median.
        let (mut below, mut probability, mut sum) = (0, 0.5_f64.powi(n as i32), 0.0);
        while below < n && sum + probability <= 0.025 {
            sum += probability;
            probability *= (n - below) as f64 / (below + 1) as f64;
            below += 1;
        }
        rank = rank.max(below);
        (rank > 0).then(|| Self {
            middle: f64::midpoint(values[(n - 1) / 2], values[n / 2]),
            low: values[rank - 1],
            high: values[n - rank],
        })
    }

    /// The interval in which the speedup of another process lies.
    fn between_processes(self) -> Self {
        let wider = |half: f64| half.hypot(NORMAL * BETWEEN_PROCESSES);
        Self {
            low: self.middle - wider(self.middle - self.low),
            high: self.middle + wider(self.high - self.middle),
            ..self
        }
    }

    fn is_decided(self) -> bool {
        let [middle, low, high] = [self.middle, self.low, self.high].map(f64::exp);
        Choice::of(middle, low, high) != Choice::Unsure
    }
}

/// One call, whose panic is an error.
fn call<I>(way: &mut Way<'_, I>, input: &I, name: &str, size: usize) -> Result<(), String> {
    let ended = catch_unwind(AssertUnwindSafe(|| way(black_box(input))));
    let nothing = || format!("at size {size}, so nothing is decided");
    match ended {
        Ok(ended) => ended.map_err(|error| format!("{name} failed {}: {error}", nothing())),
        Err(_) => Err(format!("{name} panicked {}", nothing())),
    }
}

/// Seconds per call, of as many calls as make a sample. The first of short calls is not timed, because the
/// other side's turn emptied the caches.
fn sample<E>(is_short: bool, mut call: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    if is_short {
        call()?;
    }
    let (mut calls, mut more) = (0_u32, 1_u32);
    let start = Instant::now();
    while start.elapsed() < SAMPLE {
        for _ in 0..more {
            call()?;
        }
        calls += more;
        more *= 2;
    }
    Ok(start.elapsed().as_secs_f64() / f64::from(calls))
}

/// The side that takes samples of these calls, without end.
fn side<E>(
    is_short: bool,
    mut call: impl FnMut() -> Result<(), E>,
) -> impl FnMut() -> Result<Option<f64>, E> {
    move || sample(is_short, &mut call).map(Some)
}

/// The comparison of two closures in this process.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pair {
    /// Time of a call of the first closure, seconds.
    pub first_s: f64,
    /// Time of a call of the second.
    pub second_s: f64,
    /// The time of the first over that of the second: the median of the pairs.
    pub speedup: f64,
    /// Lower end of its 95 % interval, for this process.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Pairs that it rests on.
    pub pairs: usize,
}

/// Times two closures in turns, A B B A, for at most this long or until sixty pairs are there. `None` if the
/// time is too short for six pairs.
///
/// ```
/// use std::time::Duration;
///
/// let numbers: Vec<u64> = (0..10_000).collect();
/// let pair = crossover_advice::calibration::pair(
///     Duration::from_secs(1),
///     || numbers.iter().sum::<u64>(),
///     || numbers.iter().map(|n| n * n % 7).sum::<u64>(),
/// );
/// // the first is 9.4 times faster (9.1 to 9.6), 60 pairs
/// println!("{}", pair.unwrap());
/// ```
pub fn pair<A, B>(
    budget: Duration,
    mut first: impl FnMut() -> A,
    mut second: impl FnMut() -> B,
) -> Option<Pair> {
    let mut first = || drop(black_box(first()));
    let mut second = || drop(black_box(second()));
    let mut sides: [&mut dyn FnMut(); 2] = [&mut first, &mut second];
    sides.iter_mut().for_each(|call| call());
    let mut sides = sides.map(|call| {
        side(true, move || {
            call();
            Ok::<(), Infallible>(())
        })
    });
    let is_enough = |samples: &[Vec<f64>]| samples[1].len() >= MOST_PAIRS;
    let mut sides: Vec<&mut _> = sides.iter_mut().collect();
    let Ok(samples) = take_turns(&mut sides, budget, is_enough);
    let ratios = Ratios(samples);
    let logarithms = ratios.logarithms(1);
    let interval = Interval::of(&logarithms)?;
    Some(Pair {
        first_s: ratios.seconds(0),
        second_s: ratios.seconds(1),
        speedup: interval.middle.exp(),
        low: interval.low.exp(),
        high: interval.high.exp(),
        pairs: logarithms.len(),
    })
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, high, .. } = *self;
        let pairs = self.pairs;
        if low <= 1.0 && 1.0 <= high {
            return write!(
                f,
                "no difference is certain: the second is {low:.3} to {high:.3} times as fast, {pairs} pairs"
            );
        }
        let (name, [factor, low, high]) = if self.speedup > 1.0 {
            ("second", [self.speedup, low, high])
        } else {
            ("first", [1.0 / self.speedup, 1.0 / high, 1.0 / low])
        };
        write!(
            f,
            "the {name} is {factor:.3} times as fast as the other ({low:.3} to {high:.3}), {pairs} pairs"
        )
    }
}

/// Shorter than this, the clock ticks of `/proc` (10 ms) tell nothing.
const LEAST: Duration = Duration::from_millis(100);

/// Clock ticks per second, which Linux has fixed for programs.
const TICKS: f64 = 100.0;

/// The load that other programs may take from the threads of the closures, in cores.
const TOLERATED: f64 = 0.3;

/// The beginning of a measurement.
pub(super) struct Load(Instant, Option<Ticks>);

/// Clock ticks since the machine started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// All processors, busy or not.
    total: f64,
    /// Busy ticks of all programs.
    busy: f64,
    /// Ticks of this process and of its children that ended.
    own: f64,
}

impl Load {
    pub(super) fn begin() -> Self {
        Self(Instant::now(), Ticks::now())
    }

    /// The cores that other programs used, if they left fewer idle than `threads` threads need.
    pub(super) fn too_high(self, threads: usize) -> Option<f64> {
        let seconds = self.0.elapsed();
        let (before, after) = (self.1?, Ticks::now()?);
        (seconds >= LEAST).then_some(())?;
        too_high(before, after, seconds.as_secs_f64(), threads)
    }
}

fn too_high(before: Ticks, after: Ticks, seconds: f64, threads: usize) -> Option<f64> {
    let cores = |of: fn(Ticks) -> f64| (of(after) - of(before)) / (TICKS * seconds);
    let other_load = cores(|ticks| ticks.busy) - cores(|ticks| ticks.own);
    let left = cores(|ticks| ticks.total) - other_load;
    (left < threads as f64 - TOLERATED).then_some(other_load)
}

impl Ticks {
    fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    /// From the first line of `/proc/stat`, whose fourth and fifth numbers are idle, and from the numbers of
    /// `/proc/self/stat` behind the name of the program.
    fn parse(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        let total: f64 = numbers.get(..8)?.iter().sum();
        let (_, behind) = process.rsplit_once(')')?;
        let own = behind.split_whitespace().skip(11).take(4);
        Some(Self {
            total,
            busy: total - numbers[3] - numbers[4],
            own: own.map_while(|n| n.parse::<f64>().ok()).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_disturb_if_they_leave_too_few_cores() {
        let ticks = |user: u32, idle: u32, own: u32| {
            let machine = format!("cpu  {user} 0 0 {idle} 0 0 0 0 7 7\ncpu0 1 1 1\n");
            let process = format!("1 (a) b) R 1 1 1 0 -1 4 1 1 1 1 {own} 0 0 0 20 0\n");
            Ticks::parse(&machine, &process).unwrap()
        };
        // One second on two cores, in which this process used 0.9 of them.
        let others = |busy: u32, threads| {
            let (before, after) = (ticks(100, 500, 10), ticks(100 + busy, 700 - busy, 100));
            too_high(before, after, 1.0, threads).map(|cores| (10.0 * cores).round())
        };
        assert_eq!(others(90, 2), None);
        assert_eq!(others(110, 2), None);
        assert_eq!(others(190, 2), Some(10.0));
        assert_eq!(others(190, 1), None);
        assert_eq!(Ticks::parse("cpu  1", "1 (a) R"), None);
    }
}
