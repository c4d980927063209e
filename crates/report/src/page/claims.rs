//! The page of texts' claims: a line per claim with its result.

use maud::{Markup, html};

use crate::claims::{self, Claim, Outcome};
use crate::page::table::{breakable, permalink};
use crate::report::Report;

/// The section. It needs no script, and its lines wrap on a phone.
pub(super) fn claims(report: &Report) -> Markup {
    let machines = claims::machines(report);
    let judged = claims::evaluate(&machines);
    let anchor = |topic: usize, claim: usize| format!("claim-{}-{}", topic + 1, claim + 1);
    html! {
        section #texts {
            p { (claims::counted(&judged)) }
            p.note { (claims::RULES) }
            @for (topic, (question, claims)) in judged.iter().enumerate() {
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
            // In the words of other libraries, for a reader who searches for them.
            @if !claim.words.is_empty() { p.ids { @for word in &claim.words { code { (word) } " " } } }
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
