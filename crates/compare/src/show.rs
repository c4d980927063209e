//! A comparison as text: the terminal's table, and Markdown for a pull request.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, Color, LineStyle, Table, presets};

use crate::case::Class;
use crate::comparison::Comparison;
use crate::judge::{CHANGE_ERROR, Drift, Judgement, Verdict};
use crate::median::Location;
use crate::rows::Row;
use crossover_results::statistics::median::median;
use crossover_words::text::{columns, visible, wants_colours};
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

/// Columns that a narrow terminal lacks, the first one first.
const DISPENSABLE: [&str; 5] = ["samples", "clock", "base", "new", "interval"];

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

/// The change and its interval, unless there is no verdict and nothing can be said of it.
fn ratio_and_interval(verdict: Verdict, j: &Judgement) -> [String; 2] {
    if verdict == Verdict::Unsure && j.high / j.low > TOO_WIDE {
        return ["–".to_owned(), "too wide to tell".to_owned()];
    }
    let interval = format!("[{}, {}]", change(j.low), change(j.high));
    [change(j.ratio), interval]
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
fn verdict(row: &Row) -> String {
    let more = match (row.verdict, &row.reason, &row.judgement) {
        (Verdict::Unsure, None, Some(judgement)) => Some(more_pairs(judgement)),
        _ => None,
    };
    let remarks = more.iter().chain(&row.reason).chain(&row.marks);
    let parts = std::iter::once(row.verdict.name()).chain(remarks.map(String::as_str));
    Vec::from_iter(parts).join("; ")
}

/// Rows as they are shown, without the clock where none is known.
pub(super) struct Sheet<'a> {
    pub(super) header: Vec<&'static str>,
    pub(super) lines: Vec<(&'a Row, Vec<String>)>,
}

impl<'a> Sheet<'a> {
    pub(super) fn of(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let lines = rows.into_iter().map(|row| (row, cells(row)));
        let mut sheet = Self {
            header: HEADER.to_vec(),
            lines: lines.collect(),
        };
        if sheet.lines.iter().all(|(row, _)| row.clock.is_none()) {
            sheet.remove("clock");
        }
        sheet
    }

    fn remove(&mut self, column: &str) {
        if let Some(at) = self.header.iter().position(|name| *name == column) {
            self.header.remove(at);
            for (_, cells) in &mut self.lines {
                cells.remove(at);
            }
        }
    }

    /// Columns of a terminal that its table needs.
    fn width(&self) -> usize {
        let of_column = |(at, name): (usize, &&str)| {
            let cells = self
                .lines
                .iter()
                .map(|(_, cells)| cells[at].chars().count());
            // A space stands on either side.
            cells.fold(name.len(), usize::max) + 2
        };
        self.header.iter().enumerate().map(of_column).sum()
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
    let [ratio, interval] = (row.judgement.as_ref())
        .map_or_else(|| [dash(), dash()], |j| ratio_and_interval(row.verdict, j));
    vec![
        visible(&row.id),
        row.clock.map_or("unknown", |c| c.name()).to_owned(),
        row.base_ns.map_or_else(dash, figure),
        row.new_ns.map_or_else(dash, figure),
        ratio,
        interval,
        format!("{} | {}", runs(&row.base_samples), runs(&row.new_samples)),
        visible(&verdict(row)),
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
            "{2} Changes under {1} get no verdict. On average, at most {0} of the verdicts 'slower' \
             and 'faster' are false; if nothing changed, the probability of any such verdict is {0}.",
            percent_fine(CHANGE_ERROR),
            percent_fine(self.options.threshold),
            match self.options.location {
                Location::Median => "Times are medians of the samples.",
                Location::Fastest => "The time of a process is that of its fastest sample.",
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
        let with_reason = rows
            .iter()
            .filter_map(|row| Some((row.id.as_str(), row.reason.clone()?)));
        let mut lines = by_text(with_reason);
        let mut noisy: Vec<(&str, &Judgement)> = rows
            .iter()
            .filter(|row| row.reason.is_none())
            .filter_map(|row| Some((row.id.as_str(), row.judgement.as_ref()?)))
            .collect();
        noisy.sort_by(|a, b| a.1.more_pairs.total_cmp(&b.1.more_pairs));
        for (id, judgement) in noisy.iter().take(listed) {
            let [ratio, interval] = ratio_and_interval(Verdict::Unsure, judgement);
            let more = more_pairs(judgement);
            lines.push(format!("{id}: {ratio} {interval}; {more}"));
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
            format!(
                "{} ({}, {}): {}, so {}",
                drift.class,
                counted(drift.benchmarks, "benchmark"),
                counted(drift.pairs, "pair"),
                differ(drift.deviation),
                can_be_seen(self.resolution(&drift.class)),
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
        .map(|(heading, lines)| (heading, lines.iter().map(|line| visible(line)).collect()))
        .collect()
    }

    /// The smallest change that stored results can show.
    fn finds(&self) -> Option<String> {
        let typical = median((self.rows.iter()).filter_map(|row| Some(row.judgement?.resolution)));
        let typical = typical.filter(|_| !self.options.on_one_machine)?;
        Some(format!(
            "in the typical benchmark, {}; `crossover ab` shows smaller ones",
            can_be_seen(Some(typical).filter(|typical| typical.is_finite()))
        ))
    }

    /// The note on verdicts between different executables.
    fn layout(&self) -> Option<&'static str> {
        let changed = self.count(Verdict::Slower) + self.count(Verdict::Faster);
        (self.options.on_one_machine && changed > 0).then_some(
            "changed code can move other code in memory: a few percent in a benchmark that does not \
             call the changed code may come from the memory layout",
        )
    }

    /// For a terminal: what changed, the rest as counts; with `all`, a row for each benchmark.
    pub fn text(&self, all: bool) -> String {
        let width = columns().or_else(|| Table::new().width());
        let line = |line: &str| wrapped(line, "", width);
        let mut text = String::new();
        for known in self.unknown.iter().cloned().chain(self.finds()) {
            text += &line(&known);
        }
        text += &line(&self.summary());
        if self.equal {
            return text;
        }
        let rows: Vec<&Row> = match all {
            true => self.rows.iter().collect(),
            false => self.loud(),
        };
        if !rows.is_empty() {
            text += &terminal_table(&rows, width.unwrap_or(USUAL));
            text.push('\n');
        }
        // The reasons of those without a verdict follow in a list of their own.
        let has_remark = |row: &&&Row| {
            !row.marks.is_empty() || row.reason.is_some() && row.verdict != Verdict::Unsure
        };
        let with_remark = rows.iter().filter(has_remark);
        for remark in by_text(with_remark.map(|row| (row.id.as_str(), verdict(row)))) {
            text += &wrapped(&visible(&remark), "  ", width);
        }
        text += &self.layout().map_or_else(String::new, line);
        text += &line(&self.promise());
        for (heading, lines) in self.remarks(all) {
            text += &format!("\n{}", line(&format!("{heading}:")));
            for remark in lines {
                text += &wrapped(&remark, "  ", width);
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
            "### Benchmarks: {}\n\n{} against {}. {}\n",
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
        true => format!(
            "two runs of the same code differ by {}",
            percent_fine(deviation)
        ),
        false => "it is unknown how much two runs of the same code differ".to_owned(),
    }
}

/// The changes that a resolution lets be seen.
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

/// A line for each text, with its benchmark or the number of them.
fn by_text<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
    let mut ids: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (id, text) in texts {
        ids.entry(text).or_default().push(id);
    }
    let line = |(text, ids): (String, Vec<&str>)| match ids[..] {
        [id] => format!("{id}: {text}"),
        _ => format!("{} benchmarks: {text}", ids.len()),
    };
    ids.into_iter().map(line).collect()
}

/// A text behind an indent, broken between words where the terminal ends.
fn wrapped(text: &str, indent: &str, width: Option<u16>) -> String {
    let width = width.map_or(usize::MAX, usize::from);
    // A number keeps its sign of percent.
    let text = text.replace(" %", "\u{a0}%");
    let (mut out, mut line) = (String::new(), indent.to_owned());
    for word in text.split(' ') {
        let is_empty = line.trim().is_empty();
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            out += &format!("{line}\n");
            line = format!("{indent}{indent}");
        } else if !is_empty {
            line.push(' ');
        }
        line += word;
    }
    (out + &line + "\n").replace('\u{a0}', " ")
}

/// A table with a line for each benchmark, or in a narrow terminal a block.
fn terminal_table(rows: &[&Row], width: u16) -> String {
    let mut sheet = Sheet::of(rows.iter().copied());
    for (row, cells) in &mut sheet.lines {
        let verdict = cells.last_mut().expect("the verdict is the last column");
        row.verdict.name().clone_into(verdict);
    }
    let needs_less = |sheet: &Sheet<'_>| width >= NARROWEST && sheet.width() > width.into();
    for column in DISPENSABLE {
        if needs_less(&sheet) {
            sheet.remove(column);
        }
    }
    let Sheet { header, lines } = sheet;
    let mut table = Table::new();
    if width < NARROWEST {
        let block = |(row, cells): &(&Row, Vec<String>)| {
            let named = header.iter().zip(cells).skip(1);
            let lines = named.map(|(name, cell)| format!("  {name}: {cell}\n"));
            format!("{}\n{}", visible(&row.id), lines.collect::<String>())
        };
        return lines.iter().map(block).collect();
    }
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()))
        .set_header(&header);
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
    let quoted: Vec<String> = labels.iter().map(|l| format!("`{}`", visible(l))).collect();
    quoted.join(", ")
}

/// Text that cannot break out of a Markdown table cell or list item.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
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
    use crossover_results::store::baseline::Baseline;
    use crossover_results::store::sampled::Sampled;

    #[test]
    fn figures_read_well() {
        assert_eq!(percent_fine(0.01), "1 %");
        assert_eq!(percent_fine(0.00075), "0.075 %");
        assert_eq!(runs(&[]), "–");
        assert_eq!(runs(&[30]), "30");
        assert_eq!(runs(&[30, 30]), "2×30");
        assert_eq!(runs(&[12, 10, 12]), "3×10…12");
        assert_eq!(differ(0.003), "two runs of the same code differ by 0.3 %");
        assert!(differ(f64::INFINITY).contains("unknown"));
    }

    #[test]
    fn nothing_breaks_out_of_a_table() {
        assert_eq!(escape("a|b <i>\n`x`"), "a\\|b &lt;i&gt; \\`x\\`");
    }

    #[test]
    fn a_verdict_is_shown_with_its_size() {
        let judgement = Judgement {
            ratio: 3.32,
            low: 2.29,
            high: 4.81,
            resolution: 0.5,
            pairs: 8,
            confirmed: 6,
            more_pairs: f64::INFINITY,
        };
        let mut run = Baseline::default();
        let sampled = Sampled {
            ns: vec![199.0, 200.0, 199.5, 199.2, 200.1],
            clock: None,
            sidecar: None,
        };
        run.results.insert("sum/1000".to_owned(), sampled);
        let run = [run];
        let mut compared = compare(&run, &run, &Options::default());
        compared.rows[0].judgement = Some(judgement);
        compared.rows[0].verdict = Verdict::Slower;
        for text in [compared.text(false), compared.markdown(), compared.page()] {
            let shown = text.replace("\\", "");
            for size in ["+232 %", "[+129 %, +381 %]"] {
                assert!(shown.contains(size), "{text}");
            }
            assert!(!text.contains("too wide"), "{text}");
        }
        compared.rows[0].verdict = Verdict::Unsure;
        assert!(compared.text(true).contains("too wide to tell"));
    }

    /// Of failures, in which any text may stand.
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
        for text in [compared.text(true), compared.markdown(), compared.page()] {
            for acts in ['\u{1b}', '\t', '\u{202e}'] {
                assert!(!text.contains(acts), "{text:?}");
            }
            assert!(
                text.replace("\\\\", "\\").contains("b\\u{202e}/1"),
                "{text}"
            );
        }
    }

    #[test]
    fn sentences_end_with_the_terminal() {
        let text = "half of the 5 benchmarks became 25.8 % slower";
        assert_eq!(wrapped(text, "", None), format!("{text}\n"));
        let lines = "  half of the 5\n    benchmarks\n    became\n    25.8 %\n    slower\n";
        assert_eq!(wrapped(text, "  ", Some(16)), lines);
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
        for shown in ["100,000", "slower", "may come from the memory layout"] {
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
            "no changes can be seen",
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
