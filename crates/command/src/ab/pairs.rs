//! The pairs of processes of a comparison: started, read, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::ab::child;
use crate::ab::criterion_options::{self, BenchArgs, Harness, Kind};
use crate::ab::executable::Executable;
use crate::ab::processes::Processes;
use crate::ab::subject::Side;
use crate::ab::turns::Turns;
use crate::ab::worktree::Place;
use crate::ab::{Args, NAMES};
use crossover_compare::comparison::{Comparison, Options, compare};
use crossover_compare::median::Location;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::whole_file::try_to_write;
use crossover_words::text::with_causes;
use crossover_words::units;

/// A way of running both sides.
pub(super) trait Sampling {
    /// Whether each process runs one benchmark, for a moment.
    fn is_brief(&self) -> bool;

    /// Runs a pair of processes, or of each benchmark one.
    ///
    /// # Errors
    /// An interrupt, or that a process cannot be started.
    fn run(&mut self, pair: &Pair<'_>) -> anyhow::Result<Ran>;

    /// What a reader must know of the pairs that ran.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What is to be run.
pub(super) struct Pair<'a> {
    /// From 1.
    pub(super) number: u32,
    /// The folders for the results of each side.
    pub(super) homes: &'a [PathBuf; 2],
    /// The benchmarks; all of them without this.
    pub(super) only: Option<&'a BTreeSet<String>>,
    /// What a process may take, or a turn of one.
    pub(super) limit: Duration,
    /// When no further process is started.
    pub(super) until: Option<Instant>,
}

impl Pair<'_> {
    /// One of its runs.
    pub(super) fn run(&self, side: usize) -> String {
        format!("run {}{}", NAMES[side], self.number)
    }
}

/// What became of a pair.
#[derive(Default)]
pub(super) struct Ran {
    /// A sentence each.
    pub(super) failures: Vec<String>,
    /// Benchmarks that are not judged since their process failed, and how.
    pub(super) failed: BTreeMap<String, String>,
    /// How long each benchmark took, both sides together.
    pub(super) seconds: BTreeMap<String, f64>,
    /// Benchmarks that the time did not reach, and what seconds each takes at least.
    pub(super) unreached: Vec<(String, f64)>,
    /// What each side left.
    pub(super) sides: [Baseline; 2],
    /// Whether no other pair can be run.
    pub(super) over: bool,
}

/// The pairs of processes that have run.
pub(super) struct Pairs<'a> {
    args: &'a Args,
    results: &'a Path,
    labels: [String; 2],
    sampling: Box<dyn Sampling + 'a>,
    start: Instant,
    sides: [Vec<Baseline>; 2],
    /// Pairs that have run.
    number: u32,
    /// Seconds that each benchmark took in the last pair that had it, both sides together.
    pub(super) seconds_of: BTreeMap<String, f64>,
    /// Seconds that the last pair took beside its benchmarks.
    pub(super) start_of_pair: f64,
    failures: Vec<String>,
    failed: BTreeMap<String, String>,
    /// What a reader must know beside what the comparison says itself.
    remarks: Vec<String>,
    /// Whether no other pair is run: a side hung, or nothing more can be written.
    pub(super) over: bool,
}

impl<'a> Pairs<'a> {
    /// `remarks` are what a reader must know of both sides.
    ///
    /// # Errors
    /// An interrupt, or that there is nothing to compare.
    pub(super) fn new(
        args: &'a Args,
        results: &'a Path,
        place: &'a Place,
        subjects: [Side; 2],
        mut remarks: Vec<String>,
    ) -> anyhow::Result<Self> {
        let labels = subjects.each_ref().map(|subject| subject.label.clone());
        let sampling = choose(args, place, &subjects, &mut remarks)?;
        Ok(Self {
            args,
            results,
            labels,
            sampling,
            start: Instant::now(),
            sides: [Vec::new(), Vec::new()],
            number: 0,
            seconds_of: BTreeMap::new(),
            start_of_pair: 0.0,
            failures: Vec::new(),
            failed: BTreeMap::new(),
            remarks,
            over: false,
        })
    }

    /// Pairs that run everything.
    pub(super) fn first(&self) -> u32 {
        // So many tell what short processes differ by, also where some are far off.
        let usual = if self.sampling.is_brief() { 8 } else { 2 };
        self.args.pairs.unwrap_or(usual)
    }

    /// What is taken from the samples of a process.
    pub(super) fn location(&self) -> Location {
        match self.sampling.is_brief() {
            true => Location::Fastest,
            false => Location::Median,
        }
    }

    /// Seconds of the budget that are left.
    pub(super) fn left(&self) -> f64 {
        60.0 * self.args.budget - self.start.elapsed().as_secs_f64()
    }

