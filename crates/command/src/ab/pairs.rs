//! The pairs of processes of a comparison, and their results.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::ab::{Args, NAMES, child};
use crossover_compare::comparison::{Comparison, compare};
use crossover_compare::verdict::{Layout, Location, Options, Verdict};
use crossover_results::store::baseline::Baseline;
use crossover_results::store::whole_file::try_to_write;
use crossover_words::text::{visible, with_causes};
use crossover_words::units;

/// A way of running both sides.
pub(super) trait Sampling {
    /// Whether each process runs one benchmark, for a moment.
    fn is_brief(&self) -> bool {
        false
    }

    /// The number of pairs that each have an order of functions of their own.
    fn most_pairs(&self) -> u32 {
        u32::MAX
    }

    /// Runs a pair of processes, or one pair for each benchmark. Adds a baseline to each side of the
    /// outcome, and returns the seconds that the benchmarks took.
    ///
    /// # Errors
    /// An interrupt, that a process cannot be started, or that nothing can be written.
    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64>;
}

/// The benchmarks of a pair, and their limits.
pub(super) struct Pair<'a> {
    /// From 1.
    pub(super) number: u32,
    /// The folders for the results of each side.
    pub(super) homes: &'a [PathBuf; 2],
    /// The benchmarks; all of them without this.
    pub(super) only: Option<&'a BTreeSet<String>>,
    /// The longest time of a process, or of a turn of one.
    pub(super) limit: Duration,
    /// When no further process is started.
    pub(super) until: Option<Instant>,
}

impl Pair<'_> {
    /// One of its runs.
    pub(super) fn run(&self, side: usize) -> String {
        format!("run {}{}", NAMES[side], self.number)
    }
}

/// The pairs that have run, with their failures and notes.
#[derive(Default)]
pub(super) struct Outcome {
    /// The results of each side, pair by pair.
    pub(super) sides: [Vec<Baseline>; 2],
    /// A sentence each.
    pub(super) failures: Vec<String>,
    /// Benchmarks that are not judged since their process failed, and how.
    pub(super) failed: BTreeMap<String, String>,
    /// Seconds that each benchmark took in the last pair that had it, both sides together.
    pub(super) seconds: BTreeMap<String, f64>,
    /// Notes that the comparison itself does not contain.
    pub(super) remarks: Vec<String>,
    /// Executables that keep one order of functions from the second pair on, each with the reason.
    pub(super) fixed: BTreeMap<String, String>,
    /// Whether no other pair is run.
    pub(super) over: bool,
}

impl Outcome {
    /// Whether both sides have results.
    fn compares(&self) -> bool {
        let mut sides = self.sides.iter();
        sides.all(|runs| runs.first().is_some_and(|run| !run.results.is_empty()))
    }

    /// Ends the pairs because of an error.
    pub(super) fn end(&mut self, error: &anyhow::Error) {
        let why = with_causes(error.as_ref());
        self.failures.push(format!("no more pairs were run: {why}"));
        self.over = true;
    }
}

/// The pairs of a comparison.
struct Pairs<'a> {
    args: &'a Args,
    results: &'a Path,
    labels: [String; 2],
    sampling: Box<dyn Sampling + 'a>,
    start: Instant,
    /// Pairs that have run.
    number: u32,
    /// Seconds that the last pair took beside its benchmarks.
    start_of_pair: f64,
    outcome: Outcome,
}

