//! The sentences about a comparison, for every form of it.

use crate::case::LaunchSlope;
use crate::comparison::Comparison;
use crate::evidence::Drift;
use crate::forms::{more_pairs, ratio_and_interval};
use crate::judge::Judgement;
use crate::rows::{BenchmarkRow, by_text};
use crate::verdict::{CHANGE_ERROR, Layout, Location, Verdict};
use crossover_results::statistics::median::median;
use crossover_words::Clock;
use crossover_words::text::visible;
use crossover_words::units::{counted, percent_fine};

/// A resolution beyond this has no figure.
const LARGEST_RESOLUTION: f64 = 0.5;

/// Undecided benchmarks that the terminal lists.
const LISTED: usize = 10;

impl Comparison {
    /// `2 slower, 1 faster, 40 same`.
    pub fn summary(&self) -> String {
        if self.equal {
            return "both sides have equal executables, and equal files that they could read: \
             nothing was run (--run-equal runs them)"
                .to_owned();
        }
        let counts = Verdict::ALL.map(|verdict| (verdict, self.count(verdict)));
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let counts = Vec::from_iter(counts.map(|(verdict, count)| format!("{count} {verdict}")));
        if counts.is_empty() {
            return "no benchmark".to_owned();
        }
        let summary = counts.join(", ");
        match &self.commit {
            Some(commit) if !self.options.on_one_machine => {
                format!("{summary} (both sides are commit {commit})")
            }
            _ => summary,
        }
    }

    /// The error rates of the verdicts.
    pub fn promise(&self) -> String {
        let times = match self.options.location {
            Location::Median => "Times are medians of the samples.",
            Location::Fastest => "The time of a process is that of its fastest sample.",
        };
        let rates = match (self.unknown.is_empty(), self.is_of_one_pair()) {
            (false, _) => "The machine of a side is unknown: another machine changes benchmarks as other code \
                 does, so no error rate holds."
                .to_owned(),
            (true, true) => "Verdicts of one pair of runs are changes beyond what processes are known to differ \
                 by; several pairs have error rates."
                .to_owned(),
            (true, false) => format!(
                "On average, at most {0} of the verdicts 'slower' and 'faster' are false; if nothing changed, \
                 the probability of any such verdict is {0}{1}.",
                percent_fine(CHANGE_ERROR),
                match self.layout() {
                    Some(_) => " (for equal memory layouts only)",
                    None => "",
                }
            ),
        };
        let threshold = percent_fine(self.options.threshold);
        format!("{times} Changes under {threshold} get no verdict. {rates}")
    }

