//! The short table of answers for a README and the end of a run: a row per operation, a column for each
//! of three places of the data.

use crate::group::{GroupAnswer, GroupView};
use crate::report::Report;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::model::role::Residency;

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
