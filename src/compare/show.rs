//! A comparison as text: the terminal's table, Markdown for a pull request, JSON.

use std::fmt::Write;

use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, presets};
use serde::Serialize;

use crate::compare::comparison::{Comparison, FailOn};
use crate::compare::judge::{ENOUGH_PAIRS, FAMILY_ERROR, Judgement, Verdict};
use crate::compare::rows::Row;
use crate::presentation::units::{change, percent_fine, time_fine};

/// Version of the JSON.
pub(crate) const SCHEMA: u32 = 1;

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

const VERDICTS: [Verdict; 6] = [
    Verdict::Slower,
    Verdict::Faster,
    Verdict::Unsure,
    Verdict::Same,
    Verdict::Gone,
    Verdict::New,
];

pub(super) fn interval(j: &Judgement) -> String {
    format!("[{}, {}]", change(j.low), change(j.high))
}

/// Samples of both sides, `2×30 | 2×30`.
pub(super) fn samples(row: &Row) -> String {
    format!("{} | {}", runs(&row.base_samples), runs(&row.new_samples))
}

/// `30` for one run, `2×30` for two alike, `50×10…12` for many that differ.
fn runs(samples: &[usize]) -> String {
    let runs = samples.len();
    match (samples.iter().min(), samples.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{runs}×{least}…{most}"),
        (Some(count), _) if runs > 1 => format!("{runs}×{count}"),
        (Some(count), _) => count.to_string(),
        _ => "–".to_owned(),
    }
}

/// The verdict with what disturbed it: a throttled benchmark is never just `slower`.
pub(super) fn verdict(row: &Row) -> String {
    let mut text = row.verdict.name().to_owned();
    for remark in row.reason.iter().chain(&row.marks) {
        text.push_str("; ");
        text.push_str(remark);
    }
    text
}

fn cells(row: &Row) -> [String; 8] {
    let dash = || "–".to_owned();
    [
        row.id.clone(),
        row.clock.map_or("unknown", |c| c.name()).to_owned(),
        row.base_ns.map_or_else(dash, time_fine),
        row.new_ns.map_or_else(dash, time_fine),
        row.judgement.map_or_else(dash, |j| change(j.ratio)),
        row.judgement.as_ref().map_or_else(dash, interval),
        samples(row),
        verdict(row),
    ]
}

impl Comparison {
    /// `2 slower, 1 faster, 40 same`.
    pub(crate) fn summary(&self) -> String {
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

    /// What the intervals promise.
    pub(crate) fn promise(&self) -> String {
        format!(
            "change of the median time; intervals hold all at once with {:.0} % confidence; \
             changes under {} are not judged",
            100.0 * (1.0 - FAMILY_ERROR),
            percent_fine(self.threshold),
        )
    }

    /// One line a class: what two processes of the same code differ by here.
    pub(crate) fn drift_lines(&self) -> Vec<String> {
        self.drifts
            .iter()
            .map(|d| {
                format!(
                    "{}: {} (standard deviation; {} benchmarks, {} {})",
                    d.class,
                    percent_fine(d.deviation),
                    d.benchmarks,
                    d.pairs,
                    if d.pairs == 1 {
                        "pair of runs"
                    } else {
                        "pairs of runs"
                    },
                )
            })
            .collect()
    }

    /// What narrows the intervals, where one is wider than the change in it.
    fn how_to_be_sure(&self) -> Option<String> {
        let wide = |row: &Row| row.verdict == Verdict::Unsure && row.judgement.is_some();
        // A round of `ab` makes two pairs: twice the rounds that there were.
        let pairs = self.base.len();
        (self.rows.iter().any(wide)).then(|| {
            format!(
                "the drift allows for the change, or hides one: intervals shrink with more rounds, \
                 `crossover ab --rounds {}`, best on a machine with nothing else to do",
                pairs.max(ENOUGH_PAIRS / 2),
            )
        })
    }

    /// The lists under the table, each with its heading.
    pub(super) fn remarks(&self) -> Vec<(&'static str, Vec<String>)> {
        [
            ("Warnings", self.warnings.clone()),
            ("Left out or doubtful files", self.problems.clone()),
            ("Drift between processes", self.drift_lines()),
            ("Unsure", self.how_to_be_sure().into_iter().collect()),
            ("Code", self.notes.clone()),
        ]
        .into_iter()
        .filter(|(_, lines)| !lines.is_empty())
        .collect()
    }

    /// The table for a terminal, with what has to be known under it.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_header(HEADER);
        for row in &self.rows {
            let mut line: Vec<Cell> = cells(row).into_iter().map(Cell::new).collect();
            let colour = match row.verdict {
                Verdict::Slower => Some(Color::Red),
                Verdict::Faster => Some(Color::Green),
                Verdict::Unsure => Some(Color::Yellow),
                _ => None,
            };
            if let (Some(colour), Some(last)) = (colour, line.pop()) {
                line.push(last.fg(colour).add_attribute(Attribute::Bold));
            }
            table.add_row(line);
        }
        for column in 2..7 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("{table}\n{}\n{}\n", self.summary(), self.promise());
        for (heading, lines) in self.remarks() {
            let _ = writeln!(text, "\n{heading}:");
            for line in lines {
                let _ = writeln!(text, "  {line}");
            }
        }
        text
    }

