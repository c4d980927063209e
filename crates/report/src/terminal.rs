//! The short table at the end of a run.

use comfy_table::{ContentArrangement, Table, presets};

use crate::assemble::Assembled;
use crate::reference_banner;
use crossover_results::analysis::answer::answer_in_words::{
    BRIEFLY, at_largest_in_brief, wins_in_brief,
};
use crossover_results::analysis::answer::pairs::headlines;
use crossover_words::text::columns;

/// Where there is no terminal to ask: a log is read in an editor or a browser.
const WIDTH_OF_A_LOG: u16 = 120;

/// The headline answers as a table, and what no GPU has measured; empty without any.
pub(super) fn table(report: &Assembled) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    if let Some(width) = columns().or((!table.is_tty()).then_some(WIDTH_OF_A_LOG)) {
        table.set_width(width);
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
    let banner = reference_banner::banner(report).map_or(String::new(), |words| words + "\n");
    let mut text = match any {
        true => format!("{banner}{table}\n{}", BRIEFLY.join("\n")),
        false => String::new(),
    };
    let unmeasured = reference_banner::unmeasured(report);
    if !unmeasured.is_empty() {
        let newline = if any { "\n" } else { "" };
        text += &format!("{newline}{}", reference_banner::unknown(&unmeasured));
    }
    text
}
