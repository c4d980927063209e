//! What a results root or the record of a machine holds, before it is known what belongs to which machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::cost::Cost;
use crate::model::id::{self, Device};
use crate::model::record::RunRecord;
use crate::model::role::Role;
use crate::statistics::median::{interval_of_sorted, median, median_of_sorted};
use crate::statistics::unsteady::unsteady_submit;
use crate::store::criterion_files::{Contents as CriterionFiles, Stored};
use crate::store::curves::Benchmark;
use crate::store::layout::NEW;
use crate::store::profiles::{self, Profiled};
use crate::store::runs;
use crate::store::unreadable::Unreadable;
use crossover_words::Clock;

/// All of it.
#[derive(Default)]
pub(crate) struct Contents {
    /// From the oldest to the newest.
    pub runs: Vec<RunRecord>,
    pub benchmarks: Vec<Benchmark>,
    pub profiles: Vec<Profiled>,
    /// What could not be read.
    pub problems: Vec<Unreadable>,
}

impl Contents {
    pub(super) fn of_folder(root: &Path) -> Self {
        let (runs, problems) = runs::read_all(root);
        let mut this = Self {
            runs,
            problems,
            ..Self::default()
        };
        let files = CriterionFiles::read(root, NEW);
        this.problems.extend(files.problems);
        let nameless = files.nameless.into_iter().map(|(_, problem)| problem);
        this.problems.extend(nameless);
        let mut folders: BTreeMap<String, PathBuf> = BTreeMap::new();
        for stored in files.results {
            let benchmark = match folders.get(&stored.id) {
                Some(first) => Err(stored.duplicate_of(first)),
                None => benchmark(stored, &mut this.problems),
            };
            match benchmark {
                Ok(benchmark) => {
                    let before = this.benchmarks.len();
                    this.add(benchmark);
                    let added = this.benchmarks[before..].iter();
                    folders.extend(added.map(|b| (b.id.clone(), b.dir.clone())));
                }
                Err(problem) => this.problems.push(problem),
            }
        }
        let (profiles, unread) = profiles::read_all(root);
        this.profiles = profiles;
        this.problems.extend(unread);
        this
    }

    /// Adds a benchmark, unless its run says that its result must not be shown.
    pub(super) fn add(&mut self, mut benchmark: Benchmark) {
        // Also where it was written by a rule that judged this clock as it does the others.
        if benchmark.clock == Some(Clock::Submit) {
            benchmark.unsteady = unsteady_submit(benchmark.interval_ns);
        }
        match unfit(&benchmark, &self.runs) {
            Some(reason) => self.problems.push(Unreadable::new(&benchmark.id, reason)),
            None => self.benchmarks.push(benchmark),
        }
    }
}

/// A result of this suite's form. A sidecar that cannot be read is named in `problems`.
pub(super) fn benchmark(
    stored: Stored,
    problems: &mut Vec<Unreadable>,
) -> Result<Benchmark, Unreadable> {
    let function = stored.function.as_deref().and_then(id::function);
    let (Some((device, implementation)), Some(value), false) =
        (function, &stored.value, stored.group.is_empty())
    else {
        return Err(Unreadable::new(
            stored.folder.display(),
            "its id is not <group>/<cpu|gpu>/<implementation>/<size>; \
             name a benchmark so to have it in the report",
        ));
    };
    let mut ns = stored.samples?;
    ns.sort_unstable_by(f64::total_cmp);
    let median_ns = median_of_sorted(&ns).expect("no samples are an error of their file");
    let deviation = median(ns.iter().map(|ns| (ns - median_ns).abs()));
    let finite = |n: f64| Some(n).filter(|n| n.is_finite());
    let sidecar = stored.sidecar.unwrap_or_else(|mut problem| {
        problem.reason += ": its clock is unknown";
        problems.push(problem);
        None
    });
    let Ok(size) = value.parse() else {
        return Err(Unreadable::new(
            stored.folder.display(),
            "the last part of its id is not a size; end it with a whole number to have it in \
             the report",
        ));
    };
    let mut benchmark = Benchmark {
        implementation: implementation.to_owned(),
        id: stored.id,
        group: stored.group,
        device,
        size,
        clock: None,
        median_ns,
        mean_ns: finite(ns.iter().sum::<f64>() / ns.len() as f64),
        interval_ns: interval_of_sorted(&ns),
        between_processes: 0.0,
        spread: deviation.and_then(|ns| finite(1.4826 * ns / median_ns)),
        unsteady: None,
        samples: Some(ns.len()),
        cost: Cost::default(),
        role: match device {
            Device::Cpu => Role::cpu(),
            Device::Gpu => Role::gpu(),
        },
        verified: None,
        throttle_reasons: None,
        telemetry: None,
        extra: BTreeMap::new(),
        choices: BTreeMap::new(),
        notes: Vec::new(),
        run: None,
        dir: stored.folder,
    };
    if let Some(sidecar) = sidecar {
        benchmark.unsteady = sidecar.unsteady;
        benchmark.clock = Some(sidecar.clock);
        benchmark.cost = sidecar.cost;
        benchmark.role = sidecar.role;
        benchmark.verified = sidecar.verified;
        benchmark.throttle_reasons = sidecar.device_state.and_then(|s| s.throttle_reasons);
        benchmark.telemetry = sidecar.monitor;
        benchmark.extra = sidecar.extra;
        benchmark.choices = sidecar.choices;
        benchmark.notes = sidecar.notes;
        benchmark.run = Some(sidecar.run);
    }
    Ok(benchmark)
}

/// Why a well-formed result must not be shown, if so.
fn unfit(benchmark: &Benchmark, runs: &[RunRecord]) -> Option<String> {
    if let Some(verified) = &benchmark.verified
        && !verified.passed()
    {
        return Some(format!(
            "its result is wrong: error {:.3e}, at most {:.3e} accepted ({})",
            verified.error, verified.bound, verified.method
        ));
    }
    let own = benchmark
        .run
        .as_ref()
        .and_then(|name| runs.iter().position(|r| r.run == *name));
    // An attempt that failed later is listed among the failures and invalidates nothing. Without a
    // sidecar the run is unknown, and any failure may be this result's.
    let own_runs = own.map_or(runs, |at| &runs[at..=at]);
    if let Some(failure) = own_runs
        .iter()
        .flat_map(|r| &r.failed)
        .rfind(|f| f.id == benchmark.id)
    {
        return Some(format!("failed: {}", failure.error));
    }
    None
}
