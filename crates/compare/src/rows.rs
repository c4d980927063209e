//! The benchmarks of two sides, matched by id: the row that is shown, and the samples to judge it by.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use crate::case::{Case, FEWEST_SAMPLES, Launching, Median, RunPair, step, tick};
use crate::environment::marks;
use crate::evidence::{Drift, is_analysed_at};
use crate::judge::{Judged, Judgement};
use crate::verdict::{Location, MOVED_TOGETHER, Options, Verdict};
use crossover_results::model::id;
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::median::median;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::sampled::Sampled;
use crossover_words::Clock;
use crossover_words::sidecar::LaunchConstant;
use crossover_words::units::time_fine;

/// One benchmark of a comparison.
#[derive(Clone, Debug, Default)]
pub struct BenchmarkRow {
    /// Full id.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The clock of both sides, if it is known and the same.
    pub clock: Option<Clock>,
    /// Whether the measurement is known to be no time.
    pub(crate) is_count: bool,
    /// Measured time of the base in ns, or the count: the median over the runs.
    pub(crate) base_ns: Option<f64>,
    /// Measured time of the new side in ns, or the count: the median over the runs.
    pub(crate) new_ns: Option<f64>,
    /// The class of the benchmark, if the two sides can be compared.
    pub class: Option<Class>,
    /// Ratio and interval, if the two sides can be compared.
    pub(crate) judgement: Option<Judgement>,
    /// Samples of each run of the base.
    pub base_samples: Vec<usize>,
    /// Samples of each run of the new side.
    pub(crate) new_samples: Vec<usize>,
    /// Why there is no verdict, or why a benchmark is gone.
    pub reason: Option<String>,
    /// Disturbances: throttling, another SM clock.
    pub marks: Vec<String>,
    /// The change of `new_ns` by the correction for the launch constant, ns; `None` without one.
    pub(crate) correction_ns: Option<f64>,
    /// Why a benchmark on a clock with a gate is not corrected for the launch constant.
    pub(crate) uncorrected: Option<&'static str>,
}

impl BenchmarkRow {
    /// Fills in the verdict and its ratio. `remedy` follows the reason for no verdict.
    pub(super) fn apply(&mut self, judged: &Judged, drifts: &[Drift], remedy: &str) {
        let correction = judged.estimate.correction;
        let correction_ns = |(ns, correction): (f64, f64)| ns * (-correction).exp_m1();
        self.correction_ns = self.new_ns.zip(correction).map(correction_ns);
        self.verdict = judged.verdict;
        self.judgement = Some(judged.judgement());
        self.reason = judged.reason.map(|reason| format!("{reason}{remedy}"));
        (self.marks).extend(judged.is_doubted.then(|| IN_DOUBT.to_owned()));
        let has_moved = drifts.iter().any(|drift| self.moved_with(drift));
        if has_moved && self.verdict == Verdict::Unsure && self.reason.is_none() {
            self.reason = Some(MOVED_TOGETHER.to_owned());
        }
    }

    /// Whether it is a benchmark of this class.
    pub(super) fn is_of(&self, drift: &Drift) -> bool {
        self.class == Some(drift.class) && self.correction_ns.is_some() == drift.is_corrected
    }

    /// Whether it changed with the others of a class whose changes are in doubt.
    pub(super) fn moved_with(&self, drift: &Drift) -> bool {
        let change = self.judgement.map_or(0.0, |judgement| judgement.ratio.ln());
        drift.doubt.is_some() && self.is_of(drift) && change / drift.centre > 0.5
    }

