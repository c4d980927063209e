//! A machine's results as the report sees them, whether from a results root or from its record: the
//! newest as curves, the machine they were measured on, its limits, and what was left out.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::model::environment::{Environment, GpuInfo};
use crate::model::group_info::GroupInfo;
use crate::model::id::Device;
use crate::model::record::{BandwidthCurve, Confirmation, Failure, MeasuredLimit, RunRecord, Skip};
use crate::statistics::between_processes::BetweenProcesses;
use crate::statistics::positive;
use crate::store::curves::{Benchmark, Group, gather};
use crate::store::layout::paths_in;
use crate::store::machine_record;
use crate::store::profiles::Profiled;
use crate::store::stored_results::StoredResults;
use crate::store::whole_file::{FileError, Unreadable};
use crossover_words::text::visible;

/// Why a benchmark that an unfinished run planned has no result of it.
pub const NOT_REACHED: &str = "the run ended before it, or is not over; run it again";

/// The size set whose results stand for a machine.
const DEFAULT_SIZES: &str = "default";

/// A machine's results, from a results root or its record.
#[derive(Clone, Debug, Default)]
pub struct MachineResults {
    /// `this machine`, or of another one the name of its folder, or what its record is called by.
    pub name: String,
    /// True for another machine's results, drawn beside the local ones.
    pub other: bool,
    /// The machine as its newest run recorded it.
    pub environment: Option<Environment>,
    /// Newest run that left a record.
    pub run: Option<Arc<RunRecord>>,
    /// Every run, the newest first, and the number of results that come from it.
    pub runs: Vec<(Arc<RunRecord>, usize)>,
    /// Measured limits to show: for each device those of the newest run that measured them.
    pub limits: Limits,
    /// Measured limits by run: a benchmark is compared with those of its own run.
    pub(crate) limits_by_run: BTreeMap<String, Limits>,
    /// The groups, by name.
    pub groups: Vec<Arc<Group>>,
    /// Where the time of benchmarks goes, in order of their folders.
    pub profiles: Vec<Arc<Profiled>>,
    /// Files and results left out while reading.
    pub problems: Vec<Unreadable>,
}

/// The machine's limits, as a run measured them.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// By name.
    pub measured: BTreeMap<String, MeasuredLimit>,
    /// Bandwidth over the working set by name.
    pub curves: BTreeMap<String, BandwidthCurve>,
    /// The GPU that they are of.
    pub gpu: Option<GpuInfo>,
}

impl Limits {
    /// The limits of a run.
    pub fn of(run: &RunRecord) -> Self {
        Self {
            measured: run.limits.clone(),
            curves: run.curves.clone(),
            gpu: run.environment.gpu.clone(),
        }
    }

    /// A limit by name, where it is a sound number.
    pub fn limit(&self, name: &str) -> Option<f64> {
        positive(self.measured.get(name)?.value)
    }

    /// For each device the limits of the newest run that measured any; the oldest run comes first.
    fn newest(runs: &[RunRecord]) -> Self {
        let mut newest = Self::default();
        for device in [Device::Cpu, Device::Gpu] {
            let is_of = |name: &String| name.starts_with("cpu_") == (device == Device::Cpu);
            let measured = |run: &&RunRecord| run.limits.keys().chain(run.curves.keys()).any(is_of);
            if let Some(run) = runs.iter().rfind(measured) {
                let of_run = Self::of(run);
                let measured = of_run.measured.into_iter();
                newest
                    .measured
                    .extend(measured.filter(|(name, _)| is_of(name)));
                let curves = of_run.curves.into_iter();
                newest.curves.extend(curves.filter(|(name, _)| is_of(name)));
                newest.gpu = of_run.gpu.filter(|_| device == Device::Gpu);
            }
        }
        newest
    }
}

impl MachineResults {
    /// Reads everything under `root` that the newest run's machine measured. A root that is not
    /// there gives a machine without groups.
    pub fn read(root: &Path, name: &str, other: bool) -> Self {
        Self::of_results(StoredResults::read(root), name, other)
    }

