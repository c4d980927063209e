//! The short table of answers for a README and the end of a run, a row per operation and a column for each of
//! three places of the data, and how sure the answers are.

use comfy_table::{ContentArrangement, Table, presets};

use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::trust::Grade;
use crossover_results::model::role::Residency;
use crossover_results::store::whole_file::Unreadable;
use crossover_words::text::columns;
use crossover_words::units;

use crate::group::{GroupAnswer, GroupView};
use crate::report::{self, Report};

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

/// The columns.
const PLACES: [(Residency, &str); 3] = [
    (Residency::Ordinary, "ordinary memory"),
    (Residency::Pinned, "pinned memory"),
    (Residency::Awaited, "on the device, awaited"),
];

/// Explains the cells, below the table.
pub(crate) const NOTE: &str = "Each cell has the size from which on the GPU wins (always: at every \
     measured size; never: at none), and its speedup at the largest measured \
     size (named if the cells of a row differ in it). Times from ordinary and pinned memory include the copies in \
     both directions. °: an answer from one process; all others are medians of several.";

/// Operations with an answer for each of three places.
pub(crate) struct SmallTable {
    /// The CPU that the GPU is compared with.
    pub(crate) against: String,
    pub(crate) head: [&'static str; 4],
    pub(crate) rows: Vec<[String; 4]>,
}

/// The table of these operations.
pub(crate) fn small_table<'a>(
    report: &Report,
    operations: impl Iterator<Item = &'a GroupView<'a>>,
) -> SmallTable {
    let operations = operations.filter(|group| !group.answers.is_empty());
    let row = |group: &GroupView| {
        let [a, b, c] = PLACES.map(|(place, _)| {
            let answer = group.answer(place);
            answer.map_or_else(|| "·".to_owned(), |answer| cell(group, answer))
        });
        [group.topic.title.clone(), a, b, c]
    };
    let environment = report.machine.environment.as_ref();
    let cpu = environment.map_or(String::new(), |e| {
        format!("{} threads of {}", e.cpu.usable_cores, e.cpu.model)
    });
    let [a, b, c] = PLACES.map(|(_, words)| words);
    SmallTable {
        against: cpu,
        head: ["operation", a, b, c],
        rows: operations.map(row).collect(),
    }
}

/// `N ≥ 861, 2.6× faster°`; without a speedup where it is not known which side wins.
fn cell(group: &GroupView, answer: &GroupAnswer) -> String {
    let f = answer.found;
    let mark = if f.crossing.is_confirmed() { "" } else { "°" };
    let from = answer_in_words::size(f);
    let speedup = group.speedup_at_the_largest(answer);
    let speedup = speedup.map_or(String::new(), |speedup| format!(", {speedup}"));
    format!("{from}{speedup}{mark}")
}
