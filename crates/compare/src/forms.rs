//! A comparison for a terminal, as Markdown for a pull request, and as JSON for programs; its rows as cells of
//! text, for every table.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, Color, LineStyle, Table, presets};
use serde_json::{Value, json};

use crossover_words::Clock;
use crossover_words::text::{columns, escape, visible, wants_colours};
use crossover_words::units::{change, counted, number, size, time, time_fine};

use crate::comparison::{Comparison, FailOn};
use crate::judge::Judgement;
use crate::rows::{BenchmarkRow, by_text};
use crate::verdict::{CHANGE_ERROR, Layout, SAME_ERROR, Verdict};

/// Columns that a narrow terminal lacks, the first one first.
const DISPENSABLE: [&str; 5] = ["samples", "clock", "base", "new", "interval"];

/// Columns of a terminal that a table needs, and those that one is given without a terminal.
const NARROWEST: u16 = 80;
const USUAL: u16 = 120;

impl Comparison {
    /// For a terminal: what changed, the rest as counts; with `all`, a row for each benchmark.
    pub fn text(&self, all: bool) -> String {
        let width = columns(terminal().width());
        let line = |line: &str| wrapped(line, "", width);
        let mut text = String::new();
        let doubts = self.doubts.iter().chain(&self.unknown);
        for known in doubts.cloned().chain(self.finds()) {
            text += &line(&visible(&known));
        }
        text += &line(&self.summary());
        if self.equal {
            return text;
        }
        let rows = if all {
            self.rows.iter().collect()
        } else {
            self.changed_rows()
        };
        if !rows.is_empty() {
            text += &terminal_table(&rows, width.unwrap_or(USUAL));
            text.push('\n');
            text += &self.times_note().map_or_else(String::new, line);
        }
        // The reasons of those without a verdict follow in a list of their own.
        let has_remark = |row: &&&BenchmarkRow| {
            !row.marks.is_empty() || row.reason.is_some() && row.verdict != Verdict::Unsure
        };
        let with_remark = rows.iter().filter(has_remark);
        for remark in by_text(with_remark.map(|row| (row.id.as_str(), verdict(row)))) {
            text += &wrapped(&visible(&remark), "  ", width);
        }
        text += &line(&self.promise());
        text += &self
            .layout()
            .map_or_else(String::new, |layout| line(&layout));
        for (heading, lines) in self.remarks(all) {
            text += &format!("\n{}", line(&format!("{heading}:")));
            for remark in lines {
                text += &wrapped(&remark, "  ", width);
            }
        }
        text
    }
}

