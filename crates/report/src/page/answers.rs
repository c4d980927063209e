//! The answers of a report with what stands beside each wherever it is shown: the curve of its
//! speedup, what limits it, and how far it may be trusted.

use crate::assemble::Assembled;
use crate::page::link::safe;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossing::Answer;
use crossover_results::analysis::answer::pairs::{CrossoverAnswer, headlines};
use crossover_results::analysis::answer::speedup::{Speedup, along};
use crossover_results::analysis::bottleneck::{self, Bottleneck};
use crossover_results::analysis::trust::{self, Grade, Trust};
use crossover_results::store::curves::Series;
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// The answer to one question of a group.
pub(super) struct Answered<'a> {
    pub(super) found: &'a CrossoverAnswer,
    /// The machine of its GPU code.
    pub(super) machine: &'a MachineResults,
    /// Its GPU code.
    pub(super) series: &'a Series,
    /// By how much it is ahead along the sizes.
    pub(super) speedup: Vec<Speedup>,
    /// What limits it at the largest size.
    pub(super) bottleneck: Option<Bottleneck>,
    pub(super) trust: Trust,
}

/// The answer to each question of each group, in the order of the groups.
pub(super) fn answered(report: &Assembled) -> Vec<Answered<'_>> {
    headlines(&report.found)
        .filter_map(|found| one(report, found))
        .collect()
}

fn one<'a>(report: &'a Assembled, found: &'a CrossoverAnswer) -> Option<Answered<'a>> {
    let ours = report.machine.group(&found.group)?;
    let (machine, series) = report.gpu_of(found)?;
    let speedup = along(found, ours, series);
    let at_largest = speedup.iter().find(|at| at.size == found.speedup_size);
    let interval = at_largest.map(|at| (at.low, at.high));
    // The processes may have been asked about a size that the run's own has no result of.
    let largest = series
        .at(found.speedup_size as u64)
        .or_else(|| series.points.last());
    Some(Answered {
        found,
        machine,
        series,
        speedup,
        bottleneck: largest.and_then(|b| bottleneck::of(series, b, machine)),
        trust: trust::of(found, &report.machine, machine, &report.others, interval),
    })
}

impl Answered<'_> {
    /// Where the measurements behind it are told. Beside a machine without a GPU several others may
    /// answer.
    pub(super) fn anchor(&self) -> String {
        let f = self.found;
        let whose = (f.gpu_machine.as_ref()).map_or(String::new(), |m| format!("-{}", safe(m)));
        format!("evidence-{}-{}{whose}", safe(&f.group), f.question.name())
    }

    /// `N ≥ 89`, or a word where nothing crosses.
    pub(super) fn from(&self) -> String {
        let f = self.found;
        let only = answer_in_words::only(f).is_some();
        match (f.crossing.answer, f.crossing.for_good()) {
            (Answer::Always, _) if only => "faster".to_owned(),
            (Answer::Never | Answer::CrossesBack, None) if only => "not faster".to_owned(),
            (Answer::Always, _) => "always".to_owned(),
            (Answer::Never, _) => "never".to_owned(),
            (Answer::Undecided, _) => "undecided".to_owned(),
            (_, Some(change)) => {
                format!("{} ≥ {}", f.topic.symbol, f.topic.unit.from(change.size))
            }
            (_, None) => "not for good".to_owned(),
        }
    }

    /// `80 to 97`: where another run would see the crossing; else the sizes that were measured.
    pub(super) fn range(&self) -> String {
        let (f, unit) = (self.found, self.found.topic.unit);
        if answer_in_words::only(f).is_some() {
            return "one size".to_owned();
        }
        if let Some(change) = f.crossing.for_good() {
            return unit.range(change.low, change.high);
        }
        let (first, last) = f.crossing.range;
        format!(
            "{} to {}",
            unit.write(first as u64),
            unit.write(last as u64)
        )
    }

    /// `32× faster`, at the largest size.
    pub(super) fn by(&self) -> String {
        units::speedup(self.found.speedup)
    }

    /// The marks of trust in a few words, those that matter most first.
    pub(super) fn marks(&self) -> Vec<String> {
        let trust = &self.trust;
        let mut marks = vec![match (trust.processes, trust.agree) {
            (..=1, _) => "one process".to_owned(),
            (n, agree) if agree == n => format!("{n} processes agree"),
            (n, agree) => format!("{agree} of {n} processes agree"),
        }];
        if let Some(reach) = trust.reach {
            // Factors beyond two read better as such.
            marks.push(match reach < 2.0 {
                true => format!(
                    "±\u{a0}{}",
                    units::percent(reach - 1.0).replace(' ', "\u{a0}")
                ),
                false => format!("within {}", units::factor(reach)),
            });
        }
        marks.push(match trust.boards {
            1 => "one board".to_owned(),
            n => format!("{n} boards"),
        });
        // An answer of one process has no range that another run could lie in.
        let others = match trust.processes {
            ..=1 => 0,
            _ => trust.other_runs.len(),
        };
        match trust.runs.len() {
            0 => {}
            1 if others == 0 => marks.push("one run".to_owned()),
            1 => {}
            n => marks.push(format!("results of {n} runs")),
        }
        match trust.held {
            _ if others == 0 => {}
            held if held == others => {
                let runs = units::counted(others, "other run");
                marks.push(format!("{runs} within this range"));
            }
            held => marks.push(format!("{held} of {others} other runs within this range")),
        }
        if !trust.slowed.is_empty() {
            marks.push(format!("throttled: {}", trust.slowed.join(", ")));
        }
        marks
    }

    /// The grade in words.
    pub(super) fn grade(&self) -> &'static str {
        match self.trust.grade() {
            Grade::Firm => "Firm",
            Grade::Doubtful => "Uncertain",
            Grade::Thin => "Unconfirmed",
        }
    }
}