    /// Markdown for a pull request: what changed on top, the rest folded.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "### Benchmarks: {}\n\n{} against {}; {}.\n",
            self.summary(),
            code_list(&self.new),
            code_list(&self.base),
            self.promise()
        );
        let (quiet, loud): (Vec<&Row>, Vec<&Row>) = self
            .rows
            .iter()
            .partition(|r| matches!(r.verdict, Verdict::Same | Verdict::Unsure));
        if !loud.is_empty() {
            let _ = write!(text, "\n{}", markdown_table(&loud));
        }
        if !quiet.is_empty() {
            let _ = write!(
                text,
                "\n<details><summary>{} without a change shown</summary>\n\n{}\n</details>\n",
                quiet.len(),
                markdown_table(&quiet)
            );
        }
        for (heading, lines) in self.remarks() {
            let _ = writeln!(text, "\n**{heading}**\n");
            for line in lines {
                let _ = writeln!(text, "- {}", escape(&line));
            }
        }
        text
    }

    /// The comparison as JSON, described in `docs/comparing.md`.
    pub(crate) fn json(&self, fail_on: FailOn) -> String {
        let json = Json {
            schema: SCHEMA,
            base: &self.base,
            new: &self.new,
            threshold: self.threshold,
            family_error: FAMILY_ERROR,
            exit_code: self.exit_code(fail_on),
            counts: VERDICTS
                .into_iter()
                .map(|v| (v.name(), self.count(v)))
                .collect(),
            benchmarks: self.rows.iter().map(Benchmark::of).collect(),
            drift: self
                .drifts
                .iter()
                .map(|d| DriftOut {
                    class: d.class.to_string(),
                    benchmarks: d.benchmarks,
                    pairs: d.pairs,
                    deviation: d.deviation,
                })
                .collect(),
            warnings: &self.warnings,
            notes: &self.notes,
            problems: &self.problems,
        };
        let mut text =
            serde_json::to_string_pretty(&json).expect("strings, numbers and maps with text keys");
        text.push('\n');
        text
    }
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
    let mut text = format!("| {} |\n|", HEADER.join(" | "));
    for column in 0..HEADER.len() {
        text.push_str(if (2..7).contains(&column) {
            " ---: |"
        } else {
            " --- |"
        });
    }
    text.push('\n');
    for row in rows {
        let line = cells(row).map(|c| escape(&c));
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
    text
}

#[derive(Serialize)]
struct Json<'a> {
    schema: u32,
    base: &'a [String],
    new: &'a [String],
    threshold: f64,
    family_error: f64,
    exit_code: u8,
    counts: std::collections::BTreeMap<&'static str, usize>,
    benchmarks: Vec<Benchmark<'a>>,
    drift: Vec<DriftOut>,
    warnings: &'a [String],
    notes: &'a [String],
    problems: &'a [String],
}

#[derive(Serialize)]
struct Benchmark<'a> {
    id: &'a str,
    verdict: Verdict,
    clock: Option<&'static str>,
    base_ns: Option<f64>,
    new_ns: Option<f64>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    base_samples: &'a [usize],
    new_samples: &'a [usize],
    reason: Option<&'a str>,
    marks: &'a [String],
}

impl<'a> Benchmark<'a> {
    fn of(row: &'a Row) -> Self {
        Self {
            id: &row.id,
            verdict: row.verdict,
            clock: row.clock.map(|c| c.name()),
            base_ns: row.base_ns,
            new_ns: row.new_ns,
            ratio: row.judgement.map(|j| j.ratio),
            low: row.judgement.map(|j| j.low),
            high: row.judgement.map(|j| j.high),
            base_samples: &row.base_samples,
            new_samples: &row.new_samples,
            reason: row.reason.as_deref(),
            marks: &row.marks,
        }
    }
}

#[derive(Serialize)]
struct DriftOut {
    class: String,
    benchmarks: usize,
    pairs: usize,
    deviation: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_changes_read_well() {
        assert_eq!(time_fine(1.38), "1.380 ns");
        assert_eq!(time_fine(15_234.0), "15.23 µs");
        assert_eq!(time_fine(2.5e9), "2.500 s");
        assert_eq!(change(1.0312), "+3.12 %");
        assert_eq!(change(0.5), "-50.0 %");
        assert_eq!(change(12.0), "×12.00");
        assert_eq!(change(0.99999), "0.00 %");
        assert_eq!(percent_fine(0.01), "1 %");
        assert_eq!(percent_fine(0.00075), "0.075 %");
        assert_eq!(runs(&[]), "–");
        assert_eq!(runs(&[30]), "30");
        assert_eq!(runs(&[30, 30]), "2×30");
        assert_eq!(runs(&[12, 10, 12]), "3×10…12");
    }

    #[test]
    fn nothing_breaks_out_of_a_table() {
        assert_eq!(escape("a|b <i>\n`x`"), "a\\|b &lt;i&gt; \\`x\\`");
    }
}