    /// The machine of the newest run. Results of other machines and of groups that no longer exist are named
    /// among the problems.
    pub fn of_results(mut results: StoredResults, name: &str, other: bool) -> Self {
        results.leave_out_removed_groups();
        let (ours, theirs) = by_machine(results.runs);
        let run_of = |benchmark: &Benchmark| {
            (theirs.iter()).find(|run| Some(&run.run) == benchmark.run.as_ref())
        };
        let boards: BTreeSet<String> = (results.benchmarks.iter().filter_map(run_of))
            .map(|run| board(&run.environment))
            .collect();
        // A result of an unknown run counts as this machine's.
        results
            .benchmarks
            .retain(|benchmark| run_of(benchmark).is_none());
        // A profile names no run: it belongs to the machine with its GPU.
        results.profiles.retain(|profiled| {
            let gpu = Some(&profiled.profile.gpu);
            let has_it = |run: &RunRecord| run.environment.gpu.as_ref().map(|gpu| &gpu.name) == gpu;
            ours.iter().any(has_it) || !theirs.iter().any(has_it)
        });
        let mut machine = Self::of(ours, results.benchmarks, name, other);
        machine.profiles = results.profiles.into_iter().map(Arc::new).collect();
        machine.problems = results.problems;
        machine.problems.extend(boards.into_iter().map(|other| {
            let reason = "another machine measured here too, and a page shows one; give each machine a \
                          folder of its own (CRITERION_HOME)";
            Unreadable::new(other, reason)
        }));
        machine
    }

