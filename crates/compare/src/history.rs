//! Steps and slopes in the times of many runs.
//!
//! Runs are judged in their order, each by what was known then. At each run, the mean of the last `k` runs is
//! compared with the mean of the runs before them, for several `k`: the likelihood ratio of a step at an unknown
//! place (Siegmund and Venkatraman, "Using the generalized likelihood ratio statistic for sequential detection of a
//! change-point", Annals of Statistics 23, 1995). The spread of a benchmark between runs is moderated by that of the
//! others (Smyth 2004). The bounds follow Student's t, or the history's own residuals if their tails are heavier.

use std::collections::BTreeMap;

use crossover_results::statistics::between_processes::{Spread, quantile};
use crossover_results::statistics::mean;
use crossover_results::statistics::median::median;
use crossover_words::units::{change, percent, time};

/// The tested numbers of runs after a step, and the share of the error that each may spend.
const AFTER: [(usize, f64); 6] = [
    (1, 0.08),
    (2, 0.15),
    (3, 0.6),
    (5, 0.07),
    (8, 0.05),
    (13, 0.05),
];
/// Probability that a run without changes has any step.
const ERROR: f64 = 0.014;
/// Fewest runs before a step, of the first base and of one that follows a step.
const FEWEST_BEFORE: [usize; 2] = [4, 3];
/// Fewest runs that are judged.
pub const FEWEST_RUNS: usize = 5;
/// Fewest benchmarks of which a common shift is subtracted.
const FEWEST_FOR_COMMON: usize = 10;
/// A run counts at most this many deviations from its base.
const FARTHEST: f64 = 4.5;
/// Distance of the values in the distribution of residuals.
const GRID: f64 = 0.05;

/// A change of one benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The last run before it, and the first run with it.
    pub between: (usize, usize),
    /// The run at which it was found.
    pub found_at: usize,
    /// Time after it divided by the time before it.
    pub ratio: f64,
    /// Whether the time changes gradually.
    pub is_slope: bool,
}

/// The history of one benchmark, judged.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// In the order of their runs.
    pub changes: Vec<Change>,
    /// The newest run divided by the mean of the runs since the last change, and its interval of 95 %.
    pub newest: Option<[f64; 3]>,
    /// Standard deviation between runs, a fraction.
    pub deviation: f64,
}

/// The state of one benchmark during the judgement.
#[derive(Clone, Debug, Default)]
struct Base {
    /// Runs since the last change: their place, and the logarithm of the time without the common shift.
    values: Vec<(usize, f64)>,
    /// The logarithms of all runs.
    all: Vec<f64>,
    /// Squares around the means of earlier bases.
    earlier: Spread,
    changes: Vec<Change>,
}

/// The spread of a benchmark between runs, and what is common to all.
struct Learnt {
    prior: Spread,
    /// The part of the variance that persists from run to run, such as the layout of an executable.
    persistent: f64,
    /// Bounds of the standardised shift for each entry of [`AFTER`], from the residuals.
    bounds: [f64; AFTER.len()],
    error: f64,
}

impl Base {
    fn logs(&self) -> impl Iterator<Item = f64> + Clone + '_ {
        self.values.iter().map(|(_, log)| *log)
    }

    /// Squares around the mean of all values but the last `skip`, each within five robust deviations of the median.
    fn spread(&self, skip: usize) -> Spread {
        let kept: Vec<f64> = self
            .logs()
            .take(self.values.len().saturating_sub(skip))
            .collect();
        self.earlier.and(Spread::of(&clamped(&kept)))
    }
}

/// The values, each within five robust deviations of their median.
fn clamped(values: &[f64]) -> Vec<f64> {
    let middle = median(values.iter().copied()).unwrap_or_default();
    let distance = median(values.iter().map(|v| (v - middle).abs())).unwrap_or_default();
    let reach = if values.len() < 6 {
        f64::INFINITY
    } else {
        5.0 * 1.4826 * distance
    };
    values
        .iter()
        .map(|v| v.clamp(middle - reach, middle + reach))
        .collect()
}

