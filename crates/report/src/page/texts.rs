//! What texts claim, beside what was measured: a line per claim, and the figure of the pitfall that
//! most of them warn of.

use maud::{Markup, PreEscaped, html};

use crate::assemble::Assembled;
use crate::page::findings::permalink;
use crate::page::table::breakable;
use crate::texts::{self, Claim, Outcome, pitfall};
use crossover_draw::plot::figure::Shape::{Narrow, Wide};

/// The section. It needs no script, and its lines wrap on a phone.
pub(super) fn texts(report: &Assembled) -> Markup {
    let all = texts::evaluate(&texts::machines(report));
    let anchor = |topic: usize, claim: usize| format!("claim-{}-{}", topic + 1, claim + 1);
    let mut words: Vec<(&str, String)> = Vec::new();
    for (topic, (_, claims)) in all.iter().enumerate() {
        for (at, (claim, _)) in claims.iter().enumerate() {
            words.extend(claim.words.iter().map(|word| (&**word, anchor(topic, at))));
        }
    }
    words.sort_by_key(|(word, _)| word.trim_start_matches('.').to_lowercase());
    html! {
        section #texts {
            h2 { "What texts claim, and what was measured" (permalink("texts", "what texts claim")) }
            p { (texts::counted(&all)) }
            p.note { (texts::RULES) }
            (pitfall_figure(report))
            p.note {
                "By the words of other libraries: "
                @for (i, (word, anchor)) in words.iter().enumerate() {
                    @if i > 0 { ", " }
                    a href={ "#" (anchor) } { code { (word) } }
                }
                "."
            }
            @for (topic, (question, claims)) in all.iter().enumerate() {
                h3 { (question.question) }
                div.findings {
                    @for (at, (claim, outcome)) in claims.iter().enumerate() {
                        (one(report, &anchor(topic, at), claim, outcome))
                    }
                }
            }
            p.note { "The texts: " (texts::sources()) "." }
        }
    }
}

fn one(report: &Assembled, anchor: &str, claim: &Claim, outcome: &Outcome) -> Markup {
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
                        ". " b { (measured.verdict.words()) }
                    }
                    p.ids { @for id in &measured.ids { code { (breakable(id)) } " " } }
                }
                Err(why) => { p { "Stated: " (claim.stated()) ". " b { "Not answered" } ": " (why) "." } }
            }
        }
    }
}

fn pitfall_figure(report: &Assembled) -> Markup {
    let drawn = pitfall::pitfall(report).and_then(|(machine, plot)| {
        let (wide, narrow) = (plot.drawing(Wide)?.inline(), plot.svg(Narrow)?);
        Some((machine, wide, narrow))
    });
    html! {
        @if let Some((machine, wide, narrow)) = drawn {
            figure {
                div.wide { (PreEscaped(wide)) }
                div.narrow { (PreEscaped(narrow)) }
                figcaption.note {
                    "The same product on " (machine.hardware()) ". A call that is not awaited returns \
                     after some microseconds at every size: what its clock shows is the time to queue it."
                }
            }
        }
    }
}
