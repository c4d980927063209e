//! The benchmarks of two sides, matched by id: the row that is shown, and the samples to judge it by.

use std::collections::BTreeSet;

use crate::analyses::is_analysed_at;
use crate::case::{Case, Launching, RunPair};
use crate::environment::marks;
use crate::judge::{Judged, Judgement};
use crate::median::{FEWEST_SAMPLES, Location, Median};
use crate::steps;
use crate::verdict::{Options, Verdict};
use crossover_results::model::id;
use crossover_results::statistics::between_processes::Class;
use crossover_results::statistics::median::median;
use crossover_results::store::baseline::Baseline;
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
    /// The clock of both sides, where it is known and one.
    pub clock: Option<Clock>,
    /// Whether the measurement is known to be no time.
    pub(crate) is_count: bool,
    /// The time before, ns, or the count: that of the median run. If
    /// the benchmark is judged, the times of both sides are moved so that they have the judged ratio.
    pub(crate) base_ns: Option<f64>,
    /// The same for the new side.
    pub(crate) new_ns: Option<f64>,
    /// Its class, if the two sides can be compared.
    pub class: Option<Class>,
    /// Ratio and interval, where the two can be compared.
    pub(crate) judgement: Option<Judgement>,
    /// Samples of each run of the base.
    pub base_samples: Vec<usize>,
    /// Samples of each run of the new side.
    pub(crate) new_samples: Vec<usize>,
    /// Why there is no verdict, or why a benchmark is gone.
    pub reason: Option<String>,
    /// Disturbances: throttling, another SM clock.
    pub marks: Vec<String>,
    /// The nanoseconds that the correction for the launch constant adds to `new_ns`; `None` without one.
    pub(crate) correction_ns: Option<f64>,
    /// Why it is not corrected for the launch constant, on a clock with a gate.
    pub(crate) uncorrected: Option<&'static str>,
}

impl BenchmarkRow {
    /// Takes the verdict and its ratio. The median runs of the two sides need not be of one pair, so
    /// their times may contradict the ratio: both move by the same factor until they have it, with the
    /// correction.
    pub(super) fn take(&mut self, judged: &Judged) {
        let judgement = judged.judgement();
        let correction = judged.estimate.correction;
        let measured = judgement.ratio * correction.unwrap_or(0.0).exp();
        if let (Some(base), Some(new)) = (self.base_ns, self.new_ns) {
            let factor = (measured * base / new).sqrt();
            if factor.is_normal() {
                self.base_ns = Some(base / factor);
                self.new_ns = Some(new * factor);
            }
        }
        let taken_off = |base: f64| base * (judgement.ratio - measured);
        self.correction_ns = correction.and(self.base_ns).map(taken_off);
        self.verdict = judged.verdict;
        self.judgement = Some(judgement);
        self.reason = judged.reason.map(str::to_owned);
        (self.marks).extend(judged.is_doubted.then(|| IN_DOUBT.to_owned()));
    }