/// Runs all pairs and compares them.
///
/// # Errors
/// An interrupt, or that no pair can be run.
pub(super) fn judge(
    args: &Args,
    results: &Path,
    labels: [String; 2],
    sampling: Box<dyn Sampling + '_>,
    remarks: Vec<String>,
    mut options: Options,
) -> anyhow::Result<(Comparison, Outcome)> {
    options.on_one_machine = true;
    options.location = if sampling.is_brief() {
        Location::Fastest
    } else {
        Location::Median
    };
    let mut pairs = Pairs {
        args,
        results,
        labels,
        sampling,
        start: Instant::now(),
        number: 0,
        start_of_pair: 0.0,
        outcome: Outcome {
            remarks,
            ..Outcome::default()
        },
    };
    pairs.run_first()?;
    options.layout = and_fixed(options.layout, &pairs.outcome.fixed);
    let confirms = args.budget > 0.0 && !pairs.outcome.over;
    options.screened = if confirms { pairs.first() as usize } else { 0 };
    let mut comparison = if confirms {
        pairs.confirm(&options)?
    } else {
        pairs.compare(&options)
    };
    let is_decided = comparison.count(Verdict::Unsure) == 0;
    if !is_decided && pairs.number == pairs.sampling.most_pairs() {
        comparison.warnings.push(format!(
            "no order of functions is left in the bundles after {}: for more pairs, build both with a larger \
             `crossover bundle --orders`",
            units::counted(pairs.number as usize, "pair")
        ));
    }
    let outcome = pairs.outcome;
    comparison.failures.clone_from(&outcome.failures);
    (comparison.warnings).extend(outcome.remarks.iter().cloned());
    Ok((comparison, outcome))
}

/// The layout of a comparison in which further executables keep one order.
fn and_fixed(layout: Layout, fixed: &BTreeMap<String, String>) -> Layout {
    let earlier = match layout {
        Layout::Fixed(why) => Some(why),
        other if fixed.is_empty() => return other,
        _ => None,
    };
    let reasons = fixed.iter().map(|(name, why)| format!("{name}: {why}"));
    Layout::Fixed(Vec::from_iter(earlier.into_iter().chain(reasons)).join("; "))
}

/// Keeps a comparison in the folder of its results, shows it, and says how the command ends.
///
/// # Errors
/// That the page of `--html` cannot be written.
pub(super) fn show(
    args: &Args,
    results: &Path,
    comparison: &Comparison,
) -> anyhow::Result<ExitCode> {
    // First, and with its place: the process ends where its output cannot be printed.
    let kept = args.verdict.keep(comparison, results);
    match &kept {
        Ok(()) => eprintln!(
            "results of all runs, compare.html, compare.md and compare.json: {}",
            results.display()
        ),
        Err(error) => eprintln!("error: {}", with_causes(error.as_ref())),
    }
    let shown = args.verdict.show(comparison);
    for text in &comparison.failures {
        eprintln!("error: {}", visible(text));
    }
    let code = shown?;
    Ok(kept.map_or(ExitCode::FAILURE, |()| code))
}