    /// Fills in the verdict on samples that have one value on each side. Counts need no statistics. Each time has an
    /// error of one tick of the clock. Returns why there is no verdict.
    fn apply_constants(
        &mut self,
        [base, new]: [f64; 2],
        tick: Option<f64>,
        pairs: usize,
        threshold: f64,
    ) -> Option<String> {
        let edge = 1.0 + threshold;
        let (ratio, step) = (new / base, tick.unwrap_or(0.0) / base);
        let (low, high) = (ratio - step, ratio + step);
        self.verdict = match tick {
            _ if ratio >= edge && (tick.is_none() || low > 1.0) => Verdict::Slower,
            _ if ratio <= 1.0 / edge && (tick.is_none() || high < 1.0) => Verdict::Faster,
            None => Verdict::Same,
            Some(_) if low > 1.0 / edge && high < edge => Verdict::Same,
            Some(_) => Verdict::Unsure,
        };
        self.judgement = Some(Judgement {
            ratio,
            low,
            high,
            resolution: step,
            resolved_by: 1,
            pairs,
            confirmed: 0,
            more_pairs: f64::INFINITY,
        });
        let ticks = tick.map(ticks);
        if self.verdict == Verdict::Unsure {
            return ticks
                .map(|ticks| format!("{ONE_VALUE}: {ticks}; time more iterations together"));
        }
        self.marks.extend(ticks);
        None
    }

    /// Fills in the class of a case, and its reservations.
    fn describe(&mut self, case: &Case, pairs: &[Sides<'_>], options: &Options) {
        if case.is_unsteady {
            self.marks.extend(unsteady(pairs, options));
        }
        if case.step >= options.threshold / 10.0 && !self.is_count {
            let base_ns = self.base_ns.unwrap_or_default();
            self.marks.push(ticks(case.step * base_ns));
        }
        self.class = Some(case.class);
        if let Launching::Uncorrected(why) = case.launching {
            self.uncorrected = Some(why);
        }
    }

    /// Whether its verdict is final: after the pairs that chose what is tested, and at each interim
    /// analysis of the later ones.
    pub(super) fn is_decided(&self) -> bool {
        let confirmed = self.judgement.map_or(0, |judgement| judgement.confirmed);
        self.verdict != Verdict::Unsure && (confirmed == 0 || is_analysed_at(confirmed))
    }
}

/// Why a benchmark has no verdict although its change is significant either with or without the correction.
const IN_DOUBT: &str = "significant only with or only without the correction for the launch constant, \
 which may have changed itself";

/// How the samples of a pair are unsteady. The fastest sample does not depend on the others.
fn unsteady(pairs: &[Sides<'_>], options: &Options) -> Option<String> {
    if options.location == Location::Fastest {
        return None;
    }
    let sides = pairs.iter().filter_map(Sides::both);
    let mut results = sides.flat_map(|(base, new)| [("base", base), ("new", new)]);
    results.find_map(|(side, result)| {
        let why = result.unsteady()?;
        (step([result]).is_none()).then(|| format!("{side}: {why}"))
    })
}

/// Why times that are all equal may have no verdict.
const ONE_VALUE: &str = "all samples of a side are equal, and the change is less than can be shown";

/// The tick of a clock, in words.
fn ticks(step: f64) -> String {
    format!("the clock ticks by {}", time_fine(step))
}

/// The two results of a benchmark in a pair of runs.
struct Sides<'a> {
    round: usize,
    base: Option<&'a Sampled>,
    new: Option<&'a Sampled>,
    /// The first choice that differs, if both sides made it.
    unlike: Option<String>,
}

impl<'a> Sides<'a> {
    fn of(round: usize, base: Option<&'a Sampled>, new: Option<&'a Sampled>) -> Self {
        let choices = |side: Option<&'a Sampled>| Some(&side?.sidecar.as_ref()?.choices);
        let unlike = choices(base).zip(choices(new)).and_then(|(base, new)| {
            base.iter().find_map(|(choice, base)| {
                let new = new.get(choice).filter(|new| *new != base)?;
                Some(format!("{choice}: base chose {base}, new {new}"))
            })
        });
        Self {
            round,
            base,
            new,
            unlike,
        }
    }

