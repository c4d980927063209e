//! The comparison of two sides.

use std::collections::BTreeMap;

use crate::case::LaunchSlope;
use crate::constant::{self, LaunchesOfProcess};
use crate::evidence::Drift;
use crate::rows::{self, BenchmarkRow, OTHER_WORK, by_text};
use crate::verdict::{Options, Verdict};
use crate::{environment, judge};
use crossover_results::statistics::median::median;
use crossover_results::store::baseline::Baseline;
use crossover_words::Clock;

/// The comparison of two sides.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Runs that failed, a sentence each: shown before anything else.
    pub failures: Vec<String>,
    /// Labels of the runs of the base, each once.
    pub base: Vec<String>,
    /// Labels of the runs of the new side.
    pub new: Vec<String>,
    /// The options of the comparison.
    pub(crate) options: Options,
    /// Whether `ab` ran nothing, since the code of both sides is equal.
    pub equal: bool,
    /// Sides whose machine is unknown, a sentence each.
    pub unknown: Vec<String>,
    /// The clean commit of both sides, if it is one.
    pub commit: Option<String>,
    /// The benchmarks: slower ones first, the largest change on top.
    pub rows: Vec<BenchmarkRow>,
    /// The drift of each class of benchmarks that could be compared.
    pub drifts: Vec<Drift>,
    /// How the corrected benchmarks of each clock follow its launch constant.
    pub slopes: BTreeMap<Clock, LaunchSlope>,
    /// The processes of both sides from which the slopes were learnt.
    pub(crate) processes: BTreeMap<Clock, [Vec<LaunchesOfProcess>; 2]>,
    /// Classes that changed as a whole in one pair of runs, a sentence each: shown before the counts.
    pub(crate) doubts: Vec<String>,
    /// Differences between the two sides that can cause a change by themselves.
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
    /// No verdict; only a run that failed, a result that cannot be read, or nothing to compare.
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
    let is_shown = |row: &BenchmarkRow| options.filter.as_ref().is_none_or(|f| f.is_match(&row.id));
    let (mut rows, mut open, mut cases) = (Vec::new(), Vec::new(), Vec::new());
    for (row, case) in rows::rows(base, new, options) {
        if let Some(case) = case {
            open.push(row);
            cases.push(case);
        } else if is_shown(&row) {
            rows.push(row);
        }
    }
    let remedy = if options.on_one_machine {
        "; raise --budget or --pairs"
    } else {
        "; compare several runs, or run `crossover ab`"
    };
    let tested: Vec<bool> = open.iter().map(is_shown).collect();
    let (judged, drifts) = judge::judge(&cases, &tested, options);
    for (mut row, judged) in open.into_iter().zip(judged) {
        if let Some(judged) = judged {
            row.apply(&judged, &drifts, remedy);
            rows.push(row);
        }
    }
    let remarks = environment::remarks(base, new, options.on_one_machine);
    if let Some(why) = &remarks.other_machine {
        withdraw(&mut rows, why);
    }
    sort(&mut rows);
    let doubts = drifts.iter().filter_map(|drift| {
        let doubt = drift.doubt.as_ref()?;
        Some(format!("{}: {doubt}{remedy}", drift.name()))
    });
    let problems = base.iter().chain(new).flat_map(|run| &run.problems);
    Comparison {
        failures: Vec::new(),
        base: labels(base),
        new: labels(new),
        options: options.clone(),
        equal: false,
        unknown: remarks.unknown,
        commit: remarks.commit,
        doubts: doubts.collect(),
        drifts,
        slopes: constant::slopes(&cases),
        processes: constant::processes(&cases),
        warnings: [
            remarks.warnings,
            older_results("base", base),
            older_results("new", new),
            other_work(&rows),
        ]
        .concat(),
        rows,
        notes: remarks.notes,
        problems: problems.map(ToString::to_string).collect(),
    }
}

/// Takes the verdicts back that have this reservation.
fn withdraw(rows: &mut [BenchmarkRow], why: &str) {
    for row in rows.iter_mut().filter(|row| row.judgement.is_some()) {
        row.verdict = Verdict::Unsure;
        row.judgement = None;
        row.reason = Some(why.to_owned());
    }
}

