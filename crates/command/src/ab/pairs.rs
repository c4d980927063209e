//! The pairs of processes of a comparison: started, read, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::ab::arguments::Args;
use crate::ab::child;
use crate::ab::executable::Executable;
use crate::ab::processes::Limits;
use crate::ab::sampling::{self, Sampling};
use crate::ab::subject::{self, Prepared};
use crate::ab::turns;
use crate::ab::worktree::Place;
use crossover_compare::comparison::{Comparison, Options, compare};
use crossover_compare::median::Location;
use crossover_compare::plan::{Outlook, outlook};
use crossover_protocol::turns::Instructions;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::NEW;
use crossover_results::store::source::Source;
use crossover_results::store::whole_file::try_to_write;
use crossover_words::text::with_causes;
use crossover_words::units;

/// The pairs of processes that have run.
pub(super) struct Pairs<'a> {
    args: &'a Args,
    results: &'a Path,
    place: &'a Place,
    labels: [String; 2],
    sampling: Sampling,
    start: Instant,
    sides: [Vec<Baseline>; 2],
    /// What the calibrations of each side chose.
    choices: [BTreeMap<String, String>; 2],
    /// Pairs that have run.
    number: u32,
    /// Seconds that each benchmark took in the last pair that had it, both sides together.
    pub(super) seconds_of: BTreeMap<String, f64>,
    /// Seconds that the last pair took beside its benchmarks.
    pub(super) start_of_pair: f64,
    failed: Vec<String>,
    /// Benchmarks that a side has no result of since its process failed, and how.
    failed_ids: BTreeMap<String, String>,
    /// What a reader must know beside what the comparison says itself.
    remarks: Vec<String>,
    /// Whether no other pair is run: a side hung, or nothing more can be written.
    pub(super) over: bool,
}

impl<'a> Pairs<'a> {
    /// # Errors
    /// An interrupt, or that there is nothing to compare.
    pub(super) fn new(
        args: &'a Args,
        results: &'a Path,
        place: &'a Place,
        subjects: [Prepared; 2],
    ) -> anyhow::Result<Self> {
        let mut remarks = Vec::from_iter(subject::different_dependencies(&subjects));
        let labels = subjects.each_ref().map(|subject| subject.label.clone());
        let sampling = sampling::choose(args, place, &subjects, &mut remarks)?;
        Ok(Self {
            args,
            results,
            place,
            labels,
            sampling,
            start: Instant::now(),
            sides: [Vec::new(), Vec::new()],
            choices: [BTreeMap::new(), BTreeMap::new()],
            number: 0,
            seconds_of: BTreeMap::new(),
            start_of_pair: 0.0,
            failed: Vec::new(),
            failed_ids: BTreeMap::new(),
            remarks,
            over: false,
        })
    }

    /// Pairs that run everything.
    pub(super) fn first(&self) -> u32 {
        self.args.pairs.unwrap_or(match self.sampling {
            Sampling::Turns(_) => 2,
            // So many tell what such processes differ by, also where some are far off.
            Sampling::Processes(_) => 8,
        })
    }

    /// What is taken from the samples of a process.
    pub(super) fn location(&self) -> Location {
        match self.sampling {
            Sampling::Turns(_) => Location::Median,
            Sampling::Processes(_) => Location::Fastest,
        }
    }

    /// Seconds since the first pair was begun.
    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Seconds of the budget that are left.
    pub(super) fn left(&self) -> f64 {
        60.0 * self.args.budget - self.seconds()
    }

