//! A comparison as text: the terminal's table, and Markdown for a pull request.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

use crate::case::Class;
use crate::comparison::Comparison;
use crate::judge::{CHANGE_ERROR, Drift, Judgement, Verdict};
use crate::median::Location;
use crate::rows::Row;
use crossover_results::statistics::median::median;
use crossover_words::text::{columns, wants_colours};
use crossover_words::units::{change, counted, number, percent_fine, size, time_fine};

/// The columns of a table.
const HEADER: [&str; 8] = [
    "benchmark",
    "clock",
    "base",
    "new",
    "change",
    "interval",
    "samples",
    "verdict",
];

/// The column of the clock.
const CLOCK: usize = 1;

/// Columns of a terminal that a table needs, and those that one is given without a terminal.
const NARROWEST: u16 = 80;
const USUAL: u16 = 120;

pub(super) const VERDICTS: [Verdict; 7] = [
    Verdict::Failed,
    Verdict::Slower,
    Verdict::Faster,
    Verdict::Unsure,
    Verdict::Same,
    Verdict::Gone,
    Verdict::New,
];

/// An interval wider than this factor is useless.
const TOO_WIDE: f64 = 1.5;

/// A resolution beyond this has no figure.
const LARGEST_RESOLUTION: f64 = 0.5;

/// Undecided benchmarks that the terminal lists.
const LISTED: usize = 10;

pub(super) fn interval(j: &Judgement) -> String {
    if j.high / j.low > TOO_WIDE {
        return "too wide to tell".to_owned();
    }
    format!("[{}, {}]", change(j.low), change(j.high))
}

/// The change, unless nothing can be said of it.
pub(super) fn ratio(j: &Judgement) -> String {
    match j.high / j.low > TOO_WIDE {
        true => "–".to_owned(),
        false => change(j.ratio),
    }
}

/// Samples of one side: `30` for one run, `2×30` for two alike, `50×10…12` for many that differ.
fn runs(samples: &[usize]) -> String {
    let runs = samples.len();
    match (samples.iter().min(), samples.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{runs}×{least}…{most}"),
        (Some(count), _) if runs > 1 => format!("{runs}×{count}"),
        (Some(count), _) => count.to_string(),
        _ => "–".to_owned(),
    }
}

/// The verdict with its disturbances: a throttled benchmark is never just `slower`.
pub(super) fn verdict(row: &Row) -> String {
    let mut text = row.verdict.name().to_owned();
    if let (Verdict::Unsure, None, Some(judgement)) = (row.verdict, &row.reason, &row.judgement) {
        text.push_str("; ");
        text.push_str(&more_pairs(judgement));
    }
    for remark in row.reason.iter().chain(&row.marks) {
        text.push_str("; ");
        text.push_str(remark);
    }
    text
}

/// Rows as they are shown, without the clock where none is known.
pub(super) struct Sheet<'a> {
    pub(super) header: Vec<&'static str>,
    pub(super) lines: Vec<(&'a Row, Vec<String>)>,
}

impl<'a> Sheet<'a> {
    pub(super) fn of(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut lines: Vec<_> = rows.into_iter().map(|row| (row, cells(row))).collect();
        let mut header = HEADER.to_vec();
        if lines.iter().all(|(row, _)| row.clock.is_none()) {
            header.remove(CLOCK);
            for (_, cells) in &mut lines {
                cells.remove(CLOCK);
            }
        }
        Self { header, lines }
    }
}

/// Whether a column is aligned as numbers are.
pub(super) fn is_number(column: &str) -> bool {
    !["benchmark", "clock", "verdict"].contains(&column)
}

fn cells(row: &Row) -> Vec<String> {
    let dash = || "–".to_owned();
    // Criterion's files name no unit, and not every measurement is a time.
    let figure = match row.clock {
        Some(_) => time_fine,
        None => bare,
    };
    vec![
        row.id.clone(),
        row.clock.map_or("unknown", |c| c.name()).to_owned(),
        row.base_ns.map_or_else(dash, figure),
        row.new_ns.map_or_else(dash, figure),
        row.judgement.as_ref().map_or_else(dash, ratio),
        row.judgement.as_ref().map_or_else(dash, interval),
        format!("{} | {}", runs(&row.base_samples), runs(&row.new_samples)),
        verdict(row),
    ]
}

/// A number whose unit is unknown.
fn bare(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.3}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value if value < 1e15 => size(value.round() as u64),
        value => number(value),
    }
}