/// Sorts by verdict, then by the size of the change.
fn sort(rows: &mut [BenchmarkRow]) {
    let size = |row: &BenchmarkRow| row.judgement.map_or(0.0, |j| -j.ratio.ln().abs());
    rows.sort_by(|a, b| {
        (a.verdict.cmp(&b.verdict))
            .then(size(a).total_cmp(&size(b)))
            .then(a.id.cmp(&b.id))
    });
}

/// A warning for each baseline of a side with results of several runs.
fn older_results(name: &str, side: &[Baseline]) -> Vec<String> {
    let mixed = side.iter().filter(|baseline| baseline.runs.len() > 1);
    let warning = |baseline: &Baseline| {
        format!(
            "{name} ({}) holds results of {} runs: benchmarks that the last one did not run are older",
            baseline.label,
            baseline.runs.len()
        )
    };
    mixed.map(warning).collect()
}

/// A warning for the rows that a list of what changed lacks, and whose declared work differs.
fn other_work(rows: &[BenchmarkRow]) -> Vec<String> {
    let is_unlisted = |row: &&BenchmarkRow| matches!(row.verdict, Verdict::Same | Verdict::Unsure);
    by_text(rows.iter().filter(is_unlisted).filter_map(|row| {
        let mark = row.marks.iter().find(|mark| mark.starts_with(OTHER_WORK))?;
        Some((row.id.as_str(), mark.clone()))
    }))
}

fn labels(side: &[Baseline]) -> Vec<String> {
    let mut labels: Vec<String> = side.iter().map(|b| b.label.clone()).collect();
    labels.dedup();
    labels
}

