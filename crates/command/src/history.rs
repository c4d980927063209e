//! `crossover keep` and `crossover history`: the runs of a machine.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::ab::{git_around, git_line};
use crate::compare::results_folders;
use crossover_compare::comparison::FailOn;
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
/// The results are those of any Criterion project, and go to `<folder>/<machine>/<time>--<commit>.json.gz`. Run it
/// after each process: processes of one commit are one run if each follows the one before within an hour.
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
/// A change is suspected, since each commit moves functions too; `crossover ab` confirms or refutes it.
///
/// Exit code: 1 if a change is suspected in the newest run (with --confirm: confirmed) that --fail-on names.
#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    place: MachineFolder,
    /// Also write a page with a plot of each benchmark
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Run `crossover ab` on the commits between which a change is suspected
    #[arg(long)]
    confirm: bool,
    /// Print Markdown, for a comment or the summary of a job
    #[arg(long)]
    markdown: bool,
    /// Which changes make the exit code 1
    #[arg(long, value_enum, default_value_t)]
    fail_on: FailOn,
    /// Options of `crossover ab` for --confirm, such as the packages and features that `cargo bench` had
    #[arg(last = true, requires = "confirm")]
    ab: Vec<String>,
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
    let machine = visible(&folder.file_name().unwrap_or_default().to_string_lossy());
    if processes.is_empty() {
        let folder = args.place.folder.display();
        bail!(
            "{folder} has no runs of {machine}: `crossover keep` adds one, and --machine names another machine"
        );
    }
    let runs = in_order_of_commits(history::by_run(&processes));
    let names = runs.iter().map(|run| name(&run[0])).collect();
    let history = History::new(machine, names, breaks(&runs), times(&runs));
    if let Some(path) = &args.html {
        write_atomic(path, history.page().as_bytes()).context("--html: choose another file")?;
    }
    // Markdown shows indented lines as they are.
    let indent = if args.markdown { "    " } else { "" };
    for line in history.text().lines() {
        println!("{indent}{line}");
    }
    Ok(ExitCode::from(suspected(args, &history, &runs, indent)?))
}

/// Prints how to confirm the changes that are suspected in the newest run, or confirms them, and returns the exit code.
fn suspected(
    args: &HistoryArgs,
    history: &History,
    runs: &[&[KeptRun]],
    indent: &str,
) -> anyhow::Result<u8> {
    let commit = |run: usize| {
        let environment = &runs[run][0].environment;
        let is_committed = environment.dirty != Some(true);
        environment.commit.as_deref().filter(|_| is_committed)
    };
    let mut code = 0;
    for ((before, after), (ids, fails)) in history.suspected(args.fail_on) {
        let commits = commit(before).zip(commit(after));
        let Some((good, bad)) = commits.filter(|(good, bad)| good != bad) else {
            let why = match commits {
                Some(_) => {
                    "of one commit, so the machine changed: run `cargo bench` and `crossover keep` again"
                }
                None => {
                    "of which one has no commit: commit changes before `cargo bench`, and keep the results in their \
                     repository"
                }
            };
            println!("\n{indent}suspected between two runs {why}");
            // Nothing confirms or refutes it.
            code = code.max(u8::from(fails));
            continue;
        };
        let ids: Vec<String> = ids.into_iter().map(regex::escape).collect();
        let filter = format!("^({})$", ids.join("|"));
        let range = format!("{good}..{bad}");
        let count = git(&["rev-list", "--count", "--first-parent", &range]);
        let count = count.as_deref().unwrap_or("unknown");
        let quoted = crate::quoted_for_sh(&filter);
        println!("\n{indent}To confirm the change (commits: {count}):");
        println!("{indent}crossover ab {good} {bad} -- {quoted}\n");
        code = code.max(if args.confirm {
            confirm(args, good, bad, &filter)?
        } else {
            u8::from(fails)
        });
    }
    Ok(code)
}