/// How many more pairs would decide it.
fn more_pairs(judgement: &Judgement) -> String {
    /// More than anybody runs.
    const TOO_MANY: f64 = 1000.0;
    match judgement.more_pairs {
        n if n <= 1.0 => "one more pair of processes may decide it".to_owned(),
        n if n <= TOO_MANY => format!("about {n:.0} more pairs of processes would decide it"),
        _ => format!("more than {TOO_MANY:.0} pairs of processes would be needed"),
    }
}

impl Comparison {
    /// `2 slower, 1 faster, 40 same`.
    pub fn summary(&self) -> String {
        if self.equal {
            return "both sides have equal executables, and equal files that they could read: \
             nothing was run (--run-equal runs them)"
                .to_owned();
        }
        let counts: Vec<String> = VERDICTS
            .into_iter()
            .filter(|v| self.count(*v) > 0)
            .map(|v| format!("{} {}", self.count(v), v.name()))
            .collect();
        if counts.is_empty() {
            "no benchmark".to_owned()
        } else {
            counts.join(", ")
        }
    }

    /// The error rates of the verdicts.
    pub fn promise(&self) -> String {
        format!(
            "change of the {2}; on average at most {0} of the verdicts 'slower' and 'faster' are \
             false, and if nothing changed, the probability of any such verdict is {0}; changes \
             under {1} get no verdict",
            percent_fine(CHANGE_ERROR),
            percent_fine(self.options.threshold),
            match self.options.location {
                Location::Median => "median time",
                Location::Fastest => "time of each process's fastest sample",
            }
        )
    }

    /// Rows that changed, or exist on one side only.
    fn loud(&self) -> Vec<&Row> {
        self.of(&[
            Verdict::Failed,
            Verdict::Slower,
            Verdict::Faster,
            Verdict::Gone,
            Verdict::New,
        ])
    }

    fn of(&self, verdicts: &[Verdict]) -> Vec<&Row> {
        let rows = self.rows.iter();
        rows.filter(|row| verdicts.contains(&row.verdict)).collect()
    }

    /// A line for each reason why benchmarks are undecided, then those that the fewest pairs of
    /// processes would decide.
    fn undecided(&self, listed: usize) -> Vec<String> {
        let rows = self.of(&[Verdict::Unsure]);
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in &rows {
            if let Some(reason) = &row.reason {
                reasons.entry(reason).or_default().push(&row.id);
            }
        }
        let mut lines: Vec<String> = reasons
            .into_iter()
            .map(|(reason, ids)| match ids[..] {
                [id] => format!("{id}: {reason}"),
                _ => format!("{} benchmarks: {reason}", ids.len()),
            })
            .collect();
        let mut noisy: Vec<(&str, &Judgement)> = rows
            .iter()
            .filter(|row| row.reason.is_none())
            .filter_map(|row| Some((row.id.as_str(), row.judgement.as_ref()?)))
            .collect();
        noisy.sort_by(|a, b| a.1.more_pairs.total_cmp(&b.1.more_pairs));
        for (id, judgement) in noisy.iter().take(listed) {
            lines.push(format!(
                "{id}: {}, {}; {}",
                ratio(judgement),
                interval(judgement),
                more_pairs(judgement)
            ));
        }
        if noisy.len() > listed {
            let more = noisy.len() - listed;
            lines.push(format!(
                "{more} more, which would take even more pairs: `--all` lists them"
            ));
        }
        lines
    }

    /// The change that is found in the typical benchmark of a class with 95 % probability, as a
    /// fraction.
    pub(super) fn resolution(&self, class: &Class) -> Option<f64> {
        // A benchmark that was not run to the end may have changed by more than its resolution.
        let is_complete = |row: &&Row| {
            let confirmed = row.judgement.map_or(0, |judgement| judgement.confirmed);
            self.options.screened == 0 || confirmed > 0 || row.verdict != Verdict::Unsure
        };
        let of_class = (self.rows.iter())
            .filter(|row| row.class.as_ref() == Some(class))
            .filter(is_complete);
        let resolutions = of_class.filter_map(|row| Some(row.judgement.as_ref()?.resolution));
        median(resolutions).filter(|resolution| resolution.is_finite())
    }

    /// A line for each class: the change that is found there, and the spread of its processes.
    pub(crate) fn class_lines(&self) -> Vec<String> {
        let line = |drift: &Drift| {
            let finds = match self.resolution(&drift.class) {
                Some(resolution) if resolution <= LARGEST_RESOLUTION => {
                    format!("changes from {} on are detected", percent_fine(resolution))
                }
                Some(_) => format!(
                    "only changes of more than {} are detected",
                    percent_fine(LARGEST_RESOLUTION)
                ),
                None => "no change is detected".to_owned(),
            };
            format!(
                "{}: {finds}; {} ({}, {})",
                drift.class,
                differ(drift.deviation),
                counted(drift.benchmarks, "benchmark"),
                counted(drift.pairs, "pair"),
            )
        };
        self.drifts.iter().map(line).collect()
    }