    /// Runs the first pairs.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub(super) fn run_first(&mut self) -> anyhow::Result<()> {
        let mut only = None;
        while self.number < self.first() && !self.over {
            self.run(only.clone())?;
            if self.number == 1 && self.args.budget > 0.0 {
                only = self.those_that_fit();
            }
        }
        Ok(())
    }

    /// After the first pair of short processes, the benchmarks that can run in all of the first
    /// pairs within half of the budget. The slow ones would leave no time for the others.
    fn those_that_fit(&mut self) -> Option<BTreeSet<String>> {
        let Sampling::Processes(processes) = &self.sampling else {
            return None;
        };
        let shared = processes
            .shared()
            .filter_map(|id| Some((id, *self.seconds_of.get(id)?)));
        let mut shared: Vec<(&str, f64)> = shared.collect();
        shared.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut seconds, limit) = (0.0, 30.0 * self.args.budget);
        let fits = |(_, one): &&(&str, f64)| {
            seconds += one * f64::from(self.first() - 1);
            seconds <= limit
        };
        let fit: BTreeSet<String> = shared
            .iter()
            .take_while(fits)
            .map(|(id, _)| (*id).to_owned())
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
        Some(fit)
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
                self.failed.push(format!("no more pairs were run: {why}"));
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
            bail!("{}", self.no_room(&why));
        }
        self.number += 1;
        let pair = self.number;
        let [a, b] = &self.labels;
        match &only {
            Some(only) if pair > self.first() => eprintln!(
                "pair {pair}: {} still undecided, {:.0} s of {:.0} s used",
                units::counted(only.len(), "benchmark"),
                self.seconds(),
                60.0 * self.args.budget
            ),
            _ => eprintln!("pair {pair} of {}: {a} and {b}", self.first()),
        }
        let homes = ['a', 'b'].map(|side| self.results.join(format!("{side}{pair}")));
        for home in &homes {
            std::fs::create_dir_all(home).with_context(|| format!("{}", home.display()))?;
        }
        let before = self.seconds();
        let seconds_of = match self.sampling {
            Sampling::Turns(_) => self.take_turns(&homes, only)?,
            Sampling::Processes(_) => self.run_processes(&homes, only.as_ref())?,
        };
        // A side may have none of what is asked for later.
        if pair == 1 && !self.compares() {
            if !self.failed.is_empty() {
                self.over = true;
                return Ok(());
            }
            bail!(
                "the first runs left no results in {}; does the filter after `--` match a benchmark, \
                 and does `run` keep to CRITERION_HOME?",
                homes.map(|home| home.display().to_string()).join(" or ")
            );
        }
        let seconds = self.seconds() - before;
        self.start_of_pair = (seconds - seconds_of.values().sum::<f64>()).max(0.0);
        self.seconds_of.extend(seconds_of);
        if let Sampling::Processes(processes) = &self.sampling {
            let failed = processes.failed();
            self.seconds_of.retain(|id, _| !failed.contains_key(id));
        }
        Ok(())
    }

    /// A pair of processes that take turns. Returns the seconds of each benchmark.
    fn take_turns(
        &mut self,
        homes: &[PathBuf; 2],
        only: Option<BTreeSet<String>>,
    ) -> anyhow::Result<BTreeMap<String, f64>> {
        let Sampling::Turns(executables) = &self.sampling else {
            return Ok(BTreeMap::new());
        };
        let pair = self.number;
        let choices = self.choices_of(pair);
        let told = [0, 1].map(|side: usize| Instructions {
            core: turns::core(pair),
            // What computed rightly once does so in the other processes of its executable; what
            // did not, or was not reached, must not be timed unverified.
            only: only.clone().or_else(|| {
                let verified = self.sides[side].first()?;
                Some(verified.results.keys().cloned().collect())
            }),
            verify: pair == 1,
            choices: choices.clone(),
        });
        let commands = |side: usize| -> Vec<Command> {
            let command = |executable: &Executable| {
                let mut command = executable.command();
                command
                    .args(&self.args.bench_args)
                    .env("CRITERION_HOME", &homes[side]);
                command
            };
            executables[side].iter().map(command).collect()
        };
        let ended = turns::take(
            commands(0),
            commands(1),
            pair.is_multiple_of(2),
            [&told[0], &told[1]],
            self.turn_limit(),
        )?;
        let mut seconds_of: BTreeMap<String, f64> = BTreeMap::new();
        let mut failed = [None, None];
        for (side, ended) in ended.into_iter().enumerate() {
            let label = &self.labels[side];
            let how = match ended.status {
                Some(status) if status.success() => None,
                Some(status) => Some(format!("failed ({status}); its output is above")),
                None => Some("hung and was ended".to_owned()),
            };
            self.over |= ended.status.is_none();
            if let Some(how) = how {
                let run = format!("run {}{pair}", ['a', 'b'][side]);
                self.failed.push(format!(
                    "{run} of {label} {how}; benchmarks that it did not finish are not compared"
                ));
                failed[side] = Some(format!("{run} {how}"));
            }
            for (choice, chosen) in ended.choices {
                self.choices[side].entry(choice).or_insert(chosen);
            }
            for (id, seconds) in ended.seconds {
                *seconds_of.entry(id).or_default() += seconds;
            }
            self.sides[side].push(Baseline::read(&Source {
                root: homes[side].clone(),
                baseline: NEW.to_owned(),
                label: label.clone(),
            }));
        }
        // What the other side alone has is neither gone nor new.
        for (side, how) in failed.into_iter().enumerate() {
            let [this, other] = [&self.sides[side], &self.sides[1 - side]];
            let is_lacking = |id: &&String| !this.iter().any(|run| run.results.contains_key(*id));
            let ids = other.iter().flat_map(|run| run.results.keys());
            if let Some(how) = how {
                let lacking = ids.filter(is_lacking).map(|id| (id.clone(), how.clone()));
                self.failed_ids.extend(lacking);
            }
        }
        Ok(seconds_of)
    }

    /// A pair of short processes of each benchmark. Returns the seconds that each took.
    fn run_processes(
        &mut self,
        homes: &[PathBuf; 2],
        only: Option<&BTreeSet<String>>,
    ) -> anyhow::Result<BTreeMap<String, f64>> {
        let limits = Limits {
            process: self.turn_limit(),
            until: (self.args.budget > 0.0)
                .then(|| self.start + Duration::from_secs_f64(60.0 * self.args.budget)),
        };
        let Sampling::Processes(processes) = &mut self.sampling else {
            return Ok(BTreeMap::new());
        };
        let ran = processes.run(self.number, homes, only, self.place, limits)?;
        self.failed_ids.extend(processes.failed().clone());
        self.failed.extend(ran.failures);
        if let Some(why) = ran.full {
            self.over = true;
            self.failed
                .push(format!("no more pairs were run: {}", self.no_room(&why)));
        }
        if ran.unreached > 0 && self.number == 1 {
            self.remarks.push(format!(
                "the budget of {} min did not reach {}: raise --budget, or filter them",
                self.args.budget,
                units::counted(ran.unreached, "benchmark"),
            ));
        }
        let read = ran.sides.into_iter().zip(&self.labels);
        for (side, (mut baseline, label)) in self.sides.iter_mut().zip(read) {
            baseline.label.clone_from(label);
            side.push(baseline);
        }
        Ok(ran.seconds)
    }

    fn no_room(&self, why: &io::Error) -> String {
        format!(
            "{}: {why}; make room there, or choose another folder with --results",
            self.results.display()
        )
    }

    fn turn_limit(&self) -> Duration {
        Duration::from_secs(self.args.turn_limit.into())
    }

    /// The choices that both sides of a pair run with, so that they differ by their code alone:
    /// those of the one side and of the other in turns, two pairs each. What only the other side
    /// chose comes from there, and a candidate that a side does not have it does not take.
    fn choices_of(&self, pair: u32) -> BTreeMap<String, String> {
        let first = (pair / 2 % 2) as usize;
        let mut choices = self.choices[1 - first].clone();
        choices.extend(self.choices[first].clone());
        choices
    }

    /// Says after the first pairs what the rest of the budget is worth, before it is spent.
    pub(super) fn tell_outlook(&mut self, comparison: &Comparison) {
        let known = comparison.pairs_for_threshold();
        let benchmarks: Vec<(f64, f64)> = known
            .filter_map(|(id, pairs)| Some((pairs, *self.seconds_of.get(id)?)))
            .collect();
        let first = f64::from(self.first());
        let Some(outlook) = outlook(&benchmarks, first, self.start_of_pair, self.left()) else {
            return;
        };
        let text = in_words(
            &outlook,
            comparison.threshold,
            self.args.budget,
            self.seconds(),
        );
        eprintln!("{text}");
        if outlook.seconds > self.left() {
            self.remarks.push(text);
        }
    }

    pub(super) fn compare(&self, options: &Options) -> Comparison {
        let options = Options {
            failed: self.failed_ids.clone(),
            ..options.clone()
        };
        compare(&self.sides[0], &self.sides[1], &options)
    }

    /// Shows the comparison, and says how the command ends.
    pub(super) fn close(&self, mut comparison: Comparison) -> anyhow::Result<ExitCode> {
        comparison.failures.clone_from(&self.failed);
        comparison.warnings.extend(self.different_choices());
        comparison.warnings.extend(self.remarks.iter().cloned());
        let mut code = self.args.verdict.show(&comparison)?;
        for text in &self.failed {
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

    /// What calibrations chose differently on the two sides.
    fn different_choices(&self) -> Vec<String> {
        let [old, new] = &self.choices;
        let both = old
            .iter()
            .filter_map(|(name, old)| Some((name, old, new.get(name)?)));
        both.filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| match self.number {
                1 => format!("{name}: base chose {old}, new {new}"),
                _ => format!(
                    "{name}: base chose {old}, new {new} in the first pair; later ones run both \
                     sides with the same of the two, where both have it"
                ),
            })
            .collect()
    }
}