/// Runs `crossover ab` on the benchmarks of a suspected change, and returns its exit code.
fn confirm(args: &HistoryArgs, good: &str, bad: &str, filter: &str) -> anyhow::Result<u8> {
    let fail_on = args.fail_on.to_possible_value();
    let fail_on = fail_on.as_ref().map_or("slower", |value| value.get_name());
    let mut ab = Command::new(crossover_system::own_executable()?);
    ab.args(["ab", good, bad, "--fail-on", fail_on]);
    ab.args(args.markdown.then_some("--markdown"))
        .args(&args.ab);
    let code = ab.args(["--", filter]).status()?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// A run in a few words: its commit, or its time.
fn name(run: &KeptRun) -> String {
    let commit = run.environment.commit_in_words();
    let day = run.time.get(..10).unwrap_or(&run.time);
    let name = commit.map_or_else(|| run.time.clone(), |commit| format!("{commit} ({day})"));
    visible(&name)
}

/// The runs in the order of the first-parent history of HEAD. A run whose commit is not in it follows the one before.
fn in_order_of_commits(runs: Vec<&[KeptRun]>) -> Vec<&[KeptRun]> {
    let list = git(&["rev-list", "--first-parent", "--reverse", "HEAD"]).unwrap_or_default();
    let places: HashMap<&str, usize> = list.lines().zip(1..).collect();
    let mut before = 0;
    let mut placed = Vec::new();
    for run in runs {
        let commit = run[0].environment.commit.as_deref();
        before = commit
            .and_then(|commit| places.get(commit).copied())
            .unwrap_or(before);
        placed.push((before, run));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, run)| run).collect()
}

/// Where another kernel, driver or toolchain begins.
fn breaks(runs: &[&[KeptRun]]) -> Vec<String> {
    let software = |run: &KeptRun| -> BTreeMap<&str, String> {
        let compiler = run.toolchain.clone().map(|version| ("toolchain", version));
        let facts = run.environment.facts().into_iter();
        let is_software = |name: &str| {
            name.ends_with("version") || ["operating system", "GPU driver"].contains(&name)
        };
        let facts = facts.filter(|(name, _)| is_software(name));
        facts.chain(compiler).collect()
    };
    let mut breaks = Vec::new();
    for pair in runs.windows(2) {
        let [before, after] = [software(&pair[0][0]), software(&pair[1][0])];
        for (fact, new) in &after {
            if let Some(old) = before.get(fact).filter(|old| *old != new) {
                let since = name(&pair[1][0]);
                breaks.push(format!(
                    "break: {fact} {old} until then, {new} since {since}"
                ));
            }
        }
    }
    breaks
}

/// The benchmarks of the newest run: the geometric mean over the processes of each run of their medians, on the clock
/// of the newest.
fn times(runs: &[&[KeptRun]]) -> Vec<(String, Vec<Option<f64>>)> {
    let newest = runs.last().into_iter().copied().flatten();
    let newest = newest.flat_map(|process| &process.benchmarks);
    let clocks: BTreeMap<&String, _> = newest.map(|(id, kept)| (id, kept.clock)).collect();
    let row = |(id, clock): (&String, _)| {
        let of_run = |run: &&[KeptRun]| {
            let kept = run.iter().filter_map(|process| process.benchmarks.get(id));
            let medians = kept
                .filter(|kept| kept.clock == clock)
                .filter_map(|kept| median(kept.ns.iter().copied()));
            Some(mean(medians.map(f64::ln)).exp()).filter(|ns| ns.is_finite())
        };
        (id.clone(), runs.iter().map(of_run).collect())
    };
    clocks.into_iter().map(row).collect()
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
    let mut run = KeptRun::new(runs::moment(time), environment, toolchain(), samples);
    let earlier = run.leave_out_kept(&history::read_all(&place).0);
    if earlier > 0 {
        let count = counted(earlier, "benchmark");
        eprintln!("left out: {count} that did not run since they were kept");
    }
    if run.benchmarks.is_empty() {
        bail!(
            "all results were kept before, perhaps under another commit: run `cargo bench`, or delete that file from {}",
            visible(&place.to_string_lossy())
        );
    }
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
    let entries = walkdir::WalkDir::new(root).follow_links(true).into_iter();
    let newest = entries
        .flatten()
        .filter(|entry| entry.path().ends_with(Path::new(NEW).join(SAMPLE)));
    newest
        .filter_map(|entry| entry.metadata().ok()?.modified().ok())
        .max()
}