    /// Why the quotient of the shown times may differ from the shown change.
    pub(super) fn times_note(&self) -> Option<&'static str> {
        (self.drifts.iter().any(|drift| drift.pairs > 1)).then_some(
            "Each time is the median over the runs of its side, and the change is the mean over the pairs of runs, \
             so it may differ from the quotient of the times.",
        )
    }

    fn is_of_one_pair(&self) -> bool {
        self.drifts.iter().any(|drift| drift.pairs == 1)
    }

    /// Rows that changed, or exist on one side only.
    pub(super) fn changed_rows(&self) -> Vec<&BenchmarkRow> {
        self.of(&[
            Verdict::Failed,
            Verdict::Unreadable,
            Verdict::Slower,
            Verdict::Faster,
            Verdict::Gone,
            Verdict::New,
        ])
    }

    pub(super) fn of(&self, verdicts: &[Verdict]) -> Vec<&BenchmarkRow> {
        let rows = self.rows.iter();
        rows.filter(|row| verdicts.contains(&row.verdict)).collect()
    }

    /// A line for each reason why benchmarks are undecided, then the benchmarks that the fewest pairs of
    /// processes would decide.
    fn undecided(&self, listed: usize) -> Vec<String> {
        let rows = self.of(&[Verdict::Unsure]);
        let with_reason = rows
            .iter()
            .filter_map(|row| Some((row.id.as_str(), row.reason.clone()?)));
        let mut lines = by_text(with_reason);
        let mut noisy: Vec<(&BenchmarkRow, &Judgement)> = rows
            .iter()
            .filter(|row| row.reason.is_none())
            .filter_map(|row| Some((*row, row.judgement.as_ref()?)))
            .collect();
        noisy.sort_by(|a, b| a.1.more_pairs.total_cmp(&b.1.more_pairs));
        for (row, judgement) in noisy.iter().take(listed) {
            let [ratio, interval] = ratio_and_interval(row, judgement);
            let more = more_pairs(judgement);
            lines.push(format!("{}: {ratio} {interval}; {more}", row.id));
        }
        if noisy.len() > listed {
            let more = noisy.len() - listed;
            lines.push(format!(
                "{more} more, which would take even more pairs: `--all` lists them"
            ));
        }
        lines
    }

    /// A line for each class: the change that is found, and the spread of its processes.
    pub(crate) fn class_lines(&self) -> Vec<String> {
        let line = |drift: &Drift| {
            format!(
                "{} ({}, {}): {}, so {}",
                drift.name(),
                counted(drift.benchmarks, "benchmark"),
                counted(drift.pairs, "pair"),
                differ(drift.deviation),
                match drift.doubt {
                    Some(_) =>
                        "only benchmarks that stand out from the others can be seen".to_owned(),
                    None => can_be_seen(self.resolution(drift)),
                }
            )
        };
        self.drifts.iter().map(line).collect()
    }

    /// How the benchmarks of each clock are corrected for the launch constant, or why they are not.
    fn corrections(&self) -> Vec<String> {
        let slopes = self.shown_slopes().map(|(clock, slope)| {
            format!(
                "{clock}: of the difference of the empty kernels, {:.2} ± {:.2} times as much per kernel \
                 is taken off the change of {}",
                slope.value,
                slope.error,
                counted(slope.benchmarks, "benchmark"),
            )
        });
        let reasons = self.rows.iter();
        let reasons =
            reasons.filter_map(|row| Some((row.id.as_str(), row.uncorrected?.to_owned())));
        let uncorrected = by_text(reasons).into_iter();
        let uncorrected = uncorrected.map(|line| format!("not corrected: {line}"));
        let on_other_clocks = self.rows.iter().filter(|row| {
            let is_corrected = row
                .clock
                .is_some_and(|clock| self.slopes.contains_key(&clock));
            row.class.is_some() && row.uncorrected.is_none() && !is_corrected
        });
        let on_other_clocks = Some(on_other_clocks.count()).filter(|_| !self.slopes.is_empty());
        let on_other_clocks = on_other_clocks.filter(|count| *count > 0);
        let on_other_clocks = on_other_clocks.map(|count| {
            format!(
                "not corrected: {} on other clocks",
                counted(count, "benchmark")
            )
        });
        slopes.chain(uncorrected).chain(on_other_clocks).collect()
    }

    /// The slopes of the clocks that have a corrected row.
    pub(super) fn shown_slopes(&self) -> impl Iterator<Item = (Clock, &LaunchSlope)> {
        let has_row = |clock: &Clock| {
            let mut of_clock = self.rows.iter().filter(|row| row.clock == Some(*clock));
            of_clock.any(|row| row.class.is_some() && row.uncorrected.is_none())
        };
        let slopes = self.slopes.iter().map(|(clock, slope)| (*clock, slope));
        slopes.filter(move |(clock, _)| has_row(clock))
    }

    /// The lists under the table, each with its heading.
    pub(super) fn remarks(&self, all: bool) -> Vec<(&'static str, Vec<String>)> {
        let listed = if all { usize::MAX } else { LISTED };
        let undecided = if self.options.on_one_machine {
            "Undecided (a larger --budget runs more pairs)"
        } else {
            "Undecided (`crossover ab` runs more pairs)"
        };
        [
            ("Warnings", self.warnings.clone()),
            ("Left out or doubtful files", self.problems.clone()),
            (undecided, self.undecided(listed)),
            (
                "Resolution for the typical benchmark of a class, with a probability of 95 %",
                self.class_lines(),
            ),
            ("Launch constant", self.corrections()),
            ("Code", self.notes.clone()),
        ]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .map(|(heading, lines)| (heading, lines.iter().map(|line| visible(line)).collect()))
        .collect()
    }

    /// The smallest change that stored results can show.
    pub(super) fn finds(&self) -> Option<String> {
        let moved = |row: &&BenchmarkRow| self.drifts.iter().any(|drift| row.moved_with(drift));
        let rows = self.rows.iter().filter(|row| !moved(row));
        let typical = median(rows.filter_map(|row| Some(row.judgement?.resolution)));
        let typical = typical.filter(|_| !self.options.on_one_machine)?;
        Some(format!(
            "in the typical benchmark, {}; `crossover ab` shows smaller ones",
            can_be_seen(Some(typical).filter(|typical| typical.is_finite()))
        ))
    }

    /// The effect of one order of functions on each side, unless only a device was timed.
    pub(super) fn layout(&self) -> Option<String> {
        let is_of_host =
            |row: &BenchmarkRow| matches!(row.clock, None | Some(Clock::Wall | Clock::Submit));
        let Layout::Fixed(why) = &self.options.layout else {
            return None;
        };
        self.rows.iter().any(is_of_host).then(|| {
            format!(
                "each side was linked in one order of functions ({}): up to 15 % in a benchmark that does \
                 not call the changed code may come from the memory layout",
                visible(why)
            )
        })
    }
}

/// The spread between two processes of the same code, as a standard deviation.
fn differ(deviation: f64) -> String {
    if !deviation.is_finite() {
        return "it is unknown how much two runs of the same code differ".to_owned();
    }
    format!(
        "two runs of the same code differ by {}",
        percent_fine(deviation)
    )
}

