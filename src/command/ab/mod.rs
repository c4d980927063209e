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

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::command::ab::subject::{Prepared, Subject};
use crate::command::verdict::VerdictArgs;
use crate::compare::comparison::{Comparison, Options, compare};
use crate::compare::drift::KnownDrift;
use crate::compare::plan::{self, Open};
use crate::results::baseline::Baseline;
use crate::results::layout::NEW;
use crate::results::source::Source;
use crate::suite::turns::Instructions;

/// What is known of machines, in the folder of all results.
const DRIFT: &str = "drift.json";

/// Run two revisions together, in turns, and compare them pair by pair
///
/// Both are started, and one at a time runs, sample by sample in the order A B B A: so both meet
/// the same host. A process is a random draw, so several pairs of processes are run: all
/// benchmarks in the first ones (`--pairs`), and then, in fresh processes until they are decided or
/// the time is spent (`--budget`), those that may have changed. Only these later pairs make a
/// benchmark slower or faster. A revision from before turns runs one after the other.
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
    /// Pairs of processes that run all benchmarks, at first
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    pairs: u32,
    /// Minutes for all pairs, after which no other is begun; 0 judges by the first pairs alone
    #[arg(long, value_name = "MINUTES", default_value_t = 7.0, value_parser = minutes)]
    budget: f64,
    /// Seconds that a side may take for one turn, set-up and analysis included, before it is
    /// ended as hung
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    turn_limit: u32,
    /// Only this bench target of the package (revisions only; may be repeated)
    #[arg(long = "bench", value_name = "NAME")]
    benches: Vec<String>,
    /// Folder under which the results of all runs are kept, and what they tell of this machine
    #[arg(long, value_name = "FOLDER", default_value = "target-reports/ab")]
    results: PathBuf,
    #[command(flatten)]
    verdict: VerdictArgs,
    /// Arguments of the benchmarks
    #[arg(last = true, value_name = "BENCH_ARGS")]
    bench_args: Vec<String>,
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.0..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("give minutes, from 0 to 10000".to_owned()),
    }
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
    let mut options = args.verdict.options()?;
    let a = Subject::old(args.a.as_deref())?;
    let b = Subject::new(args.b.as_deref(), &a)?;
    let results = fresh_folder(&args.results)?;

    // Both are built before either runs, so that no run follows a hot compiler.
    let a = a.prepare("a", &args.benches)?;
    let b = b.prepare("b", &args.benches)?;

    let mut pairs = Pairs::new(args, &results, [a, b]);
    for _ in 0..args.pairs {
        pairs.run(None)?;
    }
    let confirms = args.budget > 0.0 && pairs.one_after_the_other.is_empty();
    options.screened = if confirms { args.pairs as usize } else { 0 };
    let comparison = match confirms {
        true => confirm(args, &options, &mut pairs)?,
        false => pairs.compare(&options),
    };
    pairs.close(args, &results, comparison)
}

/// Runs what is not decided, in fresh processes, as long as there is time.
fn confirm(args: &Args, options: &Options, pairs: &mut Pairs<'_>) -> anyhow::Result<Comparison> {
    let mut decided = BTreeSet::new();
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
        let left = 60.0 * args.budget - pairs.seconds();
        let worth_it = plan::worth_it(open.collect(), pairs.start_of_pair, left);
        if worth_it.is_empty() || pairs.hung {
            return Ok(comparison);
        }
        let only = worth_it.into_iter().map(str::to_owned);
        pairs.run(Some(only.collect()))?;
    }
}

/// The pairs of processes that have run.
struct Pairs<'a> {
    args: &'a Args,
    results: &'a Path,
    subjects: [Prepared; 2],
    start: Instant,
    sides: [Vec<Baseline>; 2],
    /// What calibrations chose, for the next process of the side.
    choices: [BTreeMap<String, String>; 2],
    /// Pairs that have run.
    number: u32,
    /// What each benchmark took in the last pair that had it, both sides together.
    seconds_of: BTreeMap<String, f64>,
    /// What the last pair took beside its benchmarks.
    start_of_pair: f64,
    failed: Vec<String>,
    hung: bool,
    one_after_the_other: BTreeSet<String>,
}

