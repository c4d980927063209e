//! The pairs of processes of a comparison: started, read, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::ab::arguments::Args;
use crate::ab::child;
use crate::ab::subject::Prepared;
use crate::ab::turns;
use crossover_compare::comparison::{Comparison, Options, compare};
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
    subjects: [Prepared; 2],
    start: Instant,
    sides: [Vec<Baseline>; 2],
    /// What the calibrations of each side chose.
    choices: [BTreeMap<String, String>; 2],
    /// Pairs that have run.
    pub(super) number: u32,
    /// Seconds that each benchmark took in the last pair that had it, both sides together.
    pub(super) seconds_of: BTreeMap<String, f64>,
    /// Seconds that the last pair took beside its benchmarks.
    pub(super) start_of_pair: f64,
    failed: Vec<String>,
    /// Whether no other pair is run: a side hung, or nothing more can be written.
    pub(super) over: bool,
    one_after_the_other: BTreeSet<String>,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(args: &'a Args, results: &'a Path, subjects: [Prepared; 2]) -> Self {
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
            over: false,
            one_after_the_other: BTreeSet::new(),
        }
    }

    /// Whether no side had to run one after the other.
    pub(super) fn took_turns(&self) -> bool {
        self.one_after_the_other.is_empty()
    }

    /// Seconds since the first pair was begun.
    pub(super) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Runs another pair, of all benchmarks or of these. What keeps it from running is a failure of
    /// the comparison only if no pair has run before.
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
            bail!(
                "{}: {why}; make room there, or choose another folder with --results",
                self.results.display()
            );
        }
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
                "pair {pair}: {} still undecided, {:.0} s of {:.0} s used",
                units::counted(only.len(), "benchmark"),
                self.seconds(),
                60.0 * self.args.budget
            ),
        }
        let homes = ['a', 'b'].map(|side| self.results.join(format!("{side}{pair}")));
        for home in &homes {
            std::fs::create_dir_all(home).with_context(|| format!("{}", home.display()))?;
        }
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
            self.over |= ended.status.is_none();
            if let Some(how) = how {
                self.failed.push(format!(
                    "run {name} of {label} {how}; what it lacks is not compared"
                ));
            }
            if !ended.took_turns {
                self.one_after_the_other.insert(label.to_owned());
            }
            for (choice, chosen) in ended.choices {
                self.choices[i].entry(choice).or_insert(chosen);
            }
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

    /// The choices that both sides of a pair run with, so that they differ by their code alone:
    /// those of the one side and of the other in turns, two pairs each. What only the other side
    /// chose comes from there, and a candidate that a side does not have it does not take.
    fn choices_of(&self, pair: u32) -> BTreeMap<String, String> {
        let first = (pair / 2 % 2) as usize;
        let mut choices = self.choices[1 - first].clone();
        choices.extend(self.choices[first].clone());
        choices
    }

    pub(super) fn compare(&self, options: &Options) -> Comparison {
        compare(&self.sides[0], &self.sides[1], options)
    }

    /// Shows the comparison, and says how the command ends.
    pub(super) fn close(&self, mut comparison: Comparison) -> anyhow::Result<ExitCode> {
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
        let mut code = self.args.verdict.show(&comparison)?;
        // No change is worth a verdict where a side computes wrongly.
        for text in &self.failed {
            eprintln!("error: {text}");
            code = ExitCode::FAILURE;
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
