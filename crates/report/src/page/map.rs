//! The main result in a sentence, and the map: operations by places of the data, each cell with the size
//! from which the GPU wins, coloured by the speedup.

use maud::{Markup, html};

use crate::decisions::PLACES;
use crate::group::{GroupAnswer, GroupView};
use crate::page::link;
use crate::page::table::{number, scroll, text};
use crate::page::verdict::place_words;
use crate::report::Report;
use crate::thresholds::with_article;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::{CrossoverAnswer, of_several};
use crossover_results::analysis::trust::Grade;
use crossover_results::model::role::Residency;
use crossover_words::units;

/// From these speedups on a cell has the next colour.
const SHADES: [f64; 5] = [1.0 / 3.0, 1.0 / 1.02, 1.02, 3.0, 10.0];

/// Operations that the main result names.
const NAMED: usize = 2;

/// `Matrix product on several GPUs, 2 GPUs against one: from N = 880 on; …`, by the division of the work that
/// wins first. `None` without such answers.
pub(super) fn several_gpus(report: &Report) -> Option<String> {
    let first = of_several(&report.found).min_by(|a, b| {
        let from = |found: &CrossoverAnswer| match found.crossing.wins_at_the_largest() {
            Some(true) => found.crossing.for_good().map_or(0.0, |change| change.size),
            _ => f64::INFINITY,
        };
        from(a).total_cmp(&from(b))
    })?;
    let (title, devices) = (&first.topic.title, first.devices?);
    let wins = answer_in_words::wins(&first.topic, &first.crossing);
    Some(format!("{title}, {devices} GPUs against one: {wins}."))
}

/// `With data in ordinary memory the GPU wins at 4 of 10 operations: matrix product from N = 860 on, …`.
/// `None` without answers.
fn main_result(report: &Report, groups: &[GroupView]) -> Option<String> {
    let answers = PLACES.map(|place| -> Vec<&CrossoverAnswer> {
        let answers = groups.iter().filter_map(|group| group.answer(place));
        answers.map(|answer| answer.found).collect()
    });
    let answers = answers.into_iter().find(|answers| !answers.is_empty())?;
    let mut wins = answers.clone();
    wins.retain(|found| found.crossing.wins_at_the_largest() == Some(true));
    let named = wins.iter().take(NAMED).map(|found| {
        let title = found.topic.title.to_lowercase();
        let wins = answer_in_words::where_it_wins(&found.topic, &found.crossing);
        format!("{title} {wins}")
    });
    let mut named: Vec<String> = named.collect();
    if wins.len() > NAMED {
        named.push(format!("and {} more", wins.len() - NAMED));
    }
    let gpu = match &report.reference {
        Some(reference) => with_article(&reference.environment.as_ref()?.gpu.as_ref()?.name),
        None => "the GPU".to_owned(),
    };
    let names = if named.is_empty() {
        String::new()
    } else {
        format!(": {}", named.join(", "))
    };
    Some(format!(
        "With data {} {gpu} wins at {} of {}{names}.",
        answers[0].question.words(),
        wins.len(),
        units::counted(answers.len(), "operation"),
    ))
}

pub(super) fn section(report: &Report, groups: &[GroupView]) -> Markup {
    let answers: Vec<&GroupAnswer> = groups.iter().flat_map(|group| &group.answers).collect();
    if answers.is_empty() {
        return html! {};
    }
    let marks = [
        (Grade::Doubtful, "±", "uncertain"),
        (Grade::Thin, "°", "measured by one process"),
    ];
    let marks = marks.map(|(grade, mark, words)| {
        let marked = (answers.iter()).filter(|answer| answer.trust.grade() == grade);
        (grade, mark, words, marked.count())
    });
    // A mark on most cells would be useless, so only exceptions have one.
    let is_rare = |marked: usize| 2 * marked < answers.len();
    let mark = |answer: &GroupAnswer| {
        let grade = answer.trust.grade();
        let mut rare = marks.iter().filter(|(.., marked)| is_rare(*marked));
        rare.find(|(other, ..)| *other == grade)
            .map_or("", |(_, mark, ..)| mark)
    };
    let note = |(_, mark, words, marked): &(Grade, &str, &str, usize)| match *marked {
        0 => String::new(),
        n if is_rare(n) => format!(" {mark} marks answers that are {words}."),
        n => format!(" {n} of {} answers are {words}.", answers.len()),
    };
    let shown = |data: &Residency| answers.iter().any(|a| a.found.question == *data);
    let places: Vec<Residency> = PLACES.into_iter().filter(shown).collect();
    let mut columns = vec![text("operation")];
    columns.extend(places.iter().map(|data| number(place_words(*data)[0])));
    html! {
        section #map {
            h2 { "Where the GPU wins" }
            @if let Some(result) = main_result(report, groups) { p #result { (result) } }
            p.note {
                "The size from which on "
                @match &report.reference {
                    Some(reference) => { "the GPU of another machine, " (reference.hardware()) "," }
                    None => "the GPU",
                }
                " wins, and its speedup at the largest measured size (named if the cells of a row differ in it), for \
                 data in ordinary or pinned host memory, or on the device where each call is awaited or calls are queued."
                @for marked in &marks { (note(marked)) }
            }
            div style={ "--places:" (places.len()) } { (scroll("Where the GPU wins", "map", &columns, rows(groups, &places, mark))) }
        }
    }
}

/// A row for each operation that has an answer, with a cell for each place.
fn rows<'a>(
    groups: &'a [GroupView],
    places: &[Residency],
    mark: impl Fn(&GroupAnswer) -> &'a str,
) -> Markup {
    html! {
        tbody {
            @for group in groups.iter().filter(|group| !group.answers.is_empty()) {
                tr {
                    th scope="row" {
                        a href=(link::of_group(group.name)) { (group.topic.title) }
                        " " small { (group.topic.symbol) }
                    }
                    @for data in places {
                        @match group.answer(*data) {
                            Some(answer) => (cell(group, answer, mark(answer)))
                            None => { td.none { "·" } }
                        }
                    }
                }
            }
        }
    }
}

fn cell(group: &GroupView, answer: &GroupAnswer, mark: &str) -> Markup {
    let found = answer.found;
    let is_decided = found.crossing.shows_speedup();
    let shaded = if is_decided {
        found.crossing.speedup
    } else {
        1.0
    };
    let shade = SHADES.iter().filter(|from| shaded >= **from).count();
    let from = answer_in_words::size(found);
    let symbol = format!("{} ", found.topic.symbol);
    html! {
        td class={ "shade" (shade) } data-group=(found.group) data-place=(found.question.name()) {
            a href=(link::of_answer(found)) {
                (from.trim_start_matches(&symbol)) (mark)
            }
            @if let Some(speedup) = group.speedup_at_the_largest(answer) { " " small { (speedup) } }
        }
    }
}
