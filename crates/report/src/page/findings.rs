//! The findings: on the first page the gain of each technique, and on each group's page its findings.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::page::link::{self, safe};
use crate::page::table::{self, named, number, permalink, table, text};
use crate::report::Report;
use crossover_results::analysis::findings::finding::{Finding, Gain, Rows, Technique, gains};
use crossover_results::model::id::Id;
use crossover_words::units;

/// Places listed for each technique; further ones are counted.
const MOST_PLACES: usize = 3;

fn anchor(finding: &Finding) -> String {
    match finding.in_a_table {
        // The evidence of the answers has it already.
        true => format!("group-{}", safe(&finding.group)),
        false => format!("finding-{}-{}", safe(&finding.group), safe(&finding.id)),
    }
}

/// One table: each technique, its largest gain, and where.
pub(super) fn techniques(report: &Report) -> Markup {
    let gains = gains(&report.findings);
    if gains.is_empty() {
        return html! {};
    }
    let changes = [text("change"), number("the operation is"), text("compared")];
    let techniques = [
        text("technique"),
        number("at best"),
        text("where, by how much"),
    ];
    let lines = gains
        .iter()
        .map(|(technique, gains)| line(report, *technique, gains));
    html! {
        section #findings {
            h2 { "What to change" (permalink("findings", "what each technique gains")) }
            div.scripted {
                p.note { span #w-at {} ": where the data are, and how often they are used." }
                (table::scroll("What a change gains at this size", "plain wrap-text", &changes, html! { tbody #w-rows {} }))
            }
            h3 {
                "What each technique gained "
                @match &report.reference {
                    Some(reference) => { "on another machine, " (reference.hardware()) }
                    None => { "here" }
                }
            }
            (table("What each technique gained", "plain techniques wrap-text", &techniques, lines))
        }
    }
}

fn line(report: &Report, technique: Technique, gains: &[(&Finding, &Gain)]) -> [Markup; 3] {
    let best = gains
        .iter()
        .map(|(_, gain)| gain.factor)
        .fold(f64::NAN, f64::max);
    let gain = units::speedup(best);
    [
        html! { (technique.words()) small { (technique.against()) } },
        html! { span class=[gain.ends_with("slower").then_some("loss")] { (gain) } },
        html! {
            @for (i, (finding, gain)) in gains.iter().take(MOST_PLACES).enumerate() {
                @if i > 0 { "; " }
                a href={ (link::of_group(&finding.group)) "#" (anchor(finding)) } { (report.topic(&finding.group).title) }
                " " (units::speedup(gain.factor)) " at " (gain.at)
            }
            @if gains.len() > MOST_PLACES { "; and " (gains.len() - MOST_PLACES) " more" }
        },
    ]
}

/// The findings of a group that are not in its answers.
pub(super) fn beside(report: &Report, group: &str) -> Markup {
    let title = report.topic(group).title;
    let here = report
        .findings
        .iter()
        .filter(|f| f.group == group && !f.in_a_table);
    let here: Vec<&Finding> = here.collect();
    html! {
        @if !here.is_empty() {
            h3 { "What the measurements say" }
            div.findings { @for findings in merged(&here) { (one(&findings, &title)) } }
        }
    }
}

/// Findings whose tables are equal for several implementations share one table.
fn merged<'a>(findings: &[&'a Finding]) -> Vec<Vec<&'a Finding>> {
    let heading = |f: &Finding| {
        f.table
            .as_ref()
            .map(|t| (t.caption.clone(), t.head.clone()))
    };
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in findings {
        let like =
            |of: &&mut Vec<&Finding>| finding.table.is_some() && heading(of[0]) == heading(finding);
        match groups.iter_mut().find(like) {
            Some(findings) => findings.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// `findings` has at least one.
fn one(findings: &[&Finding], title: &str) -> Markup {
    let first = findings[0];
    let anchor = anchor(first);
    let rows = first.table.as_ref().map(|table| {
        let mut table = table.clone();
        for other in findings[1..].iter().filter_map(|f| f.table.as_ref()) {
            table.rows.extend(other.rows.iter().cloned());
            let new = other
                .notes
                .iter()
                .filter(|note| !table.notes.contains(note));
            let new: Vec<String> = new.cloned().collect();
            table.notes.extend(new);
        }
        table
    });
    let benchmarks: BTreeSet<&String> = findings.iter().flat_map(|f| &f.benchmarks).collect();
    let names = benchmarks.iter().filter_map(|id| id.parse().ok());
    let names: BTreeSet<String> = names.map(|id: Id| id.function).collect();
    html! {
        article.finding id=(anchor) {
            // The table of techniques links to each of them.
            @for other in &findings[1..] { span id=(self::anchor(other)) {} }
            @match &rows {
                Some(rows) => { (small(rows, &names, &anchor, title)) }
                None => { p { (coloured(&first.text, &names)) (permalink(&anchor, &first.text)) } }
            }
            details {
                summary {
                    "the "
                    @if benchmarks.len() == 1 { "benchmark" }
                    @else { (benchmarks.len()) " benchmarks" }
                    " behind it"
                }
                p.ids { @for id in &benchmarks { code { (id) } " " } }
            }
        }
    }
}

fn small(rows: &Rows, names: &BTreeSet<String>, anchor: &str, title: &str) -> Markup {
    let columns = named(&rows.head);
    let cells = |row: &Vec<String>| {
        row.iter()
            .map(|cell| coloured(cell, names))
            .collect::<Vec<_>>()
    };
    html! {
        p { (coloured(&rows.caption, names)) (permalink(anchor, &rows.caption)) }
        (table(&format!("{title}: {}", rows.caption), "plain", &columns, rows.rows.iter().map(cells)))
        @for note in &rows.notes { p.note { (coloured(note, names)) } }
    }
}

/// A text with these names of implementations in the colours of their devices.
fn coloured(text: &str, names: &BTreeSet<String>) -> Markup {
    let places = (names.iter()).filter_map(|name| Some((text.find(name.as_str())?, name)));
    // Of two names that begin alike the longer one.
    let first = places.min_by_key(|(at, name)| (*at, Reverse(name.len())));
    html! {
        @match first {
            Some((at, name)) => {
                (text[..at])
                b class=(&name[..3]) { (table::breakable(name)) }
                (coloured(&text[at + name.len()..], names))
            }
            None => (text),
        }
    }
}
