//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ab::child::{self, Output, RESULT};
use crate::ab::executable::Executable;
use crate::ab::layout::seed;
use crate::ab::pairs::{Outcome, Pair, Sampling, check_room, check_temporary};
use crate::ab::probe::SELECTS_NOTHING;
use crate::ab::worktree::Copies;
use crossover_advice::turns::{Side, take_turns};
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
            for (of, harness) in harnesses.iter().enumerate() {
                let (plain, others): (Vec<&String>, _) =
                    harness.ids.iter().partition(|id| is_plain(id));
                left_out.extend(others.into_iter().map(|id: &String| {
                    let id = visible(id);
                    format!("left out: {id}: its name has a character that cannot be shown")
                }));
                for own in plain {
                    let id = match named_apart {
                        true => format!("{}/{own}", harness.executable.name),
                        false => own.clone(),
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
                    benchmarks[at].of[side] = Some(of);
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
        let Some(of) = benchmark.of[side] else {
            return Ok(None);
        };
        self.copies.bring(Some(side))?;
        let mut command = self.harnesses[side][of].command(&benchmark.own, home);
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
            for (of, harness) in harnesses.iter().enumerate() {
                let mut its = self.benchmarks.iter().filter(|it| it.of[side] == Some(of));
                if !its.any(|benchmark| is_wanted(&benchmark.id)) {
                    continue;
                }
                harness.executable.renew(seed, &pair.homes[side])?;
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
            let of = benchmark.of.iter().zip(&self.harnesses);
            let asked = of.filter_map(|(of, harnesses)| Some(harnesses[(*of)?].asked_seconds()));
            benchmark.patience = PATIENCE + benchmark.slow + 2.0 * asked.fold(0.0, f64::max);
        }
        self.benchmarks.sort_by(|a, b| a.slow.total_cmp(&b.slow));
        Ok(())
    }

    /// Runs one benchmark on each side, each for so long at most. What the processes left goes to
    /// `sides`. If it `is_run_again` should it take longer, the first side that does ends the run.
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
        let benchmark = &self.benchmarks[at];
        // Folders of its own: Criterion stores ids that differ in some characters in one.
        let homes = pair.homes.each_ref().map(|home| home.join(at.to_string()));
        // A time counts only if the other process has a result too.
        let (mut left, mut late) = (Vec::new(), None);
        let run = RefCell::new(|side: usize| {
            let start = Instant::now();
            let ran = self.run_on(side, benchmark, &homes[side], None, limit);
            let Some(output) = ran.map_err(Err)? else {
                return Ok(None);
            };
            if output.status.is_none() && limit < pair.limit {
                // It may have left something.
                let _ = fs::remove_dir_all(&homes[side]);
                if is_run_again {
                    return Err(Ok(Ran::TooLong));
                }
                late = Some(side);
                return Ok(None);
            }
            let seconds = start.elapsed().as_secs_f64();
            match result(&output, &homes[side], &benchmark.own, &mut sides[side]) {
                Ok(sampled) => left.push((side, sampled)),
                // While the files that it printed to take their room.
                Err(how) => {
                    let failed = || Ran::Failed(format!("{} {how}", pair.run(side)));
                    return Err(check_temporary().map(|()| failed()));
                }
            }
            Ok(Some(seconds))
        });
        let mut a = || (*run.borrow_mut())(0);
        let mut b = || (*run.borrow_mut())(1);
        // An error is what ends the run of this benchmark.
        let mut turns: [&mut dyn Side<Error = anyhow::Result<Ran>>; 2] = [&mut a, &mut b];
        if !(pair.number as usize + at).is_multiple_of(2) {
            turns.reverse();
        }
        let took = match take_turns(&mut turns, Duration::ZERO, |_| true) {
            Ok(took) => took.concat(),
            Err(end) => return end,
        };
        if let Some(side) = late {
            let is_quick = |seconds: &f64| *seconds < limit.as_secs_f64() / 2.0;
            return Ok(match took.iter().any(is_quick) {
                true => Ran::Failed(format!(
                    "{} took {:.0} s, more than twice as long as the other side, and was ended",
                    pair.run(side),
                    limit.as_secs_f64()
                )),
                false => Ran::TooLong,
            });
        }
        for (side, sampled) in left {
            sides[side].results.insert(benchmark.id.clone(), sampled);
        }
        Ok(Ran::Completely)
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
        let takes = match slowest.slow > 0.0 {
            true => format!(", a pair of which takes {:.0} s or more", slowest.slow),
            false => String::new(),
        };
        let remark = format!(
            "the budget did not reach {}, such as {}{takes}: raise --budget, or filter them",
            units::counted(unreached.len(), "benchmark"),
            slowest.id,
        );
        let mut all = 0..;
        let is_reached =
            |_: &ListedBenchmark| all.next().is_some_and(|at| !unreached.contains(&at));
        self.benchmarks.retain(is_reached);
        Some(remark)
    }
}

impl Sampling for Processes<'_> {
    fn is_brief(&self) -> bool {
        true
    }

    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64> {
        self.renew(pair)?;
        let start = Instant::now();
        if pair.number == 1 {
            self.sort_by_time(pair)?;
        }
        let retries = pair.until.map(|until| start + (until - start) / 4);
        let (mut sides, mut seconds) = (<[Baseline; 2]>::default(), 0.0);
        let (mut unreached, mut queue) =
            (Vec::new(), VecDeque::from_iter(0..self.benchmarks.len()));
        while let Some(at) = queue.pop_front() {
            let id = self.benchmarks[at].id.clone();
            let is_wanted = pair.only.is_none_or(|only| only.contains(&id));
            if outcome.failed.contains_key(&id) || !is_wanted {
                continue;
            }
            let start = Instant::now();
            let end = start + Duration::from_secs_f64(self.benchmarks[at].slow);
            if pair.until.is_some_and(|until| end > until) {
                unreached.push(at);
                continue;
            }
            let (limit, is_run_again) = self.patience(at, pair, retries);
            let room = || {
                let mut homes = pair.homes.iter();
                homes.try_for_each(|home| check_room(home))?;
                check_temporary()
            };
            let failed = match self.run_one(at, pair, limit, is_run_again, &mut sides) {
                Ok(Ran::Completely) => {
                    let took = start.elapsed().as_secs_f64();
                    outcome.seconds.insert(id, took);
                    seconds += took;
                    continue;
                }
                Ok(Ran::TooLong) => {
                    let benchmark = &mut self.benchmarks[at];
                    benchmark.patience *= 2.0;
                    if is_run_again {
                        queue.push_back(at);
                    } else {
                        benchmark.slow = benchmark.slow.max(benchmark.patience);
                        unreached.push(at);
                    }
                    continue;
                }
                Ok(Ran::Failed(how)) => room().map(|()| how),
                Err(error) if child::interrupted() => return Err(error),
                Err(error) => room().and(Err(error)),
            };
            match failed {
                Ok(how) => {
                    let failure = format!("{id} of {how}; it is not run again");
                    outcome.failures.push(failure);
                    outcome.failed.insert(id, how);
                }
                Err(error) if sides.iter().all(|side| side.results.is_empty()) => {
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
            outcome.remarks.extend(self.leave_out(&unreached));
        }
        for (side, baseline) in outcome.sides.iter_mut().zip(sides) {
            side.push(baseline);
        }
        Ok(seconds)
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
