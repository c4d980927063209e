//! The command line of `crossover ab`.

use std::path::PathBuf;

use crate::verdict::VerdictArgs;

/// Build two versions, run them in turns, and compare them
///
/// Works for any Criterion project. Two processes of the same code differ, so `ab` runs many pairs
/// of short processes, one benchmark each, in the order A B B A. The first pairs (`--pairs`) run all
/// benchmarks. Later pairs run the undecided ones until the time is spent (`--budget`); only these
/// pairs can make a verdict slower or faster. A suite of `crossover` takes turns sample by sample.
///
/// A and B are git revisions, or bundle folders (each with an executable `run`). By default A is
/// HEAD, and B is the work tree with its uncommitted changes. Revisions are built in work trees of
/// their own, so you may go on editing yours. Arguments after `--` go to the benchmarks: a filter,
/// `--sample-size`, and so on.
///
/// Exit code: 0 nothing is slower, 1 something is slower (see --fail-on) or a run failed, 2 nothing
/// could be compared, 130 interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The old code: a revision (HEAD by default) or a bundle folder
    pub(super) a: Option<String>,
    /// The new code: a revision (the work tree by default) or a bundle folder
    pub(super) b: Option<String>,
    /// Pairs of processes at the start, which run all benchmarks [default: 8; 2 where they take
    /// turns sample by sample]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) pairs: Option<u32>,
    /// Minutes after which no further pair is started; 0 judges by the first pairs alone
    #[arg(long, value_name = "MINUTES", default_value_t = 7.0, value_parser = minutes)]
    pub(super) budget: f64,
    /// Seconds that a side may take for one turn, including set-up and analysis, before it is
    /// ended as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) turn_limit: u32,
    /// Only this bench target (may be repeated, and may be on one side only)
    #[arg(long = "bench", value_name = "NAME", help_heading = BUILD)]
    pub(super) benches: Vec<String>,
    /// Only this package of the workspace (may be repeated, and may be on one side only)
    #[arg(short, long = "package", value_name = "NAME", help_heading = BUILD)]
    pub(super) packages: Vec<String>,
    /// All packages of the workspace
    #[arg(long, help_heading = BUILD, conflicts_with = "packages")]
    workspace: bool,
    /// Features of the packages
    #[arg(short = 'F', long, value_name = "FEATURES", help_heading = BUILD)]
    features: Vec<String>,
    /// All features
    #[arg(long, help_heading = BUILD)]
    all_features: bool,
    /// Without the default features
    #[arg(long, help_heading = BUILD)]
    no_default_features: bool,
    /// Folder for the results of all runs
    #[arg(long, value_name = "FOLDER", default_value = "target-reports/ab")]
    pub(super) results: PathBuf,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "BENCH_ARGS")]
    pub(super) bench_args: Vec<String>,
}

/// What `cargo bench` is given too, the same on both sides.
const BUILD: &str = "Build (revisions only)";

impl Args {
    /// The flags of cargo that do not name a package or a target.
    pub(super) fn build_flags(&self) -> Vec<String> {
        let flags = [
            ("--workspace", self.workspace),
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        let features = self.features.iter().flat_map(|names| ["--features", names]);
        given
            .map(|(flag, _)| flag)
            .chain(features)
            .map(str::to_owned)
            .collect()
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.0..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("give minutes, from 0 to 10000".to_owned()),
    }
}
