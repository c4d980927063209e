//! Steps and slopes in the times of many runs.
//!
//! Runs are judged in their order, each from the runs up to it. At each run, the mean of the last `k` runs is
//! compared with the mean of the runs before them, for several `k`: the likelihood ratio of a step at an unknown
//! place (Siegmund and Venkatraman, "Using the generalized likelihood ratio statistic for sequential detection of a
//! change-point", Annals of Statistics 23, 1995). The spread of a benchmark between runs is moderated by that of the
//! others (Smyth 2004), and the bounds are quantiles of Student's t. An outlier does not reach them,
//! since it counts at most [`FARTHEST`].

use crossover_results::statistics::between_processes::{
    CLASS_FREEDOM, Spread, quantile, upper_tail,
};
use crossover_results::statistics::mean;
use crossover_results::statistics::median::median;

/// The tested numbers of runs after a step, and the share of the error that each may spend: most within three runs. One
/// run alone may be an outlier.
const AFTER: [(usize, f64); 5] = [(2, 0.1), (3, 0.75), (5, 0.05), (8, 0.05), (13, 0.05)];
/// Bound on the probability that a run without changes has any step. Simulated runs have a third of it, with heavy
/// tails two thirds, since the tested numbers of runs overlap.
const ERROR: f64 = 0.017;
/// The same for the shift that all benchmarks share.
const ERROR_OF_COMMON: f64 = 0.003;
/// Fewest runs before a step.
const FEWEST_BEFORE: usize = 3;
/// Fewest runs that are judged.
pub(super) const FEWEST_RUNS: usize = 5;
/// Fewest series whose median tells how much persists from run to run. Of fewer, each has its own.
const FEWEST_FOR_PERSISTENCE: usize = 3;
/// The least variance: kept times have seven digits.
const LEAST_VARIANCE: f64 = 1e-12;
/// Fewest benchmarks of which a common shift is subtracted.
const FEWEST_FOR_COMMON: usize = 10;
/// A run counts at most this many deviations from its base.
const FARTHEST: f64 = 3.2;
/// Fewest runs in which outliers are recognised by the robust deviation.
const FEWEST_FOR_OUTLIERS: usize = 6;
/// Fewest runs that a slope rises over.
const FEWEST_ON_SLOPE: usize = 8;

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

/// The runs of a benchmark since its last change.
#[derive(Clone, Debug, Default)]
struct Base {
    /// Their places in the history.
    runs: Vec<usize>,
    /// The logarithms of their times without the common shift.
    logs: Vec<f64>,
    /// Squares around the means of earlier bases.
    earlier: Spread,
    changes: Vec<Change>,
}

/// The spread between runs, estimated from all benchmarks.
struct Learnt {
    prior: Spread,
    /// The part of the variance that persists from run to run, such as the layout of an executable; `None` of few
    /// series.
    persistent: Option<f64>,
}

/// The last runs of a base against those before.
struct Shift {
    /// Mean of the last runs, less the mean before; logarithms.
    by: f64,
    /// The newest run less the mean before, also if it is an outlier.
    newest: f64,
    /// Standard error of either.
    error: f64,
    /// Squares between runs before, moderated.
    spread: Spread,
}

/// Judges the times of benchmarks, a row each, in the order of the runs; `None` where a run lacks it. The second value
/// is the shift that all benchmarks share.
pub(super) fn judge(times: &[Vec<Option<f64>>]) -> (Vec<Judged>, Judged) {
    let runs = times.first().map_or(0, Vec::len);
    let mut bases = vec![Base::default(); times.len()];
    let mut common = [Base::default()];
    for run in 0..runs {
        let logs: Vec<Option<f64>> = times.iter().map(|row| Some(row[run]?.ln())).collect();
        let found = common_shift(&bases, &logs);
        // A run of few benchmarks has the shift of the run before.
        let shift = found.or(common[0].logs.last().copied());
        for (base, log) in bases.iter_mut().zip(logs) {
            if let Some(log) = log {
                base.add(run, log - shift.unwrap_or_default());
            }
        }
        if let Some(shift) = found {
            common[0].add(run, shift);
        }
        find_changes(&mut bases, run, ERROR);
        find_changes(&mut common, run, ERROR_OF_COMMON);
    }
    let judged = |bases: &[Base]| {
        let learnt = Learnt::of(bases);
        bases.iter().map(|base| base.judged(&learnt)).collect()
    };
    let common: Vec<Judged> = judged(&common);
    (judged(&bases), common[0].clone())
}

