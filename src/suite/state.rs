//! What a run knows: the state of the whole, of a group, and of the benchmark that is being measured.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::time::Duration;

use criterion::BenchmarkId;

use crate::suite::account::Spent;
use crate::suite::arguments::Arguments;
use crate::suite::confirm::driver::Confirming;
use crate::suite::group::{AnyGroup, Inputs, Row};
use crate::suite::host::Host;
use crate::suite::journal::Journal;
use crate::suite::pace::Pace;
use crate::suite::profiles::Profiles;
use crate::suite::progress::Progress;
use crate::suite::sampler::Timed;
use crate::suite::sampling_plan::{Sampling, SamplingPlan};
use crate::suite::turns::Turns;
use crate::timing::Doubt;
use crossover_machine::load::Load;
use crossover_protocol::settings::Settings;
use crossover_results::store::curves::Benchmark;
use crossover_results::store::folder::BenchmarkFolder;

/// The one owner of a run's state, except for Criterion itself.
pub(super) struct Run {
    pub(super) settings: Settings,
    pub(super) arguments: Arguments,
    pub(super) sampling: SamplingPlan,
    pub(super) machine: Host,
    /// Where another process takes turns with this one.
    pub(super) turns: Option<Turns>,
    /// What happened so far.
    pub(super) journal: Journal,
    pub(super) progress: Progress,
    pub(super) confirming: Confirming,
    pub(super) profiles: Profiles,
    /// Keeps other runs out of the results folder.
    pub(super) _lock: Option<File>,
}

/// A benchmark that is about to be run, and what is known of it so far.
pub(super) struct Bench<'a> {
    pub(super) id: String,
    pub(super) group: &'a AnyGroup,
    pub(super) row: &'a Row,
    pub(super) size: u64,
    /// What those before it in the group left.
    pub(super) cache: &'a mut GroupCache,
    pub(super) folder: BenchmarkFolder,
    /// When it was begun; `None` in turns with another process, whose work is no background load.
    pub(super) begun: Option<Load>,
    /// The time it took beside its set-up.
    pub(super) spent: Spent,
    /// Reasons not to believe its time.
    pub(super) doubts: Vec<Doubt>,
    /// The result, once it is stored.
    pub(super) result: Option<Benchmark>,
    pub(super) choices: BTreeMap<String, String>,
    pub(super) calibration_time: Duration,
    /// The choices that were made under background load.
    pub(super) disturbed: BTreeSet<String>,
}

/// A benchmark's code, verified, and how it is sampled.
pub(super) struct Prepared {
    pub(super) code: Timed,
    pub(super) sampling: Sampling,
}

/// What the benchmarks of a group leave for those that follow.
#[derive(Default)]
pub(super) struct GroupCache {
    pub(super) pace: Pace,
    pub(super) edge_cases: OnceCell<Option<Inputs>>,
    /// Implementations that are right on the edge cases. Their set-up is the same at each size.
    pub(super) right_on_edge_cases: BTreeSet<String>,
    /// The inputs of a size, for all implementations.
    pub(super) inputs: OfLastSize,
    /// Inputs with other values than the timed ones.
    pub(super) other_values: OfLastSize,
}

/// Inputs of the size that was last asked for.
#[derive(Default)]
pub(super) struct OfLastSize(Option<(u64, Inputs)>);

impl OfLastSize {
    /// Those of this size, made unless they are there. Those of another size go first: there may be no
    /// memory for both.
    pub(super) fn of(&mut self, size: u64, make: fn(u64) -> Inputs) -> Inputs {
        let known = self.0.take().filter(|known| known.0 == size);
        let known = known.unwrap_or_else(|| (size, make(size)));
        self.0.insert(known).1.clone()
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        run: &Run,
        group: &'a AnyGroup,
        row: &'a Row,
        size: u64,
        cache: &'a mut GroupCache,
    ) -> Self {
        let named = group.id_of(row, size);
        Self {
            id: named.to_string(),
            group,
            row,
            size,
            cache,
            folder: BenchmarkFolder::new(&run.settings.results, named, group.rate.is_some()),
            begun: None,
            spent: Spent::default(),
            doubts: Vec::new(),
            choices: BTreeMap::new(),
            calibration_time: Duration::ZERO,
            disturbed: BTreeSet::new(),
            result: None,
        }
    }

    /// The function and size under which Criterion knows it in its group.
    pub(super) fn criterion_id(&self) -> BenchmarkId {
        BenchmarkId::new(self.row.function(), self.size)
    }
}
