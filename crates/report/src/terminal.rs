//! The short table at the end of a run.

use comfy_table::{ContentArrangement, Table, presets};

use crate::report::{self, Report};
use crate::small_table::{NOTE, small_table};
use crossover_words::text::columns;

/// If there is no terminal: a log is read in an editor or a browser.
const WIDTH_OF_A_LOG: u16 = 120;

/// The answers as a short table, and the groups without GPU results; empty if there are no answers.
pub(super) fn table(report: &Report) -> String {
    let small = small_table(report, &report.groups);
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = columns().or((!table.is_tty()).then_some(WIDTH_OF_A_LOG)) {
        table.set_width(width);
    }
    table.set_header(small.head).add_rows(&small.rows);
    let banner = report
        .whose_gpu()
        .map_or(String::new(), |words| words + "\n");
    let mut lines = Vec::new();
    if !small.rows.is_empty() {
        lines.push(format!(
            "{banner}{table}\nAgainst {}. {NOTE}",
            small.against
        ));
    }
    let unmeasured = report.unmeasured();
    if !unmeasured.is_empty() {
        lines.push(report::unknown(&unmeasured));
    }
    lines.join("\n")
}
