//! A profile in words: the rows of its tables and the lines below them.

use std::path::Path;

use comfy_table::Table;

use crossover_profile::{CallRow, DeviceRow, Place, Profile, RangeRow, Summary, Work};
use crossover_words::text::visible;
use crossover_words::units;

/// Where nobody knows how wide the terminal is.
const WIDTH: usize = 80;
/// Wider ones make a line hard to follow.
const WIDEST: usize = 140;
/// Rows of a table; the rest are counted.
const MOST_ROWS: usize = 12;

/// One row of a table: its name, which may be shortened, and the other columns.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) cells: Vec<String>,
}

/// A table: what its columns are, and its rows.
pub(super) struct Rows {
    pub(super) head: Vec<&'static str>,
    pub(super) lines: Vec<Line>,
    /// Rows that are left out.
    pub(super) more: usize,
}

/// What ran on the device, without the columns in which no row has anything.
pub(super) fn device(profile: &Profile) -> Rows {
    let rows = &profile.device;
    let kernels = rows.iter().any(|r| matches!(r.work, Work::Kernel { .. }));
    let moves = rows.iter().any(|r| !matches!(r.work, Work::Kernel { .. }));
    let mut head = vec!["on the device", "calls", "time", "share"];
    if kernels {
        head.extend(["grid", "block", "regs"]);
    }
    if moves {
        head.push("rate");
    }
    let line = |row: &DeviceRow| {
        let mut cells = vec![
            count(row.per_iteration),
            units::time(row.ns_per_iteration),
            units::percent(row.share),
        ];
        if kernels {
            cells.extend(launch(&row.work));
        }
        if moves {
            cells.push(rate(row).unwrap_or_default());
        }
        Line {
            name: name(&row.work),
            cells,
        }
    };
    Rows::new(head, rows.iter().map(line).collect())
}

/// What the host called.
pub(super) fn calls(profile: &Profile) -> Rows {
    let all = profile.summary.iteration_ns;
    let line = |row: &CallRow| Line {
        name: visible(&row.name),
        cells: vec![
            count(row.per_iteration),
            units::time(row.ns_per_iteration),
            units::percent(row.ns_per_iteration / all),
        ],
    };
    let lines = profile.calls.iter().map(line).collect();
    Rows::new(
        vec!["driver call", "calls", "host time", "of the iteration"],
        lines,
    )
}

/// What the code named.
pub(super) fn ranges(profile: &Profile) -> Rows {
    let line = |row: &RangeRow| Line {
        name: visible(&row.name),
        cells: vec![
            count(row.per_iteration),
            units::time(row.host_ns_per_iteration),
            units::time(row.device_ns_per_iteration),
            units::percent(row.share),
        ],
    };
    let head = vec!["range", "calls", "host time", "device time", "share"];
    Rows::new(head, profile.ranges.iter().map(line).collect())
}

impl Rows {
    fn new(head: Vec<&'static str>, mut lines: Vec<Line>) -> Self {
        let more = lines.len().saturating_sub(MOST_ROWS);
        lines.truncate(MOST_ROWS);
        Self { head, lines, more }
    }
}

/// A whole number of executions, or a mean that is none.
fn count(per_iteration: f64) -> String {
    match (per_iteration - per_iteration.round()).abs() < 5e-3 {
        true => units::count(per_iteration),
        false => units::number(per_iteration),
    }
}

/// What a kernel, a copy or a memory set is called.
pub(super) fn name(work: &Work) -> String {
    match work {
        Work::Kernel { name, .. } => visible(name),
        Work::Copy { from, to, bytes } => {
            format!(
                "{} → {}, {}",
                place(*from),
                place(*to),
                units::binary(*bytes)
            )
        }
        Work::Set { bytes } => format!("memory set, {}", units::binary(*bytes)),
    }
}

fn place(place: Place) -> &'static str {
    match place {
        Place::Device => "device",
        Place::Pinned => "pinned",
        Place::Pageable => "ordinary",
        Place::Managed => "managed",
        Place::Peer => "peer",
        Place::Unknown => "unknown",
    }
}