    fn both(&self) -> Option<(&'a Sampled, &'a Sampled)> {
        self.base.zip(self.new)
    }
}

/// A row for each benchmark of either side, with its case if it is still to be judged.
pub(super) fn rows(
    base: &[Baseline],
    new: &[Baseline],
    options: &Options,
) -> Vec<(BenchmarkRow, Option<Case>)> {
    let ids: BTreeSet<&String> = base
        .iter()
        .chain(new)
        .flat_map(|b| b.results.keys().chain(b.ids()))
        .chain(options.failed.keys())
        .collect();
    let results = base.iter().chain(new).flat_map(|run| run.results.values());
    let tick = tick(results);
    ids.into_iter()
        .map(|id| row(id, base, new, tick, options))
        .collect()
}

fn row(
    id: &str,
    base: &[Baseline],
    new: &[Baseline],
    tick: Option<f64>,
    options: &Options,
) -> (BenchmarkRow, Option<Case>) {
    let mut pairs = Vec::from_iter(
        (base.iter().zip(new).enumerate())
            .map(|(round, (b, n))| Sides::of(round, b.results.get(id), n.results.get(id))),
    );
    let befores = Vec::from_iter(pairs.iter().filter_map(|pair| pair.base));
    let afters = Vec::from_iter(pairs.iter().filter_map(|pair| pair.new));
    let unlike = without_unlike(&mut pairs);
    let both = || befores.iter().chain(&afters);
    let clocks: BTreeSet<Option<Clock>> = both().map(|s| s.clock).collect();
    let clock = clocks.first().filter(|_| clocks.len() == 1);
    let mut row = BenchmarkRow {
        id: id.to_owned(),
        clock: clock.copied().flatten(),
        is_count: both().any(|s| s.is_count),
        base_ns: centre(pairs.iter().filter_map(|pair| pair.base), options),
        new_ns: centre(pairs.iter().filter_map(|pair| pair.new), options),
        base_samples: befores.iter().map(|s| s.ns.len()).collect(),
        new_samples: afters.iter().map(|s| s.ns.len()).collect(),
        marks: (marks(&befores, &afters).into_iter().chain(unlike))
            .chain(other_throughput(&befores, &afters))
            .collect(),
        ..BenchmarkRow::default()
    };
    if let Some((verdict, reason)) = absence(id, base, new, [&befores, &afters], options) {
        (row.verdict, row.reason) = (verdict, reason);
        return (row, None);
    }
    let case = match (constant(&befores), constant(&afters), clocks.len()) {
        (Some(base), Some(new), 1) if row.clock.is_none() => {
            let tick = tick.filter(|_| !row.is_count);
            row.is_count = tick.is_none();
            let pairs = befores.len().min(afters.len());
            row.reason = row.apply_constants([base, new], tick, pairs, options.threshold);
            return (row, None);
        }
        // A clock coarser than the benchmark shows the same time for different code.
        (Some(base), Some(new), 1) if base == new && step(both().copied()).is_none() => {
            Err(BELOW_RESOLUTION.to_owned())
        }
        _ => case(&row, &pairs, &clocks, options),
    };
    let case = match case {
        Ok(case) => case,
        Err(reason) => {
            row.reason = Some(reason);
            return (row, None);
        }
    };
    row.describe(&case, &pairs, options);
    (row, Some(case))
}

/// The verdict on a benchmark that failed, cannot be read, or has no result on a side, and its reason.
fn absence(
    id: &str,
    base: &[Baseline],
    new: &[Baseline],
    [befores, afters]: [&[&Sampled]; 2],
    options: &Options,
) -> Option<(Verdict, Option<String>)> {
    if let Some(how) = options.failed.get(id) {
        return Some((Verdict::Failed, Some(how.clone())));
    }
    if let Some(why) = unreadable(id, base, new) {
        return Some((Verdict::Unreadable, Some(why)));
    }
    if afters.is_empty() {
        return Some(match new.iter().find_map(|run| run.failure(id)) {
            Some(how) => (Verdict::Failed, Some(how)),
            None => (Verdict::Gone, why_absent(id, new, base)),
        });
    }
    (befores.is_empty()).then(|| (Verdict::New, why_absent(id, base, new)))
}

/// The one value of all samples of these runs; `None` if they differ or are too few.
fn constant(runs: &[&Sampled]) -> Option<f64> {
    /// The rounding error of dividing by the iterations.
    const ROUNDING: f64 = 1e-12;
    let first = *runs.first()?.ns.first()?;
    let is_first = |ns: &f64| (ns / first - 1.0).abs() <= ROUNDING;
    let is_constant =
        |run: &&Sampled| run.ns.len() >= FEWEST_SAMPLES && run.ns.iter().all(is_first);
    runs.iter().all(is_constant).then_some(first)
}

/// Why a result of `id` cannot be read. The other runs do not make up for it: a gate would pass by chance.
fn unreadable(id: &str, base: &[Baseline], new: &[Baseline]) -> Option<String> {
    let runs = || base.iter().chain(new);
    let mut pairs = runs().flat_map(|run| runs().map(move |other| (run, other)));
    let problem = pairs.find_map(|(run, other)| run.unreadable(id, other))?;
    Some(problem.to_string())
}

/// The beginning of the mark on results whose declared work differs.
pub(super) const OTHER_WORK: &str = "the work of an iteration differs";

/// The work of an iteration, if both sides declare another.
fn other_throughput(befores: &[&Sampled], afters: &[&Sampled]) -> Option<String> {
    let declared = |side: &[&Sampled]| side.iter().find_map(|run| run.throughput.clone());
    let (before, after) = (declared(befores)?, declared(afters)?);
    (before != after).then(|| format!("{OTHER_WORK}: base {before}, new {after}"))
}

/// Why `id` is missing on a `side`.
fn why_absent(id: &str, side: &[Baseline], other: &[Baseline]) -> Option<String> {
    let mut pairs = (side.iter()).flat_map(|run| other.iter().map(move |other| (run, other)));
    pairs.find_map(|(run, other)| run.why_absent(id, other))
}

const BELOW_RESOLUTION: &str =
    "below the resolution of its clock: all samples of both sides are equal";

/// The case of a benchmark, or why it cannot be judged.
fn case(
    row: &BenchmarkRow,
    pairs: &[Sides<'_>],
    clocks: &BTreeSet<Option<Clock>>,
    options: &Options,
) -> Result<Case, String> {
    if clocks.len() > 1 {
        let names = clocks
            .iter()
            .map(|clock| clock.map_or("an unknown clock", Clock::name));
        let names = Vec::from_iter(names).join(" and ");
        return Err(format!("timed on {names}: different quantities"));
    }
    let run_pairs = run_pairs(pairs, options)?;
    let Some(first) = run_pairs.first() else {
        return Err("no pair of runs has it on both sides".to_owned());
    };
    let launches = (pairs.iter()).find_map(|pair| pair.base?.sidecar.as_ref()?.cost.launches);
    let class = Class {
        is_count: row.is_count,
        ..Class::of(id::device(&row.id), row.clock, first.base.ns, launches)
    };
    let launching = if matches!(row.clock, Some(Clock::EventsGated | Clock::EventsCold)) {
        launching(pairs, options).map_or_else(Launching::Uncorrected, Launching::Kernels)
    } else {
        Launching::Hidden
    };
    // Two processes, each with a deviation of its own.
    let known = (pairs.iter()).find_map(|pair| Benchmark::known_deviation(&row.id, pair.base?));
    let runs = (pairs.iter()).flat_map(|pair| pair.base.into_iter().chain(pair.new));
    Ok(Case {
        launching,
        is_unsteady: run_pairs.len() == 1 && unsteady(pairs, options).is_some(),
        step: step(runs).unwrap_or(0.0) / first.base.ns,
        known_variance: known.map_or(0.0, |deviation| 2.0 * deviation.powi(2)),
        ..Case::new(class, run_pairs)
    })
}

/// The medians of the pairs with results on both sides, or why they cannot be compared.
fn run_pairs(pairs: &[Sides<'_>], options: &Options) -> Result<Vec<RunPair>, String> {
    let mut run_pairs = Vec::new();
    for (round, (before, after)) in (pairs.iter()).filter_map(|p| Some((p.round, p.both()?))) {
        // In `ab` each process wrote its own.
        let is_step_known = step([before, after]).is_some();
        if before.ns == after.ns && !is_step_known && !options.on_one_machine {
            return Err("both sides have the same samples: one measurement, saved twice".into());
        }
        let median = |side: &Sampled| Median::of(options.location, &side.ns);
        let (Some(base), Some(new)) = (median(before), median(after)) else {
            return Err(format!(
                "fewer than {FEWEST_SAMPLES} samples; measure without `--quick`"
            ));
        };
        let empty_ns = (before.launches.zip(after.launches))
            .map(|sides| <[_; 2]>::from(sides).map(|side| side.empty_kernel_ns()));
        run_pairs.push(RunPair {
            empty_ns,
            ..RunPair::new(round, base, new)
        });
    }
    Ok(run_pairs)
}

/// The number of kernels in an iteration, if it is the same in all results, or why the benchmark is not corrected
/// for the launch constant.
fn launching(pairs: &[Sides<'_>], options: &Options) -> Result<f64, &'static str> {
    let both: Vec<_> = pairs.iter().filter_map(Sides::both).collect();
    if options.location == Location::Fastest {
        return Err("short processes do not show the constant of the others");
    }
    if both.len() < 2 {
        return Err("one pair of runs does not show how the benchmarks follow the constant");
    }
    let sides = both.iter().flat_map(|(base, new)| [base, new]);
    let launches: Option<Vec<LaunchConstant>> = sides.map(|side| side.launches).collect();
    let launches = launches.ok_or("the empty kernel was not timed beside each result")?;
    if launches.iter().any(|constant| constant.has_graphs) {
        return Err("the nodes of graphs do not have the constant");
    }
    let kernels = launches[0].kernels.filter(|kernels| *kernels > 0.0);
    let kernels = kernels.ok_or("the kernels of an iteration were not counted")?;
    if (launches.iter()).any(|constant| constant.kernels != Some(kernels)) {
        return Err("the results launch different numbers of kernels");
    }
    Ok(kernels)
}

/// Keeps the pairs whose sides made the same choices, if there are any: with different choices, the code of one
/// revision differs too. Returns the first difference and the number of pairs that have one.
fn without_unlike(pairs: &mut Vec<Sides<'_>>) -> Option<String> {
    let whole = pairs.iter().filter_map(Sides::both).count();
    let unlike = Vec::from_iter(pairs.iter().filter_map(|pair| pair.unlike.clone()));
    let first = unlike.first();
    if unlike.len() == whole {
        return first.cloned();
    }
    pairs.retain(|pair| pair.both().is_some() && pair.unlike.is_none());
    let number = unlike.len();
    Some(format!(
        "{} in {number} of {whole} pairs, which do not count",
        first?
    ))
}

/// The median over the runs, because one run may be an outlier.
fn centre<'a>(runs: impl Iterator<Item = &'a Sampled>, options: &Options) -> Option<f64> {
    median(runs.filter_map(|run| options.location.of(&run.ns)))
}

/// A line for each text, with its benchmark or the number of its benchmarks.
pub(super) fn by_text<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut ids: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (id, text) in texts {
        ids.entry(text).or_default().push(id);
    }
    let line = |(text, ids): (String, Vec<&str>)| match ids[..] {
        [id] => format!("{id}: {text}"),
        _ => format!("{} benchmarks: {text}", ids.len()),
    };
    ids.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
