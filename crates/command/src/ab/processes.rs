//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ab::child::{self, Output};
use crate::ab::criterion_options::Harness;
use crate::ab::pairs::{Pair, Ran, Sampling, no_room};
use crate::ab::worktree::Place;
use crossover_results::store::baseline::{Baseline, Sampled};
use crossover_results::store::layout::{BENCHMARK, NEW};
use crossover_results::store::source::Source;
use crossover_results::store::whole_file::try_to_write;

/// The benchmarks of both sides.
pub(super) struct Processes<'a> {
    place: &'a Place,
    harnesses: [Vec<Harness>; 2],
    benchmarks: Vec<Benchmark>,
    /// Those that failed are not run again.
    failed: BTreeSet<String>,
    /// The benchmarks that one iteration of takes long, and how many seconds a pair of it takes at
    /// least; known from the first pair on.
    slow: Option<BTreeMap<usize, f64>>,
}

struct Benchmark {
    /// As it is shown.
    id: String,
    /// As its executable knows it.
    own: String,
    /// Which of a side's executables has it.
    of: [Option<usize>; 2],
}

impl<'a> Processes<'a> {
    pub(super) fn new(place: &'a Place, harnesses: [Vec<Harness>; 2]) -> Self {
        let has_twins = |harnesses: &Vec<Harness>| {
            let mut seen = BTreeSet::new();
            let mut ids = harnesses.iter().flat_map(|harness| &harness.ids);
            !ids.all(|id| seen.insert(id))
        };
        let named_apart = harnesses.iter().any(has_twins);
        let mut benchmarks: Vec<Benchmark> = Vec::new();
        let mut known = BTreeMap::new();
        for (side, harnesses) in harnesses.iter().enumerate() {
            for (of, harness) in harnesses.iter().enumerate() {
                for own in &harness.ids {
                    let id = match named_apart {
                        true => format!("{}/{own}", harness.executable.name),
                        false => own.clone(),
                    };
                    let at = *known.entry(id.clone()).or_insert_with(|| {
                        benchmarks.push(Benchmark {
                            id,
                            own: own.clone(),
                            of: [None, None],
                        });
                        benchmarks.len() - 1
                    });
                    benchmarks[at].of[side] = Some(of);
                }
            }
        }
        Self {
            place,
            harnesses,
            benchmarks,
            failed: BTreeSet::new(),
            slow: None,
        }
    }

    /// The number of benchmarks that both sides have.
    pub(super) fn shared(&self) -> usize {
        let is_shared = |benchmark: &&Benchmark| benchmark.of.iter().all(Option::is_some);
        self.benchmarks.iter().filter(is_shared).count()
    }

    /// Whether a side has none.
    pub(super) fn is_empty(&self, side: usize) -> bool {
        self.benchmarks
            .iter()
            .all(|benchmark| benchmark.of[side].is_none())
    }