    /// The lists under the table, each with its heading.
    pub(super) fn remarks(&self, all: bool) -> Vec<(&'static str, Vec<String>)> {
        let listed = if all { usize::MAX } else { LISTED };
        let undecided = match self.options.on_one_machine {
            true => "Undecided (a larger --budget runs more pairs)",
            false => "Undecided (`crossover ab` runs more pairs)",
        };
        [
            ("Warnings", self.warnings.clone()),
            ("Left out or doubtful files", self.problems.clone()),
            (undecided, self.undecided(listed)),
            (
                "Resolution for the typical benchmark of a class, with a probability of 95 %",
                self.class_lines(),
            ),
            ("Code", self.notes.clone()),
        ]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .collect()
    }

    /// The smallest change that stored results can show.
    fn finds(&self) -> Option<String> {
        let typical = median((self.rows.iter()).filter_map(|row| Some(row.judgement?.resolution)));
        let typical = typical.filter(|_| !self.options.on_one_machine)?;
        let finds = match typical <= LARGEST_RESOLUTION {
            true => format!("changes from {} on", percent_fine(typical)),
            false => format!("no change under {}", percent_fine(LARGEST_RESOLUTION)),
        };
        Some(format!(
            "these results show {finds} in the typical benchmark; `crossover ab` decides about less"
        ))
    }

    /// The note on verdicts between different executables.
    fn layout(&self) -> Option<&'static str> {
        let changed = self.count(Verdict::Slower) + self.count(Verdict::Faster);
        (self.options.on_one_machine && changed > 0).then_some(
            "a change can move other code in memory: a few percent in a benchmark that does not \
             call the changed code may be layout",
        )
    }

    /// For a terminal: what changed, the rest as counts; with `all`, a row for each benchmark.
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        for line in self.unknown.iter().cloned().chain(self.finds()) {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "{}", self.summary());
        if self.equal {
            return text;
        }
        let rows: Vec<&Row> = match all {
            true => self.rows.iter().collect(),
            false => self.loud(),
        };
        if !rows.is_empty() {
            let _ = writeln!(text, "{}", terminal_table(&rows));
        }
        if let Some(line) = self.layout() {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "{}", self.promise());
        for (heading, lines) in self.remarks(all) {
            let _ = writeln!(text, "\n{heading}:");
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    /// Markdown for a pull request: what changed on top, the rest folded.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for failure in &self.failures {
            let _ = writeln!(text, "**Error: {}**\n", escape(failure));
        }
        let _ = write!(
            text,
            "### Benchmarks: {}\n\n{} against {}; {}.\n",
            self.summary(),
            code_list(&self.new),
            code_list(&self.base),
            self.promise()
        );
        for line in self.unknown.iter().cloned().chain(self.finds()) {
            let _ = writeln!(text, "\n{}", escape(&line));
        }
        let loud = self.loud();
        let quiet = self.of(&[Verdict::Same, Verdict::Unsure]);
        if !loud.is_empty() {
            let _ = write!(text, "\n{}", markdown_table(&loud));
        }
        if let Some(line) = self.layout() {
            let _ = writeln!(text, "\n{line}");
        }
        if !quiet.is_empty() {
            let _ = write!(
                text,
                "\n<details><summary>{} without a detected change</summary>\n\n{}\n</details>\n",
                counted(quiet.len(), "benchmark"),
                markdown_table(&quiet)
            );
        }
        for (heading, lines) in self.remarks(true) {
            let _ = writeln!(text, "\n**{heading}**\n");
            for line in lines {
                let _ = writeln!(text, "- {}", escape(&line));
            }
        }
        text
    }
}

/// The spread between two processes of the same code, as a standard deviation.
fn differ(deviation: f64) -> String {
    match deviation.is_finite() {
        true => format!("processes differ by {}", percent_fine(deviation)),
        false => "the difference between processes is unknown".to_owned(),
    }
}

