//! The map: operations by places of the data, each cell with the size from which the GPU wins,
//! coloured by the speedup.

use maud::{Markup, html};

use crate::answers::{GroupAnswer, of_group};
use crate::decisions::PLACES;
use crate::page::link;
use crate::page::table;
use crate::page::verdict::place_words;
use crate::report::Report;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::trust::Grade;
use crossover_results::model::role::Residency;
use crossover_words::units;

/// From these speedups on a cell has the next colour.
const SHADES: [f64; 5] = [1.0 / 3.0, 1.0 / 1.02, 1.02, 3.0, 10.0];

pub(super) fn section(report: &Report, all: &[GroupAnswer]) -> Markup {
    if all.is_empty() {
        return html! {};
    }
    // A mark on most cells would be useless, so only exceptions have one.
    let of = |grade| all.iter().filter(|a| a.trust.grade() == grade).count();
    let is_rare = |grade| 2 * of(grade) < all.len();
    let marks = [
        (Grade::Doubtful, "±", "uncertain"),
        (Grade::Thin, "°", "measured by one process"),
    ];
    let mark = |answer: &GroupAnswer| {
        let grade = answer.trust.grade();
        let mark = marks
            .iter()
            .find(|(marked, ..)| *marked == grade && is_rare(grade));
        mark.map_or("", |(_, mark, _)| mark)
    };
    let note = |(grade, mark, words): &(Grade, &str, &str)| match of(*grade) {
        0 => String::new(),
        _ if is_rare(*grade) => format!(" {mark} marks answers that are {words}."),
        n => format!(" {n} of {} answers are {words}.", all.len()),
    };
    let shown = |data: &Residency| all.iter().any(|a| a.found.question == *data);
    let places: Vec<Residency> = PLACES.into_iter().filter(shown).collect();
    html! {
        section #map {
            h2 { "Where the GPU wins" }
            p.note {
                "The size from which on "
                @match &report.reference {
                    Some(reference) => { "the GPU of another machine, " (reference.hardware()) "," }
                    None => "the GPU",
                }
                " wins, and its speedup at the largest size."
                @for marked in &marks { (note(marked)) }
            }
            (table::scroll("Where the GPU wins", html! {
                table.map style={ "--places:" (places.len()) } {
                    thead { tr {
                        th scope="col" { "operation" }
                        @for data in &places { th scope="col" { (place_words(*data)[0]) } }
                    } }
                    tbody {
                        @for name in report.groups.iter().filter(|name| !of_group(all, name).is_empty()) {
                            tr {
                                th scope="row" {
                                    a href=(link::of_group(name)) { (report.topic(name).title) }
                                    " " small { (report.topic(name).symbol) }
                                }
                                @for data in &places {
                                    @match of_group(all, name).iter().find(|a| a.found.question == *data) {
                                        Some(answer) => (cell(answer, mark(answer)))
                                        None => { td.none { "·" } }
                                    }
                                }
                            }
                        }
                    }
                }
            }))
        }
    }
}

fn cell(answer: &GroupAnswer, mark: &str) -> Markup {
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
            a href={ (link::of_group(&found.group)) "#" (answer.anchor()) } {
                (from.trim_start_matches(&symbol)) (mark)
            }
            @if is_decided { " " small { (units::speedup(found.crossing.speedup)) } }
        }
    }
}
