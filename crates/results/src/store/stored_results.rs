//! All results of a results root or of the record of a machine, in one flat list. Curves and machines are
//! views of it: [`MachineResults`](crate::store::machine_results::MachineResults). A run reads it once and adds its
//! own results.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;

use rayon::prelude::*;

use crate::model::record::{RunRecord, Verified};
use crate::store::baseline::Baseline;
use crate::store::curves::Benchmark;
use crate::store::layout::NEW;
use crate::store::profiles::{self, Profiled};
use crate::store::runs;
use crate::store::whole_file::Unreadable;
use crossover_words::units::counted;

/// Groups that the suite had in earlier versions. Their names are not used again.
const REMOVED_GROUPS: [&str; 1] = ["nested_sine_f64"];

/// The benchmarks, with the runs that measured them.
#[derive(Clone, Debug, Default)]
pub struct StoredResults {
    /// From the oldest to the newest.
    pub runs: Vec<RunRecord>,
    /// In any order. Each id is there once.
    pub benchmarks: Vec<Benchmark>,
    /// Where the time of benchmarks goes.
    pub profiles: Vec<Profiled>,
    /// Files that could not be read.
    pub problems: Vec<Unreadable>,
    /// Results that a record lacks.
    pub left_out: Vec<Unreadable>,
}

impl StoredResults {
    /// Reads everything under `root`. A root that is not there has no results.
    pub fn read(root: &Path) -> Self {
        let (runs, problems) = runs::read_all(root);
        let mut this = Self {
            runs,
            problems,
            ..Self::default()
        };
        let stored = Baseline::without_runs(root, NEW);
        let folder = |id: &str| root.join(stored.folder(id).unwrap_or(Path::new("")));
        this.problems.extend_from_slice(&stored.problems);
        let results = stored.results.par_iter();
        let results = results.map(|(id, sampled)| Benchmark::of(id, folder(id), sampled));
        for result in results.collect::<Vec<_>>() {
            match result {
                Ok(benchmark) => this.add(benchmark),
                Err(problem) => this.problems.push(problem),
            }
        }
        let (profiles, unread) = profiles::read_all(root);
        this.profiles = profiles;
        this.problems.extend(unread);
        this
    }

    /// The results with those of `run`, which is the newest and has measured `own`.
    pub fn with_run(&self, run: &RunRecord, own: &BTreeMap<String, Benchmark>) -> Self {
        let mut results = self.clone();
        results.runs.push(run.clone());
        results.benchmarks.retain(|b| !own.contains_key(&b.id));
        results.benchmarks.extend(own.values().cloned());
        // Unreadable files of an earlier result have been replaced.
        let is_replaced = |problem: &Unreadable| {
            own.values()
                .any(|b| problem.what == b.id || Path::new(&problem.what).starts_with(&b.dir))
        };
        results.problems.retain(|problem| !is_replaced(problem));
        results
    }

    /// Leaves out the groups that no longer exist, and names each one that has results.
    pub(super) fn leave_out_removed_groups(&mut self) {
        for group in REMOVED_GROUPS {
            let stays = |id: &String| id.split('/').next() != Some(group);
            let count = self.benchmarks.len();
            self.benchmarks.retain(|benchmark| benchmark.group != group);
            self.profiles.retain(|profiled| profiled.id.group != group);
            for run in &mut self.runs {
                run.groups.retain(|topic| topic.group != group);
                run.confirmations.retain(|asked| asked.group != group);
                run.planned.retain(stays);
                run.skipped.retain(|skip| stays(&skip.id));
                run.failed.retain(|failure| stays(&failure.id));
            }
            let left_out = count - self.benchmarks.len();
            if left_out > 0 {
                let results = counted(left_out, "result");
                let reason = format!("this group no longer exists; it had {results} here");
                self.problems.push(Unreadable::new(group, reason));
            }
        }
    }

    /// Adds a benchmark, unless its run says that its result must not be shown.
    pub(super) fn add(&mut self, benchmark: Benchmark) {
        match unfit(&benchmark, &self.runs) {
            Some(reason) => self.problems.push(Unreadable::new(&benchmark.id, reason)),
            None => self.benchmarks.push(benchmark),
        }
    }
}

/// Why a well-formed result must not be shown, if so.
fn unfit(benchmark: &Benchmark, runs: &[RunRecord]) -> Option<String> {
    if let Some(wrong) = benchmark.verified.as_ref().and_then(Verified::failure) {
        return Some(wrong);
    }
    // An attempt that failed later is listed among the failures and invalidates nothing. Without a
    // sidecar the run is unknown, and any failure may be this result's.
    let own = runs
        .iter()
        .find(|run| Some(&run.run) == benchmark.run.as_ref());
    let mut failed = own
        .map_or(runs, slice::from_ref)
        .iter()
        .flat_map(|run| &run.failed);
    let failure = failed.rfind(|failure| failure.id == benchmark.id)?;
    Some(format!("failed: {}", failure.error))
}
