//! `crossover keep` and `crossover history`: the runs of a machine.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::ab::{git_around, git_line};
use crate::compare::results_folders;
use crossover_compare::history::History;
use crossover_machine::fingerprint;
use crossover_machine::peers::first_gpu;
use crossover_protocol::settings::Settings;
use crossover_results::model::environment::Environment;
use crossover_results::statistics::{mean, median::median};
use crossover_results::store::baseline::Baseline;
use crossover_results::store::history::{self, KeptRun};
use crossover_results::store::layout::{NEW, SAMPLE};
use crossover_results::store::runs;
use crossover_results::store::whole_file::write_atomic;
use crossover_words::text::visible;
use crossover_words::units::counted;

/// The folder of the history, and the machine in it.
#[derive(Debug, clap::Args)]
struct MachineFolder {
    /// Folder of the history; each machine has a folder in it
    #[arg(default_value = "target-reports/history")]
    folder: PathBuf,
    /// Name of the machine [default: GPU, CPU and number of cores, so that hosts of one kind are one machine]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// Keep the current results in the history of this machine
///
/// The results are those of any Criterion project, and go to `<folder>/<machine>/<time>--<commit>.json.gz`. Run it after
/// each process: processes of one commit are one run if each follows the one before within an hour.
#[derive(Debug, clap::Args)]
pub(crate) struct KeepArgs {
    #[command(flatten)]
    place: MachineFolder,
    /// Folder of the results [default: as `crossover compare`]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Remove the oldest files of the machine until this many are left
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
}

impl MachineFolder {
    /// The folder of the machine.
    fn of(&self, environment: &Environment) -> anyhow::Result<PathBuf> {
        let name = self
            .machine
            .clone()
            .unwrap_or_else(|| environment.machine_key());
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
            bail!("--machine: give the name of a folder");
        }
        Ok(self.folder.join(name))
    }
}

/// Show which benchmarks became slower or faster over the kept runs of this machine, and since which commit
///
/// A change is suspected, since each commit moves functions too; the printed command confirms or refutes it.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    place: MachineFolder,
    /// Also write a page with a plot of each benchmark
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs `crossover history`.
pub(crate) fn history(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let environment = match args.place.machine {
        Some(_) => Environment::default(),
        None => fingerprint::collect(first_gpu(&Settings::from_env()?).as_ref(), 0),
    };
    let folder = args.place.of(&environment)?;
    let (processes, problems) = history::read_all(&folder);
    for problem in &problems {
        eprintln!("left out: {problem}");
    }
    let mut runs = history::by_run(processes);
    let machine = visible(&folder.file_name().unwrap_or_default().to_string_lossy());
    if runs.is_empty() {
        let folder = args.place.folder.display();
        bail!(
            "{folder} has no runs of {machine}: `crossover keep` adds one, and --machine names another machine"
        );
    }
    in_order_of_commits(&mut runs);
    let names = runs.iter().map(|run| name(&run[0])).collect();
    let history = History::new(machine, names, breaks(&runs), times(&runs));
    if let Some(path) = &args.html {
        write_atomic(path, history.page().as_bytes()).context("--html: choose another file")?;
    }
    println!("{}: {}", history.machine, counted(runs.len(), "run"));
    for note in &history.notes {
        println!("{note}");
    }
    println!();
    for row in &history.rows {
        println!("{}: {}", visible(&row.id), row.in_words(&history.runs));
    }
    print_confirmations(&history, &runs);
    Ok(ExitCode::SUCCESS)
}

/// The commands that confirm or refute the new suspicions.
fn print_confirmations(history: &History, runs: &[Vec<KeptRun>]) {
    for ((good, bad), ids) in history.suspected() {
        let commit = |run: usize| runs[run][0].environment.commit.as_deref();
        let (Some(good), Some(bad)) = (commit(good), commit(bad)) else {
            println!("\nsuspected without a commit: keep the results in their repository");
            continue;
        };
        if good == bad {
            println!(
                "\nsuspected between two runs of {good}: the machine or uncommitted changes differ; commit changes \
                 before `crossover keep`"
            );
            continue;
        }
        let range = format!("{good}..{bad}");
        let between = git(&["rev-list", "--count", "--first-parent", &range]);
        let between = between.and_then(|count| count.parse::<usize>().ok());
        let commits =
            between.map_or_else(|| "unknown commits".to_owned(), |n| counted(n, "commit"));
        println!("\nTo confirm a change in {commits}:");
        let ids: Vec<String> = ids.iter().map(|id| regex::escape(id)).collect();
        let filter = crate::quoted_for_sh(&format!("^({})$", ids.join("|")));
        println!("crossover ab {good} {bad} -- {filter}");
    }
}

/// A run in a few words: its commit, or its time.
fn name(run: &KeptRun) -> String {
    let commit = run.environment.commit_in_words();
    let day = run.time.get(..10).unwrap_or(&run.time);
    commit.map_or_else(|| run.time.clone(), |commit| format!("{commit} ({day})"))
}

