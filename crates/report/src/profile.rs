//! A profile in words: its tables and the lines below them.

use std::path::Path;

use crossover_profile::{DeviceRow, Profile, Summary, Table, Work};
use crossover_words::text::visible;
use crossover_words::units;

/// Where nobody knows how wide the terminal is.
const WIDTH: usize = 80;
/// Wider ones make a line hard to follow.
const WIDEST: usize = 140;
/// The tables of a profile: work on the device, calls, ranges. Calls have also the share of the iteration
/// that they take.
pub(super) fn tables(profile: &Profile) -> [Table; 3] {
    let mut tables = profile.tables();
    let all = profile.summary.iteration_ns;
    let shares = profile
        .calls
        .iter()
        .map(|row| units::percent(row.ns_per_iteration / all));
    let shares = std::iter::once("of the iteration".to_owned()).chain(shares);
    for (row, share) in tables[1].rows.iter_mut().zip(shares) {
        row.push(share);
    }
    tables
}

/// A whole number of executions, or a mean that is none.
fn count(per_iteration: f64) -> String {
    match (per_iteration - per_iteration.round()).abs() < 5e-3 {
        true => units::count(per_iteration),
        false => units::number(per_iteration),
    }
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
    let width = comfy_table::Table::new().width().map_or(WIDTH, usize::from);
    let width = width.clamp(WIDTH, WIDEST);
    let dir = visible(&dir.to_string_lossy());
    format!(
        "{profile:width$}  files in {dir}; trace.json opens in Perfetto, https://ui.perfetto.dev"
    )
}
