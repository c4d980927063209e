//! `crossover ab [A [B]]`: two revisions or bundles, run together in turns and compared pair by
//! pair.

mod arguments;
mod child;
mod criterion_options;
mod executable;
mod git;
mod pairs;
mod processes;
mod sampling;
mod subject;
mod turns;
mod worktree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::anyhow;

pub(crate) use crate::ab::arguments::Args;
use crate::ab::pairs::Pairs;
use crate::ab::subject::Subject;
use crate::ab::worktree::Place;
use crossover_compare::comparison::{Comparison, Options};
use crossover_compare::plan::{self, Open};
use crossover_results::store::runs;
use crossover_results::store::whole_file::try_to_write;

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
    let mut options = args.verdict.options()?;
    let a = Subject::old(args.a.as_deref())?;
    let b = Subject::new(args.b.as_deref(), &a)?;
    let results = fresh_folder(&args.results)?;

    worktree::remove_abandoned();
    let place = Place::new()?;
    // Both are built before either runs, so that no run follows a hot compiler.
    let a = a.prepare(0, &place, args)?;
    let b = b.prepare(1, &place, args)?;

    let mut pairs = Pairs::new(args, &results, &place, [a, b])?;
    pairs.run_first()?;
    let confirms = args.budget > 0.0 && !pairs.over;
    options.screened = if confirms { pairs.first() as usize } else { 0 };
    options.on_one_machine = true;
    options.location = pairs.location();
    let comparison = match confirms {
        true => confirm(&options, &mut pairs)?,
        false => pairs.compare(&options),
    };
    pairs.close(comparison)
}

/// Runs what is not decided, in new processes, as long as there is time.
fn confirm(options: &Options, pairs: &mut Pairs<'_>) -> anyhow::Result<Comparison> {
    let mut decided = BTreeSet::new();
    pairs.tell_outlook(&pairs.compare(options));
    loop {
        let comparison = pairs.compare(options);
        decided.extend(comparison.decided());
        let open = (comparison.open())
            .filter(|(id, _)| !decided.contains(*id))
            .filter_map(|(id, needed)| {
                let seconds = *pairs.seconds_of.get(id)?;
                Some(Open {
                    id,
                    pairs: needed,
                    seconds,
                })
            });
        let worth_it = plan::worth_it(open.collect(), pairs.start_of_pair, pairs.left());
        if worth_it.is_empty() || pairs.over {
            return Ok(comparison);
        }
        let only = worth_it.into_iter().map(str::to_owned);
        pairs.run(Some(only.collect()))?;
    }
}

/// A new folder named by the time; absolute, since the runs have folders of their own.
fn fresh_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let parent = std::path::absolute(parent)?;
    let dir = parent.join(runs::name(SystemTime::now()));
    std::fs::create_dir_all(&dir)
        .and_then(|()| try_to_write(&dir))
        .map_err(|why| {
            anyhow!(
                "{}: {why}; choose another folder with --results",
                dir.display()
            )
        })?;
    Ok(dir)
}