    /// Runs one iteration of each benchmark, as a test, to learn which are slow.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn find_slow(&self, pair: &Pair<'_>) -> anyhow::Result<BTreeMap<usize, f64>> {
        /// Seconds from which on one that is slow is run after the others.
        const LONG: f64 = 0.1;
        /// Criterion takes ten samples of an iteration or more, after a warm-up, on each side.
        const ITERATIONS: f64 = 22.0;
        let mut slow = BTreeMap::new();
        for (i, benchmark) in self.benchmarks.iter().enumerate() {
            let Some(of) = benchmark.of[0].filter(|_| self.is_wanted(benchmark, pair)) else {
                continue;
            };
            self.place.bring(Some(0))?;
            let home = pair.homes[0].join("tested");
            let mut command = self.harnesses[0][of].command(&benchmark.own, &home);
            let start = Instant::now();
            let output = child::output(command.arg("--test"), pair.limit)?;
            let seconds = start.elapsed().as_secs_f64();
            // One that fails here is told by the pair.
            if output.succeeded() && seconds > LONG {
                slow.insert(i, ITERATIONS * seconds);
            }
        }
        Ok(slow)
    }

    fn is_wanted(&self, benchmark: &Benchmark, pair: &Pair<'_>) -> bool {
        let id = &benchmark.id;
        !self.failed.contains(id) && pair.only.is_none_or(|only| only.contains(id))
    }

    /// Runs one benchmark on each side, and returns how long that took. What the processes left goes
    /// to `sides`.
    ///
    /// # Errors
    /// As [`Sampling::run`]; within, how a process failed.
    fn run_one(
        &self,
        i: usize,
        pair: &Pair<'_>,
        sides: &mut [Baseline; 2],
    ) -> anyhow::Result<Result<f64, String>> {
        let benchmark = &self.benchmarks[i];
        let start = Instant::now();
        let order = match (pair.number as usize + i).is_multiple_of(2) {
            true => [0, 1],
            false => [1, 0],
        };
        // Folders of its own: Criterion stores ids that differ in some characters in one.
        let homes = pair.homes.each_ref().map(|home| home.join(i.to_string()));
        let mut outputs = Vec::new();
        for side in order {
            let Some(of) = benchmark.of[side] else {
                continue;
            };
            self.place.bring(Some(side))?;
            let mut command = self.harnesses[side][of].command(&benchmark.own, &homes[side]);
            let output = child::output(&mut command, pair.limit)?;
            if !output.succeeded() {
                return Ok(Err(format!("{} {}", pair.run(side), output.failure())));
            }
            outputs.push((side, output));
        }
        let seconds = start.elapsed().as_secs_f64();
        // Nothing counts that was measured against a process without a result.
        let mut left = Vec::new();
        for (side, output) in outputs {
            match result(&output, &homes[side], &benchmark.own, &mut sides[side]) {
                Ok(sampled) => left.push((side, sampled)),
                Err(how) => return Ok(Err(format!("{} {how}", pair.run(side)))),
            }
        }
        for (side, sampled) in left {
            sides[side].results.insert(benchmark.id.clone(), sampled);
        }
        Ok(Ok(seconds))
    }
}

impl Sampling for Processes<'_> {
    fn is_brief(&self) -> bool {
        true
    }

    fn run(&mut self, pair: &Pair<'_>) -> anyhow::Result<Ran> {
        let mut ran = Ran::default();
        for harness in self.harnesses.iter().flatten() {
            harness.executable.read_anew();
        }
        let slow = match (self.slow.take(), pair.until) {
            (Some(slow), _) => slow,
            (None, Some(_)) => self.find_slow(pair)?,
            (None, None) => BTreeMap::new(),
        };
        let mut order: Vec<usize> = (0..self.benchmarks.len()).collect();
        let seconds = |i: &usize| slow.get(i).copied().unwrap_or(0.0);
        order.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        for i in order {
            let id = &self.benchmarks[i].id;
            if !self.is_wanted(&self.benchmarks[i], pair) {
                continue;
            }
            let end = Instant::now() + Duration::from_secs_f64(seconds(&i));
            if pair.until.is_some_and(|until| end > until) {
                ran.unreached.push((id.clone(), seconds(&i)));
                continue;
            }
            match self.run_one(i, pair, &mut ran.sides)? {
                Ok(seconds) => {
                    ran.seconds.insert(id.clone(), seconds);
                }
                Err(how) => {
                    let full = pair.homes.iter().find_map(|home| try_to_write(home).err());
                    if let Some(why) = full {
                        let results = pair.homes[0].parent().unwrap_or(&pair.homes[0]);
                        let why = no_room(results, &why);
                        ran.failures.push(format!("no more pairs were run: {why}"));
                        ran.over = true;
                        break;
                    }
                    ran.failures
                        .push(format!("{id} of {how}; it is not run again"));
                    ran.failed.insert(id.clone(), how);
                }
            }
        }
        self.slow = Some(slow);
        self.failed.extend(ran.failed.keys().cloned());
        Ok(ran)
    }
}

/// What a process left of its benchmark `own` in `home`; what else there is to know goes to `side`.
///
/// # Errors
/// How it failed.
fn result(output: &Output, home: &Path, own: &str, side: &mut Baseline) -> Result<Sampled, String> {
    if !output.succeeded() {
        return Err(output.failure());
    }
    forget_copies(home);
    let mut left = Baseline::read(&Source {
        root: home.to_owned(),
        baseline: NEW.to_owned(),
        label: String::new(),
    });
    side.runs.extend(left.runs);
    match (left.results.remove(own), left.problems.first()) {
        (Some(sampled), _) => {
            side.problems.extend(left.problems);
            Ok(sampled)
        }
        (None, Some(problem)) => Err(format!("left a result that cannot be read: {problem}")),
        (None, None) => Err(output.without_result()),
    }
}

/// Removes Criterion's copies of the newest result, which hundreds of pairs would fill a disk with.
/// What cannot be removed does no harm.
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
