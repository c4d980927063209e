//! The short table at the end of a run.

use comfy_table::{ContentArrangement, Table, presets};

use crate::assemble::Assembled;
use crate::beside;
use crossover_results::analysis::crossover::pairs::headlines;
use crossover_results::analysis::crossover::words::{BRIEFLY, at_largest_in_brief, wins_in_brief};

/// Where there is no terminal to ask: a log is read in an editor or a browser.
const WIDTH_OF_A_LOG: u16 = 120;

/// The headline answers as a table; empty without any.
pub(super) fn table(report: &Assembled) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    if !table.is_tty() {
        table.set_width(WIDTH_OF_A_LOG);
    }
    table.set_header([
        "group",
        "GPU code",
        "question",
        "GPU wins",
        "at the largest size",
    ]);
    let mut any = false;
    for f in headlines(&report.found) {
        any = true;
        table.add_row([
            f.group.clone(),
            f.gpu_label(),
            f.question.phrase().into(),
            wins_in_brief(f),
            at_largest_in_brief(f),
        ]);
    }
    let banner = beside::banner(report).map_or(String::new(), |words| words + "\n");
    match any {
        true => format!("{banner}{table}\n{}", BRIEFLY.join("\n")),
        false => String::new(),
    }
}
