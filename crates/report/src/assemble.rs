//! From folders to everything that a report shows.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crossover_results::analysis::answer::crossover_answer::{self, CrossoverAnswer};
use crossover_results::analysis::findings;
use crossover_results::analysis::findings::finding::{Context, Finding};
use crossover_results::analysis::reuse::{self, Reuse};
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Group, Series};
use crossover_results::store::machine::MachineResults;
use crossover_results::store::machine_record::MACHINES;
use crossover_results::store::unreadable::Unreadable;
use crossover_results::store::whole_file::FileError;

/// What to draw beside the results of this machine.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Other machines: each a record, a results root, or a folder with one in `criterion/`.
    pub with: Vec<PathBuf>,
    /// Leave out the committed machines of `<out>/machines/`.
    pub no_reference: bool,
}

/// Everything a report shows.
#[derive(Debug)]
pub struct Assembled {
    /// The machine that the report is about.
    pub machine: MachineResults,
    /// Its answers; where it has no GPU, of its CPU against the GPUs of `others`.
    pub found: Vec<CrossoverAnswer>,
    /// Its break-even tables.
    pub reuse: Vec<Reuse>,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Machines drawn beside it, with their own answers.
    pub others: Vec<(MachineResults, Vec<CrossoverAnswer>)>,
    /// What the first of those with a GPU shows of it, where the machine has none.
    pub reference: Option<Reference>,
    /// Names of the groups of any machine, those that compare CPU and GPU first, then in their own
    /// order.
    pub(crate) groups: Vec<String>,
}

/// What the results of another machine show, to stand in for those of a GPU that is not there.
#[derive(Debug)]
pub struct Reference {
    /// Whose they are.
    pub hardware: String,
    /// Its break-even tables.
    pub reuse: Vec<Reuse>,
    /// Its findings.
    pub findings: Vec<Finding>,
}

impl Assembled {
    /// The machine, then those beside it.
    pub(crate) fn machines(&self) -> impl Iterator<Item = &MachineResults> {
        std::iter::once(&self.machine).chain(self.others.iter().map(|(m, _)| m))
    }

    fn names_of_groups(&self) -> Vec<String> {
        let groups = self.machines().flat_map(|m| &m.groups);
        let names: BTreeSet<&String> = groups.map(|group| &group.name).collect();
        let mut names: Vec<String> = names.into_iter().cloned().collect();
        names.sort_by_cached_key(|name| {
            let compares = !crossover_answer::of_group(&self.found, name).is_empty();
            (
                !compares,
                self.of_machines(name).next().map(|group| group.place),
            )
        });
        names
    }

    /// The group of that name of each machine that has it.
    pub(crate) fn of_machines(&self, name: &str) -> impl Iterator<Item = &Group> {
        self.machines().filter_map(move |m| m.group(name))
    }

    /// The machine of an answer's GPU code, and the curve of that code.
    pub(crate) fn gpu_of(&self, found: &CrossoverAnswer) -> Option<(&MachineResults, &Series)> {
        let is_its = |machine: &&MachineResults| match &found.gpu_machine {
            Some(name) => machine.hardware() == *name,
            None => true,
        };
        self.machines().filter(is_its).find_map(|machine| {
            let series = found.gpu_series(machine.group(&found.group)?)?;
            Some((machine, series))
        })
    }

    /// The machine whose GPU answers, `None` for that of the CPU. Beside one without a GPU it is the first
    /// of the others that answers anything.
    pub(crate) fn answers_with(&self, found: &[CrossoverAnswer]) -> Option<String> {
        let with = |gpu: Option<&str>| found.iter().any(|f| f.gpu_machine.as_deref() == gpu);
        if with(None) {
            return None;
        }
        let mut others = self.others.iter().map(|(other, _)| other.hardware());
        others.find(|other| with(Some(other)))
    }

    /// What the group of that name says of itself.
    pub(crate) fn topic(&self, name: &str) -> GroupInfo {
        let known = self.of_machines(name).next();
        known.map_or_else(|| GroupInfo::of(name), |group| group.topic.clone())
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing to report on.
    #[error(
        "no results under {}: run `cargo bench` first, or name the record of a machine with `--with`",
        root.display()
    )]
    NoResults {
        /// The results root.
        root: PathBuf,
    },
    /// What was named with `--with` has none.
    #[error(
        "no results in {}: name the record of a machine, or a folder that holds Criterion's output \
         or a `criterion` folder with it",
        path.display()
    )]
    NothingThere {
        /// The file or folder.
        path: PathBuf,
    },
    /// What was named with `--with` cannot be read.
    #[error(transparent)]
    Read(FileError),
    /// A file could not be written.
    #[error("{0}; `crossover report --out DIR` writes elsewhere")]
    Write(#[from] FileError),
}