    /// Runs the first pairs.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) fn run_first(&mut self) -> anyhow::Result<()> {
        let mut only = None;
        while self.number < self.first() && !self.over {
            self.run(only.clone())?;
            if self.number == 1 && self.args.budget > 0.0 && self.sampling.is_brief() {
                only = Some(self.those_that_fit());
            }
        }
        Ok(())
    }

    /// After the first pair, the benchmarks that can run in all of the first pairs within half of the
    /// budget. The slow ones would leave no time for the others.
    fn those_that_fit(&mut self) -> BTreeSet<String> {
        let [old, new] = self.sides.each_ref().map(|runs| &runs[0].results);
        let shared = old.keys().filter(|id| new.contains_key(*id));
        let mut shared: Vec<(&String, f64)> = shared
            .filter_map(|id| Some((id, *self.seconds_of.get(id)?)))
            .collect();
        shared.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut seconds, limit) = (0.0, 30.0 * self.args.budget);
        let fits = |(_, one): &&(&String, f64)| {
            seconds += one * f64::from(self.first() - 1);
            seconds <= limit
        };
        let fit: BTreeSet<String> = shared
            .iter()
            .take_while(fits)
            .map(|(id, _)| (*id).clone())
            .collect();
        if let Some((slowest, seconds)) = shared.last().filter(|_| fit.len() < shared.len()) {
            self.remarks.push(format!(
                "{} ran once: {} pairs of them take more than half of the budget of {} min; the slowest, \
                 {slowest}, takes {seconds:.1} s per pair. Raise --budget, or filter them",
                units::counted(shared.len() - fit.len(), "benchmark"),
                self.first(),
                self.args.budget,
            ));
        }
        fit
    }

    /// Runs another pair, of all benchmarks or of these. What keeps it from running is a failure of
    /// the comparison only if no pair has run before.
    ///
    /// # Errors
    /// An interrupt, or that failure.
    pub(super) fn run(&mut self, only: Option<BTreeSet<String>>) -> anyhow::Result<()> {
        match self.try_to_run(only) {
            Err(error) if self.compares() && !child::interrupted() => {
                self.over = true;
                let why = with_causes(error.as_ref());
                self.failures.push(format!("no more pairs were run: {why}"));
                Ok(())
            }
            other => other,
        }
    }

    /// Whether both sides have results.
    fn compares(&self) -> bool {
        let mut sides = self.sides.iter();
        sides.all(|runs| runs.first().is_some_and(|run| !run.results.is_empty()))
    }

    fn try_to_run(&mut self, only: Option<BTreeSet<String>>) -> anyhow::Result<()> {
        if let Err(why) = try_to_write(self.results) {
            bail!("{}", no_room(self.results, &why));
        }
        self.number += 1;
        let number = self.number;
        let [a, b] = &self.labels;
        match &only {
            // A log has a line for each benchmark that is decided.
            Some(_) if number > self.first() && !io::stderr().is_terminal() => {}
            Some(only) if number > self.first() => eprintln!(
                "pair {number}: {} still undecided, {:.0} s of {:.0} s left",
                units::counted(only.len(), "benchmark"),
                self.left(),
                60.0 * self.args.budget
            ),
            _ => eprintln!("pair {number} of {}: {a} and {b}", self.first()),
        }
        let homes = NAMES.map(|side| self.results.join(format!("{side}{number}")));
        for home in &homes {
            std::fs::create_dir_all(home).with_context(|| format!("{}", home.display()))?;
        }
        let start = Instant::now();
        let budget = Duration::from_secs_f64(60.0 * self.args.budget);
        let ran = self.sampling.run(&Pair {
            number,
            homes: &homes,
            only: only.as_ref(),
            limit: Duration::from_secs(self.args.turn_limit.into()),
            until: (self.args.budget > 0.0).then(|| self.start + budget),
        })?;
        self.over |= ran.over;
        self.failures.extend(ran.failures);
        for (id, how) in ran.failed {
            self.seconds_of.remove(&id);
            self.failed.insert(id, how);
        }
        if let (Some((slowest, seconds)), 1) = (ran.unreached.last(), number) {
            self.remarks.push(format!(
                "the budget of {} min did not reach {}, such as {slowest}{}: raise --budget, or filter \
                 them",
                self.args.budget,
                units::counted(ran.unreached.len(), "benchmark"),
                match *seconds > 0.0 {
                    true => format!(", a pair of which takes {seconds:.0} s or more"),
                    false => String::new(),
                }
            ));
        }
        let read = ran.sides.into_iter().zip(&self.labels);
        for (side, (mut baseline, label)) in self.sides.iter_mut().zip(read) {
            baseline.label.clone_from(label);
            side.push(baseline);
        }
        // A side may have none of what is asked for later.
        if number == 1 && !self.compares() {
            self.over = true;
            if self.failures.is_empty() {
                bail!(
                    "the first runs left no results in {}; does the filter after `--` match a benchmark, \
                     and does `run` keep to CRITERION_HOME?",
                    homes.map(|home| home.display().to_string()).join(" or ")
                );
            }
        }
        let of_benchmarks: f64 = ran.seconds.values().sum();
        self.start_of_pair = (start.elapsed().as_secs_f64() - of_benchmarks).max(0.0);
        let judged = |(id, _): &(String, f64)| !self.failed.contains_key(id);
        self.seconds_of
            .extend(ran.seconds.into_iter().filter(judged));
        Ok(())
    }

    pub(super) fn compare(&self, options: &Options) -> Comparison {
        let options = Options {
            failed: self.failed.clone(),
            ..options.clone()
        };
        compare(&self.sides[0], &self.sides[1], &options)
    }

    /// Shows the comparison, and says how the command ends.
    pub(super) fn close(&self, mut comparison: Comparison) -> anyhow::Result<ExitCode> {
        comparison.failures.clone_from(&self.failures);
        comparison.warnings.extend(self.sampling.remarks());
        comparison.warnings.extend(self.remarks.iter().cloned());
        let mut code = self.args.verdict.show(&comparison)?;
        for text in &self.failures {
            eprintln!("error: {text}");
        }
        match self.args.verdict.keep(&comparison, self.results) {
            Ok(()) => eprintln!(
                "results of all runs, compare.html, compare.md and compare.json: {}",
                self.results.display()
            ),
            Err(error) => {
                eprintln!("error: {}", with_causes(error.as_ref()));
                code = ExitCode::FAILURE;
            }
        }
        Ok(code)
    }
}

