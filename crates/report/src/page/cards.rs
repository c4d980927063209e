//! One card per operation: its answers, a small picture of the speedup, what limits it, and how
//! sure each answer is.

use maud::{Markup, html};

use crate::assemble::Assembled;
use crate::page::answers::Answered;
use crate::page::link::safe;

pub(super) fn section(report: &Assembled, all: &[Answered]) -> Markup {
    html! {
        section #answers {
            h2 { "The size from which the GPU is faster" }
            @if all.is_empty() {
                p {
                    "There is no answer: it takes CPU and GPU results of one group at common sizes. "
                    "Run " code { "cargo bench" } " on a machine with a GPU, or name another \
                    machine's results with " code { "crossover report --with FILE" } "."
                }
            } @else {
                p.note {
                    "The range beside a size is where another run would find the crossover. The mark at \
                     the end of each answer says how sure it is, and leads to the measurements behind it."
                }
            }
            div.cards {
                @for group in all.chunk_by(|a, b| a.found.group == b.found.group) {
                    (card(report, group))
                }
            }
        }
    }
}

fn card(report: &Assembled, answers: &[Answered]) -> Markup {
    let group = &answers[0].found.group;
    let topic = report.topic(group);
    html! {
        article.card id={ "card-" (safe(group)) } {
            header {
                h3 { a data-group=(group) href={ "#group-" (safe(group)) } { (topic.title) } }
                (sparkline(answers))
            }
            @for answer in answers { (line(answer)) }
        }
    }
}

fn line(answer: &Answered) -> Markup {
    let f = answer.found;
    let grade = answer.trust.grade().name();
    html! {
        div class={ "answer q-" (f.question.name()) } {
            p.question {
                i.key {} (f.question.phrase())
                @if let Some(machine) = &f.gpu_machine { ", GPU of another machine: " (machine) }
            }
            p.size {
                span.big data-answer=(format!("{}/{}", f.group, f.question.name()))
                    data-size=[f.crossing.for_good().map(|c| c.size)] { (answer.from()) }
                " " small { (answer.range()) }
            }
            p.speed {
                b { (answer.by()) } " at " (f.topic.at(f.speedup_size as u64))
            }
            p.limit {
                @match &answer.bottleneck {
                    Some(b) => { "Limited by " b { (b.kind.name()) } ": " (b.words) }
                    None => { "No limit is known" }
                }
            }
            a class={ "trust " (grade) } href={ "#" (answer.anchor()) } {
                b { (answer.grade()) } ": " (answer.marks().join(", "))
            }
        }
    }
}

/// Width and height of the small picture, in units of its own.
const WIDE: f64 = 132.0;
const TALL: f64 = 40.0;

/// The speedups of all answers over the size, both logarithmic, with a line where both are equal.
fn sparkline(answers: &[Answered]) -> Markup {
    let points = || answers.iter().flat_map(|answer| &answer.speedup);
    let span = |values: &mut dyn Iterator<Item = f64>| {
        let ends = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        (ends.0 < ends.1).then_some(ends)
    };
    let (Some(x), Some(y)) = (
        span(&mut points().map(|at| at.size.ln())),
        span(&mut points().map(|at| at.ratio.ln()).chain([0.0])),
    ) else {
        return html! {};
    };
    let left = |size: f64| 2.0 + (WIDE - 4.0) * (size.ln() - x.0) / (x.1 - x.0);
    let top = |ratio: f64| 2.0 + (TALL - 4.0) * (y.1 - ratio.ln()) / (y.1 - y.0);
    html! {
        svg.spark viewBox=(format!("0 0 {WIDE} {TALL}")) aria-hidden="true" {
            line.even x1="0" x2=(WIDE) y1=(format!("{:.1}", top(1.0))) y2=(format!("{:.1}", top(1.0))) {}
            @for answer in answers {
                @let line: Vec<String> = answer.speedup.iter()
                    .map(|at| format!("{:.1},{:.1}", left(at.size), top(at.ratio)))
                    .collect();
                polyline class={ "q-" (answer.found.question.name()) } points=(line.join(" ")) {}
            }
        }
    }
}