/// Reads the results under `root` and those to show beside them.
pub fn assemble(root: &Path, out: &Path, options: &Options) -> Result<Assembled, ReportError> {
    let mut machines = MachineResults::read_all(root, "this machine", false);
    let mut machine = machines.remove(0);
    let (mut others, problems) = others(out, options)?;
    machine.problems.extend(problems);
    others.splice(0..0, machines);
    leave_out_copies(&machine, &mut others);
    if !machine.groups.is_empty() {
        return Ok(finish(machine, others));
    }
    if others.is_empty() {
        return Err(ReportError::NoResults { root: root.into() });
    }
    let mut first = others.remove(0);
    first.problems.splice(0..0, machine.problems);
    Ok(finish(first, others))
}

/// Leaves out the results that are drawn already: those of the folder itself, of a copy of it, and of
/// one machine under two names.
fn leave_out_copies(machine: &MachineResults, others: &mut Vec<MachineResults>) {
    let results = |machine: &MachineResults| -> BTreeSet<_> {
        let hardware = machine.hardware();
        let result = |b: &Benchmark| (b.id.clone(), b.run.clone(), b.median_ns.to_bits());
        let results = machine.benchmarks().map(result);
        results.map(|result| (hardware.clone(), result)).collect()
    };
    let mut drawn = vec![(machine.name.clone(), results(machine))];
    others.retain(|other| {
        let own = results(other);
        let same = drawn.iter().find(|(_, results)| own.is_subset(results));
        if let Some((name, _)) = same {
            eprintln!(
                "note: the results of {} are those of {name} too and are drawn once",
                other.name
            );
            return false;
        }
        drawn.push((other.name.clone(), own));
        true
    });
}

/// Of the other machines that with the most answers, or that of `root` where there is none, with
/// nothing beside it.
pub(super) fn alone(root: &Path, out: &Path, options: &Options) -> Result<Assembled, ReportError> {
    let answers = |machine: &MachineResults| {
        crossover_answer::headlines(&crossover_answer::find(machine, &[])).count()
    };
    // The first of several that have as many.
    let (others, _) = others(out, options)?;
    let machine = match others.into_iter().rev().max_by_key(answers) {
        Some(other) => other,
        None => MachineResults::read(root, "this machine", false),
    };
    match machine.groups.is_empty() {
        true => Err(ReportError::NoResults { root: root.into() }),
        false => Ok(finish(machine, Vec::new())),
    }
}

/// Machines named, then the committed ones, and which of these could not be read.
fn others(
    out: &Path,
    options: &Options,
) -> Result<(Vec<MachineResults>, Vec<Unreadable>), ReportError> {
    let mut others = Vec::new();
    for path in &options.with {
        let there = MachineResults::read_other(path).map_err(ReportError::Read)?;
        if there.iter().all(|other| other.groups.is_empty()) {
            return Err(ReportError::NothingThere { path: path.clone() });
        }
        others.extend(there.into_iter().filter(|other| !other.groups.is_empty()));
    }
    if options.no_reference {
        return Ok((others, Vec::new()));
    }
    let (committed, problems) = MachineResults::read_machines(&out.join(MACHINES));
    others.extend(committed);
    Ok((others, problems))
}

fn finish(machine: MachineResults, others: Vec<MachineResults>) -> Assembled {
    let found = crossover_answer::find(&machine, &others);
    let (reuse, findings) = shown(&machine, &found);
    let others: Vec<(MachineResults, Vec<CrossoverAnswer>)> = others
        .into_iter()
        .map(|other| {
            let found = crossover_answer::find(&other, &[]);
            (other, found)
        })
        .collect();
    let has_gpu = |machine: &MachineResults| {
        let mut all = machine.benchmarks();
        all.any(|b| b.device == Device::Gpu)
    };
    let reference = match has_gpu(&machine) {
        true => None,
        false => others.iter().find(|(other, _)| has_gpu(other)),
    };
    let reference = reference.map(|(other, found)| {
        let (reuse, findings) = shown(other, found);
        let hardware = other.hardware();
        Reference {
            hardware,
            reuse,
            findings,
        }
    });
    let mut report = Assembled {
        machine,
        found,
        reuse,
        findings,
        others,
        reference,
        groups: Vec::new(),
    };
    report.groups = report.names_of_groups();
    report
}

/// The break-even tables and the findings of a machine with these answers.
pub(crate) fn shown(
    machine: &MachineResults,
    found: &[CrossoverAnswer],
) -> (Vec<Reuse>, Vec<Finding>) {
    let reuse = reuse::find(machine, found);
    // What is unsteady is shown and decides nothing.
    let findings = findings::find(&Context {
        machine: &machine.steady(),
        found,
        reuse: &reuse,
    });
    (reuse, findings)
}