/// A table for the terminal that standard output may be. Tests have none, wherever they run.
fn terminal() -> Table {
    let mut table = Table::new();
    if cfg!(test) {
        table.force_no_tty();
    }
    table
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
fn terminal_table(rows: &[&BenchmarkRow], width: u16) -> String {
    let mut sheet = Sheet::of(rows.iter().copied());
    for (row, cells) in &mut sheet.lines {
        let verdict = cells.last_mut().expect("the verdict is the last column");
        *verdict = row.verdict.to_string();
    }
    let needs_less = |sheet: &Sheet<'_>| width >= NARROWEST && sheet.width() > width.into();
    for column in DISPENSABLE {
        if needs_less(&sheet) {
            sheet.remove(column);
        }
    }
    let Sheet { header, lines } = sheet;
    let mut table = terminal();
    if width < NARROWEST {
        let block = |(row, cells): &(&BenchmarkRow, Vec<String>)| {
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
            Verdict::Failed | Verdict::Unreadable | Verdict::Slower => Some(Color::Red),
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

/// Version of the JSON.
const SCHEMA: u32 = 1;

impl Comparison {
    /// The comparison as JSON, described in `docs/comparing.md`.
    pub fn json(&self, fail_on: FailOn) -> String {
        let counts = Verdict::ALL.map(|verdict| (verdict.to_string(), self.count(verdict)));
        let classes = self.drifts.iter().map(|drift| {
            json!({
                "class": drift.name(),
                "benchmarks": drift.benchmarks,
                "pairs": drift.pairs,
                "deviation": drift.deviation,
                "resolution": self.resolution(drift),
            })
        });
        let constants = self.slopes.iter().map(|(clock, slope)| {
            json!({
                "clock": clock.name(),
                "benchmarks": slope.benchmarks,
                "slope": slope.value,
                "slope_error": slope.error,
            })
        });
        let warnings = [&self.doubts[..], &self.unknown, &self.warnings].concat();
        let json = json!({
            "schema": SCHEMA,
            "base": self.base,
            "new": self.new,
            "threshold": self.options.threshold,
            "change_error": CHANGE_ERROR,
            "same_error": SAME_ERROR,
            "screened": self.options.screened,
            "layout": match &self.options.layout {
                Layout::Unknown => Value::Null,
                Layout::Random => json!("random"),
                Layout::Fixed(_) => json!("fixed"),
            },
            "layout_note": self.layout(),
            "failures": self.failures,
            "exit_code": self.exit_code(fail_on),
            "counts": BTreeMap::from(counts),
            "benchmarks": Vec::from_iter(self.rows.iter().map(benchmark)),
            "classes": Vec::from_iter(classes),
            "launch_constants": Vec::from_iter(constants),
            "warnings": warnings,
            "notes": self.notes,
            "problems": self.problems,
        });
        format!("{json:#}\n")
    }
}

/// A benchmark in the JSON. Infinite numbers become null.
fn benchmark(row: &BenchmarkRow) -> Value {
    let judged = |field: fn(&Judgement) -> f64| row.judgement.as_ref().map(field);
    json!({
        "id": row.id,
        "verdict": row.verdict,
        "clock": row.clock.map(Clock::name),
        "base_ns": row.base_ns,
        "new_ns": row.new_ns,
        "correction_ns": row.correction_ns,
        "ratio": judged(|j| j.ratio),
        "low": judged(|j| j.low),
        "high": judged(|j| j.high),
        "resolution": judged(|j| j.resolution),
        "pairs": row.judgement.map(|j| j.pairs),
        "more_pairs": judged(|j| j.more_pairs).filter(|_| row.verdict == Verdict::Unsure),
        "base_samples": row.base_samples,
        "new_samples": row.new_samples,
        "reason": row.reason,
        "marks": row.marks,
    })
}

impl Comparison {
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
        let doubts = self.doubts.iter().chain(&self.unknown);
        let lines = doubts.cloned().chain(self.finds());
        for line in lines.chain(self.layout()) {
            let _ = writeln!(text, "\n{}", escape(&line));
        }
        let changed = self.changed_rows();
        let quiet = self.of(&[Verdict::Same, Verdict::Unsure]);
        if !changed.is_empty() {
            let _ = write!(text, "\n{}", markdown_table(&changed));
        }
        if !quiet.is_empty() {
            let _ = write!(
                text,
                "\n<details><summary>{} without a detected change</summary>\n\n{}\n</details>\n",
                counted(quiet.len(), "benchmark"),
                markdown_table(&quiet)
            );
        }
        if let Some(note) = self.times_note() {
            let _ = writeln!(text, "\n{note}");
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

fn code_list(labels: &[String]) -> String {
    let quoted: Vec<String> = labels.iter().map(|l| format!("`{}`", visible(l))).collect();
    quoted.join(", ")
}

fn markdown_table(rows: &[&BenchmarkRow]) -> String {
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

/// The columns of a table.
const HEADER: [&str; 9] = [
    "benchmark",
    "clock",
    "base",
    "new",
    "correction",
    "change",
    "interval",
    "samples",
    "verdict",
];

/// An interval wider than this factor is useless.
const TOO_WIDE: f64 = 1.5;

/// The change and its interval, unless there is no verdict and nothing can be said of it.
pub(super) fn ratio_and_interval(row: &BenchmarkRow, j: &Judgement) -> [String; 2] {
    if row.verdict == Verdict::Unsure && j.high / j.low > TOO_WIDE {
        return ["–".to_owned(), "too wide to tell".to_owned()];
    }
    let interval = format!("[{}, {}]", change(j.low), change(j.high));
    [change(j.ratio), interval]
}

/// A difference of times.
fn signed(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", time(ns))
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
pub(super) fn verdict(row: &BenchmarkRow) -> String {
    let more = match (row.verdict, &row.reason, &row.judgement) {
        (Verdict::Unsure, None, Some(judgement)) => Some(more_pairs(judgement)),
        _ => None,
    };
    let remarks = more.iter().chain(&row.reason).chain(&row.marks);
    let parts = std::iter::once(row.verdict.to_string()).chain(remarks.cloned());
    Vec::from_iter(parts).join("; ")
}

/// Rows as they are shown, without the clock where none is known, and without corrections where there
/// are none.
pub(super) struct Sheet<'a> {
    pub(super) header: Vec<&'static str>,
    pub(super) lines: Vec<(&'a BenchmarkRow, Vec<String>)>,
}

impl<'a> Sheet<'a> {
    pub(super) fn of(rows: impl IntoIterator<Item = &'a BenchmarkRow>) -> Self {
        let lines = rows.into_iter().map(|row| (row, cells(row)));
        let mut sheet = Self {
            header: HEADER.to_vec(),
            lines: lines.collect(),
        };
        if sheet.lines.iter().all(|(row, _)| row.clock.is_none()) {
            sheet.remove("clock");
        }
        if (sheet.lines.iter()).all(|(row, _)| row.correction_ns.is_none()) {
            sheet.remove("correction");
        }
        sheet
    }

    pub(super) fn remove(&mut self, column: &str) {
        if let Some(at) = self.header.iter().position(|name| *name == column) {
            self.header.remove(at);
            for (_, cells) in &mut self.lines {
                cells.remove(at);
            }
        }
    }

    /// Columns of a terminal that its table needs.
    pub(super) fn width(&self) -> usize {
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

fn cells(row: &BenchmarkRow) -> Vec<String> {
    let dash = || "–".to_owned();
    let figure = if row.is_count { bare } else { time_fine };
    let [ratio, interval] =
        (row.judgement.as_ref()).map_or_else(|| [dash(), dash()], |j| ratio_and_interval(row, j));
    vec![
        visible(&row.id),
        row.clock.map_or("unknown", |c| c.name()).to_owned(),
        row.base_ns.map_or_else(dash, figure),
        row.new_ns.map_or_else(dash, figure),
        row.correction_ns.map_or_else(dash, signed),
        ratio,
        interval,
        format!("{} | {}", runs(&row.base_samples), runs(&row.new_samples)),
        visible(&verdict(row)),
    ]
}

/// A number without a unit.
fn bare(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.3}"),
        value if value < 1000.0 => format!("{value:.1}"),
        value if value < 1e15 => size(value.round() as u64),
        value => number(value),
    }
}

/// How many more pairs would decide it.
pub(super) fn more_pairs(judgement: &Judgement) -> String {
    /// More than anybody runs.
    const TOO_MANY: f64 = 1000.0;
    match judgement.more_pairs {
        n if n <= 1.0 => "one more pair of processes may decide it".to_owned(),
        n if n <= TOO_MANY => format!("about {n:.0} more pairs of processes would decide it"),
        _ => format!("more than {TOO_MANY:.0} pairs of processes would be needed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_a_table() {
        assert_eq!(escape("a|b <i>\n`x`"), "a\\|b &lt;i&gt; \\`x\\`");
    }

    #[test]
    fn samples_of_runs_are_counted() {
        let shown = [&[][..], &[30], &[30, 30], &[12, 10, 12]].map(runs);
        assert_eq!(shown, ["–", "30", "2×30", "3×10…12"]);
    }
}
