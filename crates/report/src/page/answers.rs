//! The answers of a report with what stands beside each wherever it is shown: the curve of its
//! speedup, what limits it, and how far it may be trusted.

use rayon::prelude::*;

use crate::assemble::Assembled;
use crate::page::link::safe;
use crossover_results::analysis::answer::crossover_answer::{
    CrossoverAnswer, RunAnswer, headlines, of_runs,
};
use crossover_results::analysis::answer::speedup_curve::{Speedup, along};
use crossover_results::analysis::bottleneck::{self, Bottleneck};
use crossover_results::analysis::trust::{self, Grade, Trust};
use crossover_results::store::curves::{Benchmark, Series};
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// The answer to one question of a group.
pub(crate) struct Answered<'a> {
    pub(super) found: &'a CrossoverAnswer,
    /// The machine of its GPU code.
    pub(super) machine: &'a MachineResults,
    /// Its GPU code.
    pub(super) series: &'a Series,
    /// By how much it is ahead along the sizes.
    pub(super) speedup: Vec<Speedup>,
    /// What limits it where it crosses, and at the largest size.
    pub(super) limits: Vec<(u64, Bottleneck)>,
    pub(super) trust: Trust,
}

/// The answer to each question of each group, in the order of the groups.
pub(crate) fn answered(report: &Assembled) -> Vec<Answered<'_>> {
    let of_runs = of_runs(&report.machine);
    let found: Vec<&CrossoverAnswer> = headlines(&report.found).collect();
    let answered = found
        .into_par_iter()
        .filter_map(|found| one(report, found, &of_runs));
    answered.collect()
}

/// Those of one group.
pub(super) fn of_group<'a, 'r>(all: &'a [Answered<'r>], group: &str) -> &'a [Answered<'r>] {
    let from = all.partition_point(|answer| answer.found.group.as_str() < group);
    let of_group = all[from..].partition_point(|answer| answer.found.group == group);
    &all[from..from + of_group]
}

fn one<'a>(
    report: &'a Assembled,
    found: &'a CrossoverAnswer,
    of_runs: &[RunAnswer],
) -> Option<Answered<'a>> {
    let ours = report.machine.group(&found.group)?;
    let (machine, series) = report.gpu_of(found)?;
    let speedup = along(found, ours, series);
    let at_largest = speedup.iter().find(|at| at.size == found.speedup_size);
    let interval = at_largest.map(|at| (at.low, at.high));
    // The processes may have been asked about a size that the run's own has no result of.
    let nearest = |size: f64| {
        let far = |b: &&Benchmark| (b.size as f64 / size).ln().abs();
        let points = series.points.iter();
        points.min_by(|a, b| far(a).total_cmp(&far(b)))
    };
    let crossing = found.crossing.for_good().map(|change| change.size);
    let sizes = crossing.into_iter().chain([found.speedup_size]);
    let mut limits: Vec<(u64, Bottleneck)> = sizes
        .filter_map(nearest)
        .filter_map(|b| Some((b.size, bottleneck::of(series, b, machine)?)))
        .collect();
    limits.dedup_by_key(|(size, _)| *size);
    Some(Answered {
        found,
        machine,
        series,
        speedup,
        limits,
        trust: trust::of(
            found,
            &report.machine,
            machine,
            &report.others,
            of_runs,
            interval,
        ),
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

    /// What was asked, and of whose GPU, where it is not this machine's.
    pub(super) fn asked(&self) -> String {
        let question = self.found.question.words();
        match &self.found.gpu_machine {
            Some(machine) => format!("{question}, {machine}"),
            None => question.to_owned(),
        }
    }

    /// The marks of trust in a few words, those that matter most first.
    pub(super) fn marks(&self) -> Vec<String> {
        let trust = &self.trust;
        let mut marks = vec![self.seen()];
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

    /// What its processes found: `6 processes gave 242× to 508× at N = 2,048`.
    fn seen(&self) -> String {
        let (f, n) = (self.found, self.trust.processes);
        let ratios = f.processes.iter().filter_map(|process| {
            let at = process
                .iter()
                .find(|duel| duel.size as f64 == f.speedup_size)?;
            Some(at.cpu_ns / at.gpu_ns).filter(|ratio| ratio.is_normal())
        });
        let ends = ratios.fold((f64::INFINITY, 0.0_f64), |(low, high), ratio| {
            (low.min(ratio), high.max(ratio))
        });
        if n <= 1 || ends.0 > ends.1 {
            return "one process".to_owned();
        }
        let (low, high) = (units::factor(ends.0), units::factor(ends.1));
        let at = f.topic.at(f.speedup_size as u64);
        let agree = match self.trust.agree {
            0 => ", and together do not say who wins where".to_owned(),
            agree if agree < n => format!(", and {agree} of them agree on who wins where"),
            _ => String::new(),
        };
        format!("{n} processes gave {low} to {high} at {at}{agree}")
    }

    /// How sure it is and why, in a sentence.
    pub(super) fn cause(&self) -> String {
        format!("{}: {}.", self.grade(), self.marks().join("; "))
    }

    /// The mark in the map.
    pub(super) fn mark(&self) -> &'static str {
        match self.trust.grade() {
            Grade::Firm => "",
            Grade::Doubtful => "\u{a0}±",
            Grade::Thin => "\u{a0}°",
        }
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
