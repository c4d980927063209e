//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::ab::child;
use crate::ab::criterion_options::Harness;
use crate::ab::worktree::Place;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::{BENCHMARK, NEW};
use crossover_results::store::source::Source;

/// The benchmarks of both sides.
pub(super) struct Processes {
    harnesses: [Vec<Harness>; 2],
    benchmarks: Vec<Benchmark>,
    /// Whether several executables of a side have a benchmark of one name: all names then begin
    /// with that of the executable.
    named_apart: bool,
    /// Those that failed are not run again.
    failed: BTreeSet<String>,
}

struct Benchmark {
    /// As it is shown.
    id: String,
    /// As its executable knows it.
    own: String,
    /// Which of a side's executables has it.
    of: [Option<usize>; 2],
}

/// What became of a pair.
#[derive(Default)]
pub(super) struct Ran {
    /// A sentence each.
    pub(super) failures: Vec<String>,
    /// How long each benchmark took, both sides together.
    pub(super) seconds: BTreeMap<String, f64>,
    /// Benchmarks that the time did not reach.
    pub(super) unreached: usize,
    /// What each side left.
    pub(super) sides: [Baseline; 2],
}

impl Processes {
    pub(super) fn new(harnesses: [Vec<Harness>; 2]) -> Self {
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
            harnesses,
            benchmarks,
            named_apart,
            failed: BTreeSet::new(),
        }
    }

    /// Benchmarks that both sides have.
    pub(super) fn shared(&self) -> impl Iterator<Item = &str> {
        let shared = self
            .benchmarks
            .iter()
            .filter(|benchmark| benchmark.of.iter().all(Option::is_some));
        shared.map(|benchmark| benchmark.id.as_str())
    }

    /// Whether it is not run any more.
    pub(super) fn has_failed(&self, id: &str) -> bool {
        self.failed.contains(id)
    }

    /// Whether a side has none.
    pub(super) fn is_empty(&self, side: usize) -> bool {
        self.benchmarks
            .iter()
            .all(|benchmark| benchmark.of[side].is_none())
    }

    /// Runs another pair: of all benchmarks, or of these; none that failed, and no further one
    /// `until` has come. Results go to the folders `homes`.
    ///
    /// # Errors
    /// An interrupt, or that a process cannot be started.
    pub(super) fn run(
        &mut self,
        pair: u32,
        homes: &[PathBuf; 2],
        only: Option<&BTreeSet<String>>,
        place: &Place,
        limits: Limits,
    ) -> anyhow::Result<Ran> {
        let mut ran = Ran::default();
        for harness in self.harnesses.iter().flatten() {
            harness.executable.read_anew();
        }
        let wanted = self.benchmarks.iter().enumerate().filter(|(_, benchmark)| {
            !self.has_failed(&benchmark.id) && only.is_none_or(|only| only.contains(&benchmark.id))
        });
        let (mut failed, mut left) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (i, benchmark) in wanted {
            if limits.until.is_some_and(|until| Instant::now() > until) {
                ran.unreached += 1;
                continue;
            }
            let start = Instant::now();
            let sides = match (pair as usize + i).is_multiple_of(2) {
                true => [0, 1],
                false => [1, 0],
            };
            for side in sides {
                let Some(of) = benchmark.of[side] else {
                    continue;
                };
                let harness = &self.harnesses[side][of];
                let home = self.home(&homes[side], harness);
                place.bring(Some(side))?;
                let mut command = harness.command(&benchmark.own, &home);
                let output = child::output(&mut command, limits.process)?;
                if !output.succeeded() {
                    failed.push((&benchmark.id, side, output.failure()));
                    break;
                }
                left[side].push(&benchmark.id);
            }
            ran.seconds
                .insert(benchmark.id.clone(), start.elapsed().as_secs_f64());
        }
        for side in [0, 1] {
            ran.sides[side] = self.read(side, &homes[side]);
            let there = &ran.sides[side].results;
            let without = left[side].iter().filter(|id| !there.contains_key(**id));
            let how = "left no result in CRITERION_HOME";
            failed.extend(without.map(|id| (*id, side, how.to_owned())));
        }
        let failure = |(id, side, how): &(&String, usize, String)| {
            format!(
                "{id} of run {}{pair} {how}; it is not run again",
                ['a', 'b'][*side]
            )
        };
        ran.failures.extend(failed.iter().map(failure));
        let failed: Vec<String> = failed.into_iter().map(|(id, ..)| id.clone()).collect();
        self.failed.extend(failed);
        Ok(ran)
    }

    fn home(&self, home: &Path, harness: &Harness) -> PathBuf {
        match self.named_apart {
            true => home.join(&harness.executable.name),
            false => home.to_owned(),
        }
    }

    /// What a side left in `home`.
    fn read(&self, side: usize, home: &Path) -> Baseline {
        forget_copies(home);
        let read = |root: PathBuf| {
            Baseline::read(&Source {
                root,
                baseline: NEW.to_owned(),
                label: String::new(),
            })
        };
        if !self.named_apart {
            return read(home.to_owned());
        }
        let mut all = Baseline::default();
        for harness in &self.harnesses[side] {
            all.absorb(read(self.home(home, harness)), &harness.executable.name);
        }
        all
    }
}

/// How long things may take.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// A process.
    pub(super) process: Duration,
    /// When no further one is started.
    pub(super) until: Option<Instant>,
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
