//! The command line of `crossover ab`.

use std::path::PathBuf;

use crate::verdict::VerdictArgs;

/// Run two revisions together, in turns, and compare them pair by pair
///
/// Both sides are started, and only one of them runs at a time, sample by sample in the order
/// A B B A, so both meet the same state of the host. Each process is a random draw, so several pairs
/// of processes are run: the first ones (`--pairs`) run all benchmarks, later ones run those that may
/// have changed, until these are decided or the time is spent (`--budget`). Only the later pairs can
/// make the verdict slower or faster. A revision too old to take turns runs after the other one.
///
/// A and B are git revisions, or bundle folders (each with an executable `run`). A is HEAD
/// unless named; B is the work tree with its uncommitted changes unless named. Revisions are
/// built in worktrees of their own, with their own target folders: your work tree is left
/// alone, and you may go on editing it. Arguments after `--` go to the benchmarks: a filter,
/// `--sample-size`, and so on.
///
/// Exit code: 0 clean, 1 slower (see --fail-on) or a run failed (a wrong result, a crash), 2
/// nothing could be compared, 130 interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The old code: a revision (HEAD by default) or a bundle folder
    pub(super) a: Option<String>,
    /// The new code: a revision (the work tree by default) or a bundle folder
    pub(super) b: Option<String>,
    /// Pairs of processes at the start, which run all benchmarks
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) pairs: u32,
    /// Minutes after which no further pair is started; 0 judges by the first pairs alone
    #[arg(long, value_name = "MINUTES", default_value_t = 7.0, value_parser = minutes)]
    pub(super) budget: f64,
    /// Seconds that a side may take for one turn, including set-up and analysis, before it is
    /// ended as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub(super) turn_limit: u32,
    /// Only this bench target of the package (revisions only; may be repeated)
    #[arg(long = "bench", value_name = "NAME")]
    pub(super) benches: Vec<String>,
    /// Folder for the results of all runs
    #[arg(long, value_name = "FOLDER", default_value = "target-reports/ab")]
    pub(super) results: PathBuf,
    #[command(flatten)]
    pub(super) verdict: VerdictArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "BENCH_ARGS")]
    pub(super) bench_args: Vec<String>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.0..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("give minutes, from 0 to 10000".to_owned()),
    }
}