/// What the rest of a budget of so many minutes is worth, `spent` seconds of which are over.
fn in_words(outlook: &Outlook, threshold: f64, budget: f64, spent: f64) -> String {
    let percent = |times: f64| units::percent_fine(times * threshold);
    let minutes = (outlook.seconds + spent) / 60.0;
    if minutes <= budget {
        return format!(
            "changes from {} on are found within about {minutes:.0} min",
            percent(1.0)
        );
    }
    let finds = match outlook.finds.is_finite() {
        true => format!("changes from {} on", percent(outlook.finds)),
        false => "no change".to_owned(),
    };
    let needs = match minutes.is_finite() {
        true => format!("--budget {:.0}", minutes.ceil()),
        false => "a quieter machine or a larger --threshold".to_owned(),
    };
    // The typical benchmark may be done where a few others take long.
    format!(
        "by the first pairs, the budget of {budget} min finds {finds} in the typical benchmark; {} in all \
         of them needs {needs}",
        percent(1.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_budget_is_worth_is_told_of_the_typical_benchmark_and_of_all() {
        let told = |seconds, finds| in_words(&Outlook { seconds, finds }, 0.01, 0.75, 14.0);
        assert_eq!(
            told(31.0, 0.5),
            "changes from 1 % on are found within about 1 min"
        );
        assert_eq!(
            told(400.0, 1.0),
            "by the first pairs, the budget of 0.75 min finds changes from 1 % on in the typical \
             benchmark; 1 % in all of them needs --budget 7"
        );
        assert!(
            told(f64::INFINITY, f64::INFINITY)
                .ends_with("needs a quieter machine or a larger --threshold")
        );
    }
}