/// The changes that can be seen with a resolution.
fn can_be_seen(resolution: Option<f64>) -> String {
    match resolution {
        Some(found) if found <= LARGEST_RESOLUTION => {
            format!("changes from {} on can be seen", percent_fine(found))
        }
        Some(_) => format!(
            "only changes above {} can be seen",
            percent_fine(LARGEST_RESOLUTION)
        ),
        None => "no changes can be seen".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{FailOn, compare};
    use crate::tests::planted;
    use crate::verdict::Options;

    fn on_one_machine() -> Options {
        Options {
            on_one_machine: true,
            ..Options::default()
        }
    }

    fn forms(compared: &Comparison) -> [String; 3] {
        [compared.text(true), compared.markdown(), compared.page()]
    }

    #[test]
    fn a_verdict_is_shown_with_its_size() {
        let samples = vec![199.0, 200.0, 199.5, 199.2, 200.1];
        let run = [planted([("sum/1000".to_owned(), samples)])];
        let mut compared = compare(&run, &run, &on_one_machine());
        let judgement = compared.rows[0].judgement.as_mut().unwrap();
        (judgement.ratio, judgement.low, judgement.high) = (3.32, 2.29, 4.81);
        compared.rows[0].verdict = Verdict::Slower;
        for text in forms(&compared) {
            let shown = text.replace("\\", "");
            for size in ["+232 %", "[+129 %, +381 %]"] {
                assert!(shown.contains(size), "{text}");
            }
            assert!(!text.contains("too wide"), "{text}");
        }
        compared.rows[0].verdict = Verdict::Unsure;
        assert!(compared.text(true).contains("too wide to tell"));
    }

    /// Failures may contain any text.
    #[test]
    fn nothing_acts_on_a_terminal() {
        let id = "a\u{1b}[31m\tb\u{202e}/1";
        let options = Options {
            failed: [(id.to_owned(), format!("{id} failed"))].into(),
            ..Options::default()
        };
        let mut compared = compare(&[], &[], &options);
        compared.failures.push(format!("{id}\nfailed"));
        compared.warnings.push(id.to_owned());
        compared.base.push(id.to_owned());
        for text in forms(&compared) {
            for acts in ['\u{1b}', '\t', '\u{202e}'] {
                assert!(!text.contains(acts), "{text:?}");
            }
            let text = text.replace("\\\\", "\\");
            assert!(text.contains("b\\u{202e}/1"), "{text}");
        }
    }

    #[test]
    fn every_form_says_once_that_there_is_one_order_of_functions() {
        let side = [planted([("a/cpu/b/1".to_owned(), vec![100.0; 10])])];
        for (layout, name, times) in [
            (Layout::Fixed("a bundle".to_owned()), "\"fixed\"", 1),
            (Layout::Random, "\"random\"", 0),
            (Layout::Unknown, "null", 0),
        ] {
            let options = Options {
                layout,
                ..on_one_machine()
            };
            let compared = compare(&side, &side, &options);
            let json = compared.json(FailOn::None);
            assert!(json.contains(&format!("\"layout\": {name}")), "{json}");
            for text in forms(&compared).into_iter().chain([json]) {
                let sentences = text.matches("in one order of functions");
                assert_eq!(sentences.count(), times, "{text}");
            }
            let is_limited = compared.promise().contains("equal memory layouts only");
            assert_eq!(is_limited, times == 1);
        }
    }

    /// Counts, such as instructions, are no times.
    #[test]
    fn counts_have_no_unit_and_no_clock() {
        let side = |more: f64| {
            let counts = [("equal", 100_003.0), ("more", more)];
            let samples = counts.map(|(id, count)| (id.to_owned(), vec![count; 10]));
            [planted(samples)]
        };
        let text = compare(&side(100_003.0), &side(102_007.0), &on_one_machine()).text(true);
        for shown in ["100,003", "slower"] {
            assert!(text.contains(shown), "{text}");
        }
        assert_eq!(text.matches("same").count(), 2, "{text}");
        for hidden in ["µs", " ns", "clock", "unknown"] {
            assert!(!text.contains(hidden), "{text}");
        }
    }

    #[test]
    fn what_ab_left_undecided_names_the_budget_and_no_resolution() {
        // The changes of two pairs are opposite.
        let side = |step: f64| {
            [step, -step].map(|step| {
                planted((1..=12).map(|i| {
                    let centre = 100.0 * (step * f64::from(i)).exp();
                    let samples = (0..20).map(|i| centre + f64::from(i) * 1e-3);
                    (format!("a/cpu/b/{i}"), samples.collect())
                }))
            })
        };
        let options = Options {
            screened: 2,
            ..on_one_machine()
        };
        let compared = compare(&side(0.0), &side(0.01), &options);
        let text = compared.text(false);
        for shown in [
            "12 unsure",
            "Undecided (a larger --budget runs more pairs)",
            "more pairs of processes would decide it",
            "2 more, which would take even more pairs: `--all` lists them",
            "no changes can be seen",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let text = compared.text(true);
        assert!(
            !text.contains("--all") && !text.contains("crossover ab"),
            "{text}"
        );
        let stored = compare(&side(0.0), &side(0.01), &Options::default());
        assert!(stored.text(true).contains("`crossover ab` runs more pairs"));
    }
}
