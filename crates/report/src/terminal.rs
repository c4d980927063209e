//! The short table at the end of a run, and how sure its answers are.

use comfy_table::{ContentArrangement, Table, presets};

use crate::group::{GroupAnswer, GroupView};
use crate::report::{self, Report};
use crate::small_table::{NOTE, small_table};
use crossover_results::analysis::trust::Grade;
use crossover_results::store::unreadable::Unreadable;
use crossover_words::text::columns;
use crossover_words::units;

/// If there is no terminal: a log is read in an editor or a browser.
const WIDTH_OF_A_LOG: u16 = 120;

/// The answers as a short table with how sure they are, the groups without GPU results, and the numbers of
/// benchmarks.
pub(super) fn summary(report: &Report, groups: &[GroupView]) -> String {
    let machine = &report.machine;
    let mut lines = table(report, groups);
    lines.extend(sure(groups));
    let measured = units::counted(machine.benchmarks().count(), "benchmark");
    lines.push(format!("{measured}, {} failed", machine.failed().len()));
    let left_out: Vec<&Unreadable> = report.problems().collect();
    let most = left_out.iter().take(MOST_LEFT_OUT);
    lines.extend(most.map(|problem| format!("left out: {problem}")));
    if left_out.len() > MOST_LEFT_OUT {
        let more = left_out.len() - MOST_LEFT_OUT;
        lines.push(format!("left out: {more} more; the page gives the reasons"));
    }
    lines.join("\n")
}

fn table(report: &Report, groups: &[GroupView]) -> Vec<String> {
    let small = small_table(report, groups.iter());
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    // Tests have no terminal, wherever they run.
    let of_terminal = table.width().filter(|_| !cfg!(test));
    table.set_width(columns(of_terminal).unwrap_or(WIDTH_OF_A_LOG));
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
    let unmeasured = groups.iter().filter(|group| group.unmeasured.is_some());
    let unmeasured: Vec<&str> = unmeasured.map(|group| group.name).collect();
    if !unmeasured.is_empty() {
        lines.push(report::unknown(&unmeasured));
    }
    lines
}

/// Problems that the terminal prints.
const MOST_LEFT_OUT: usize = 3;

/// Uncertain answers whose reason the terminal prints.
const MOST_DOUBTS: usize = 6;

/// The number of firm and of uncertain answers, and below it the reasons of uncertain ones.
fn sure(groups: &[GroupView]) -> Vec<String> {
    let answers: Vec<&GroupAnswer> = groups.iter().flat_map(|group| &group.answers).collect();
    let count = |grade| answers.iter().filter(|a| a.trust.grade() == grade).count();
    let (firm, doubtful, thin) = (
        count(Grade::Firm),
        count(Grade::Doubtful),
        count(Grade::Thin),
    );
    if answers.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "{}: {firm} firm, {doubtful} uncertain, {thin} of one process",
        units::counted(answers.len(), "answer")
    )];
    let why = answers
        .iter()
        .filter(|a| a.trust.grade() == Grade::Doubtful);
    lines.extend(why.take(MOST_DOUBTS).map(|a| {
        let (title, asked) = (&a.found.topic.title, a.found.question.words());
        let doubts = a.trust.doubts().join("; ");
        format!("  uncertain: {title}, {asked}: {doubts}")
    }));
    if doubtful > MOST_DOUBTS {
        lines.push(format!(
            "  and {} more; the page says why",
            doubtful - MOST_DOUBTS
        ));
    }
    lines
}