    /// One machine, of its runs from the oldest to the newest.
    pub(crate) fn of(
        runs: Vec<RunRecord>,
        mut benchmarks: Vec<Benchmark>,
        name: &str,
        other: bool,
    ) -> Self {
        let newest_asked = runs.iter().rfind(|run| !run.confirmations.is_empty());
        let spread = newest_asked.map(|run| BetweenProcesses::of(&run.confirmations));
        let spread = spread.unwrap_or_default();
        for b in &mut benchmarks {
            b.between_processes = b.deviation(&spread);
        }
        let limits = Limits::newest(&runs);
        let by_run = runs.iter().map(|run| (run.run.clone(), Limits::of(run)));
        let limits_by_run = by_run.collect();
        let is_of = |b: &Benchmark, run: &RunRecord| b.run.as_ref() == Some(&run.run);
        let counted = |run: RunRecord| {
            let results = benchmarks.iter().filter(|b| is_of(b, &run)).count();
            (Arc::new(run), results)
        };
        let runs: Vec<(Arc<RunRecord>, usize)> = runs.into_iter().rev().map(counted).collect();
        let run = runs.first().map(|(run, _)| run.clone());
        let mut environment = run.as_ref().map(|run| run.environment.clone());
        if let Some(environment) = &mut environment
            && environment.gpu.is_none()
        {
            // A later run without the GPU does not invalidate what an earlier one measured on it.
            environment.gpu = runs.iter().find_map(|(run, _)| {
                let used = |b: &Benchmark| b.device == Device::Gpu && is_of(b, run);
                let gpu = run.environment.gpu.clone()?;
                benchmarks.iter().any(used).then_some(gpu)
            });
        }
        let groups = gather(benchmarks, |group| topic(group, &runs));
        Self {
            name: name.to_owned(),
            other,
            environment,
            run,
            runs,
            limits,
            limits_by_run,
            groups: groups.into_iter().map(Arc::new).collect(),
            profiles: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The GPU's name.
    pub fn gpu(&self) -> Option<&String> {
        Some(&self.environment.as_ref()?.gpu.as_ref()?.name)
    }

    /// Reads another machine's results: its record, or a folder, which is a results root or has one
    /// in `criterion/`.
    ///
    /// # Errors
    /// A record that cannot be read, or is damaged, newer, or none.
    pub fn read_other(path: &Path) -> Result<Self, FileError> {
        if path.is_file() || machine_record::is_named(path) {
            return Self::read_record(path);
        }
        Ok(Self::read_folder(path))
    }

    fn read_record(path: &Path) -> Result<Self, FileError> {
        let contents = machine_record::read(path)?;
        let newest = contents.runs.last();
        let name = newest.map_or_else(String::new, |run| run.environment.slug());
        Ok(Self::of_results(contents, &name, true))
    }

    fn read_folder(dir: &Path) -> Self {
        let inner = dir.join("criterion");
        let root = if inner.is_dir() { inner } else { dir.into() };
        let name = dir
            .file_name()
            .or_else(|| dir.parent().and_then(Path::file_name))
            .unwrap_or(dir.as_os_str());
        Self::read(&root, &visible(&name.to_string_lossy()), true)
    }

    /// Reads the committed machines: of the records in each folder in `dir` one with runs of the size set
    /// `default` on one GPU alone, of these one with profiles, of these the newest; and what could not be
    /// read. A machine whose record has several runs comes first, of these one with profiles, and then the
    /// newest: it is shown where there is no GPU.
    pub fn read_machines(dir: &Path) -> (Vec<Self>, Vec<Unreadable>) {
        let started = |machine: &Self| machine.run.as_ref().map(|run| run.started.clone());
        let has_profiles = |machine: &Self| !machine.profiles.is_empty();
        let (mut machines, mut problems) = (Vec::new(), Vec::new());
        for folder in paths_in(dir) {
            let mut paths = paths_in(&folder);
            paths.retain(|path| machine_record::is_named(path));
            let mut records: Vec<Self> = Vec::new();
            let read = paths.par_iter().map(|path| Self::read_record(path));
            for record in read.collect::<Vec<_>>() {
                match record {
                    Ok(read) => records.extend(Some(read).filter(|m| !m.groups.is_empty())),
                    Err(error) => problems.push(error.into()),
                }
            }
            let age = |machine: &Self| {
                // A run with several GPUs measures little but what they gain.
                let is_default = |(run, _): &(Arc<RunRecord>, usize)| {
                    run.size_set == DEFAULT_SIZES && run.environment.further_gpus.is_empty()
                };
                let is_default = machine.runs.iter().all(is_default);
                (is_default, has_profiles(machine), started(machine))
            };
            machines.extend(records.into_iter().max_by_key(age));
        }
        machines.sort_by_key(|machine| {
            let has_several_runs = machine.runs.len() > 1;
            Reverse((has_several_runs, has_profiles(machine), started(machine)))
        });
        (machines, problems)
    }

    /// The answers of child processes by run, the newest first.
    pub fn confirmations(&self) -> impl Iterator<Item = (&str, &[Confirmation])> {
        let asked = self
            .runs
            .iter()
            .filter(|(run, _)| !run.confirmations.is_empty());
        asked.map(|(run, _)| (&*run.run, &*run.confirmations))
    }

    /// The group of that name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        let at = self.groups.binary_search_by(|g| g.name.as_str().cmp(name));
        Some(&self.groups[at.ok()?])
    }

    /// All benchmarks.
    pub fn benchmarks(&self) -> impl Iterator<Item = &Benchmark> {
        self.groups.iter().flat_map(|group| group.benchmarks())
    }

    /// The machine with all results treated as steady, for processes that measure them again.
    pub fn with_unsteady(mut self) -> Self {
        for group in &mut self.groups {
            *group = Arc::new(group.with_unsteady());
        }
        self
    }

    /// The machine without unsteady results, for findings.
    pub fn steady(&self) -> Self {
        self.only(|b| b.unsteady.is_none())
    }

    /// The machine with the results of one run, by its name.
    pub fn of_run(&self, run: &str) -> Self {
        self.only(|b| b.run.as_deref() == Some(run))
    }

    /// The machine with some of its results.
    pub(crate) fn only(&self, keep: impl Fn(&Benchmark) -> bool) -> Self {
        let of_group = |group: &Arc<Group>| {
            if group.benchmarks().all(&keep) {
                Some(group.clone())
            } else {
                group.only(&keep).map(Arc::new)
            }
        };
        Self {
            groups: self.groups.iter().filter_map(of_group).collect(),
            ..self.clone()
        }
    }

    /// The benchmarks that the newest run skipped.
    pub fn skipped(&self) -> &[Skip] {
        self.run.as_ref().map_or(&[], |r| &r.skipped)
    }

    /// The benchmarks that the newest run planned and did not reach, if it has no end.
    pub fn not_reached(&self) -> Vec<&str> {
        let Some(run) = self.run.as_ref().filter(|run| run.finished.is_none()) else {
            return Vec::new();
        };
        let own = self.benchmarks();
        let told: BTreeSet<&String> = own
            .filter(|b| b.run.as_ref() == Some(&run.run))
            .map(|b| &b.id)
            .chain(self.problems.iter().map(|problem| &problem.what))
            .chain(run.failed.iter().map(|failure| &failure.id))
            .chain(run.skipped.iter().map(|skip| &skip.id))
            .collect();
        let missing = run.planned.iter().filter(|id| !told.contains(id));
        missing.map(String::as_str).collect()
    }

    /// The failures of the newest run.
    pub fn failed(&self) -> &[Failure] {
        self.run.as_ref().map_or(&[], |r| &r.failed)
    }

    /// The limits that the run of a benchmark measured; `None` without a record of that run.
    pub(crate) fn limits_of(&self, benchmark: &Benchmark) -> Option<&Limits> {
        self.limits_by_run.get(benchmark.run.as_ref()?)
    }

    /// A limit that the run of a benchmark measured.
    pub(crate) fn limit_of(&self, benchmark: &Benchmark, name: &str) -> Option<f64> {
        self.limits_of(benchmark)?.limit(name)
    }

    /// The GPU's name, else the CPU's, else the folder's.
    pub fn hardware(&self) -> String {
        let name = self.environment.as_ref().and_then(Environment::hardware);
        name.unwrap_or(&self.name).to_owned()
    }
}

/// The description of a group and its place, by the newest run that has the group.
fn topic(group: &str, runs: &[(Arc<RunRecord>, usize)]) -> ((usize, usize), GroupInfo) {
    let known = |(age, (run, _)): (usize, &(Arc<RunRecord>, usize))| {
        let place = run.groups.iter().position(|topic| topic.group == group)?;
        Some(((age, place), run.groups[place].clone()))
    };
    let known = runs.iter().enumerate().find_map(known);
    known.unwrap_or_else(|| ((usize::MAX, 0), GroupInfo::of(group)))
}

/// The runs of the newest run's machine, from the oldest to the newest, and those of others. Another board or
/// CPU is another machine, whatever its model. A run without a GPU is one of the machine with its CPU, and so
/// is one whose GPU did not say its UUID where the model is the same.
fn by_machine(runs: Vec<RunRecord>) -> (Vec<RunRecord>, Vec<RunRecord>) {
    let is_same = |a: &GpuInfo, b: &GpuInfo| match (&a.uuid, &b.uuid) {
        (Some(a), Some(b)) => a == b,
        _ => a.name == b.name,
    };
    let cpu = |run: &RunRecord| {
        let cpu = &run.environment.cpu;
        (cpu.model.clone(), cpu.usable_cores)
    };
    let newest = runs.last().map(cpu);
    let mut known: Option<GpuInfo> = None;
    let (mut ours, theirs): (Vec<_>, Vec<_>) = runs.into_iter().rev().partition(|run| {
        let gpu = &run.environment.gpu;
        let both = known.as_ref().zip(gpu.as_ref());
        let is_ours = Some(cpu(run)) == newest && both.is_none_or(|(a, b)| is_same(a, b));
        if is_ours && known.as_ref().is_none_or(|known| known.uuid.is_none()) {
            known = gpu.clone().or(known.take());
        }
        is_ours
    });
    ours.reverse();
    (ours, theirs)
}

/// `NVIDIA H200 (GPU-01234567)`.
fn board(environment: &Environment) -> String {
    let name = environment.hardware().unwrap_or("another machine");
    let uuid = environment.gpu.as_ref().and_then(|gpu| gpu.uuid.as_ref());
    uuid.map_or(name.to_owned(), |uuid| {
        let first: String = uuid.chars().take("GPU-01234567".len()).collect();
        format!("{name} ({first})")
    })
}
