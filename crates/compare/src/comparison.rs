//! Everything said about two sides.

use std::collections::BTreeMap;

use crate::case::LaunchSlope;
use crate::constant::{self, LaunchesOfProcess};
use crate::environment;
use crate::evidence::Drift;
use crate::judge;
use crate::rows::{self, BenchmarkRow};
use crate::verdict::{Options, Verdict};
use crossover_results::store::baseline::Baseline;
use crossover_words::Clock;

/// Everything said about two sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Runs that failed, a sentence each: said before anything else.
    pub failures: Vec<String>,
    /// Labels of the runs of the base, each once.
    pub base: Vec<String>,
    /// Labels of the runs of the new side.
    pub new: Vec<String>,
    /// How they were compared.
    pub(crate) options: Options,
    /// Whether `ab` ran nothing, since the code of both sides is equal.
    pub equal: bool,
    /// Sides whose machine is unknown, a sentence each.
    pub unknown: Vec<String>,
    /// The benchmarks: slower ones first, the largest change on top.
    pub rows: Vec<BenchmarkRow>,
    /// The drift of each class.
    pub drifts: Vec<Drift>,
    /// How the corrected benchmarks of each clock follow its launch constant.
    pub slopes: BTreeMap<Clock, LaunchSlope>,
    /// The processes of both sides that it was learnt from.
    pub(crate) processes: BTreeMap<Clock, [Vec<LaunchesOfProcess>; 2]>,
    /// Differences between the two sides that can cause a change by themselves, and doubts.
    pub warnings: Vec<String>,
    /// The commits.
    pub notes: Vec<String>,
    /// Files that could not be read.
    pub problems: Vec<String>,
}

/// When a comparison fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// A benchmark is slower.
    #[default]
    Slower,
    /// A benchmark is slower, faster, gone or new.
    Any,
    /// Never: only where nothing could be compared.
    None,
}

impl FailOn {
    /// The verdicts that make it fail.
    pub(super) fn verdicts(self) -> &'static [Verdict] {
        match self {
            FailOn::Slower => &[Verdict::Slower],
            FailOn::Any => &[
                Verdict::Slower,
                Verdict::Faster,
                Verdict::Gone,
                Verdict::New,
            ],
            FailOn::None => &[],
        }
    }
}

/// Compares the runs of two sides pair by pair; both have as many.
pub fn compare(base: &[Baseline], new: &[Baseline], options: &Options) -> Comparison {
    let remedy = match options.on_one_machine {
        true => "; raise --budget or --pairs",
        false => "; compare several runs, or run `crossover ab`",
    };
    let all = rows::rows(base, new, options);
    let is_shown = |id: &str| options.filter.as_ref().is_none_or(|f| f.is_match(id));
    let (cases, mut rows): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, case)| case.is_some());
    rows.retain(|(row, _)| is_shown(&row.id));
    let mut rows: Vec<BenchmarkRow> = rows.into_iter().map(|(row, _)| row).collect();
    let (judged_rows, cases): (Vec<_>, Vec<_>) = (cases.into_iter())
        .filter_map(|(row, case)| Some((row, case?)))
        .unzip();
    let tested: Vec<bool> = judged_rows.iter().map(|row| is_shown(&row.id)).collect();
    let slopes = constant::slopes(&cases);
    let processes = constant::processes(&cases);
    let (judged, drifts) = judge::judge(&cases, &tested, options);
    for (mut row, judged) in judged_rows.into_iter().zip(judged) {
        let Some(judged) = judged else {
            continue;
        };
        row.take(&judged);
        if let (Some(reason), Some(_)) = (&mut row.reason, judged.reason) {
            reason.push_str(remedy);
        }
        rows.push(row);
    }
    let remarks = environment::remarks(base, new, options.on_one_machine);
    if let Some(why) = &remarks.other_machine {
        for row in rows.iter_mut().filter(|row| row.judgement.is_some()) {
            row.verdict = Verdict::Unsure;
            row.judgement = None;
            row.reason = Some(why.clone());
        }
    }
    let size = |row: &BenchmarkRow| row.judgement.map_or(0.0, |j| -j.ratio.ln().abs());
    rows.sort_by(|a, b| {
        (a.verdict.cmp(&b.verdict))
            .then(size(a).total_cmp(&size(b)))
            .then(a.id.cmp(&b.id))
    });

    let mut warnings = remarks.warnings;
    for (name, side) in [("base", base), ("new", new)] {
        for baseline in side.iter().filter(|b| b.runs.len() > 1) {
            warnings.push(format!(
                "{name} ({}) holds results of {} runs: benchmarks that the last one did not run are older",
                baseline.label,
                baseline.runs.len()
            ));
        }
    }
    warnings.extend(
        drifts
            .iter()
            .filter_map(|d| Some(format!("{}: {}{remedy}", d.name(), d.doubt.as_ref()?))),
    );
    Comparison {
        failures: Vec::new(),
        base: labels(base),
        new: labels(new),
        options: options.clone(),
        equal: false,
        unknown: remarks.unknown,
        rows,
        drifts,
        slopes,
        processes,
        warnings,
        notes: remarks.notes,
        problems: base
            .iter()
            .chain(new)
            .flat_map(|b| b.problems.iter().map(ToString::to_string))
            .collect(),
    }
}

