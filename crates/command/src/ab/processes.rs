//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ab::child::{self, Output, RESULT};
use crate::ab::executable::{Executable, keep_slow_orders, most_pairs};
use crate::ab::layout::seed;
use crate::ab::pairs::{Outcome, Pair, Sampling, check_room, check_temporary};
use crate::ab::worktree::Copies;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::{BENCHMARK, NEW};
use crossover_results::store::sampled::Sampled;
use crossover_words::text::{is_plain, visible};
use crossover_words::units;

/// An executable with benchmarks of Criterion.
#[derive(Debug)]
pub(super) struct Harness {
    pub(super) executable: Executable,
    /// The benchmarks that it runs alone, in its order.
    pub(super) ids: Vec<String>,
    /// Options of every process.
    pub(super) options: Vec<String>,
}

impl Harness {
    /// Runs one benchmark alone, with its results in `home`.
    pub(super) fn command(&self, id: &str, home: &Path) -> Command {
        let mut command = self.executable.command();
        command
            .args(&self.options)
            .arg(pattern(id))
            .env("CRITERION_HOME", home);
        command
    }

    /// Seconds that its options have a process warm up and measure.
    fn asked_seconds(&self) -> f64 {
        let seconds = |name: &&str| -> Option<f64> {
            let mut words = self.options.iter().flat_map(|option| option.split('='));
            words.find(|word| word == name)?;
            words.next()?.parse().ok()
        };
        let options = ["--warm-up-time", "--measurement-time"];
        options.iter().filter_map(seconds).sum()
    }
}

/// The filter that selects one benchmark.
pub(super) fn pattern(id: &str) -> String {
    format!("^{}$", regex::escape(id))
}

/// A filter that selects no benchmark.
pub(super) const SELECTS_NOTHING: &str = "crossover-ab-selects-nothing";

/// The benchmarks of both sides.
pub(super) struct Processes<'a> {
    copies: &'a Copies,
    harnesses: [Vec<Harness>; 2],
    benchmarks: Vec<ListedBenchmark>,
}

struct ListedBenchmark {
    /// As it is shown.
    id: String,
    /// As its executable knows it.
    own: String,
    /// Which of a side's executables has it.
    of: [Option<usize>; 2],
    /// Seconds that a pair of it takes at least, if an iteration takes long; known from the first pair
    /// on.
    slow: f64,
    /// Seconds after which its process is ended in the first pair, and run again after the others.
    patience: f64,
}

/// How a benchmark was run.
enum Ran {
    Completely,
    /// Longer than it may, on both sides or on the first one.
    TooLong,
    /// A process failed, and how.
    Failed(String),
}

/// How a process ended.
enum Ended {
    /// With a result, after these seconds.
    WithResult(Box<Sampled>, f64),
    /// Its side does not have the benchmark.
    NotStarted,
    /// It took longer than it may.
    TooLong,
    /// It failed, and how.
    Failed(String),
}

/// The results of a pair of processes.
#[derive(Default)]
struct PairResults {
    sides: [Baseline; 2],
    /// Seconds that its benchmarks took.
    seconds: f64,
    /// Benchmarks for which there was no time.
    unreached: Vec<usize>,
}

impl<'a> Processes<'a> {
    /// Benchmarks that are left out go to `left_out`.
    pub(super) fn new(
        copies: &'a Copies,
        harnesses: [Vec<Harness>; 2],
        left_out: &mut BTreeSet<String>,
    ) -> Self {
        let has_twins = |harnesses: &Vec<Harness>| {
            let mut seen = BTreeSet::new();
            let mut ids = harnesses.iter().flat_map(|harness| &harness.ids);
            !ids.all(|id| seen.insert(id))
        };
        let named_apart = harnesses.iter().any(has_twins);
        let mut benchmarks: Vec<ListedBenchmark> = Vec::new();
        for (side, harnesses) in harnesses.iter().enumerate() {
            for (index, harness) in harnesses.iter().enumerate() {
                let (plain, others): (Vec<&String>, _) =
                    harness.ids.iter().partition(|id| is_plain(id));
                left_out.extend(others.into_iter().map(|id: &String| {
                    let id = visible(id);
                    format!("left out: {id}: its name has a character that cannot be shown")
                }));
                for own in plain {
                    let id = if named_apart {
                        format!("{}/{own}", harness.executable.name)
                    } else {
                        own.clone()
                    };
                    let known = benchmarks.iter().position(|benchmark| benchmark.id == id);
                    let at = known.unwrap_or_else(|| {
                        benchmarks.push(ListedBenchmark {
                            id,
                            own: own.clone(),
                            of: [None, None],
                            slow: 0.0,
                            patience: 0.0,
                        });
                        benchmarks.len() - 1
                    });
                    benchmarks[at].of[side] = Some(index);
                }
            }
        }
        Self {
            copies,
            harnesses,
            benchmarks,
        }
    }

