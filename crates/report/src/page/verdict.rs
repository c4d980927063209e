//! The verdict for an operation, a size and a place of the data. The page's script looks it up in the
//! breakpoints of the decision.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::decisions::{Decision, Decisions, PLACES, USES};
use crate::group::GroupView;
use crate::report::Report;
use crossover_results::model::role::Residency;

/// The names of a place: as a column, and as an alternative.
pub(super) fn place_words(data: Residency) -> [&'static str; 2] {
    match data {
        Residency::Ordinary => ["ordinary", "From ordinary memory"],
        Residency::Pinned => ["pinned", "Pinned"],
        Residency::Awaited => ["awaited", "Kept on the device"],
        Residency::Queued => ["queued", "Kept there and queued"],
    }
}

/// The words of the script that are not of a group. `base` is the way to the first page's folder.
pub(super) fn words(decisions: Option<&Decisions>, base: &str) -> Value {
    let place = |data: Residency| {
        let [column, instead] = place_words(data);
        json!({"name": data.name(), "words": data.words(), "column": column, "instead": instead, "moves": !data.on_device()})
    };
    json!({
        "base": base,
        "uses": USES,
        "choices": decisions.map(Decisions::choices),
        "places": PLACES.map(place),
    })
}

/// The group that is shown first, and its decision: with an answer for ordinary memory at several sizes, if
/// there is one.
fn first<'g>(
    groups: &[&'g GroupView],
    decisions: Option<&'g Decisions>,
) -> Option<(&'g GroupView<'g>, &'g Decision)> {
    let decided = groups.iter().filter_map(|group| {
        let decision = decisions?.of_group(group.name)?;
        Some((*group, decision))
    });
    // A single size makes no curve, so such operations come last.
    decided
        .min_by_key(|(group, decision)| (decision.place != Residency::Ordinary, group.one_size()))
}

/// The background load and what else disturbed the run.
pub(super) fn disturbances(report: &Report) -> Markup {
    let environment = report.machine.environment.iter();
    html! {
        @for disturbance in environment.flat_map(|e| &e.disturbances) { p.notice { (disturbance) } }
    }
}

/// The form and the verdict, which the script fills in; it also controls the chart.
pub(super) fn section(
    report: &Report,
    groups: &[&GroupView],
    decisions: Option<&Decisions>,
) -> Markup {
    let first = first(groups, decisions);
    let (chosen, decision) = first.unzip();
    // Of a group that compares nothing there is no verdict.
    let is_asked = decision.is_some() || groups.iter().any(|group| group.unmeasured.is_some());
    html! {
        section #verdict hidden[decisions.is_some() && !is_asked] {
            h2 { "Is it worth moving to the GPU?" }
            (form(groups, first))
            p.scripted #v-says aria-live="polite" {}
            p.scripted #v-more {}
            @match decisions {
                Some(decisions) => {
                    @let machine = &decisions.thresholds().machine;
                    p.note {
                        span.scripted #v-question { (chosen.map_or("", |chosen| &chosen.topic.question)) }
                        " Against the fastest CPU code at each size, on "
                        b { (machine.threads) " threads of " (machine.cpu) }
                        ". In parentheses: the interval of another run. "
                        span #v-core {}
                    }
                    div.scripted hidden[chosen.is_none()] {
                        h3 { "How sure that is" }
                        p #p-says {}
                        p.note { a #p-link href="#" { "The measurements behind it" } }
                    }
                }
                None => {
                    p {
                        "There is no answer: it needs CPU and GPU results of one group at common sizes. \
                         Run " code { "cargo bench" } " on a machine with a GPU, or name another \
                         machine's results with " code { "crossover report --with FILE" } "."
                    }
                }
            }
        }
        (disturbances(report))
    }
}

/// The form that asks for an operation, a size, the place of the data and their uses.
fn form(groups: &[&GroupView], first: Option<(&GroupView, &Decision)>) -> Markup {
    let (chosen, decision) = first.unzip();
    html! {
        form.ask.scripted {
            label hidden[groups.len() == 1] {
                "Operation"
                select #v-operation {
                    @for group in groups {
                        option value=(group.name) selected[chosen.is_some_and(|chosen| chosen.name == group.name)] { (group.topic.title) }
                    }
                }
            }
            label {
                span #v-axis { (chosen.map_or("Size", |group| &group.topic.axis)) }
                input #v-size inputmode="numeric" autocomplete="off" value=[decision.map(|decision| decision.size)];
            }
            label {
                "The data are"
                select #v-data {
                    @for data in PLACES {
                        option value=(data.name()) selected[decision.is_some_and(|decision| decision.place == data)] { (data.words()) }
                    }
                }
            }
            label {
                "and are used"
                select #v-uses {
                    @for (i, uses) in USES.iter().enumerate() {
                        option value=(i) { @if *uses == 1 { "once" } @else { (uses) " times" } }
                    }
                }
            }
        }
    }
}