    /// Takes the verdict on samples that have one value on each side. Counts need no statistics. Times may each be off
    /// by the tick of their clock. Returns why there is no verdict.
    fn take_constants(
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

    /// Whether its verdict is final: after the pairs that chose what is tested, and at each interim
    /// analysis of the later ones.
    pub(super) fn is_decided(&self) -> bool {
        let confirmed = self.judgement.map_or(0, |judgement| judgement.confirmed);
        self.verdict != Verdict::Unsure && (confirmed == 0 || is_analysed_at(confirmed))
    }
}

/// Why a benchmark has no verdict though its change is significant with the correction, or without it.
const IN_DOUBT: &str = "significant only with or only without the correction for the launch constant, \
 which may have changed itself";

/// How the samples of a pair are unsteady. The fastest sample does not depend on the others.
fn unsteady(pairs: &[Sides<'_>], options: &Options) -> Option<String> {
    let sides = pairs.iter().filter_map(Sides::both);
    let mut results = sides.flat_map(|(base, new)| [("base", base), ("new", new)]);
    let words = |(side, result): (&str, &Sampled)| {
        let why = result
            .unsteady()
            .filter(|_| steps::step([result]).is_none())?;
        Some(format!("{side}: {why}"))
    };
    results
        .find_map(words)
        .filter(|_| options.location == Location::Median)
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
    /// Choices that differ, if both sides made them.
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

/// Matches the runs of both sides, pair by pair. A row with a case is still to be judged.
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
    let tick = steps::tick(results);
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
    let mut pairs: Vec<Sides<'_>> = (base.iter().zip(new).enumerate())
        .map(|(round, (b, n))| Sides::of(round, b.results.get(id), n.results.get(id)))
        .collect();
    let befores: Vec<&Sampled> = pairs.iter().filter_map(|pair| pair.base).collect();
    let afters: Vec<&Sampled> = pairs.iter().filter_map(|pair| pair.new).collect();
    let unlike = without_unlike(&mut pairs);
    let both = || befores.iter().chain(&afters);

    let clocks: BTreeSet<Option<Clock>> = both().map(|s| s.clock).collect();
    let one = clocks.first().filter(|_| clocks.len() == 1);
    let mut row = BenchmarkRow {
        id: id.to_owned(),
        clock: one.copied().flatten(),
        base_ns: centre(pairs.iter().filter_map(|pair| pair.base), options),
        new_ns: centre(pairs.iter().filter_map(|pair| pair.new), options),
        base_samples: befores.iter().map(|s| s.ns.len()).collect(),
        new_samples: afters.iter().map(|s| s.ns.len()).collect(),
        marks: (marks(&befores, &afters).into_iter().chain(unlike))
            .chain(other_throughput(&befores, &afters))
            .collect(),
        ..BenchmarkRow::default()
    };
    row.is_count = both().any(|s| s.is_count);
    let case = if let Some(how) = options.failed.get(id) {
        row.verdict = Verdict::Failed;
        Err(Some(how.clone()))
    } else if let Some(why) = unreadable(id, base, new) {
        row.verdict = Verdict::Unreadable;
        Err(Some(why))
    } else if let Some(how) = new
        .iter()
        .find_map(|run| run.failure(id))
        .filter(|_| afters.is_empty())
    {
        row.verdict = Verdict::Failed;
        Err(Some(how))
    } else if afters.is_empty() {
        row.verdict = Verdict::Gone;
        Err(why_absent(id, new, base))
    } else if befores.is_empty() {
        row.verdict = Verdict::New;
        Err(why_absent(id, base, new))
    } else {
        match (constant(&befores), constant(&afters), clocks.len()) {
            (Some(base), Some(new), 1) if row.clock.is_none() => {
                let tick = tick.filter(|_| !row.is_count);
                row.is_count = tick.is_none();
                let pairs = befores.len().min(afters.len());
                Err(row.take_constants([base, new], tick, pairs, options.threshold))
            }
            // A clock coarser than the benchmark shows the same time for different code.
            (Some(base), Some(new), 1) if base == new => Err(Some(BELOW_RESOLUTION.to_owned())),
            _ => case(&row, &pairs, &clocks, options).map_err(Some),
        }
    };
    if case.as_ref().is_ok_and(|case| case.is_unsteady) {
        row.marks.extend(unsteady(&pairs, options));
    }
    let step = case.as_ref().map_or(0.0, |case: &Case| case.step);
    if step >= options.threshold / 10.0 && !row.is_count {
        let step = step * row.base_ns.unwrap_or_default();
        row.marks.push(ticks(step));
    }
    let case = case.map_err(|reason| row.reason = reason).ok();
    row.class = case.as_ref().map(|case| case.class);
    row.uncorrected = case.as_ref().and_then(|case| match case.launching {
        Launching::Uncorrected(why) => Some(why),
        _ => None,
    });
    (row, case)
}

/// The value that all samples of these runs have; `None` where they differ, or are too few.
fn constant(runs: &[&Sampled]) -> Option<f64> {
    /// The rounding error of dividing by the iterations.
    const ROUNDING: f64 = 1e-12;
    let first = *runs.first()?.ns.first()?;
    let is_first = |ns: &f64| (ns / first - 1.0).abs() <= ROUNDING;
    let are = |run: &&Sampled| run.ns.len() >= FEWEST_SAMPLES && run.ns.iter().all(is_first);
    runs.iter().all(are).then_some(first)
}

/// Why a result of `id` cannot be read. The other runs do not make up for it: a gate would pass by chance.
fn unreadable(id: &str, base: &[Baseline], new: &[Baseline]) -> Option<String> {
    let runs = || base.iter().chain(new);
    let mut pairs = runs().flat_map(|run| runs().map(move |other| (run, other)));
    let problem = pairs.find_map(|(run, other)| run.unreadable(id, other))?;
    Some(problem.to_string())
}

/// The work of an iteration, if both sides declare another.
fn other_throughput(befores: &[&Sampled], afters: &[&Sampled]) -> Option<String> {
    let declared = |side: &[&Sampled]| side.iter().find_map(|run| run.throughput.clone());
    let (before, after) = (declared(befores)?, declared(afters)?);
    (before != after)
        .then(|| format!("the work of an iteration differs: base {before}, new {after}"))
}

/// Why `id` is missing on a `side`.
fn why_absent(id: &str, side: &[Baseline], other: &[Baseline]) -> Option<String> {
    let mut pairs = (side.iter()).flat_map(|run| other.iter().map(move |other| (run, other)));
    pairs.find_map(|(run, other)| run.why_absent(id, other))
}

const BELOW_RESOLUTION: &str =
    "below the resolution of its clock: all samples of both sides are equal";

fn case(
    row: &BenchmarkRow,
    pairs: &[Sides<'_>],
    clocks: &BTreeSet<Option<Clock>>,
    options: &Options,
) -> Result<Case, String> {
    if clocks.len() > 1 {
        let names: Vec<&str> = clocks
            .iter()
            .map(|c| c.map_or("an unknown clock", Clock::name))
            .collect();
        return Err(format!(
            "timed on {}: different quantities",
            names.join(" and ")
        ));
    }
    let mut judged = Vec::new();
    for (round, (before, after)) in (pairs.iter()).filter_map(|p| Some((p.round, p.both()?))) {
        // In `ab` each process wrote its own.
        if before.ns == after.ns && !options.on_one_machine {
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
        judged.push(RunPair {
            empty_ns,
            ..RunPair::of(round, base, new)
        });
    }
    let Some(first) = judged.first() else {
        return Err("no pair of runs has it on both sides".to_owned());
    };
    let launches = (pairs.iter()).find_map(|pair| pair.base?.sidecar.as_ref()?.cost.launches);
    let class = Class {
        is_count: row.is_count,
        ..Class::of(id::device(&row.id), row.clock, first.base.ns, launches)
    };
    let is_gated = matches!(row.clock, Some(Clock::EventsGated | Clock::EventsCold));
    let launching = match is_gated {
        true => launching(pairs, options).map_or_else(Launching::Uncorrected, Launching::Kernels),
        false => Launching::Hidden,
    };
    // Two processes, each with a deviation of its own.
    let known = (pairs.iter()).find_map(|pair| pair.base?.known_deviation(&row.id));
    let runs = (pairs.iter()).flat_map(|pair| pair.base.into_iter().chain(pair.new));
    Ok(Case {
        launching,
        is_unsteady: judged.len() == 1 && unsteady(pairs, options).is_some(),
        step: steps::step(runs).unwrap_or(0.0) / first.base.ns,
        known_variance: known.map_or(0.0, |deviation| 2.0 * deviation.powi(2)),
        ..Case::of(class, judged)
    })
}

/// The kernels of an iteration, if both sides launch as many in all pairs, or why it is not corrected for
/// the launch constant.
fn launching(pairs: &[Sides<'_>], options: &Options) -> Result<f64, &'static str> {
    let both: Vec<_> = pairs.iter().filter_map(Sides::both).collect();
    if options.location == Location::Fastest {
        return Err("short processes do not show the constant of the others");
    }
    if both.len() < 2 {
        return Err("one pair of runs does not show how the benchmarks follow the constant");
    }
    let sides = both.iter().flat_map(|(base, new)| [base, new]);
    let known: Option<Vec<LaunchConstant>> = sides.map(|side| side.launches).collect();
    let Some(known) = known else {
        return Err("the empty kernel was not timed beside each result");
    };
    if known.iter().any(|of| of.has_graphs) {
        return Err("the nodes of graphs do not have the constant");
    }
    let kernels = known[0].kernels.filter(|kernels| *kernels > 0.0);
    let kernels = kernels.ok_or("the kernels of an iteration were not counted")?;
    if known.iter().any(|of| of.kernels != Some(kernels)) {
        return Err("the results launch different numbers of kernels");
    }
    Ok(kernels)
}

/// Keeps the pairs whose sides made the same choices, if there are any: with different choices they ran
/// different code of a revision. Returns the differences.
fn without_unlike(pairs: &mut Vec<Sides<'_>>) -> Option<String> {
    let all = pairs.iter().filter_map(Sides::both).count();
    let unlike: Vec<&String> = (pairs.iter()).filter_map(|p| p.unlike.as_ref()).collect();
    let (text, number) = (unlike.first().copied().cloned(), unlike.len());
    if number == all {
        return text;
    }
    pairs.retain(|pair| pair.both().is_some() && pair.unlike.is_none());
    Some(format!(
        "{} in {number} of {all} pairs, which do not count",
        text?
    ))
}

/// The median run's, because one run may be far off.
fn centre<'a>(runs: impl Iterator<Item = &'a Sampled>, options: &Options) -> Option<f64> {
    median(runs.filter_map(|run| options.location.of(&run.ns)))
}

#[cfg(test)]
mod tests;