/// Judges the times of benchmarks, a row each, in the order of the runs; `None` where a run lacks it.
pub fn judge(times: &[Vec<Option<f64>>]) -> (Vec<Judged>, Judged) {
    let runs = times.first().map_or(0, Vec::len);
    let mut bases = vec![Base::default(); times.len()];
    let mut common = Base::default();
    for run in 0..runs {
        let logs: Vec<Option<f64>> = times.iter().map(|row| Some(row[run]?.ln())).collect();
        let shift = common_shift(&bases, &logs);
        for (base, log) in bases.iter_mut().zip(&logs) {
            base.values.extend(log.map(|log| (run, log - shift)));
            base.all.extend(log.map(|log| log - shift));
        }
        common.values.push((run, shift));
        common.all.push(shift);
        if run + 1 < FEWEST_RUNS {
            continue;
        }
        let learnt = Learnt::of(&bases, times.len());
        for base in &mut bases {
            base.look(&learnt, run);
        }
        if times.len() >= FEWEST_FOR_COMMON {
            let learnt = Learnt::of(std::slice::from_ref(&common), 1);
            common.look(&learnt, run);
        }
    }
    let learnt = Learnt::of(&bases, times.len());
    let judged = bases.into_iter().map(|base| base.judged(&learnt)).collect();
    let learnt = Learnt::of(std::slice::from_ref(&common), 1);
    (judged, common.judged(&learnt))
}

/// The median over the benchmarks of their distance from their base; zero for few benchmarks.
fn common_shift(bases: &[Base], logs: &[Option<f64>]) -> f64 {
    let known = bases
        .iter()
        .zip(logs)
        .filter(|(base, _)| !base.values.is_empty());
    let shifts: Vec<f64> = known
        .filter_map(|(base, log)| Some((*log)? - median(base.logs())?))
        .collect();
    let counts = shifts.len() >= FEWEST_FOR_COMMON;
    median(shifts).filter(|_| counts).unwrap_or_default()
}

impl Learnt {
    fn of(bases: &[Base], tests: usize) -> Self {
        let own: Vec<Spread> = bases.iter().map(|base| base.spread(0)).collect();
        let prior = prior(&own);
        let persistent = persistence(bases);
        let error = ERROR / tests.max(1) as f64 / 2.0;
        let residuals = residuals(bases, prior);
        let bounds = bounds(&residuals, error);
        Self {
            prior,
            persistent,
            bounds,
            error,
        }
    }

    /// The variance of a shift between the means of `after` and `before` runs.
    fn variance(&self, spread: Spread, before: usize, after: usize) -> (f64, f64) {
        let moderated = spread.and(self.prior);
        let white = 1.0 / before as f64 + 1.0 / after as f64;
        let share = self.persistent;
        let variance = moderated.variance().unwrap_or_default();
        (
            variance * (white + share / (1.0 - share)),
            moderated.freedom,
        )
    }
}

/// The variance that is common to the benchmarks, with the degrees of freedom that it counts for beside a benchmark's
/// own: fewer if the benchmarks spread more unlike each other than chance explains.
fn prior(own: &[Spread]) -> Spread {
    let known = own.iter().filter(|spread| spread.freedom >= 2.0);
    let logs: Vec<(f64, f64)> = known
        .filter_map(|spread| Some((spread.variance().filter(|v| *v > 0.0)?.ln(), spread.freedom)))
        .collect();
    let Some(middle) = median(logs.iter().map(|(log, _)| *log)) else {
        return Spread::default();
    };
    // Of the logarithm of a chi-square variable over its f degrees of freedom: about 2 / (f - 1).
    let chance = mean(
        logs.iter()
            .map(|(_, freedom)| 2.0 / (freedom - 1.0).max(0.5)),
    );
    let deviation =
        1.4826 * median(logs.iter().map(|(log, _)| (log - middle).abs())).unwrap_or_default();
    let left = deviation.powi(2) - chance;
    let freedom = if logs.len() < 5 {
        4.0
    } else {
        (2.0 / left.max(0.01) + 1.0).clamp(1.0, 200.0)
    };
    Spread::known(middle.exp(), freedom)
}

