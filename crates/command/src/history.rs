//! `crossover keep` and `crossover history`: the runs of a machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::ab::{git_around, git_line};
use crate::compare::results_folders;
use crossover_machine::fingerprint;
use crossover_protocol::settings::Settings;
use crossover_results::model::environment::Environment;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::history::{self, KeptRun};
use crossover_results::store::layout::{NEW, SAMPLE};
use crossover_results::store::runs;
use crossover_words::text::visible;
use crossover_words::units::counted;

/// The folder of the history, and the machine in it.
#[derive(Debug, clap::Args)]
struct Place {
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
/// each process: processes of one commit within an hour are one run.
#[derive(Debug, clap::Args)]
pub(crate) struct KeepArgs {
    #[command(flatten)]
    place: Place,
    /// Folder of the results [default: as `crossover compare`]
    #[arg(long, value_name = "FOLDER")]
    results: Option<PathBuf>,
    /// Remove the oldest files of the machine until this many are left
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
}

impl Place {
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
        None => fingerprint::collect(Settings::from_env()?.probe().as_ref(), 0),
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
