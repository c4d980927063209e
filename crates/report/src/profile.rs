//! A profile in words: its tables and the lines below them.

use std::path::Path;

use crossover_profile::{Profile, Table};
use crossover_words::text::visible;
use crossover_words::units;

/// If the width of the terminal is unknown.
const WIDTH: usize = 80;
/// Longer lines are hard to follow.
const WIDEST: usize = 140;
/// The tables of a profile: work on the device, calls, ranges. For calls, with their share of the
/// iteration.
pub(super) fn tables(profile: &Profile) -> [Table; 3] {
    let mut tables = profile.tables();
    let iteration_ns = profile.summary.iteration_ns;
    let shares = profile
        .calls
        .iter()
        .map(|row| units::percent(row.ns_per_iteration / iteration_ns));
    let shares = std::iter::once("of the iteration".to_owned()).chain(shares);
    for (row, share) in tables[1].rows.iter_mut().zip(shares) {
        row.push(share);
    }
    tables
}

/// Totals of the table, one name and value per line. The last line names the bound.
pub(super) fn summary(profile: &Profile) -> Vec<(&'static str, String)> {
    let mut lines = profile.lines();
    if !profile.summary.sentence.is_empty() {
        lines.push(("in short", visible(&profile.summary.sentence)));
    }
    lines
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

/// The recorder's own table, for a terminal. `dir` is the folder of its files.
pub fn text(profile: &Profile, dir: &Path) -> String {
    // The width is known if this goes to a terminal.
    let width = comfy_table::Table::new().width().map_or(WIDTH, usize::from);
    let width = width.clamp(WIDTH, WIDEST);
    let dir = visible(&dir.to_string_lossy());
    format!(
        "{profile:width$}  files in {dir}; trace.json opens in Perfetto, https://ui.perfetto.dev"
    )
}