/// The median over the benchmarks of their distance from their base; `None` for few benchmarks.
fn common_shift(bases: &[Base], logs: &[Option<f64>]) -> Option<f64> {
    let shift = |(base, log): (&Base, &Option<f64>)| {
        let middle = median(base.logs.iter().copied())?;
        Some((*log)? - middle)
    };
    let shifts: Vec<f64> = bases.iter().zip(logs).filter_map(shift).collect();
    median(shifts.iter().copied()).filter(|_| shifts.len() >= FEWEST_FOR_COMMON)
}

/// Tests whether the last runs are a step away from the runs before, and begins a new base where they are.
fn find_changes(bases: &mut [Base], run: usize, error: f64) {
    if run + 1 < FEWEST_RUNS {
        return;
    }
    let learnt = Learnt::of(bases);
    let error = error / bases.len() as f64 / 2.0;
    for base in bases {
        let is_step = |(after, share): &(usize, f64)| {
            learnt.shift(base, *after).is_some_and(|shift| {
                upper_tail(shift.spread.freedom, shift.by.abs() / shift.error) < error * share
            })
        };
        if base.runs.last() == Some(&run) && AFTER.iter().any(is_step) {
            base.split(run);
        }
    }
}

impl Learnt {
    fn of(bases: &[Base]) -> Self {
        let spread = |base: &Base| base.earlier.and(Spread::of(&without_outliers(&base.logs)));
        let spreads: Vec<Spread> = bases.iter().map(spread).collect();
        Self {
            prior: prior(&spreads),
            persistent: (bases.len() >= FEWEST_FOR_PERSISTENCE)
                .then(|| persistent(bases.iter().map(|base| &base.logs[..]))),
        }
    }

    /// The last `after` runs against those before; `None` if these are few.
    fn shift(&self, base: &Base, after: usize) -> Option<Shift> {
        let count = base.logs.len().checked_sub(after);
        let count = count.filter(|count| *count >= FEWEST_BEFORE)?;
        let (before, last) = base.logs.split_at(count);
        let before = without_outliers(before);
        let spread = base.earlier.and(Spread::of(&before)).and(self.prior);
        let deviation = spread.variance()?.max(LEAST_VARIANCE).sqrt();
        // A step of the only series would count as its persistence.
        let own = || persistent([&base.logs[..count]].into_iter());
        let persistent = self.persistent.unwrap_or_else(own);
        let middle = mean(before);
        let reach = FARTHEST * deviation;
        let lasting = persistent / (1.0 - persistent);
        let variance = 1.0 / count as f64 + 1.0 / after as f64 + lasting;
        Some(Shift {
            by: mean(last.iter().map(|log| (log - middle).clamp(-reach, reach))),
            newest: last.last()? - middle,
            error: deviation * variance.sqrt(),
            spread,
        })
    }
}

/// The variance that is common to the benchmarks, with the degrees of freedom that it counts for beside a benchmark's
/// own: fewer if the benchmarks spread more unlike each other than chance explains.
fn prior(spreads: &[Spread]) -> Spread {
    let known = spreads.iter().filter(|spread| spread.freedom >= 2.0);
    let logs: Vec<(f64, f64)> = known
        .filter_map(|spread| Some((spread.variance().filter(|v| *v > 0.0)?.ln(), spread.freedom)))
        .collect();
    let Some(middle) = median(logs.iter().map(|(log, _)| *log)) else {
        return Spread::default();
    };
    if logs.len() < FEWEST_RUNS {
        return Spread::known(middle.exp(), CLASS_FREEDOM);
    }
    let distance = median(logs.iter().map(|(log, _)| (log - middle).abs())).unwrap_or_default();
    // Variance of the logarithm of a chi-square variable over its f degrees of freedom.
    let by_chance = |freedom: f64| 2.0 / (freedom - 1.0);
    let chance = mean(logs.iter().map(|(_, freedom)| by_chance(*freedom)));
    let unlike = ((DEVIATION * distance).powi(2) - chance).max(0.01);
    Spread::known(middle.exp(), 2.0 / unlike + 1.0)
}

/// The share of the variance between runs that neighbouring runs share, of the median series: 0 for independent runs.
fn persistent<'a>(series: impl Iterator<Item = &'a [f64]>) -> f64 {
    let independent = |logs: &[f64]| {
        let steps = logs
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).powi(2) / 2.0);
        let variance = Spread::of(logs).variance()?;
        let share = mean(steps) / variance;
        // Nothing persists where nothing differs.
        (logs.len() >= FEWEST_RUNS).then_some(if variance > 0.0 { share } else { 1.0 })
    };
    let independent = series.filter_map(independent);
    // Chance makes the steps of few runs a little smaller.
    (0.9 - median(independent).unwrap_or(1.0)).clamp(0.0, 0.9)
}

