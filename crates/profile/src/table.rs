//! A profile as text for a terminal.

use std::fmt;

use serde::Serialize;

use super::report::{DeviceRow, LaneKind, Place, Profile, Summary, Work};
use crossover_words::text::{shortened, visible};
use crossover_words::units::{self, percent, rate, time};

/// Columns, if the formatter has no width.
const WIDTH: usize = 80;
/// Shorter names would be useless.
const SHORTEST: usize = 16;

/// A table of text: the first row is its head, the first column names the row, the others are figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// At least the head; all rows have its length.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self {
            rows: vec![head.iter().map(|&h| h.to_owned()).collect()],
        }
    }

    /// All columns but the first get the width that they need; the names get the rest.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.rows.len() == 1 {
            return Ok(());
        }
        let columns = self.rows[0].len();
        let width = |c: usize| {
            let cells = self.rows.iter().map(|r| r[c].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (1..columns).map(width).collect();
        let taken: usize = widths.iter().map(|width| width + 2).sum();
        let room = (f.width().unwrap_or(WIDTH).saturating_sub(taken + 2)).max(SHORTEST);
        let names = width(0).min(room);
        writeln!(f)?;
        for row in &self.rows {
            let mut line = format!("  {:<names$}", shortened(&row[0], names));
            for (cell, &width) in row[1..].iter().zip(&widths) {
                line += &format!("  {cell:>width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Tables for a terminal, several lines long, in as many columns as the formatter has for its width
/// (`{profile:120}`), or 80.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.benchmark, self.summary.sentence)?;
        for table in self.tables() {
            table.write(f)?;
        }
        writeln!(f)?;
        for (name, value) in self.lines() {
            writeln!(f, "  {name}: {value}")?;
        }
        writeln!(
            f,
            "  {} iterations, {} records of work; {}, CUPTI {}",
            self.iterations, self.records, self.gpu, self.cupti
        )
    }
}

impl Profile {
    /// Work on the device, calls of the host, and ranges of the code.
    pub fn tables(&self) -> [Table; 3] {
        let mut calls = Table::new(&["driver call", "calls", "host time"]);
        for row in &self.calls {
            let name = row.name.clone();
            let cells = vec![name, count(row.per_iteration), time(row.ns_per_iteration)];
            calls.rows.push(cells);
        }
        let head = ["ranges", "calls", "host time", "device time", "share"];
        let mut ranges = Table::new(&head);
        for row in &self.ranges {
            ranges.rows.push(vec![
                row.name.clone(),
                count(row.per_iteration),
                time(row.host_ns_per_iteration),
                time(row.device_ns_per_iteration),
                percent(row.share),
            ]);
        }
        [self.device_table(), calls, ranges]
    }

    /// Totals of the tables, one name and value per line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let s = &self.summary;
        let mut lines = Vec::new();
        let length = s.length_ns();
        let share = percent(s.busy_ns / length);
        let busy = format!("{} of {} ({share})", time(s.busy_ns), time(length));
        lines.push(("device busy", busy));
        if s.busy_ns < length {
            lines.push(("idle", time(length - s.busy_ns)));
        }
        if s.copies_ns > 0.0 {
            let hidden = if s.hidden_ns > 0.0 {
                percent(s.hidden_ns / s.copies_ns)
            } else {
                "none".to_owned()
            };
            let is_copy = |row: &&DeviceRow| matches!(row.work, Work::Copy { .. });
            let each: f64 = (self.device.iter().filter(is_copy))
                .map(|row| row.ns_per_iteration)
                .sum();
            // Copies in both directions at the same time.
            let at_once = if each > 1.05 * s.copies_ns {
                format!("{} of them in ", time(each))
            } else {
                String::new()
            };
            let copies = format!(
                "{at_once}{}, {hidden} of it hidden behind kernels",
                time(s.copies_ns)
            );
            lines.push(("copies", copies));
        }
        if let Some(first) = s.first_kernel_ns {
            lines.push(("first kernel", format!("starts after {}", time(first))));
        }
        lines.push(("recording", recording(s)));
        for note in &self.notes {
            lines.push(("note", visible(note)));
        }
        lines
    }

    /// Work on the device, without empty columns.
    fn device_table(&self) -> Table {
        let is_kernel = |work: &Work| matches!(work, Work::Kernel { .. });
        let kernels = self.device.iter().any(|row| is_kernel(&row.work));
        let moves = self.device.iter().any(|row| !is_kernel(&row.work));
        let mut head = vec!["on the device", "calls", "time", "share"];
        if kernels {
            head.extend(["grid", "block", "regs"]);
        }
        if moves {
            head.push("rate");
        }
        let mut table = Table::new(&head);
        for row in &self.device {
            let mut cells = vec![
                row.work.to_string(),
                count(row.per_iteration),
                time(row.ns_per_iteration),
                percent(row.share),
            ];
            if kernels {
                cells.extend(row.work.launch());
            }
            if moves {
                cells.push(row.work.rate(row.median_ns).unwrap_or_default());
            }
            table.rows.push(cells);
        }
        table
    }
}

impl Work {
    /// The rate of a copy or a memory set that takes `ns` nanoseconds, such as `24.3 GB/s`;
    /// `None` for a kernel, or where `ns` is not positive.
    pub fn rate(&self, ns: f64) -> Option<String> {
        let (Work::Copy { bytes, .. } | Work::Set { bytes }) = self else {
            return None;
        };
        (ns > 0.0).then(|| rate(*bytes as f64 / (ns * 1e-9), "B/s"))
    }

    /// Grid, block and registers of a kernel, else nothing.
    fn launch(&self) -> [String; 3] {
        match self {
            Work::Kernel {
                grid,
                block,
                registers,
                ..
            } => [dimensions(*grid), dimensions(*block), registers.to_string()],
            Work::Copy { .. } | Work::Set { .. } => Default::default(),
        }
    }
}

/// A kernel's name, a copy with its direction and size.
impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Kernel { name, .. } => f.write_str(name),
            Work::Copy { from, to, bytes } => {
                write!(f, "copy {from} to {to}, {}", units::bytes(*bytes as f64))
            }
            Work::Set { bytes } => write!(f, "memory set, {}", units::bytes(*bytes as f64)),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for LaneKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// `16×8`: trailing dimensions of one are left out.
fn dimensions([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (y, 1) => format!("{x}×{y}"),
        (y, z) => format!("{x}×{y}×{z}"),
    }
}

/// A whole number of executions, or a mean.
fn count(per_iteration: f64) -> String {
    if (per_iteration - per_iteration.round()).abs() < 5e-3 {
        units::count(per_iteration)
    } else {
        units::number(per_iteration)
    }
}

/// Overhead of recording.
fn recording(s: &Summary) -> String {
    let without = time(s.unrecorded_ns);
    let ratio = s.iteration_ns / s.unrecorded_ns;
    if ratio.is_finite() && ratio > 0.0 {
        format!(
            "{} per iteration, {without} without it ({})",
            time(s.iteration_ns),
            units::change(ratio)
        )
    } else {
        format!("{} per iteration", time(s.iteration_ns))
    }
}