impl<'a> Pairs<'a> {
    fn new(args: &'a Args, results: &'a Path, subjects: [Prepared; 2]) -> Self {
        Self {
            args,
            results,
            subjects,
            start: Instant::now(),
            sides: [Vec::new(), Vec::new()],
            choices: [BTreeMap::new(), BTreeMap::new()],
            number: 0,
            seconds_of: BTreeMap::new(),
            start_of_pair: 0.0,
            failed: Vec::new(),
            hung: false,
            one_after_the_other: BTreeSet::new(),
        }
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Runs another pair, of all benchmarks or of these.
    fn run(&mut self, only: Option<BTreeSet<String>>) -> anyhow::Result<()> {
        self.number += 1;
        let pair = self.number;
        let [a, b] = &self.subjects;
        match &only {
            None => eprintln!(
                "pair {pair} of {}: {} and {}",
                self.args.pairs,
                a.label(),
                b.label()
            ),
            Some(only) => eprintln!(
                "pair {pair}: {} undecided benchmark(s), {:.0} s of {:.0} s used",
                only.len(),
                self.seconds(),
                60.0 * self.args.budget
            ),
        }
        let homes = ['a', 'b'].map(|side| self.results.join(format!("{side}{pair}")));
        for home in &homes {
            std::fs::create_dir_all(home).with_context(|| format!("{}", home.display()))?;
        }
        let told = [0, 1].map(|side: usize| Instructions {
            core: turns::core(pair),
            only: only.clone(),
            // An executable that computed rightly once does so in its other processes.
            verify: pair == 1,
            choices: self.choices[side].clone(),
        });
        let before = self.seconds();
        let ended = turns::take(
            a.command(&homes[0], &self.args.bench_args),
            b.command(&homes[1], &self.args.bench_args),
            pair.is_multiple_of(2),
            [&told[0], &told[1]],
            Duration::from_secs(self.args.turn_limit.into()),
        )?;
        let seconds = self.seconds() - before;
        let mut seconds_of: BTreeMap<String, f64> = BTreeMap::new();
        for (i, ended) in ended.into_iter().enumerate() {
            let label = self.subjects[i].label();
            let name = format!("{}{pair}", ['a', 'b'][i]);
            let how = match ended.status {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("failed ({status}), as it says above")),
                None => Some("hung and was ended".to_owned()),
            };
            self.hung |= ended.status.is_none();
            if let Some(how) = how {
                self.failed.push(format!(
                    "run {name} of {label} {how}; what it lacks is not compared"
                ));
            }
            if !ended.took_turns {
                self.one_after_the_other.insert(label.to_owned());
            }
            self.choices[i].extend(ended.choices);
            for (id, seconds) in ended.seconds {
                *seconds_of.entry(id).or_default() += seconds;
            }
            let read = Baseline::read(&Source {
                root: homes[i].clone(),
                baseline: NEW.to_owned(),
                label: label.to_owned(),
            });
            // A side may have none of what is asked for later.
            if read.results.is_empty() && pair == 1 {
                if !self.failed.is_empty() {
                    bail!("{}", self.failed.join("; "));
                }
                bail!(
                    "run {name} left no results in {}; does the filter after `--` match a \
                     benchmark, and does `run` keep to CRITERION_HOME?",
                    homes[i].display()
                );
            }
            self.sides[i].push(read);
        }
        self.start_of_pair = (seconds - seconds_of.values().sum::<f64>()).max(0.0);
        self.seconds_of.extend(seconds_of);
        Ok(())
    }

    fn compare(&self, options: &Options) -> Comparison {
        compare(&self.sides[0], &self.sides[1], options)
    }

    /// Keeps what was learnt, shows the comparison, and says how the command ends.
    fn close(
        &self,
        args: &Args,
        results: &Path,
        mut comparison: Comparison,
    ) -> anyhow::Result<ExitCode> {
        comparison.failures.clone_from(&self.failed);
        comparison.warnings.extend(self.different_choices());
        if !self.one_after_the_other.is_empty() {
            let labels: Vec<&str> = self
                .one_after_the_other
                .iter()
                .map(String::as_str)
                .collect();
            comparison.warnings.push(format!(
                "{} cannot take turns with another process: the sides ran one after the other and \
                 met a different host, and nothing was confirmed",
                labels.join(" and ")
            ));
        }
        if let Err(error) = self.keep_drift(&args.results.join(DRIFT)) {
            eprintln!("note: what was learnt of this machine is not kept: {error:#}");
        }
        args.verdict.keep(&comparison, results)?;
        let mut code = args.verdict.show(&comparison)?;
        // No change is worth a verdict where a side computes wrongly.
        for text in &self.failed {
            eprintln!("error: {text}");
            code = ExitCode::FAILURE;
        }
        eprintln!(
            "results of all runs, compare.html, compare.md and compare.json: {}",
            results.display()
        );
        Ok(code)
    }

    fn keep_drift(&self, path: &Path) -> anyhow::Result<()> {
        let mut known = KnownDrift::read(path)?;
        if known.learn([&self.sides[0], &self.sides[1]]) {
            known.write(path)?;
        }
        Ok(())
    }

    /// What calibrations chose differently on the two sides.
    fn different_choices(&self) -> Vec<String> {
        let [old, new] = &self.choices;
        let both = old
            .iter()
            .filter_map(|(name, old)| Some((name, old, new.get(name)?)));
        both.filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| format!("{name}: base chose {old}, new {new}"))
            .collect()
    }
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
