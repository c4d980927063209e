//! `crossover ab [A [B]]`: two revisions or bundles, run together in turns and compared pair by
//! pair.

mod child;
mod subject;
#[cfg(unix)]
mod turns;
#[cfg(not(unix))]
#[path = "one_after_the_other.rs"]
mod turns;
mod worktree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::command::ab::subject::{Prepared, Subject};
use crate::command::verdict::VerdictArgs;
use crate::compare::comparison::compare;
use crate::results::baseline::Baseline;
use crate::results::layout::NEW;
use crate::results::source::Source;
use crate::suite::turns::Instructions;

/// Run two revisions together, in turns, and compare them pair by pair
///
/// Both are started, and one at a time runs, sample by sample in the order A B B A: so both meet
/// the same host. A process is a random draw, so several pairs of processes are run. A revision
/// from before turns runs one after the other.
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
    a: Option<String>,
    /// The new code: a revision (the work tree by default) or a bundle folder
    b: Option<String>,
    /// Two pairs of processes are run, this many times
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Seconds that a side may take for one turn, set-up and analysis included, before it is
    /// ended as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    turn_limit: u32,
    /// Only this bench target of the package (revisions only; may be repeated)
    #[arg(long = "bench", value_name = "NAME")]
    benches: Vec<String>,
    /// Folder under which the results of all runs are kept
    #[arg(long, value_name = "FOLDER", default_value = "target-reports/ab")]
    results: PathBuf,
    #[command(flatten)]
    verdict: VerdictArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "BENCH_ARGS")]
    bench_args: Vec<String>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    child::catch_interrupts()?;
    match ab(args) {
        // Whatever failed then, the interrupt is why.
        Err(_) if child::interrupted() => {
            eprintln!("{}", child::Interrupted);
            Ok(ExitCode::from(130))
        }
        other => other,
    }
}

fn ab(args: &Args) -> anyhow::Result<ExitCode> {
    let options = args.verdict.options()?;
    let a = Subject::old(args.a.as_deref())?;
    let b = Subject::new(args.b.as_deref(), &a)?;
    let results = fresh_folder(&args.results)?;

    // Both are built before either runs, so that no run follows a hot compiler.
    let a = a.prepare("a", &args.benches)?;
    let b = b.prepare("b", &args.benches)?;

    let pairs = args.rounds * 2;
    let mut failed = Vec::new();
    let mut one_after_the_other = BTreeSet::new();
    for pair in 1..=pairs {
        eprintln!("pair {pair} of {pairs}: {} and {}", a.label(), b.label());
        let command = |side: char, subject: &Prepared| -> anyhow::Result<Command> {
            let home = results.join(format!("{side}{pair}"));
            std::fs::create_dir_all(&home).with_context(|| format!("{}", home.display()))?;
            Ok(subject.command(&home, &args.bench_args))
        };
        let limit = Duration::from_secs(args.turn_limit.into());
        let told = Instructions {
            core: turns::core(pair, pairs),
            ..Instructions::default()
        };
        let (old, new) = (command('a', &a)?, command('b', &b)?);
        let ended = turns::take(old, new, pair % 2 == 0, [&told, &told], limit)?;
        for (subject, side, ended) in [(&a, 'a', &ended[0]), (&b, 'b', &ended[1])] {
            let how = match ended.status {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("failed ({status}), as it says above")),
                None => Some("hung and was ended".to_owned()),
            };
            if let Some(how) = how {
                failed.push(format!(
                    "run {side}{pair} of {} {how}; what it lacks is not compared",
                    subject.label()
                ));
            }
            if !ended.took_turns {
                one_after_the_other.insert(subject.label());
            }
        }
    }
    if !one_after_the_other.is_empty() {
        let labels: Vec<&str> = one_after_the_other.into_iter().collect();
        eprintln!(
            "note: {} cannot take turns with another process: the sides ran one after the other, \
             and met a different host",
            labels.join(" and ")
        );
    }

    let side = |side: char, label: &str| -> anyhow::Result<Vec<Baseline>> {
        (1..=pairs)
            .map(|pair| {
                let source = Source {
                    root: results.join(format!("{side}{pair}")),
                    baseline: NEW.to_owned(),
                    label: format!("{side}{pair}: {label}"),
                };
                let read = Baseline::read(&source);
                if read.results.is_empty() {
                    if !failed.is_empty() {
                        bail!("{}", failed.join("; "));
                    }
                    bail!(
                        "run {side}{pair} left no results in {}; does the filter after `--` match a \
                         benchmark, and does `run` keep to CRITERION_HOME?",
                        source.root.display()
                    );
                }
                Ok(read)
            })
            .collect()
    };
    let comparison = compare(&side('a', a.label())?, &side('b', b.label())?, &options);
    args.verdict.keep(&comparison, &results)?;
    let mut code = args.verdict.show(&comparison)?;
    // No change is worth a verdict where a side computes wrongly.
    for text in &failed {
        eprintln!("error: {text}");
        code = ExitCode::FAILURE;
    }
    eprintln!(
        "results of all runs, compare.html, compare.md and compare.json: {}",
        results.display()
    );
    Ok(code)
}

/// A new folder named by the time; absolute, since the runs have folders of their own.
fn fresh_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let parent = std::path::absolute(parent)?;
    let now = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ");
    let dir = parent.join(format!("{now}-{}", std::process::id()));
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("{}: choose another folder with --results", dir.display()))?;
    Ok(dir)
}