    /// Runs a benchmark on one side; `None` where the side does not have it.
    fn run_on(
        &self,
        side: usize,
        benchmark: &ListedBenchmark,
        home: &Path,
        option: Option<&str>,
        limit: Duration,
    ) -> anyhow::Result<Option<Output>> {
        let Some(index) = benchmark.of[side] else {
            return Ok(None);
        };
        self.copies.bring(Some(side))?;
        let mut command = self.harnesses[side][index].command(&benchmark.own, home);
        child::output(command.args(option), limit).map(Some)
    }

    /// Gives each side a new order of functions for this pair, which its results keep, before either runs.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn renew(&self, pair: &Pair<'_>) -> anyhow::Result<()> {
        let is_wanted = |id: &String| pair.only.is_none_or(|only| only.contains(id));
        for (side, harnesses) in self.harnesses.iter().enumerate() {
            self.copies.bring(Some(side))?;
            let seed = seed();
            for (index, harness) in harnesses.iter().enumerate() {
                let mut its = (self.benchmarks.iter()).filter(|it| it.of[side] == Some(index));
                if !its.any(|benchmark| is_wanted(&benchmark.id)) {
                    continue;
                }
                (harness.executable).renew(pair.number, side, seed, &pair.homes[side])?;
                if harness.executable.order.is_some() {
                    // The first process waits for the pages of the new file.
                    let mut start = harness.executable.command();
                    child::output(start.args(["--list", SELECTS_NOTHING]), pair.limit)?;
                }
            }
        }
        Ok(())
    }

    /// Runs one iteration of each benchmark, as a test, sorts the slow ones to the end, and finds how
    /// long a process may take.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn sort_by_time(&mut self, pair: &Pair<'_>) -> anyhow::Result<()> {
        /// Seconds from which on one that is slow is run after the others.
        const LONG: f64 = 0.1;
        /// Criterion takes ten samples of an iteration or more, after a warm-up, on each side.
        const ITERATIONS: f64 = 22.0;
        /// Seconds that a process may take beyond twice those that its options and its iterations explain.
        const PATIENCE: f64 = 4.0;
        let home = pair.homes[0].join("tested");
        for at in 0..self.benchmarks.len() {
            let start = Instant::now();
            let tested = self.run_on(0, &self.benchmarks[at], &home, Some("--test"), pair.limit)?;
            let seconds = start.elapsed().as_secs_f64();
            // If it fails here, the pair reports it.
            let benchmark = &mut self.benchmarks[at];
            if tested.is_some_and(|output| output.succeeded()) && seconds > LONG {
                benchmark.slow = ITERATIONS * seconds;
            }
            let sides = benchmark.of.iter().zip(&self.harnesses);
            let asked =
                sides.filter_map(|(index, harnesses)| Some(harnesses[(*index)?].asked_seconds()));
            benchmark.patience = PATIENCE + benchmark.slow + 2.0 * asked.fold(0.0, f64::max);
        }
        self.benchmarks.sort_by(|a, b| a.slow.total_cmp(&b.slow));
        Ok(())
    }

    /// Runs one benchmark on each side, each for the time `limit` at most. The results go to `sides`. If it
    /// `is_run_again` should it take longer, the first side that does ends the run.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn run_one(
        &self,
        at: usize,
        pair: &Pair<'_>,
        limit: Duration,
        is_run_again: bool,
        sides: &mut [Baseline; 2],
    ) -> anyhow::Result<Ran> {
        let first = (pair.number as usize + at) % 2;
        // A time counts only if the other process has a result too.
        let (mut results, mut late, mut is_quick) = (Vec::new(), None, false);
        for side in [first, 1 - first] {
            match self.run_side(side, at, pair, limit, &mut sides[side])? {
                Ended::NotStarted => {}
                Ended::WithResult(sampled, seconds) => {
                    is_quick |= seconds < limit.as_secs_f64() / 2.0;
                    results.push((side, sampled));
                }
                Ended::TooLong if is_run_again => return Ok(Ran::TooLong),
                Ended::TooLong => late = Some(side),
                Ended::Failed(how) => {
                    return Ok(Ran::Failed(format!("{} {how}", pair.run(side))));
                }
            }
        }
        if let Some(side) = late {
            return Ok(if is_quick {
                Ran::Failed(format!(
                    "{} took {:.0} s, more than twice as long as the other side, and was ended",
                    pair.run(side),
                    limit.as_secs_f64()
                ))
            } else {
                Ran::TooLong
            });
        }
        for (side, sampled) in results {
            let id = self.benchmarks[at].id.clone();
            sides[side].results.insert(id, *sampled);
        }
        Ok(Ran::Completely)
    }

    /// Runs one benchmark on one side. What its process left besides the result goes to `baseline`.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn run_side(
        &self,
        side: usize,
        at: usize,
        pair: &Pair<'_>,
        limit: Duration,
        baseline: &mut Baseline,
    ) -> anyhow::Result<Ended> {
        let benchmark = &self.benchmarks[at];
        // A folder of its own: Criterion stores ids that differ in some characters in one.
        let home = pair.homes[side].join(at.to_string());
        let start = Instant::now();
        let Some(output) = self.run_on(side, benchmark, &home, None, limit)? else {
            return Ok(Ended::NotStarted);
        };
        if output.status.is_none() && limit < pair.limit {
            // It may have left something.
            let _ = fs::remove_dir_all(&home);
            return Ok(Ended::TooLong);
        }
        let seconds = start.elapsed().as_secs_f64();
        match result(&output, &home, &benchmark.own, baseline) {
            Ok(sampled) => Ok(Ended::WithResult(Box::new(sampled), seconds)),
            // While the files that it printed to take their room.
            Err(how) => check_temporary().map(|()| Ended::Failed(how)),
        }
    }

    /// After how long a process of the first pair is ended, and whether its benchmark is then run again,
    /// for twice as long.
    ///
    /// A benchmark that sets its own measurement time must not take the time of the others.
    fn patience(&self, at: usize, pair: &Pair<'_>, retries: Option<Instant>) -> (Duration, bool) {
        /// Seconds that a process may take without a budget, unless its iterations explain more.
        const LONGEST: f64 = 10.0;
        if pair.number > 1 {
            return (pair.limit, false);
        }
        let patience = self.benchmarks[at].patience;
        let limit = Duration::try_from_secs_f64(patience).unwrap_or(pair.limit);
        let limit = limit.min(pair.limit);
        let is_run_again = match retries {
            // This process, and then one of either side.
            Some(retries) => Instant::now() + 5 * limit <= retries,
            None => 2.0 * patience <= LONGEST,
        };
        (limit, is_run_again)
    }

    /// Drops the benchmarks that the first pair did not reach, and names them.
    fn leave_out(&mut self, unreached: &[usize]) -> Option<String> {
        let benchmarks = unreached.iter().map(|at| &self.benchmarks[*at]);
        let slowest = benchmarks.max_by(|a, b| a.slow.total_cmp(&b.slow))?;
        let takes = if slowest.slow > 0.0 {
            format!(", a pair of which takes {:.0} s or more", slowest.slow)
        } else {
            String::new()
        };
        let remark = format!(
            "the budget did not reach {}, such as {}{takes}: raise --budget, or filter them",
            units::counted(unreached.len(), "benchmark"),
            slowest.id,
        );
        let mut positions = 0..;
        let is_reached =
            |_: &ListedBenchmark| positions.next().is_some_and(|at| !unreached.contains(&at));
        self.benchmarks.retain(is_reached);
        Some(remark)
    }
}

