//! The content of a report: a machine's results and what follows from them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crossover_results::analysis::answer::confirmations::with_confirmed_times;
use crossover_results::analysis::answer::crossover_answer::{self, CrossoverAnswer};
use crossover_results::analysis::findings;
use crossover_results::analysis::findings::finding::{Context, Finding};
use crossover_results::analysis::reuse::{self, Reuse};
use crossover_results::export::BESIDE_THE_PAGE;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::id::Device;
use crossover_results::model::record::Skip;
use crossover_results::store::curves::{Group, Series};
use crossover_results::store::machine_record::MACHINES;
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::stored_results::StoredResults;
use crossover_results::store::whole_file::{FileError, Unreadable};

/// Which other machines a report uses.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Other machines: each a record, a results root, or a folder with one in `criterion/`.
    pub with: Vec<PathBuf>,
    /// Leave out the committed machines of `<out>/machines/`.
    pub no_reference: bool,
}

/// Everything that a report shows.
#[derive(Debug)]
pub struct Report {
    /// The machine that the report is about.
    pub machine: MachineResults,
    /// The machine whose GPU stands in, if this one has none.
    pub reference: Option<MachineResults>,
    /// Machines of `--with`; texts' claims are judged by their results too.
    pub named: Vec<MachineResults>,
    /// The answers: of this machine's CPU, against its own GPU or that of the reference.
    pub found: Vec<CrossoverAnswer>,
    /// The answers of the reference alone.
    pub(crate) of_reference: Vec<CrossoverAnswer>,
    /// The break-even tables of the machine with the GPU.
    pub reuse: Vec<Reuse>,
    /// The findings of the machine with the GPU.
    pub findings: Vec<Finding>,
    /// Names of the groups, those that compare CPU and GPU first, then in their own order.
    pub groups: Vec<String>,
}

impl Report {
    fn of(
        machine: MachineResults,
        named: Vec<MachineResults>,
        committed: Option<MachineResults>,
    ) -> Self {
        let has_gpu =
            |machine: &&MachineResults| machine.benchmarks().any(|b| b.device == Device::Gpu);
        let reference = named.iter().chain(&committed).find(has_gpu);
        let reference = reference.filter(|_| !has_gpu(&&machine)).cloned();
        let reference = reference.map(with_confirmed_times);
        let found = crossover_answer::find(&machine, reference.as_slice());
        let of_reference = reference.iter();
        let of_reference = of_reference.flat_map(|gpu| crossover_answer::find(gpu, &[]));
        let of_reference: Vec<CrossoverAnswer> = of_reference.collect();
        let (gpu, own) = match &reference {
            Some(gpu) => (gpu, &of_reference),
            None => (&machine, &found),
        };
        let reuse = reuse::find(gpu, own);
        // Unsteady results are shown, but decide nothing.
        let findings = findings::find(&Context {
            machine: &gpu.steady(),
            found: own,
        });
        let mut report = Self {
            machine,
            reference,
            named,
            found,
            of_reference,
            reuse,
            findings,
            groups: Vec::new(),
        };
        let groups = report.machines().flat_map(|machine| &machine.groups);
        let names: BTreeSet<&String> = groups.map(|group| &group.name).collect();
        let mut names: Vec<String> = names.into_iter().cloned().collect();
        names.sort_by_cached_key(|name| {
            let of_group = crossover_answer::of_group(&report.found, name);
            let compares = of_group.iter().any(|found| found.devices.is_none());
            (!compares, report.group(name).map(|group| group.place))
        });
        report.groups = names;
        report
    }

    /// The machine, and the one whose GPU stands in.
    pub fn machines(&self) -> impl Iterator<Item = &MachineResults> {
        std::iter::once(&self.machine).chain(&self.reference)
    }

    /// Results left out of those shown, with reasons.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &Unreadable> {
        self.machines().flat_map(|machine| &machine.problems)
    }

    /// The machine of the GPU's figures.
    pub fn gpu(&self) -> &MachineResults {
        self.reference.as_ref().unwrap_or(&self.machine)
    }

    /// A group of this machine, or else of the reference.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.machines().find_map(|machine| machine.group(name))
    }

    /// The rows of a group: this machine's, and the GPU's of the reference.
    pub fn rows<'a>(&'a self, name: &'a str) -> Vec<(&'a MachineResults, &'a Series)> {
        let own = self
            .machine
            .group(name)
            .into_iter()
            .flat_map(|group| &group.series);
        let own = own.map(|series| (&self.machine, series));
        let theirs = self.reference.iter().flat_map(move |machine| {
            let group = machine.group(name).into_iter();
            group
                .flat_map(|group| group.on(Device::Gpu))
                .map(move |series| (machine, series))
        });
        own.chain(theirs).collect()
    }

    /// The curve of an answer's GPU code.
    pub fn gpu_of(&self, found: &CrossoverAnswer) -> Option<&Series> {
        found.gpu_series(self.gpu().group(&found.group)?)
    }

    /// The title, question and axis of a group.
    pub fn topic(&self, name: &str) -> GroupInfo {
        let known = self.group(name);
        known.map_or_else(|| GroupInfo::of(name), |group| group.topic.clone())
    }

    /// Says whose GPU the figures are of, if not this machine's: `There is no GPU here. The GPU figures
    /// are of an NVIDIA H200, measured 2026-11-21.`
    pub fn whose_gpu(&self) -> Option<String> {
        let gpu = self.reference.as_ref()?;
        let day = day(gpu).map_or(String::new(), |day| format!(", measured {day}"));
        let hardware = gpu.hardware();
        Some(format!(
            "There is no GPU here. The GPU figures are of another machine: {hardware}{day}."
        ))
    }

    /// Whether a group was measured on the CPU only.
    pub fn is_unmeasured(&self, name: &str) -> bool {
        let row = format!("{name}/gpu/");
        let has_row = |skip: &Skip| skip.id.starts_with(&row);
        let on = |device| {
            self.rows(name)
                .iter()
                .any(|(_, series)| series.device == device)
        };
        self.machine.skipped().iter().any(has_row) && on(Device::Cpu) && !on(Device::Gpu)
    }
}

