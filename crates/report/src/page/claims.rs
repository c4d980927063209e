//! The page of texts' claims: a line per claim with its result, and the plot of the most common
//! pitfall.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use crate::claims::{self, Claim, Outcome, pitfall};
use crate::page::table::{breakable, permalink};
use crate::report::Report;

/// The section. It needs no script, and its lines wrap on a phone.
pub(super) fn claims(report: &Report) -> Markup {
    let machines = claims::machines(report);
    let all = claims::evaluate(&machines);
    let anchor = |topic: usize, claim: usize| format!("claim-{}-{}", topic + 1, claim + 1);
    // In alphabetical order, each with its claims.
    let mut words: BTreeMap<(String, &str), Vec<String>> = BTreeMap::new();
    for (topic, (_, claims)) in all.iter().enumerate() {
        for (at, (claim, _)) in claims.iter().enumerate() {
            for word in &claim.words {
                let key = word.trim_start_matches('.').to_lowercase();
                words
                    .entry((key, word.as_str()))
                    .or_default()
                    .push(anchor(topic, at));
            }
        }
    }
    html! {
        section #texts {
            p { (claims::counted(&all)) }
            p.note { (claims::RULES) }
            (pitfall_figure(report))
            p.note {
                "By the words of other libraries: "
                @for (i, ((_, word), anchors)) in words.iter().enumerate() {
                    @if i > 0 { ", " }
                    @for (at, anchor) in anchors.iter().enumerate() {
                        @if at == 0 { a href={ "#" (anchor) } { code { (word) } } }
                        @else { " " a href={ "#" (anchor) } { (at + 1) } }
                    }
                }
                "."
            }
            @for (topic, (question, claims)) in all.iter().enumerate() {
                h2 { (question.question) }
                div.findings {
                    @for (at, (claim, outcome)) in claims.iter().enumerate() {
                        (one(report, &anchor(topic, at), claim, outcome))
                    }
                }
            }
            p.note { "The texts: " (claims::sources()) "." }
        }
    }
}

fn one(report: &Report, anchor: &str, claim: &Claim, outcome: &Outcome) -> Markup {
    html! {
        article.finding id=(anchor) {
            p { (claim.text) (permalink(anchor, &claim.text)) }
            @match outcome {
                Ok(measured) => {
                    p {
                        "Stated: " (claim.stated()) ". Measured: " (measured.figure)
                        @if !std::ptr::eq(measured.machine, &report.machine) {
                            ", " (measured.machine.hardware()) ", another machine"
                        }
                        ". " strong { (measured.verdict.words()) }
                    }
                    p.ids { @for id in &measured.ids { code { (breakable(id)) } " " } }
                }
                Err(why) => { p { "Stated: " (claim.stated()) ". " strong { "Not answered" } ": " (with_code(why)) "." } }
            }
        }
    }
}

/// A sentence, its names of rows and commands between backticks.
fn with_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 0 { (part) } @else { code { (breakable(part)) } }
        }
    }
}

fn pitfall_figure(report: &Report) -> Markup {
    let drawn = pitfall::pitfall(report).and_then(|(machine, plot)| Some((machine, plot.svg()?)));
    html! {
        @if let Some((machine, svg)) = drawn {
            figure {
                (PreEscaped(svg))
                figcaption.note {
                    "The same product on " (machine.hardware()) ". A call that is not awaited returns \
                     after some microseconds at every size: what its clock shows is the time to queue it."
                }
            }
        }
    }
}
