//! The answers of a report, each with the curve of its speedup, its limits, and how far it can be
//! trusted.

use rayon::prelude::*;

use crate::page::link::safe;
use crate::report::Report;
use crate::thresholds::with_article;
use crossover_results::analysis::answer::crossover_answer::{
    CrossoverAnswer, RunAnswer, curve, headlines, of_runs,
};
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::analysis::answer::speedup_curve::along;
use crossover_results::analysis::limits::{self, Share};
use crossover_results::analysis::trust::{self, Grade, Trust};
use crossover_results::model::role::Residency;
use crossover_results::store::curves::Series;
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// The answer to one question of a group.
pub(crate) struct GroupAnswer<'a> {
    pub(crate) found: &'a CrossoverAnswer,
    /// The machine of its GPU code.
    pub(crate) machine: &'a MachineResults,
    /// Its GPU code.
    pub(crate) series: &'a Series,
    /// The speedup along the sizes.
    pub(crate) speedup: Vec<Speedup>,
    /// Its limit at the crossing and at the largest size.
    pub(crate) limits: Vec<(u64, Share)>,
    pub(crate) trust: Trust,
}

/// The answer to each question of each group, in the order of the groups.
pub(crate) fn answered(report: &Report) -> Vec<GroupAnswer<'_>> {
    let of_runs = of_runs(&report.machine);
    let found: Vec<&CrossoverAnswer> = headlines(&report.found).collect();
    let answered = found
        .into_par_iter()
        .filter_map(|found| one(report, found, &of_runs));
    answered.collect()
}

/// The answers of one group.
pub(crate) fn of_group<'a, 'r>(all: &'a [GroupAnswer<'r>], group: &str) -> &'a [GroupAnswer<'r>] {
    let from = all.partition_point(|answer| answer.found.group.as_str() < group);
    let of_group = all[from..].partition_point(|answer| answer.found.group == group);
    &all[from..from + of_group]
}

/// Operations that the main result names.
const NAMED: usize = 2;

/// The main result in a sentence: `With data in pinned host memory the GPU wins at 8 of 10 operations:
/// matrix product from N = 186 on, …`. `None` without answers.
pub(crate) fn main_result(report: &Report, all: &[GroupAnswer]) -> Option<String> {
    let places = [
        Residency::Pinned,
        Residency::Ordinary,
        Residency::Awaited,
        Residency::Queued,
    ];
    let of = |name: &String, place| {
        of_group(all, name)
            .iter()
            .find(|a| a.found.question == place)
    };
    let at = |place| -> Vec<&GroupAnswer> {
        let names = report.groups.iter();
        names.filter_map(|name| of(name, place)).collect()
    };
    let place = places.into_iter().find(|place| !at(*place).is_empty())?;
    let answers = at(place);
    let wins: Vec<&CrossoverAnswer> = answers
        .iter()
        .map(|answer| answer.found)
        .filter(|found| found.crossing.wins_at_the_largest() == Some(true))
        .collect();
    let named = wins.iter().take(NAMED).map(|found| {
        let title = found.topic.title.to_lowercase();
        match found.crossing.for_good() {
            Some(change) => {
                let size = found.topic.unit.from(change.size);
                format!("{title} from {} = {size} on", found.topic.symbol)
            }
            None => format!("{title} at every size"),
        }
    });
    let mut named: Vec<String> = named.collect();
    if wins.len() > NAMED {
        named.push(format!("and {} more", wins.len() - NAMED));
    }
    let gpu = match &report.reference {
        Some(reference) => {
            let gpu = reference.environment.as_ref()?.gpu.as_ref()?;
            with_article(&gpu.name)
        }
        None => "the GPU".to_owned(),
    };
    let names = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", named.join(", "))
    };
    Some(format!(
        "With data {} {gpu} wins at {} of {}{names}.",
        place.words(),
        wins.len(),
        units::counted(answers.len(), "operation"),
    ))
}

fn one<'a>(
    report: &'a Report,
    found: &'a CrossoverAnswer,
    of_runs: &[RunAnswer],
) -> Option<GroupAnswer<'a>> {
    let ours = report.machine.group(&found.group)?;
    let (machine, series) = (report.gpu(), report.gpu_of(found)?);
    let speedup = along(found, ours, series);
    let crossing = found.crossing.for_good().map(|change| change.size.ceil());
    let sizes = crossing.into_iter().chain([found.crossing.largest]);
    let gpu = curve(series);
    let limit = |size: f64| {
        let ns = gpu.at(size)?.median;
        Some((size as u64, limits::at(series, size as u64, ns, machine)?))
    };
    let mut limits: Vec<(u64, Share)> = sizes.filter_map(limit).collect();
    limits.dedup_by_key(|(size, _)| *size);
    Some(GroupAnswer {
        found,
        machine,
        series,
        speedup,
        limits,
        trust: trust::of(found, &report.machine, machine, of_runs),
    })
}

impl GroupAnswer<'_> {
    /// The anchor of its measurements.
    pub(crate) fn anchor(&self) -> String {
        let f = self.found;
        format!("evidence-{}-{}", safe(&f.group), f.question.name())
    }

    /// The speedup that each process measured at each of its sizes.
    pub(crate) fn of_processes(&self) -> Vec<(u64, f64)> {
        let pairs = self.found.processes.iter().flatten();
        let ratios = pairs.map(|pair| (pair.size, pair.cpu_ns / pair.gpu_ns));
        let sound = ratios.filter(|(size, ratio)| *size > 0 && ratio.is_normal() && *ratio > 0.0);
        sound.collect()
    }

    /// How sure it is, and why, in a sentence.
    pub(crate) fn cause(&self) -> String {
        match self.trust.grade() {
            Grade::Firm => format!("Firm: {} processes agree.", self.found.crossing.processes),
            Grade::Doubtful => format!("Uncertain: {}.", self.trust.doubts().join("; ")),
            Grade::Thin => "Unconfirmed: measured by one process.".to_owned(),
        }
    }
}