/// Grid, block and registers of a kernel, else nothing.
fn launch(work: &Work) -> [String; 3] {
    let Work::Kernel {
        grid,
        block,
        registers,
        ..
    } = work
    else {
        return Default::default();
    };
    [extent(*grid), extent(*block), registers.to_string()]
}

/// `16×8`, without the ones at the end.
fn extent([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}×{y}"),
        _ => format!("{x}×{y}×{z}"),
    }
}

/// The bytes of a copy or memory set over the time that it takes.
fn rate(row: &DeviceRow) -> Option<String> {
    let (Work::Copy { bytes, .. } | Work::Set { bytes }) = row.work else {
        return None;
    };
    let moved = bytes as f64 * row.per_iteration;
    let rate = moved / (row.ns_per_iteration * 1e-9);
    rate.is_normal().then(|| units::rate(rate, "B/s"))
}

/// What the table comes to, one name and value per line. The last is what bounds it.
pub(super) fn summary(profile: &Profile) -> Vec<(&'static str, String)> {
    let s: &Summary = &profile.summary;
    let time = units::time;
    let mut lines = Vec::new();
    let length = s.length_ns();
    let share = units::percent(s.busy_ns / length);
    let busy = format!("{} of {} ({share})", time(s.busy_ns), time(length));
    lines.push(("device busy", busy));
    if s.gaps >= 0.5 {
        let gaps = match count(s.gaps) {
            one if one == "1" => "1 gap".to_owned(),
            many => format!("{many} gaps"),
        };
        let recorded = format!(
            "while recorded {} in {gaps} (median {})",
            time(s.idle_ns),
            time(s.median_gap_ns)
        );
        lines.push(("idle", format!("{}; {recorded}", time(length - s.busy_ns))));
    }
    if s.copies_ns > 0.0 {
        let hidden = match s.hidden_ns > 0.0 {
            true => units::percent(s.hidden_ns / s.copies_ns),
            false => "none".to_owned(),
        };
        let is_copy = |row: &&DeviceRow| matches!(row.work, Work::Copy { .. });
        let each: f64 = (profile.device.iter().filter(is_copy))
            .map(|row| row.ns_per_iteration)
            .sum();
        // Directions at the same time.
        let at_once = match each > 1.05 * s.copies_ns {
            true => format!("{} of them in ", time(each)),
            false => String::new(),
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
    for note in &profile.notes {
        lines.push(("note", visible(note)));
    }
    if !s.sentence.is_empty() {
        lines.push(("in short", visible(&s.sentence)));
    }
    lines
}

/// How much slower recording made it.
fn recording(s: &Summary) -> String {
    let without = units::time(s.unrecorded_ns);
    let ratio = s.iteration_ns / s.unrecorded_ns;
    match ratio.is_finite() && ratio > 0.0 {
        true => format!(
            "{} per iteration, {without} without it ({})",
            units::time(s.iteration_ns),
            units::change(ratio)
        ),
        false => format!("{} per iteration", units::time(s.iteration_ns)),
    }
}

/// `NVIDIA H200, clock wall, 100 iterations recorded 2026-11-22 10:00:00 UTC by CUPTI 13.0`.
pub(super) fn source(profile: &Profile) -> String {
    let when = profile.recorded.replace('T', " ").replace('Z', " UTC");
    format!(
        "{}, clock {}, {} iterations recorded {} by CUPTI {}",
        visible(&profile.gpu),
        visible(&profile.clock),
        units::count(profile.iterations as f64),
        visible(&when),
        visible(&profile.cupti)
    )
}

/// The recorder's own table, for a terminal. `dir` is where its files lie.
pub fn text(profile: &Profile, dir: &Path) -> String {
    // Known where this goes to a terminal.
    let width = Table::new().width().map_or(WIDTH, usize::from);
    let width = width.clamp(WIDTH, WIDEST);
    let dir = visible(&dir.to_string_lossy());
    format!(
        "{profile:width$}  files in {dir}; trace.json opens in Perfetto, https://ui.perfetto.dev"
    )
}