impl Sampling for Processes<'_> {
    fn is_brief(&self) -> bool {
        true
    }

    fn most_pairs(&self) -> u32 {
        let harnesses = self.harnesses.iter().flatten();
        most_pairs(harnesses.map(|harness| &harness.executable))
    }

    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64> {
        self.renew(pair)?;
        let start = Instant::now();
        if pair.number == 1 {
            self.sort_by_time(pair)?;
        }
        let retries = pair.until.map(|until| start + (until - start) / 4);
        let mut left = PairResults::default();
        let mut queue = VecDeque::from_iter(0..self.benchmarks.len());
        while let Some(at) = queue.pop_front() {
            let id = &self.benchmarks[at].id;
            let is_wanted = pair.only.is_none_or(|only| only.contains(id));
            if outcome.failed.contains_key(id) || !is_wanted {
                continue;
            }
            let end = Instant::now() + Duration::from_secs_f64(self.benchmarks[at].slow);
            if pair.until.is_some_and(|until| end > until) {
                left.unreached.push(at);
                continue;
            }
            match self.run_next(at, pair, retries, &mut left, outcome) {
                Ok(is_run_again) => queue.extend(is_run_again.then_some(at)),
                Err(error)
                    if child::interrupted()
                        || left.sides.iter().all(|side| side.results.is_empty()) =>
                {
                    return Err(error);
                }
                // The results of this pair so far count.
                Err(error) => {
                    outcome.end(&error);
                    break;
                }
            }
        }
        if pair.number == 1 {
            self.keep_slow_orders(outcome);
            outcome.remarks.extend(self.leave_out(&left.unreached));
        }
        for (side, baseline) in outcome.sides.iter_mut().zip(left.sides) {
            side.push(baseline);
        }
        Ok(left.seconds)
    }
}