/// The share of the variance between runs that neighbouring runs share: 0 for independent runs.
fn persistence(bases: &[Base]) -> f64 {
    let ratios = bases
        .iter()
        .map(|base| &base.all)
        .filter(|logs| logs.len() >= FEWEST_RUNS);
    let ratios = ratios.filter_map(|logs| {
        let steps = logs
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).powi(2) / 2.0);
        let (all, near) = (Spread::of(logs).variance()?, mean(steps));
        (all > 0.0).then_some(1.0 - near / all)
    });
    (median(ratios).unwrap_or_default() - 0.1).clamp(0.0, 0.9)
}

/// Distances from the mean of the base, in deviations of the benchmark.
fn residuals(bases: &[Base], prior: Spread) -> Vec<f64> {
    let of_base = |base: &Base| {
        let logs: Vec<f64> = base.logs().collect();
        let clamped = clamped(&logs);
        let (middle, n) = (mean(clamped.iter().copied()), logs.len() as f64);
        let variance = base.spread(0).and(prior).variance().unwrap_or_default();
        let deviation = (variance * (1.0 - 1.0 / n)).sqrt();
        let scaled = logs.into_iter().map(move |log| (log - middle) / deviation);
        scaled.filter(|residual| residual.is_finite())
    };
    bases
        .iter()
        .filter(|base| base.values.len() >= 4)
        .flat_map(of_base)
        .collect()
}

/// The standardised shifts that sums of residuals exceed with the allowed probability, computed by convolution.
fn bounds(residuals: &[f64], error: f64) -> [f64; AFTER.len()] {
    let half = (FARTHEST / GRID).round() as usize;
    let width = 2 * half + 1;
    let mut one = vec![0.0; width];
    for residual in residuals {
        let at = (residual.clamp(-FARTHEST, FARTHEST) / GRID).round() + half as f64;
        // Either direction is as likely.
        one[at as usize] += 0.5 / residuals.len() as f64;
        one[width - 1 - at as usize] += 0.5 / residuals.len() as f64;
    }
    let mut sum = one.clone();
    let mut terms = 1;
    AFTER.map(|(after, share)| {
        while terms < after && !residuals.is_empty() {
            sum = convolved(&sum, &one);
            terms += 1;
        }
        let mut tail = 0.0;
        let middle = sum.len() / 2;
        let above = sum.iter().enumerate().rev().find(|(_, probability)| {
            tail += **probability;
            tail > error * share
        });
        let at = above.map_or(0.0, |(at, _)| at as f64 - middle as f64);
        at * GRID / (after as f64).sqrt()
    })
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate().filter(|(_, a)| **a > 0.0) {
        for (sum, b) in sum[i..].iter_mut().zip(b) {
            *sum += a * b;
        }
    }
    sum
}

impl Base {
    /// Tests whether the last runs are a step away from the runs before, and begins a new base if they are.
    fn look(&mut self, learnt: &Learnt, run: usize) {
        let n = self.values.len();
        if self.values.last().is_none_or(|(last, _)| *last != run) {
            return;
        }
        let fewest = FEWEST_BEFORE[usize::from(!self.changes.is_empty())];
        let is_step = AFTER
            .iter()
            .zip(learnt.bounds)
            .any(|((after, share), bound)| {
                let Some(before) = n.checked_sub(*after).filter(|before| *before >= fewest) else {
                    return false;
                };
                let spread = self.spread(*after);
                let (variance, freedom) = learnt.variance(spread, before, *after);
                let deviation = spread
                    .and(learnt.prior)
                    .variance()
                    .unwrap_or_default()
                    .sqrt();
                let logs: Vec<f64> = self.logs().collect();
                let middle = mean(clamped(&logs[..before]));
                let reach = FARTHEST * deviation;
                let near = logs[before..]
                    .iter()
                    .map(|log| (log - middle).clamp(-reach, reach));
                let shift = mean(near).abs() / variance.sqrt();
                let by_t = quantile(freedom, 1.0 - learnt.error * share);
                shift > by_t.max(bound)
            });
        if is_step {
            self.split(run);
        }
    }

