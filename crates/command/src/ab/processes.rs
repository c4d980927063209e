//! Pairs of short processes, each of one benchmark: how sides are run that do not take turns sample
//! by sample. The two processes of a pair follow each other at once, in the order A B B A from pair
//! to pair. A pair of all benchmarks is complete before the next begins, so those of one benchmark
//! are spread over the whole time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::ab::child::{self, Output};
use crate::ab::criterion_options::Harness;
use crate::ab::worktree::Place;
use crossover_results::store::baseline::{Baseline, Sampled};
use crossover_results::store::layout::{BENCHMARK, NEW};
use crossover_results::store::source::Source;
use crossover_results::store::whole_file::try_to_write;

/// The benchmarks of both sides.
pub(super) struct Processes {
    harnesses: [Vec<Harness>; 2],
    benchmarks: Vec<Benchmark>,
    /// Those that failed, and how; they are not run again.
    failed: BTreeMap<String, String>,
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
    /// Why nothing more can be written.
    pub(super) full: Option<io::Error>,
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
            failed: BTreeMap::new(),
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

    /// Benchmarks that are not run any more, and how they failed.
    pub(super) fn failed(&self) -> &BTreeMap<String, String> {
        &self.failed
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
            let id = &benchmark.id;
            !self.failed.contains_key(id) && only.is_none_or(|only| only.contains(id))
        });
        let mut failed = Vec::new();
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
            // Folders of its own: Criterion stores ids that differ in some characters in one.
            let own_homes = homes.each_ref().map(|home| home.join(i.to_string()));
            let mut outputs = Vec::new();
            for side in sides {
                if let Some(of) = benchmark.of[side] {
                    place.bring(Some(side))?;
                    let harness = &self.harnesses[side][of];
                    let mut command = harness.command(&benchmark.own, &own_homes[side]);
                    let output = child::output(&mut command, limits.process)?;
                    let succeeded = output.succeeded();
                    outputs.push((side, output));
                    if !succeeded {
                        break;
                    }
                }
            }
            ran.seconds
                .insert(benchmark.id.clone(), start.elapsed().as_secs_f64());
            // Nothing counts that was measured against a process that failed.
            let (mut left, mut how) = (Vec::new(), None);
            for (side, output) in outputs {
                match result(
                    &output,
                    &own_homes[side],
                    &benchmark.own,
                    &mut ran.sides[side],
                ) {
                    Ok(sampled) => left.push((side, sampled)),
                    Err(failure) => {
                        how.get_or_insert(format!("run {}{pair} {failure}", ['a', 'b'][side]));
                    }
                }
            }
            if let Some(how) = how {
                ran.full = homes.iter().find_map(|home| try_to_write(home).err());
                if ran.full.is_some() {
                    break;
                }
                failed.push((benchmark.id.clone(), how));
            } else {
                for (side, sampled) in left {
                    let results = &mut ran.sides[side].results;
                    results.insert(benchmark.id.clone(), sampled);
                }
            }
        }
        let failure = |(id, how): &(String, String)| format!("{id} of {how}; it is not run again");
        ran.failures.extend(failed.iter().map(failure));
        self.failed.extend(failed);
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
