//! The rows of a comparison as cells of text, for every table.

use std::collections::BTreeMap;

use crate::judge::Judgement;
use crate::rows::BenchmarkRow;
use crate::verdict::Verdict;
use crossover_words::text::visible;
use crossover_words::units::{change, number, size, time, time_fine};

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

/// A line for each text, with its benchmark or the number of its benchmarks.
pub(super) fn by_text<'a>(texts: impl Iterator<Item = (&'a str, String)>) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_runs_are_counted() {
        assert_eq!(runs(&[]), "–");
        assert_eq!(runs(&[30]), "30");
        assert_eq!(runs(&[30, 30]), "2×30");
        assert_eq!(runs(&[12, 10, 12]), "3×10…12");
    }
}