pub(super) fn no_room(results: &Path, why: &io::Error) -> String {
    format!(
        "{}: {why}; make room there, or choose another folder with --results",
        results.display()
    )
}

/// Starts each executable to learn what it can, and chooses how both sides are run. What a reader
/// must know of them goes to `remarks`.
///
/// # Errors
/// An interrupt, or that the sides have no benchmark in common.
fn choose<'a>(
    args: &'a Args,
    place: &'a Place,
    subjects: &[Side; 2],
    remarks: &mut Vec<String>,
) -> anyhow::Result<Box<dyn Sampling + 'a>> {
    let mut found = Found::probe(args, place, subjects, true)?;
    if found.takers.iter().all(|takers| !takers.is_empty()) && !found.has_others() {
        remarks.extend(found.left_out());
        return Ok(Box::new(Turns::new(args, place, found.takers)?));
    }
    if found.takers.iter().any(|takers| !takers.is_empty()) {
        // Where one cannot take turns, short processes serve all.
        found = Found::probe(args, place, subjects, false)?;
    }
    let left_out: Vec<String> = found.left_out().collect();
    let of_harnesses: BTreeSet<String> = (found.harnesses.iter().flatten())
        .flat_map(Harness::remarks)
        .collect();
    let processes = Processes::new(place, found.harnesses);
    if processes.shared() == 0 {
        let side = |side: usize| {
            let what = match processes.is_empty(side) {
                true => "no benchmark",
                false => "others",
            };
            format!("{} has {what}", subjects[side].label)
        };
        let left_out: String = left_out.iter().map(|why| format!("; {why}")).collect();
        bail!(
            "nothing to compare: {}, {}{left_out}. A filter after `--`, `-p` and `--bench` choose \
             benchmarks of Criterion",
            side(0),
            side(1)
        );
    }
    remarks.extend(of_harnesses.into_iter().chain(left_out));
    Ok(Box::new(processes))
}

/// What the executables of both sides turned out to be.
#[derive(Default)]
struct Found {
    takers: [Vec<Executable>; 2],
    harnesses: [Vec<Harness>; 2],
    /// Executables that cannot be used, and why.
    unusable: Vec<String>,
    /// Executables without a benchmark, and why.
    empty: BTreeSet<String>,
}

impl Found {
    fn probe(
        args: &Args,
        place: &Place,
        subjects: &[Side; 2],
        offers_turns: bool,
    ) -> anyhow::Result<Self> {
        let user = BenchArgs::parse(&args.bench_args)?;
        let limit = Duration::from_secs(args.turn_limit.into());
        let mut found = Self::default();
        for (side, subject) in subjects.iter().enumerate() {
            for executable in &subject.executables {
                place.bring(Some(side))?;
                match criterion_options::probe(executable, &user, limit, offers_turns) {
                    Ok(Kind::TakesTurns) => found.takers[side].push(executable.clone()),
                    Ok(Kind::Criterion(harness)) => found.harnesses[side].push(harness),
                    Ok(Kind::Empty(why)) => {
                        let why = why.map(|why| format!("{}: {why}", executable.name));
                        found.empty.extend(why);
                    }
                    Err(error) if child::interrupted() => return Err(error),
                    Err(error) => {
                        let why = with_causes(error.as_ref());
                        found.unusable.push(format!("{}: {why}", subject.label));
                    }
                }
            }
        }
        Ok(found)
    }

    fn has_others(&self) -> bool {
        !self.unusable.is_empty() || self.harnesses.iter().any(|harnesses| !harnesses.is_empty())
    }

    fn left_out(&self) -> impl Iterator<Item = String> {
        let left_out = self.unusable.iter().chain(&self.empty);
        left_out.map(|why| format!("left out: {why}"))
    }
}