/// A table, or in a narrow terminal a block for each benchmark.
fn terminal_table(rows: &[&Row]) -> String {
    let Sheet { header, lines } = Sheet::of(rows.iter().copied());
    let mut table = Table::new();
    let width = columns().or(table.width()).unwrap_or(USUAL);
    if width < NARROWEST {
        let block = |(row, cells): &(&Row, Vec<String>)| {
            let named = header.iter().zip(cells).skip(1);
            let lines = named.map(|(name, cell)| format!("  {name}: {cell}\n"));
            format!("{}\n{}", row.id, lines.collect::<String>())
        };
        return lines.iter().map(block).collect();
    }
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(&header)
        .set_width(width);
    if wants_colours() {
        table.enforce_styling();
    }
    for (row, cells) in lines {
        let mut line: Vec<Cell> = cells.into_iter().map(Cell::new).collect();
        let colour = match row.verdict {
            Verdict::Failed | Verdict::Slower => Some(Color::Red),
            Verdict::Faster => Some(Color::Green),
            Verdict::Unsure => Some(Color::Yellow),
            _ => None,
        };
        if let Some(colour) = colour {
            let verdict = line.pop().expect("the verdict is the last column");
            line.push(verdict.fg(colour).add_attribute(Attribute::Bold));
        }
        table.add_row(line);
    }
    for (name, column) in header.iter().zip(table.column_iter_mut()) {
        if is_number(name) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

fn code_list(labels: &[String]) -> String {
    let quoted: Vec<String> = labels.iter().map(|l| format!("`{l}`")).collect();
    quoted.join(", ")
}

/// Text that cannot break out of a Markdown table cell or list item.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn markdown_table(rows: &[&Row]) -> String {
    let Sheet { header, lines } = Sheet::of(rows.iter().copied());
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = |name: &&str| if is_number(name) { "---:" } else { "---" };
    let rules = header.iter().map(|name| rule(name).to_owned()).collect();
    let mut text = format!("| {} |\n", header.join(" | ")) + &line(rules);
    for (_, cells) in lines {
        text += &line(cells.iter().map(|cell| escape(cell)).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::compare;
    use crate::judge::Options;
    use crossover_results::store::baseline::{Baseline, Sampled};

    #[test]
    fn figures_read_well() {
        assert_eq!(percent_fine(0.01), "1 %");
        assert_eq!(percent_fine(0.00075), "0.075 %");
        assert_eq!(runs(&[]), "–");
        assert_eq!(runs(&[30]), "30");
        assert_eq!(runs(&[30, 30]), "2×30");
        assert_eq!(runs(&[12, 10, 12]), "3×10…12");
        assert_eq!(differ(0.003), "processes differ by 0.3 %");
        assert!(differ(f64::INFINITY).ends_with("unknown"));
    }

    #[test]
    fn nothing_breaks_out_of_a_table() {
        assert_eq!(escape("a|b <i>\n`x`"), "a\\|b &lt;i&gt; \\`x\\`");
    }

    /// Such as instructions, of a measurement that is not a time.
    #[test]
    fn counts_have_no_unit_and_no_clock() {
        let side = |more: f64| {
            let mut run = Baseline::default();
            for (id, count) in [("equal", 100_000.0), ("more", more)] {
                let sampled = Sampled {
                    ns: vec![count; 10],
                    clock: None,
                    sidecar: None,
                };
                run.results.insert(id.to_owned(), sampled);
            }
            [run]
        };
        let options = Options {
            on_one_machine: true,
            ..Options::default()
        };
        let text = compare(&side(100_000.0), &side(102_000.0), &options).text(true);
        for shown in ["100,000", "slower", "may be layout"] {
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
                let mut run = Baseline::default();
                for i in 1..=12 {
                    let centre = 100.0 * (step * f64::from(i)).exp();
                    let sampled = Sampled {
                        ns: (0..20).map(|i| centre + f64::from(i) * 1e-3).collect(),
                        clock: None,
                        sidecar: None,
                    };
                    run.results.insert(format!("a/cpu/b/{i}"), sampled);
                }
                run
            })
        };
        let options = Options {
            on_one_machine: true,
            screened: 2,
            ..Options::default()
        };
        let compared = compare(&side(0.0), &side(0.01), &options);
        let text = compared.text(false);
        for shown in [
            "12 unsure",
            "Undecided (a larger --budget runs more pairs)",
            "more pairs of processes would decide it",
            "2 more, which would take even more pairs: `--all` lists them",
            "no change is detected",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let all = compared.text(true);
        assert!(
            !all.contains("--all") && !all.contains("crossover ab"),
            "{all}"
        );
        let stored = compare(&side(0.0), &side(0.01), &Options::default());
        assert!(stored.text(true).contains("`crossover ab` runs more pairs"));
    }
}