    /// Dates the change, which lies in the present base, and begins a new base behind it.
    fn split(&mut self, run: usize) {
        let logs: Vec<f64> = self.logs().collect();
        let n = logs.len();
        let fewest = FEWEST_BEFORE[usize::from(!self.changes.is_empty())];
        let squares = |values: &[f64]| Spread::of(values).squares;
        let step = |at: &usize| squares(&logs[..*at]) + squares(&logs[*at..]);
        let best = (fewest..n).min_by(|a, b| step(a).total_cmp(&step(b)));
        let at = best.unwrap_or(n - 1);
        let hinge =
            (0..n.saturating_sub(8)).min_by(|a, b| ramp(&logs, *a).0.total_cmp(&ramp(&logs, *b).0));
        let slope = hinge
            .map(|at| (at, ramp(&logs, at)))
            .filter(|(_, (squares, _))| *squares < step(&at));
        let place = |at: usize| self.values[at].0;
        let change = match slope {
            Some((from, (_, rise))) => Change {
                between: (place(from), run),
                found_at: run,
                ratio: rise.exp(),
                is_slope: true,
            },
            None => Change {
                between: (place(at - 1), place(at)),
                found_at: run,
                ratio: (mean(logs[at..].iter().copied()) - mean(logs[..at].iter().copied())).exp(),
                is_slope: false,
            },
        };
        let kept = if slope.is_some() { n - 3 } else { at };
        if slope.is_none() {
            self.earlier = self.earlier.and(Spread::of(&clamped(&logs[..at])));
        }
        self.values.drain(..kept);
        self.changes.push(change);
    }

    fn judged(self, learnt: &Learnt) -> Judged {
        let spread = self.spread(1);
        let n = self.values.len();
        let (variance, freedom) = learnt.variance(spread, n.saturating_sub(1).max(1), 1);
        let reach = if freedom > 0.0 {
            quantile(freedom, 0.975) * variance.sqrt()
        } else {
            f64::INFINITY
        };
        let logs: Vec<f64> = self.logs().collect();
        let newest = (n > 1).then(|| {
            let change = logs[n - 1] - mean(clamped(&logs[..n - 1]));
            [0.0, -reach, reach].map(|by| (change + by).exp())
        });
        let deviation = spread
            .and(learnt.prior)
            .variance()
            .unwrap_or_default()
            .sqrt();
        Judged {
            changes: self.changes,
            newest,
            deviation,
        }
    }
}

/// The squares left of a line that is flat until `from` and then rises to the end, and its rise.
fn ramp(logs: &[f64], from: usize) -> (f64, f64) {
    let x = |i: usize| i.saturating_sub(from) as f64;
    let places = || (0..logs.len()).map(x);
    let (mx, my) = (mean(places()), mean(logs.iter().copied()));
    let sxx: f64 = places().map(|x| (x - mx).powi(2)).sum();
    let sxy: f64 = places().zip(logs).map(|(x, y)| (x - mx) * (y - my)).sum();
    let slope = sxy / sxx;
    let squares = places()
        .zip(logs)
        .map(|(x, y)| (y - my - slope * (x - mx)).powi(2))
        .sum();
    (squares, slope * x(logs.len() - 1))
}