/// Puts the runs whose commits are in the first-parent history of HEAD into its order; the others keep their places.
fn in_order_of_commits(runs: &mut [Vec<KeptRun>]) {
    let list = git(&["rev-list", "--first-parent", "--reverse", "HEAD"]).unwrap_or_default();
    let places: HashMap<&str, usize> = list.lines().zip(0..).collect();
    let place = |run: &[KeptRun]| places.get(run[0].environment.commit.as_deref()?).copied();
    let known: Vec<usize> = (0..runs.len())
        .filter(|run| place(&runs[*run]).is_some())
        .collect();
    let mut sorted: Vec<Vec<KeptRun>> = known.iter().map(|run| runs[*run].clone()).collect();
    sorted.sort_by_key(|run| place(run));
    for (at, run) in known.into_iter().zip(sorted) {
        runs[at] = run;
    }
}

/// Facts of a machine that may change without its name.
const SOFTWARE: [&str; 5] = [
    "operating system",
    "GPU driver",
    "CUDA version",
    "NVRTC version",
    "cuBLAS version",
];

/// Where another kernel, driver or toolchain begins.
fn breaks(runs: &[Vec<KeptRun>]) -> Vec<String> {
    let facts = |run: &KeptRun| -> BTreeMap<&str, String> {
        let compiler = run.toolchain.clone().map(|version| ("toolchain", version));
        let facts = run.environment.facts().into_iter();
        facts
            .filter(|(name, _)| SOFTWARE.contains(name))
            .chain(compiler)
            .collect()
    };
    let pairs = runs.windows(2).flat_map(|pair| {
        let [before, after] = [facts(&pair[0][0]), facts(&pair[1][0])];
        let since = name(&pair[1][0]);
        let changed = after.into_iter().filter_map(move |(name, new)| {
            let old = before.get(name).filter(|old| **old != new)?;
            Some(format!(
                "break: {name} {old} until then, {new} since {since}"
            ))
        });
        changed.collect::<Vec<_>>()
    });
    pairs.collect()
}

/// The benchmarks of the newest run: the geometric mean over the processes of each run of their medians, on the clock
/// of the newest.
fn times(runs: &[Vec<KeptRun>]) -> Vec<(String, Vec<Option<f64>>)> {
    let Some(newest) = runs.last() else {
        return Vec::new();
    };
    let ids: BTreeMap<&String, _> = newest
        .iter()
        .flat_map(|it| &it.benchmarks)
        .map(|(id, it)| (id, it.clock))
        .collect();
    let row = |(id, clock): (&String, _)| {
        let of_run = |run: &Vec<KeptRun>| {
            let kept = run.iter().filter_map(|process| process.benchmarks.get(id));
            let medians = kept
                .filter(|it| it.clock == clock)
                .filter_map(|it| median(it.ns.iter().copied()));
            Some(mean(medians.map(f64::ln)).exp()).filter(|ns| ns.is_finite())
        };
        (id.clone(), runs.iter().map(of_run).collect())
    };
    ids.into_iter().map(row).collect()
}

/// Runs `crossover keep`.
pub(crate) fn keep(args: &KeepArgs) -> anyhow::Result<ExitCode> {
    let roots = (args.results.clone()).map_or_else(results_folders, |folder| vec![folder]);
    let read = roots.iter().map(|root| (root, Baseline::read(root, NEW)));
    let Some((root, results)) = read.into_iter().find(|(_, read)| !read.results.is_empty()) else {
        bail!(
            "there are no results: run `cargo bench`, or name their folder with --results or CRITERION_HOME"
        );
    };
    for problem in &results.problems {
        eprintln!("left out: {problem}");
    }
    let measured = results.runs.values().max_by_key(|run| &run.started);
    let mut environment = match measured {
        Some(run) => run.environment.clone(),
        None => fingerprint::collect(first_gpu(&Settings::from_env()?).as_ref(), 0),
    };
    if environment.commit.is_none() {
        environment.commit = git(&["rev-parse", "HEAD"]);
        let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
        environment.dirty = changes.map(|changes| !changes.is_empty());
    }
    let place = args.place.of(&environment)?;
    let time = newest_sample(root).context("the results were removed meanwhile")?;
    let samples = results.results.iter();
    let run = KeptRun::new(runs::moment(time), environment, toolchain(), samples);
    let path = run.keep(&place).context("the run could not be kept")?;
    let removed = args
        .keep
        .map_or(Ok(0), |most| history::prune(&place, most as usize))?;
    let kept = counted(run.benchmarks.len(), "benchmark");
    println!("{kept} in {}", visible(&path.to_string_lossy()));
    if removed > 0 {
        println!("removed the oldest {}", counted(removed, "file"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The line that git prints about the repository around this folder, if there is one.
fn git(arguments: &[&str]) -> Option<String> {
    git_line(git_around(Path::new(".")).args(arguments)).ok()
}

/// The version of the compiler that cargo finds here.
fn toolchain() -> Option<String> {
    let version = Command::new("rustc").arg("--version").output().ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    Some(visible(version.trim())).filter(|version| !version.is_empty())
}

/// When the newest result under a folder was written.
fn newest_sample(root: &Path) -> Option<SystemTime> {
    let entries = walkdir::WalkDir::new(root)
        .follow_links(true)
        .into_iter()
        .flatten();
    let newest = entries.filter(|entry| entry.path().ends_with(Path::new(NEW).join(SAMPLE)));
    newest
        .filter_map(|entry| fs::metadata(entry.path()).ok()?.modified().ok())
        .max()
}
