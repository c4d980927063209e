//! Everything said about two sides.

use regex::Regex;

use crate::compare::drift::Drift;
use crate::compare::environment;
use crate::compare::judge::{self, Verdict};
use crate::compare::rows::{self, Row};
use crate::results::baseline::Baseline;

/// What to compare, and from what size on a change counts.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Only benchmarks whose id matches. The others still teach the drift.
    pub filter: Option<Regex>,
    /// Smallest change worth a verdict, as a fraction.
    pub threshold: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: None,
            threshold: judge::THRESHOLD,
        }
    }
}

/// Everything said about two sides.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// Labels of the runs of the base.
    pub base: Vec<String>,
    /// Labels of the runs of the new side, pair by pair.
    pub new: Vec<String>,
    /// Smallest change worth a verdict, as a fraction.
    pub threshold: f64,
    /// The benchmarks: slower ones first, the largest change on top.
    pub rows: Vec<Row>,
    /// The drift learnt, a class each.
    pub drifts: Vec<Drift>,
    /// Differences between the two sides that can cause a change by themselves, and doubts.
    pub warnings: Vec<String>,
    /// The commits.
    pub notes: Vec<String>,
    /// What could not be read.
    pub problems: Vec<String>,
}

/// When a comparison fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FailOn {
    /// A benchmark is slower.
    #[default]
    Slower,
    /// A benchmark is slower, faster, gone or new.
    Any,
    /// Never: only where nothing could be compared.
    None,
}

/// Compares the runs of two sides pair by pair; both have as many.
pub(crate) fn compare(base: &[Baseline], new: &[Baseline], options: &Options) -> Comparison {
    let all = rows::rows(base, new);
    let shown = |id: &str| options.filter.as_ref().is_none_or(|f| f.is_match(id));
    let (cases, tested): (Vec<_>, Vec<_>) = all
        .iter()
        .filter_map(|(row, case)| Some((case.clone()?, shown(&row.id))))
        .unzip();
    let (judgements, drifts) = judge::judge(&cases, &tested, options.threshold);
    let mut judgements = judgements.into_iter();
    let mut rows: Vec<Row> = all
        .into_iter()
        .filter_map(|(mut row, case)| {
            if case.is_some()
                && let Some(j) = judgements.next().flatten()
            {
                row.verdict = j.verdict;
                row.judgement = Some(j);
            }
            shown(&row.id).then_some(row)
        })
        .collect();
    let size = |row: &Row| row.judgement.map_or(0.0, |j| -j.ratio.ln().abs());
    rows.sort_by(|a, b| {
        (a.verdict.cmp(&b.verdict))
            .then(size(a).total_cmp(&size(b)))
            .then(a.id.cmp(&b.id))
    });

    let remarks = environment::remarks(base, new);
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
            .filter_map(|d| Some(format!("{}: {}", d.class, d.doubt.as_ref()?))),
    );
    Comparison {
        base: base.iter().map(|b| b.label.clone()).collect(),
        new: new.iter().map(|b| b.label.clone()).collect(),
        threshold: options.threshold,
        rows,
        drifts,
        warnings,
        notes: remarks.notes,
        problems: base
            .iter()
            .chain(new)
            .flat_map(|b| b.problems.iter().cloned())
            .collect(),
    }
}

impl Comparison {
    /// How many benchmarks have that verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// 0 clean, 1 where a verdict that `fail_on` names was given, 2 where no benchmark could
    /// be compared.
    pub(crate) fn exit_code(&self, fail_on: FailOn) -> u8 {
        if self.rows.iter().all(|r| r.judgement.is_none()) {
            return 2;
        }
        let failing: &[Verdict] = match fail_on {
            FailOn::Slower => &[Verdict::Slower],
            FailOn::Any => &[
                Verdict::Slower,
                Verdict::Faster,
                Verdict::Gone,
                Verdict::New,
            ],
            FailOn::None => &[],
        };
        u8::from(failing.iter().any(|v| self.count(*v) > 0))
    }
}