/// Standard deviation of a normal distribution divided by its median absolute deviation.
const DEVIATION: f64 = 1.4826;

/// The values, each within five robust deviations of their median.
fn without_outliers(values: &[f64]) -> Vec<f64> {
    let middle = median(values.iter().copied()).unwrap_or_default();
    let distance = median(values.iter().map(|v| (v - middle).abs())).unwrap_or_default();
    let reach = match values.len() {
        ..FEWEST_FOR_OUTLIERS => f64::INFINITY,
        _ => 5.0 * DEVIATION * distance,
    };
    values
        .iter()
        .map(|v| v.clamp(middle - reach, middle + reach))
        .collect()
}

impl Base {
    fn add(&mut self, run: usize, log: f64) {
        self.runs.push(run);
        self.logs.push(log);
    }

    /// Dates the change, by the step or the slope that leaves the least squares, and begins a new base behind it.
    fn split(&mut self, run: usize) {
        let n = self.logs.len();
        let steps = (FEWEST_BEFORE..n).map(|at| (at, false));
        let slopes = (0..n.saturating_sub(FEWEST_ON_SLOPE)).map(|from| (from, true));
        let fits = steps.chain(slopes).map(|(at, is_slope)| {
            let x = |run: usize| {
                if is_slope {
                    run.saturating_sub(at) as f64
                } else {
                    f64::from(u8::from(run >= at))
                }
            };
            (at, is_slope, fit(&self.logs, x))
        });
        let best = fits.min_by(|(_, _, a), (_, _, b)| a.0.total_cmp(&b.0));
        let Some((at, is_slope, (_, rise))) = best else {
            return;
        };
        let between = if is_slope {
            (self.runs[at], run)
        } else {
            (self.runs[at - 1], self.runs[at])
        };
        self.changes.push(Change {
            between,
            found_at: run,
            ratio: rise.exp(),
            is_slope,
        });
        let ended = if is_slope {
            n - FEWEST_BEFORE
        } else {
            let spread = Spread::of(&without_outliers(&self.logs[..at]));
            self.earlier = self.earlier.and(spread);
            at
        };
        self.runs.drain(..ended);
        self.logs.drain(..ended);
    }

    fn judged(&self, learnt: &Learnt) -> Judged {
        let shift = learnt.shift(self, 1);
        let newest = shift.as_ref().map(|shift| {
            let reach = quantile(shift.spread.freedom, 0.975) * shift.error;
            [0.0, -reach, reach].map(|by| (shift.newest + by).exp())
        });
        let variance = shift.and_then(|shift| shift.spread.variance());
        Judged {
            changes: self.changes.clone(),
            newest,
            deviation: variance.unwrap_or_default().sqrt(),
        }
    }
}

/// The squares that a line over `x` leaves, and its rise to the last value.
fn fit(logs: &[f64], x: impl Fn(usize) -> f64) -> (f64, f64) {
    let places: Vec<f64> = (0..logs.len()).map(x).collect();
    let [mx, my] = [&places[..], logs].map(|values| mean(values.iter().copied()));
    let sxx: f64 = places.iter().map(|x| (x - mx).powi(2)).sum();
    let points = || places.iter().zip(logs).map(|(x, y)| (x - mx, y - my));
    let slope = points().map(|(x, y)| x * y).sum::<f64>() / sxx;
    let squares = points().map(|(x, y)| (y - slope * x).powi(2)).sum();
    (squares, slope * (places[logs.len() - 1] - places[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_persists_is_missing_between_neighbouring_runs() {
        let rising: Vec<f64> = (0..6).map(f64::from).collect();
        let alternating = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        for (series, share) in [
            // Half the squares of the steps are a seventh of the variance.
            (&[&rising[..]][..], 0.9 - 1.0 / 7.0),
            (&[&rising[..4]], 0.0),
            (&[&alternating], 0.0),
            (&[&[5.0; 6]], 0.0),
            (&[&alternating, &rising, &rising[..5]], 0.9 - 1.0 / 5.0),
        ] {
            let found = persistent(series.iter().copied());
            assert!((found - share).abs() < 1e-12, "{series:?}: {found}");
        }
    }
}