/// Says in a sentence that GPU results of these groups are missing.
pub(crate) fn unknown(groups: &[&str]) -> String {
    let groups = groups.join(", ");
    format!(
        "These results have no GPU times of {groups}, so it is unknown from which size on a GPU wins."
    )
}

/// The day of the machine's newest run.
pub(crate) fn day(machine: &MachineResults) -> Option<&str> {
    machine.run.as_ref()?.started.get(..10)
}

/// Why there is no report, in a sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReportError(pub(crate) String);

/// A file of the page that could not be written.
impl From<FileError> for ReportError {
    fn from(error: FileError) -> Self {
        Self(format!(
            "{error}; `crossover report --out DIR` writes elsewhere"
        ))
    }
}

fn no_results(root: &Path) -> ReportError {
    ReportError(format!(
        "no results under {}: run `cargo bench` first; of the record of a machine, `crossover report --with RECORD` \
         makes a page and thresholds",
        root.display()
    ))
}

/// Reads the results under `root`; if there are none, the first of the other machines.
///
/// # Errors
/// There are no results; a machine of `--with` cannot be read, or would be replaced.
pub fn read(root: &Path, out: &Path, options: &Options) -> Result<Report, ReportError> {
    of_results(StoredResults::read(root), root, out, options)
}

/// As [`read`], for results already read from the folder `root`.
///
/// # Errors
/// As [`read`].
pub fn of_results(
    results: StoredResults,
    root: &Path,
    out: &Path,
    options: &Options,
) -> Result<Report, ReportError> {
    let mut machine = MachineResults::of_results(results, "this machine", false);
    let (mut named, committed, problems) = others_of(out, options)?;
    let record = out.join(BESIDE_THE_PAGE).canonicalize();
    let is_replaced = |path: &&PathBuf| {
        let path = path.canonicalize();
        path.is_ok_and(|path| record.as_ref().is_ok_and(|record| path == *record))
    };
    if !machine.groups.is_empty()
        && let Some(path) = options.with.iter().find(is_replaced)
    {
        return Err(ReportError(format!(
            "{} would be replaced by the record of these results: move it, or write elsewhere with --out",
            path.display()
        )));
    }
    machine.problems.extend(problems);
    let mut committed = committed.into_iter();
    if machine.groups.is_empty() {
        let problems = std::mem::take(&mut machine.problems);
        let first = (!named.is_empty()).then(|| named.remove(0));
        let first = first.or_else(|| committed.next());
        machine = first.ok_or_else(|| no_results(root))?;
        machine.problems.splice(0..0, problems);
    }
    let with_gpu = |machine: &MachineResults| machine.gpu().is_some();
    Ok(Report::of(machine, named, committed.find(with_gpu)))
}

/// The machine with the most answers, of those of `--with` and the committed ones; without any the one in `root`.
///
/// # Errors
/// As [`read`].
pub(crate) fn most_answers(
    root: &Path,
    out: &Path,
    options: &Options,
) -> Result<Report, ReportError> {
    let answers = |machine: &MachineResults| {
        crossover_answer::headlines(&crossover_answer::find(machine, &[])).count()
    };
    let (named, committed, _) = others_of(out, options)?;
    // The first of several with as many.
    let most = named.into_iter().chain(committed).rev().max_by_key(answers);
    let machine = most.unwrap_or_else(|| MachineResults::read(root, "this machine", false));
    if machine.groups.is_empty() {
        return Err(no_results(root));
    }
    Ok(Report::of(machine, Vec::new(), None))
}

/// Machines of `--with`, committed machines, and unreadable ones of these.
type Others = (Vec<MachineResults>, Vec<MachineResults>, Vec<Unreadable>);

fn others_of(out: &Path, options: &Options) -> Result<Others, ReportError> {
    let mut named = Vec::new();
    for path in &options.with {
        let there =
            MachineResults::read_other(path).map_err(|error| ReportError(error.to_string()))?;
        if there.groups.is_empty() {
            return Err(ReportError(format!(
                "no results in {}: name the record of a machine, or a folder that holds Criterion's output or a \
                 `criterion` folder with it",
                path.display()
            )));
        }
        named.push(there);
    }
    let (committed, problems) = if options.no_reference {
        Default::default()
    } else {
        MachineResults::read_machines(&out.join(MACHINES))
    };
    Ok((named, committed, problems))
}