fn labels(side: &[Baseline]) -> Vec<String> {
    let mut labels: Vec<String> = side.iter().map(|b| b.label.clone()).collect();
    labels.dedup();
    labels
}

impl Comparison {
    /// The comparison of sides with equal code, of which nothing was run.
    pub fn of_equal([base, new]: [Vec<String>; 2], options: &Options) -> Self {
        let options = Options {
            on_one_machine: true,
            ..options.clone()
        };
        Self {
            base,
            new,
            equal: true,
            ..compare(&[], &[], &options)
        }
    }

    /// The verdicts that are final: after the pairs that chose, and at each interim analysis of the later
    /// ones.
    pub fn decided(&self) -> impl Iterator<Item = (&str, Verdict)> {
        let decided = self.rows.iter().filter(|row| row.is_decided());
        decided.map(|row| (row.id.as_str(), row.verdict))
    }

    /// Ids that more pairs could decide, and how many pairs that would take.
    pub fn open(&self) -> impl Iterator<Item = (&str, f64)> {
        let mut open = Vec::from_iter(self.rows.iter().filter(|row| !row.is_decided()));
        open.retain(|row| row.reason.is_none());
        open.sort_by(|a, b| a.id.cmp(&b.id));
        let pairs = open.into_iter();
        pairs.filter_map(|row| Some((row.id.as_str(), row.judgement?.more_pairs)))
    }

    /// How many benchmarks have that verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// 0 clean, 1 where a run failed or a verdict that `fail_on` names was given, 2 where no
    /// benchmark could be compared.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        // No verdict counts if a side computes wrongly.
        if !self.failures.is_empty() || self.count(Verdict::Failed) > 0 {
            return 1;
        }
        if self.equal {
            return 0;
        }
        if fail_on.verdicts().iter().any(|v| self.count(*v) > 0) {
            return 1;
        }
        2 * u8::from(self.rows.iter().all(|r| r.judgement.is_none()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted;

    /// A run of one benchmark, of about so many nanoseconds.
    fn run(label: &str, ns: f64) -> Baseline {
        let samples = (0..20).map(|i| ns + f64::from(i) * 1e-3);
        let mut run = planted([("a/cpu/b/1".to_owned(), samples.collect())]);
        run.label = label.to_owned();
        run
    }

    /// The median runs, of 12.0 and 12.1 ns, are of different pairs. Of the pairs one became faster by
    /// 14 %, and two slower by 2 %.
    #[test]
    fn the_times_of_both_sides_have_the_change_that_is_shown() {
        let base = [10.0, 12.0, 14.0].map(|ns| run("before", ns));
        let new = [10.2, 12.2, 12.1].map(|ns| run("after", ns));
        let row = compare(&base, &new, &Options::default()).rows.remove(0);
        let (before, after) = (row.base_ns.unwrap(), row.new_ns.unwrap());
        let ratio = row.judgement.unwrap().ratio;
        assert!(ratio < 0.98, "{ratio}");
        assert!((after / before / ratio - 1.0).abs() < 1e-9, "{row:?}");
        assert!((before * after / (12.0 * 12.1) - 1.0).abs() < 0.01);
        // One pair is its own median.
        let row = compare(&base[..1], &new[..1], &Options::default())
            .rows
            .remove(0);
        assert!((row.base_ns.unwrap() - 10.01).abs() < 0.01, "{row:?}");
    }

    #[test]
    fn the_runs_of_a_side_with_one_label_are_named_once() {
        let side = ["main", "main", "other"].map(|label| run(label, 10.0));
        let compared = compare(&side, &side, &Options::default());
        assert_eq!(compared.base, ["main", "other"]);
        assert_eq!(compared.new, ["main", "other"]);
    }
}