impl Pairs<'_> {
    /// The number of the pairs that run everything.
    fn first(&self) -> u32 {
        // So many show the spread of short processes, even if some are far off.
        let usual = if self.sampling.is_brief() { 8 } else { 2 };
        self.args
            .pairs
            .unwrap_or(usual)
            .min(self.sampling.most_pairs())
    }

    /// Seconds of the budget that are left.
    fn left(&self) -> f64 {
        60.0 * self.args.budget - self.start.elapsed().as_secs_f64()
    }

    fn run_first(&mut self) -> anyhow::Result<()> {
        let mut only = None;
        while self.number < self.first() && !self.outcome.over {
            self.run(only.as_ref())?;
            if self.number == 1 && self.args.budget > 0.0 && self.sampling.is_brief() {
                let fit = self.those_that_fit();
                if fit.is_empty() {
                    break;
                }
                only = Some(fit);
            }
        }
        Ok(())
    }

    /// After the first pair, the benchmarks that can run in all of the first pairs within half of the
    /// budget. The slow ones would leave no time for the others.
    fn those_that_fit(&mut self) -> BTreeSet<String> {
        let [old, new] = self.outcome.sides.each_ref().map(|runs| &runs[0].results);
        let pairs = f64::from(self.first() - 1);
        let shared = (self.outcome.seconds.iter())
            .filter(|(id, _)| old.contains_key(*id) && new.contains_key(*id));
        let shared = shared.map(|(id, &seconds)| Open { id, pairs, seconds });
        let shared: Vec<Open<'_>> = shared.collect();
        let fit = worth_it(shared.clone(), 0.0, 30.0 * self.args.budget);
        let slowest = shared.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        if let Some(slowest) = slowest.filter(|_| fit.len() < shared.len()) {
            let remark = format!(
                "{} ran once: {} pairs of them take more than half of the budget of {} min; the slowest, \
                 {}, takes {:.1} s per pair. Raise --budget, or filter them",
                units::counted(shared.len() - fit.len(), "benchmark"),
                self.first(),
                self.args.budget,
                slowest.id,
                slowest.seconds,
            );
            self.outcome.remarks.push(remark);
        }
        fit.into_iter().map(str::to_owned).collect()
    }

    /// Runs the undecided benchmarks in new processes, as long as there is time.
    fn confirm(&mut self, options: &Options) -> anyhow::Result<Comparison> {
        let mut decided = BTreeSet::new();
        loop {
            let comparison = self.compare(options);
            for (id, verdict) in comparison.decided() {
                if decided.insert(id.to_owned()) {
                    eprintln!("{}: {verdict} so far", visible(id));
                }
            }
            let open = (comparison.open())
                .filter(|(id, _)| !decided.contains(*id))
                .filter_map(|(id, pairs)| {
                    let seconds = *self.outcome.seconds.get(id)?;
                    Some(Open { id, pairs, seconds })
                });
            let chosen = worth_it(open.collect(), self.start_of_pair, self.left());
            if chosen.is_empty() || self.outcome.over || self.number >= self.sampling.most_pairs() {
                return Ok(comparison);
            }
            let only = chosen.into_iter().map(str::to_owned).collect();
            self.run(Some(&only))?;
        }
    }

    /// Runs another pair, of all benchmarks or of these. What keeps it from running is a failure of
    /// the comparison only if no pair has run before.
    ///
    /// # Errors
    /// An interrupt, or that failure.
    fn run(&mut self, only: Option<&BTreeSet<String>>) -> anyhow::Result<()> {
        match self.try_to_run(only) {
            Err(error) if self.outcome.compares() && !child::interrupted() => {
                self.outcome.end(&error);
                Ok(())
            }
            other => other,
        }
    }

    fn try_to_run(&mut self, only: Option<&BTreeSet<String>>) -> anyhow::Result<()> {
        check_room(self.results)?;
        self.number += 1;
        let (number, budget) = (self.number, 60.0 * self.args.budget);
        let [a, b] = &self.labels;
        match only {
            // A log has a line for each benchmark that is decided.
            Some(_) if number > self.first() && !std::io::stderr().is_terminal() => {}
            Some(only) if number > self.first() => eprintln!(
                "pair {number}: {} still undecided, {:.0} s of {budget:.0} s left",
                units::counted(only.len(), "benchmark"),
                self.left(),
            ),
            _ => eprintln!("pair {number} of {}: {a} and {b}", self.first()),
        }
        let homes = NAMES.map(|side| self.results.join(format!("{side}{number}")));
        for home in &homes {
            std::fs::create_dir_all(home).with_context(|| format!("{}", home.display()))?;
        }
        let start = Instant::now();
        let pair = Pair {
            number,
            homes: &homes,
            only,
            limit: Duration::from_secs(self.args.turn_limit.into()),
            until: (budget > 0.0).then(|| self.start + Duration::from_secs_f64(budget)),
        };
        let of_benchmarks = self.sampling.run(&pair, &mut self.outcome)?;
        self.start_of_pair = (start.elapsed().as_secs_f64() - of_benchmarks).max(0.0);
        for (side, label) in self.outcome.sides.iter_mut().zip(&self.labels) {
            if let Some(baseline) = side.last_mut() {
                baseline.label.clone_from(label);
            }
        }
        // Later a side may have none of the benchmarks.
        if number == 1 && !self.outcome.compares() {
            self.outcome.over = true;
            if self.outcome.failures.is_empty() {
                bail!(
                    "the first runs left no results in {}; does the filter after `--` match a benchmark, \
                     and does `run` keep to CRITERION_HOME?",
                    homes.map(|home| home.display().to_string()).join(" or ")
                );
            }
        }
        Ok(())
    }

    fn compare(&self, options: &Options) -> Comparison {
        let options = Options {
            failed: self.outcome.failed.clone(),
            ..options.clone()
        };
        compare(&self.outcome.sides[0], &self.outcome.sides[1], &options)
    }
}