impl Comparison {
    /// The comparison of sides with equal code, neither of which was run.
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
        let rows = self.rows.iter().filter(|row| row.is_decided());
        rows.map(|row| (row.id.as_str(), row.verdict))
    }

    /// Ids that more pairs could decide, and how many pairs that would take.
    pub fn open(&self) -> impl Iterator<Item = (&str, f64)> {
        let mut open = Vec::from_iter(self.rows.iter().filter(|row| !row.is_decided()));
        open.retain(|row| row.reason.is_none());
        open.sort_by(|a, b| a.id.cmp(&b.id));
        let pairs = open.into_iter();
        pairs.filter_map(|row| Some((row.id.as_str(), row.judgement?.more_pairs)))
    }

    /// The number of benchmarks with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|r| r.verdict == verdict).count()
    }

    /// The exit code: 1 if a run failed, a result cannot be read or a benchmark has a verdict that `fail_on` names;
    /// 2 if no benchmark could be compared; otherwise 0.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        // No verdict counts if a side computes wrongly or lacks a result.
        let failed = self.count(Verdict::Failed) + self.count(Verdict::Unreadable);
        if !self.failures.is_empty() || failed > 0 {
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

impl Comparison {
    /// The change that is found in the typical benchmark of a class with 95 % probability, as a
    /// fraction.
    pub fn resolution(&self, class: &Drift) -> Option<f64> {
        // A benchmark that was not run to the end may have changed by more than its resolution.
        let is_complete = |row: &&BenchmarkRow| {
            let confirmed = row.judgement.map_or(0, |judgement| judgement.confirmed);
            self.options.screened == 0 || confirmed > 0 || row.verdict != Verdict::Unsure
        };
        let complete = self.of_class(class).filter(is_complete);
        let resolutions = complete.filter_map(|row| Some(row.judgement.as_ref()?.resolution));
        median(resolutions).filter(|resolution| resolution.is_finite())
    }

    /// The time after which a change is found with 95 % probability in the typical benchmark of a class,
    /// if a pair of processes of a benchmark takes these `seconds`; infinite where no number of pairs
    /// would do.
    pub fn seconds_to_find(
        &self,
        change: f64,
        class: &Drift,
        seconds: &BTreeMap<String, f64>,
    ) -> Option<f64> {
        let of_row = |row: &BenchmarkRow| {
            let pairs = row.judgement?.pairs_to_find(change, self.options.screened);
            Some(pairs * seconds.get(&row.id)?)
        };
        median(self.of_class(class).filter_map(of_row))
    }

    fn of_class<'a>(&'a self, class: &'a Drift) -> impl Iterator<Item = &'a BenchmarkRow> {
        self.rows.iter().filter(|row| row.is_of(class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::planted;
    use crossover_results::model::record::Sidecar;

    /// A run of one benchmark that takes about `ns`.
    fn run(label: &str, ns: f64) -> Baseline {
        let samples = (0..20).map(|i| ns + f64::from(i) * 1e-3);
        let mut run = planted([("a/cpu/b/1".to_owned(), samples.collect())]);
        run.label = label.to_owned();
        run
    }

    /// The median runs are of different pairs. One pair became faster by 14 %, and two slower by 2 %.
    #[test]
    fn shown_times_are_measured_and_a_sentence_explains_the_change() {
        let base = [10.0, 12.0, 14.0].map(|ns| run("before", ns));
        let new = [10.2, 12.2, 12.1].map(|ns| run("after", ns));
        for (pairs, times, change) in [
            (3, [12.0095, 12.1095], 0.965),
            (1, [10.0095, 10.2095], 1.02),
        ] {
            let compared = compared(&base[..pairs], &new[..pairs]);
            let row = &compared.rows[0];
            for (shown, measured) in [row.base_ns, row.new_ns].into_iter().zip(times) {
                assert!((shown.unwrap() - measured).abs() < 1e-9, "{row:?}");
            }
            let ratio = row.judgement.unwrap().ratio;
            assert!((ratio - change).abs() < 1e-3, "{row:?}");
            for text in [compared.text(true), compared.markdown(), compared.page()] {
                let explained = text.matches("differ from the quotient of the times");
                assert_eq!(explained.count(), usize::from(pairs > 1), "{text}");
            }
        }
    }

    /// A run of 60 benchmarks of one clock, each `factor` times as long as usual, with small differences between runs.
    fn many(run: u32, clock: Clock, factor: impl Fn(u32) -> f64) -> Baseline {
        let shortest = if clock == Clock::Events { 5e3 } else { 1e5 };
        let samples = |i: u32| {
            let process = 1.0 + 0.004 * f64::from(7 * i + 5 * run).sin();
            let centre = factor(i) * (shortest + 20.0 * f64::from(i)) * process;
            let samples = (0..20).map(|j| centre * (1.0 + 0.002 * f64::from(j).sin()));
            (format!("a/gpu/b/{i}"), samples.collect())
        };
        let mut run = planted((0..60).map(samples));
        for (id, sampled) in &mut run.results {
            sampled.clock = Some(clock);
            sampled.sidecar = Some(Sidecar::of(id, clock));
        }
        run
    }

    /// Gated benchmarks, each `factor` times as long as usual.
    fn gated(run: u32, factor: f64) -> Baseline {
        many(run, Clock::EventsGated, |_| factor)
    }

    /// Compares with the usual options.
    fn compared(base: &[Baseline], new: &[Baseline]) -> Comparison {
        compare(base, new, &Options::default())
    }

    /// Processes of one code: eager launches have modes, and a busy machine has outliers.
    #[test]
    fn one_pair_takes_no_mode_of_a_process_for_a_change() {
        let (eager, gated) = (Clock::Events, Clock::EventsGated);
        let slower = [(Verdict::Slower, "a/gpu/b/1")];
        for (pairs, clock, factors, called) in [
            (1, eager, &[1.65, 0.51, 1.3][..], &[][..]),
            (1, gated, &[1.02], &[]),
            // One pair shows a change beyond the modes, and two that it is there in each process.
            (1, eager, &[1.0, 6.0], &slower),
            (2, eager, &[1.0, 1.2], &slower),
        ] {
            let side = |first: u32, factors: &[f64]| {
                let factor = |i| factors.get(i as usize).copied().unwrap_or(1.0);
                let runs = (0..pairs).map(|pair| many(2 * pair + first, clock, factor));
                runs.collect::<Vec<_>>()
            };
            let compared = compared(&side(0, &[]), &side(1, factors));
            let rows = compared.rows.iter();
            let verdicts = rows.map(|row| (row.verdict, row.id.as_str()));
            let is_called = |(verdict, _): &(Verdict, &str)| {
                *verdict != Verdict::Same && *verdict != Verdict::Unsure
            };
            let found = Vec::from_iter(verdicts.filter(is_called));
            assert_eq!(found, called, "{clock}, {factors:?}");
        }
    }

    #[test]
    fn unsteady_results_have_no_verdict_in_one_pair() {
        let id = "a/gpu/b/50";
        let [base, mut new] = [1, 2].map(|run| gated(run, 1.0));
        let samples = new.results.get_mut(id).unwrap().ns.iter_mut().enumerate();
        samples.for_each(|(i, ns)| *ns *= if i % 5 < 2 { 1.0 } else { 2.0 });
        let compared = compared(&[base], &[new]);
        let row = compared.rows.iter().find(|row| row.id == id).unwrap();
        assert_eq!(row.verdict, Verdict::Unsure);
        let reason = row.reason.as_deref().unwrap();
        assert!(reason.contains("samples are unsteady"), "{row:?}");
    }

    #[test]
    fn a_shared_change_comes_first_and_is_contradicted_nowhere() {
        let [base, new] = [(1, 1.0), (2, 1.8)].map(|(run, factor)| [gated(run, factor)]);
        let compared = compared(&base, &new);
        for text in [compared.text(false), compared.markdown().replace("\\", "")] {
            let doubt = text.find("benchmarks became about 80.").expect(&text);
            let counts = text.find("60 unsure").unwrap();
            assert!(doubt < counts || text.starts_with("###"), "{text}");
            for contradiction in ["on can be seen", "more pairs of processes"] {
                assert!(!text.contains(contradiction), "{contradiction}: {text}");
            }
        }
        assert_eq!(compared.exit_code(FailOn::Slower), 0);
    }

    #[test]
    fn one_clean_commit_and_an_unknown_machine_stand_beside_the_counts() {
        let run = |dirty, number| {
            let mut side = gated(number, 1.0);
            let environment = &mut side.runs.entry(String::new()).or_default().environment;
            environment.commit = Some("0123456789ab".to_owned());
            environment.dirty = Some(dirty);
            [side]
        };
        let unknown = [gated(1, 1.0)];
        for (base, dirty, shown) in [
            (run(false, 1), false, [true, false, false]),
            (run(false, 1), true, [false, false, false]),
            (unknown, false, [false, true, false]),
        ] {
            let text = compared(&base, &run(dirty, 2)).text(false);
            let sentences = [
                "(both sides are commit 0123456789ab)",
                "so no error rate holds",
                "the probability of",
            ];
            assert_eq!(sentences.map(|it| text.contains(it)), shown, "{text}");
        }
    }

    #[test]
    fn another_throughput_is_a_mark_and_a_warning() {
        let side = |work: &str, ns| {
            let mut side = run("a", ns);
            side.results.get_mut("a/cpu/b/1").unwrap().throughput = Some(work.to_owned());
            [side]
        };
        let mark = "the work of an iteration differs: base 8 Elements, new 16 Elements";
        for (new, marks) in [("16 Elements", &[mark][..]), ("8 Elements", &[])] {
            let compared = compared(&side("8 Elements", 10.0), &side(new, 11.0));
            assert_eq!(compared.rows[0].marks, marks);
            let warning = format!("a/cpu/b/1: {mark}");
            assert_eq!(compared.text(false).contains(&warning), !marks.is_empty());
        }
    }

    #[test]
    fn the_runs_of_a_side_with_one_label_are_named_once() {
        let side = ["main", "main", "other"].map(|label| run(label, 10.0));
        let compared = compared(&side, &side);
        assert_eq!([compared.base, compared.new], [["main", "other"]; 2]);
    }
}