impl Processes<'_> {
    /// Runs one benchmark of a pair. Returns whether it is run again after the others.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn run_next(
        &mut self,
        at: usize,
        pair: &Pair<'_>,
        retries: Option<Instant>,
        left: &mut PairResults,
        outcome: &mut Outcome,
    ) -> anyhow::Result<bool> {
        let (limit, is_run_again) = self.patience(at, pair, retries);
        let start = Instant::now();
        let ran = self.run_one(at, pair, limit, is_run_again, &mut left.sides);
        let id = self.benchmarks[at].id.clone();
        // A full disk fails the pair, and no benchmark.
        if !child::interrupted() && !matches!(ran, Ok(Ran::Completely | Ran::TooLong)) {
            let mut homes = pair.homes.iter();
            homes.try_for_each(|home| check_room(home))?;
            check_temporary()?;
        }
        match ran? {
            Ran::Completely => {
                let seconds = start.elapsed().as_secs_f64();
                outcome.seconds.insert(id, seconds);
                left.seconds += seconds;
            }
            Ran::TooLong => {
                let benchmark = &mut self.benchmarks[at];
                benchmark.patience *= 2.0;
                if is_run_again {
                    return Ok(true);
                }
                benchmark.slow = benchmark.slow.max(benchmark.patience);
                left.unreached.push(at);
            }
            Ran::Failed(how) => {
                let failure = format!("{id} of {how}; it is not run again");
                outcome.failures.push(failure);
                outcome.failed.insert(id, how);
            }
        }
        Ok(false)
    }

    /// Has executables keep one order of functions if links take too much of the time of the first pair.
    fn keep_slow_orders(&mut self, outcome: &mut Outcome) {
        let mut seconds = BTreeMap::<String, f64>::new();
        for benchmark in &self.benchmarks {
            let mut sides = benchmark.of.iter().zip(&self.harnesses);
            let harness = sides.find_map(|(index, harnesses)| Some(&harnesses[(*index)?]));
            let took = outcome.seconds.get(&benchmark.id);
            if let (Some(harness), Some(took)) = (harness, took) {
                *seconds.entry(harness.executable.name.clone()).or_default() += took;
            }
        }
        let harnesses = self.harnesses.iter_mut().flatten();
        let executables = harnesses.map(|harness| &mut harness.executable);
        outcome.fixed = keep_slow_orders(executables, |name| {
            seconds.get(name).copied().unwrap_or_default()
        });
    }
}

/// The result of the benchmark `own` that a process wrote to `home`; records and problems go to `side`.
///
/// # Errors
/// How it failed.
fn result(output: &Output, home: &Path, own: &str, side: &mut Baseline) -> Result<Sampled, String> {
    if !output.succeeded() {
        return Err(output.failure());
    }
    forget_copies(home);
    let mut left = Baseline::read(home, NEW);
    side.runs.extend(left.runs);
    match (left.results.remove(own), left.problems.first()) {
        (Some(mut sampled), _) => {
            side.problems.extend(left.problems);
            sampled.is_count = sampled.clock.is_none() && prints_count(&output.stdout);
            Ok(sampled)
        }
        (None, Some(problem)) => Err(format!("left a result that cannot be read: {problem}")),
        (None, None) => Err(output.failure()),
    }
}

/// Whether Criterion printed the result with a unit that is not one of time. Its files name no unit.
fn prints_count(stdout: &str) -> bool {
    let result = stdout.split_once(RESULT).map(|(_, result)| result);
    let unit = result.and_then(|result| result.split([' ', ']']).nth(1));
    unit.is_some_and(|unit| !["ps", "ns", "µs", "us", "ms", "s"].contains(&unit))
}

/// Removes Criterion's copies of the newest result, because hundreds of pairs would fill a disk. Copies
/// that cannot be removed do no harm.
fn forget_copies(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_copy = entry.file_name() == "base"
            && path.join(BENCHMARK).is_file()
            && path.with_file_name(NEW).is_dir();
        if is_copy {
            let _ = fs::remove_dir_all(path);
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            forget_copies(&path);
        }
    }
}