/// One benchmark of a history.
#[derive(Clone, Debug)]
pub struct BenchmarkHistory {
    /// Full id.
    pub id: String,
    /// Its time in each run, ns; `None` if the run lacks it.
    pub times: Vec<Option<f64>>,
    /// Its changes.
    pub judged: Judged,
}

/// The runs of one machine.
#[derive(Clone, Debug)]
pub struct History {
    /// Name of the machine.
    pub machine: String,
    /// Name of each run, in their order.
    pub runs: Vec<String>,
    /// Sentences about the runs and what is common to the benchmarks.
    pub notes: Vec<String>,
    /// The benchmarks of the newest run, those with the largest change first.
    pub rows: Vec<BenchmarkHistory>,
}

impl History {
    /// Judges the benchmarks, with their times in each run.
    pub fn new(
        machine: String,
        runs: Vec<String>,
        notes: Vec<String>,
        times: Vec<(String, Vec<Option<f64>>)>,
    ) -> Self {
        let (ids, times): (Vec<String>, Vec<Vec<Option<f64>>>) = times.into_iter().unzip();
        let (judged, common) = judge(&times);
        let rows = ids.into_iter().zip(times).zip(judged);
        let rows = rows.map(|((id, times), judged)| BenchmarkHistory { id, times, judged });
        let mut history = Self {
            machine,
            runs,
            notes,
            rows: rows.collect(),
        };
        if history.runs.len() < FEWEST_RUNS {
            let few = format!(
                "{} of {FEWEST_RUNS} runs: how much runs differ is not known yet, so no change is reported",
                history.runs.len()
            );
            history.notes.push(few);
        } else {
            let spread =
                median(history.rows.iter().map(|row| row.judged.deviation)).unwrap_or_default();
            history.notes.push(format!(
                "spread between runs: {} (median of the benchmarks)",
                percent(spread)
            ));
        }
        let shared = BenchmarkHistory {
            id: String::new(),
            times: Vec::new(),
            judged: common,
        };
        if !shared.judged.changes.is_empty() {
            history.notes.push(format!(
                "all benchmarks together: {}",
                shared.in_words(&history.runs)
            ));
        }
        let size = |row: &BenchmarkHistory| {
            row.judged
                .changes
                .last()
                .map_or(0.0, |change| change.ratio.ln().abs())
        };
        history
            .rows
            .sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.id.cmp(&b.id)));
        history
    }

    /// The changes that were found at the newest run, by the runs that they lie between.
    pub fn suspected(&self) -> BTreeMap<(usize, usize), Vec<&str>> {
        let mut found: BTreeMap<(usize, usize), Vec<&str>> = BTreeMap::new();
        for row in &self.rows {
            let newest = row
                .judged
                .changes
                .iter()
                .filter(|change| change.found_at + 1 == self.runs.len());
            for change in newest {
                found.entry(change.between).or_default().push(&row.id);
            }
        }
        found
    }
}

impl BenchmarkHistory {
    /// Its newest time against the runs before, and its last change.
    pub fn in_words(&self, runs: &[String]) -> String {
        let mut words = Vec::new();
        if let Some(ns) = self.times.last().copied().flatten() {
            words.push(time(ns));
        }
        if let Some([ratio, low, high]) = self.judged.newest
            && low > 0.0
            && high.is_finite()
        {
            let [ratio, low, high] = [ratio, low, high].map(change);
            words.push(format!("{ratio} against the runs before ({low} to {high})"));
        }
        if let Some(found) = self.judged.changes.last() {
            let is_new = found.found_at + 1 == runs.len();
            let word = if is_new {
                "suspected"
            } else {
                "suspected before"
            };
            let side = if found.ratio > 1.0 {
                "slower"
            } else {
                "faster"
            };
            let kind = if found.is_slope { "gradually " } else { "" };
            let (from, to) = (&runs[found.between.0], &runs[found.between.1]);
            words.push(format!(
                "{word} {kind}{side}: {} between {from} and {to}",
                change(found.ratio)
            ));
        }
        words.join("; ")
    }
}
