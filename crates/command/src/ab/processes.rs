//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ab::child::{self, Output};
use crate::ab::executable::Executable;
use crate::ab::pairs::{Outcome, Pair, Sampling, left_in, no_room};
use crate::ab::worktree::Copies;
use crossover_results::store::baseline::{Baseline, Sampled};
use crossover_results::store::layout::{BENCHMARK, NEW};
use crossover_results::store::whole_file::try_to_write;
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
}

/// The filter that selects one benchmark.
pub(super) fn pattern(id: &str) -> String {
    format!("^{}$", regex::escape(id))
}

/// The benchmarks of both sides.
pub(super) struct Processes<'a> {
    copies: &'a Copies,
    harnesses: [Vec<Harness>; 2],
    benchmarks: Vec<Benchmark>,
}

struct Benchmark {
    /// As it is shown.
    id: String,
    /// As its executable knows it.
    own: String,
    /// Which of a side's executables has it.
    of: [Option<usize>; 2],
    /// Seconds that a pair of it takes at least, if an iteration takes long; known from the first pair
    /// on.
    slow: f64,
}

impl<'a> Processes<'a> {
    pub(super) fn new(copies: &'a Copies, harnesses: [Vec<Harness>; 2]) -> Self {
        let has_twins = |harnesses: &Vec<Harness>| {
            let mut seen = BTreeSet::new();
            let mut ids = harnesses.iter().flat_map(|harness| &harness.ids);
            !ids.all(|id| seen.insert(id))
        };
        let named_apart = harnesses.iter().any(has_twins);
        let mut benchmarks: Vec<Benchmark> = Vec::new();
        for (side, harnesses) in harnesses.iter().enumerate() {
            for (of, harness) in harnesses.iter().enumerate() {
                for own in &harness.ids {
                    let id = match named_apart {
                        true => format!("{}/{own}", harness.executable.name),
                        false => own.clone(),
                    };
                    let known = benchmarks.iter().position(|benchmark| benchmark.id == id);
                    let at = known.unwrap_or_else(|| {
                        benchmarks.push(Benchmark {
                            id,
                            own: own.clone(),
                            of: [None, None],
                            slow: 0.0,
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

    /// Whether both sides have one of the benchmarks.
    pub(super) fn any_shared(&self) -> bool {
        let mut benchmarks = self.benchmarks.iter();
        benchmarks.any(|benchmark| benchmark.of.iter().all(Option::is_some))
    }

    /// Runs a benchmark on one side; `None` where the side does not have it.
    fn run_on(
        &self,
        side: usize,
        benchmark: &Benchmark,
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

    /// Runs one iteration of each benchmark, as a test, and sorts the slow ones to the end.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn sort_by_time(&mut self, pair: &Pair<'_>) -> anyhow::Result<()> {
        /// Seconds from which on one that is slow is run after the others.
        const LONG: f64 = 0.1;
        /// Criterion takes ten samples of an iteration or more, after a warm-up, on each side.
        const ITERATIONS: f64 = 22.0;
        let home = pair.homes[0].join("tested");
        for at in 0..self.benchmarks.len() {
            let start = Instant::now();
            let tested = self.run_on(0, &self.benchmarks[at], &home, Some("--test"), pair.limit)?;
            let seconds = start.elapsed().as_secs_f64();
            // If it fails here, the pair reports it.
            if tested.is_some_and(|output| output.succeeded()) && seconds > LONG {
                self.benchmarks[at].slow = ITERATIONS * seconds;
            }
        }
        self.benchmarks.sort_by(|a, b| a.slow.total_cmp(&b.slow));
        Ok(())
    }

    /// Runs one benchmark on each side. What the processes left goes to `sides`.
    ///
    /// # Errors
    /// As [`Sampling::run`]; within, how a process failed.
    fn run_one(
        &self,
        at: usize,
        pair: &Pair<'_>,
        sides: &mut [Baseline; 2],
    ) -> anyhow::Result<Result<(), String>> {
        let benchmark = &self.benchmarks[at];
        let order = match (pair.number as usize + at).is_multiple_of(2) {
            true => [0, 1],
            false => [1, 0],
        };
        // Folders of its own: Criterion stores ids that differ in some characters in one.
        let homes = pair.homes.each_ref().map(|home| home.join(at.to_string()));
        // A time counts only if the other process has a result too.
        let mut left = Vec::new();
        for side in order {
            let ran = self.run_on(side, benchmark, &homes[side], None, pair.limit)?;
            let Some(output) = ran else { continue };
            match result(&output, &homes[side], &benchmark.own, &mut sides[side]) {
                Ok(sampled) => left.push((side, sampled)),
                Err(how) => return Ok(Err(format!("{} {how}", pair.run(side)))),
            }
        }
        for (side, sampled) in left {
            sides[side].results.insert(benchmark.id.clone(), sampled);
        }
        Ok(Ok(()))
    }
}

impl Sampling for Processes<'_> {
    fn is_brief(&self) -> bool {
        true
    }

    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64> {
        for harness in self.harnesses.iter().flatten() {
            harness.executable.read_anew();
        }
        if pair.number == 1 && pair.until.is_some() {
            self.sort_by_time(pair)?;
        }
        let (mut sides, mut seconds) = (<[Baseline; 2]>::default(), 0.0);
        let mut unreached = Vec::new();
        for (at, benchmark) in self.benchmarks.iter().enumerate() {
            let id = &benchmark.id;
            let is_wanted = pair.only.is_none_or(|only| only.contains(id));
            if outcome.failed.contains_key(id) || !is_wanted {
                continue;
            }
            let start = Instant::now();
            let end = start + Duration::from_secs_f64(benchmark.slow);
            if pair.until.is_some_and(|until| end > until) {
                unreached.push(benchmark);
                continue;
            }
            match self.run_one(at, pair, &mut sides)? {
                Ok(()) => {
                    let took = start.elapsed().as_secs_f64();
                    outcome.seconds.insert(id.clone(), took);
                    seconds += took;
                }
                Err(how) => {
                    let full = pair.homes.iter().find_map(|home| try_to_write(home).err());
                    if let Some(why) = full {
                        // The results of this pair so far count.
                        let results = pair.homes[0].parent().unwrap_or(&pair.homes[0]);
                        let failure =
                            format!("no more pairs were run: {}: {why}", no_room(results));
                        outcome.failures.push(failure);
                        outcome.over = true;
                        break;
                    }
                    let failure = format!("{id} of {how}; it is not run again");
                    outcome.failures.push(failure);
                    outcome.failed.insert(id.clone(), how);
                }
            }
        }
        if let (Some(slowest), 1) = (unreached.last(), pair.number) {
            outcome.remarks.push(format!(
                "the budget did not reach {}, such as {}{}: raise --budget, or filter them",
                units::counted(unreached.len(), "benchmark"),
                slowest.id,
                match slowest.slow > 0.0 {
                    true => format!(", a pair of which takes {:.0} s or more", slowest.slow),
                    false => String::new(),
                }
            ));
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
    let mut left = left_in(home);
    side.runs.extend(left.runs);
    match (left.results.remove(own), left.problems.first()) {
        (Some(sampled), _) => {
            side.problems.extend(left.problems);
            Ok(sampled)
        }
        (None, Some(problem)) => Err(format!("left a result that cannot be read: {problem}")),
        (None, None) => Err(output.failure()),
    }
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