/// # Errors
/// That nothing can be written to this folder for results.
pub(super) fn check_room(folder: &Path) -> anyhow::Result<()> {
    check(folder, "choose another folder with --results")
}

/// # Errors
/// That nothing can be written to the temporary folder.
pub(super) fn check_temporary() -> anyhow::Result<()> {
    let remedy = "name a folder with more room in TMPDIR";
    check(&std::env::temp_dir(), remedy)
}

fn check(folder: &Path, remedy: &str) -> anyhow::Result<()> {
    let named = || format!("{}: make room there, or {remedy}", folder.display());
    try_to_write(folder).with_context(named)
}

/// A benchmark that is not decided.
#[derive(Clone, Copy, Debug)]
struct Open<'a> {
    /// Its id.
    id: &'a str,
    /// Pairs of processes that it still needs; infinite where none would help.
    pairs: f64,
    /// Seconds that it takes in one.
    seconds: f64,
}

/// As many benchmarks as can be decided in the remaining time, if a pair of processes takes `start`
/// seconds to start and end. Each is run until it is decided; hopeless ones take no time from the
/// others.
fn worth_it<'a>(mut open: Vec<Open<'a>>, start: f64, seconds_left: f64) -> Vec<&'a str> {
    // Of as many pairs as the longest needs, all share the starts, and the shortest are the most.
    let needs = |open: &Open<'_>| open.pairs * open.seconds;
    open.sort_by(|a, b| needs(a).total_cmp(&needs(b)));
    let within = |most: f64| {
        let mut seconds = most * start;
        let fits = |open: &&Open<'_>| {
            seconds += needs(open);
            seconds <= seconds_left
        };
        let few = open.iter().filter(|open| open.pairs <= most);
        Vec::from_iter(few.take_while(fits).map(|open| open.id))
    };
    let mut numbers: Vec<f64> = open.iter().map(|open| open.pairs).collect();
    numbers.sort_by(|a, b| b.total_cmp(a));
    numbers.dedup();
    let plans = numbers.into_iter().map(within);
    plans.max_by_key(Vec::len).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_fit_together_go_on() {
        let open = [
            ("five", 5.0, 1.0),
            ("never", f64::INFINITY, 1.0),
            ("two", 2.0, 1.0),
            ("nine", 9.0, 1.0),
        ];
        let open = open.map(|(id, pairs, seconds)| Open { id, pairs, seconds });
        let worth_it = |left| worth_it(open.to_vec(), 1.0, left);
        // Nine pairs are started, and sixteen times a benchmark is run.
        assert_eq!(worth_it(25.0), ["two", "five", "nine"]);
        assert_eq!(worth_it(24.0), ["two", "five"]);
        assert_eq!(worth_it(12.0), ["two", "five"]);
        assert_eq!(worth_it(11.0), ["two"]);
        assert_eq!(worth_it(3.0), [""; 0]);
    }

    /// As in a comparison of a GPU: after two pairs many quick benchmarks need 13 pairs, a few slow ones 6.
    #[test]
    fn a_few_that_need_fewer_pairs_do_not_crowd_out_the_others() {
        let of = |count: usize, id, pairs, seconds| vec![Open { id, pairs, seconds }; count];
        let open = [of(20, "quick", 13.0, 0.1), of(10, "slow", 6.0, 0.25)].concat();
        assert_eq!(worth_it(open.clone(), 1.0, 30.0), ["quick"; 13]);
        // There is no time for as many pairs.
        assert_eq!(worth_it(open, 1.0, 15.0), ["slow"; 6]);
        let very_slow = [of(1, "slow", 2.0, 10.0), of(1, "quick", 9.0, 0.1)].concat();
        assert_eq!(worth_it(very_slow, 1.0, 15.0), ["quick"]);
    }
}
