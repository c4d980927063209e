//! The data of the pages' script: each group with its answers, decisions, charts and implementations, and
//! with every text that the script shows as it stands.
//!
//! The scripts are modules with imports and exports, joined into one, because a page that is opened from a file
//! can load no others.

// The fields of `object!` name its parameters.
#![allow(non_camel_case_types)]

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use miniz_oxide::deflate::compress_to_vec;
use serde::Serialize;
use serde_json::Value;

use crossover_draw::plot::{Axis, Curve, Dot, Limit, Quantity};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::{limits, telemetry};
use crossover_results::model::group_info::Unit;
use crossover_results::store::curves::{Benchmark, Series};
use crossover_words::units;

use crate::decisions::Decision;
use crate::group::{Chart, GroupAnswer, GroupView, Implementation, More, Shown};
use crate::page::link;

/// An object with these fields, as `json!` makes one, but of a type: nothing is copied or named anew.
macro_rules! object {
    ($($field:ident: $value:expr),+ $(,)?) => {{
        #[derive(Serialize)]
        struct Object<$($field),+> {
            $($field: $field),+
        }
        Object { $($field: $value),+ }
    }};
}

/// Leaves a fifth of the text, in a tenth of a second for ten megabytes; higher levels take longer and
/// save little.
const LEVEL: u8 = 4;

/// The data of a page: JSON, deflated without a header, in characters that need no escaping in HTML. A browser
/// inflates it itself (`DecompressionStream`).
pub(super) fn of_page(groups: &[impl Serialize], words: Value) -> String {
    let text = serde_json::to_vec(&object! {groups: groups, words: words});
    STANDARD.encode(compress_to_vec(&text.expect("every key is a text"), LEVEL))
}

/// The data of a group on the first page.
pub(super) fn summary(group: &GroupView, decision: Option<&Decision>) -> impl Serialize {
    let speedup = group.chart_of_places(Shown::Speedup).and_then(chart);
    let charts = object! {places: object! {speedup: speedup}};
    of_group(group, decision, charts, Vec::<()>::new())
}

/// The data of a group on its own page.
pub(super) fn details(group: &GroupView, decision: Option<&Decision>) -> impl Serialize {
    let rows = group.implementations.iter();
    let drawn = |shown, of_all| {
        if of_all {
            group.chart_of_implementations(shown, rows.clone())
        } else {
            group.chart_of_places(shown)
        }
    };
    let charts = |of_all| {
        let each = Shown::ALL.map(|shown| (shown.name(), drawn(shown, of_all).and_then(chart)));
        BTreeMap::from(each)
    };
    let charts = object! {places: charts(false), all: charts(true)};
    let rows: Vec<_> = rows.clone().map(|code| row(group, code)).collect();
    of_group(group, decision, charts, rows)
}

fn of_group(
    group: &GroupView,
    decision: Option<&Decision>,
    charts: impl Serialize,
    implementations: impl Serialize,
) -> impl Serialize {
    let answer = |answer: &GroupAnswer| {
        object! {
            place: answer.found.question,
            wins: answer_in_words::wins(&answer.found.topic, &answer.found.crossing),
            cause: answer.cause(),
            evidence: link::of_answer(answer.found),
        }
    };
    let topic = &group.topic;
    object! {
        name: group.name,
        title: &topic.title,
        question: &topic.question,
        symbol: &topic.symbol,
        axis: &topic.axis,
        unit: match topic.unit {
            Unit::Count => "count",
            Unit::Powers => "powers",
            Unit::Bytes => "bytes",
            Unit::Time => "time",
        },
        page: link::of_group(group.name),
        unmeasured: &group.unmeasured,
        answers: group.answers.iter().map(answer).collect::<Vec<_>>(),
        decision: decision,
        charts: charts,
        implementations: implementations,
    }
}

/// An implementation, with the texts of each of its cells.
fn row(group: &GroupView, code: &Implementation) -> impl Serialize {
    let series = code.series;
    let cells = |b: &Benchmark| {
        let share = limits::share(series, b, code.machine);
        let speedup = group.speedup(series, b);
        let slowed = telemetry::slowed(b).join(", ");
        let notes = [
            (!slowed.is_empty()).then(|| format!("▾ {slowed}")),
            b.unsteady.as_ref().map(|_| "± unsteady".to_owned()),
            series.remark().map(str::to_owned),
        ];
        object! {
            size: b.size,
            ns: short(b.median_ns),
            time: units::time(b.median_ns),
            speedup: speedup.map(units::speedup),
            share: share.map(|share| share.words()),
            notes: notes.into_iter().flatten().collect::<Vec<_>>(),
            best: is_best(group, series, b),
        }
    };
    object! {
        name: &code.name,
        device: series.device,
        clock: series.clock_name(),
        rows: series.points.iter().map(cells).collect::<Vec<_>>(),
    }
}

/// Whether a benchmark is the fastest of its size and clock in its group, or within its interval.
fn is_best(group: &GroupView, of: &Series, b: &Benchmark) -> bool {
    let rows = group.implementations.iter().map(|code| code.series);
    let same = rows.filter(|row| row.measures_work() && row.clock == of.clock);
    let steady = same.filter_map(|row| row.at(b.size).filter(|b| b.unsteady.is_none()));
    let first = steady.min_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
    let ties = first.is_some_and(|first| b.median_ns <= first.high_ns());
    group.topic.compares && of.measures_work() && b.unsteady.is_none() && ties
}

/// A chart with its range, its ticks and all texts; `None` if it has no point.
fn chart(Chart { plot, more }: Chart) -> Option<impl Serialize + use<>> {
    let frame = plot.frame()?;
    let axis = |axis: &Axis, text: &dyn Fn(f64) -> String| {
        let tick = |at: &f64| object! {at: *at, text: text(*at)};
        object! {ends: axis.ends, ticks: axis.ticks.iter().map(tick).collect::<Vec<_>>()}
    };
    let limit = |limit: &Limit| {
        let colour = limit.paint.property();
        object! {label: limit.label.clone(), value: limit.value, colour: colour}
    };
    let largest = frame.sizes.ends.1;
    let curves = plot.curves.iter().zip(more);
    let curves = curves.map(|(drawn, more)| curve(drawn, more, plot.quantity));
    Some(object! {
        lowest_first: plot.quantity == Quantity::Time,
        x: axis(&frame.sizes, &|at| plot.size_label(at, largest)),
        y: axis(&frame.values, &|at| plot.value_label(at)),
        limits: plot.limits.iter().map(limit).collect::<Vec<_>>(),
        curves: curves.collect::<Vec<_>>(),
        axis: plot.size_label,
    })
}

/// A number that is drawn: with more digits than are shown, and few, to keep the page small.
fn short(value: f64) -> f64 {
    units::significant(value, 5)
}

fn curve(drawn: &Curve, more: More, quantity: Quantity) -> impl Serialize + use<> {
    let words = |value: f64| match quantity {
        Quantity::Time | Quantity::Difference => units::time(value),
        Quantity::Rate(unit) => units::rate(value, unit),
        Quantity::Ratio | Quantity::Speedup => units::speedup(value),
    };
    let dot = |dot: &Dot| {
        object! {size: dot.size, value: short(dot.value), text: words(dot.value)}
    };
    // Those of single implementations would hide each other.
    let drawn_band = drawn.dots.iter().filter(|_| more.answer.is_some());
    let band = |dot: &Dot| object! {size: dot.size, low: short(dot.low), high: short(dot.high)};
    let single = |(size, value): (u64, f64)| object! {size: size, value: short(value)};
    let crossing = more.answer.and_then(|answer| {
        let change = answer.crossing.for_good()?;
        let [size, low, high] = [change.size, change.low, change.high].map(short);
        Some(object! {size: size, low: low, high: high, text: answer_in_words::size(answer)})
    });
    object! {
        label: drawn.label.clone(),
        colour: drawn.paint.property(),
        place: more.answer.map(|answer| answer.question),
        clock: more.clock,
        crossing: crossing,
        dots: drawn.dots.iter().map(dot).collect::<Vec<_>>(),
        band: drawn_band.map(band).collect::<Vec<_>>(),
        single: more.single.into_iter().map(single).collect::<Vec<_>>(),
    }
}

const UPLOT: &str = include_str!("vendor/uplot/uPlot.iife.min.js");
const LICENSE: &str = include_str!("vendor/uplot/LICENSE");

/// Styles of pages with a chart; the other pages leave the first one out.
pub(super) const STYLES: [&str; 2] = [
    include_str!("vendor/uplot/uPlot.min.css"),
    include_str!("style/first.css"),
];

/// The scripts of a page with the data that they work on, packed.
pub(super) fn scripts(data: &str) -> Markup {
    html! {
        script type="text/plain" id="data" { (data) }
        script { "/*\n" (PreEscaped(LICENSE)) "*/\n" (PreEscaped(UPLOT)) }
        script { (PreEscaped(joined())) }
    }
}

/// Each module after those that it imports from.
const MODULES: [(&str, &str); 5] = [
    ("dom", include_str!("script/dom.js")),
    ("words", include_str!("script/words.js")),
    ("verdict", include_str!("script/verdict.js")),
    ("chart", include_str!("script/chart.js")),
    ("main", include_str!("script/main.js")),
];

/// All modules in one scope, without the lines of imports and exports.
fn joined() -> String {
    let lines = MODULES.iter().flat_map(|(_, source)| source.lines());
    let own = lines.filter(|line| !line.starts_with("import "));
    let own = own.map(|line| line.strip_prefix("export ").unwrap_or(line));
    own.fold("\"use strict\";\n".to_owned(), |script, line| {
        script + line + "\n"
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_vendored_files_are_those_of_the_release() {
        let readme = include_str!("vendor/uplot/README.md");
        for (name, text) in [
            ("LICENSE", LICENSE),
            ("uPlot.iife.min.js", UPLOT),
            ("uPlot.min.css", STYLES[0]),
        ] {
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("| `{name}` | `{hex}` |");
            assert!(readme.contains(&line), "{line}");
        }
        // The texts stand inside elements of the page.
        for text in [LICENSE, UPLOT, &joined()] {
            assert!(!text.contains("</script") && !text.contains("<!--"));
        }
        assert!(!LICENSE.contains("*/"));
    }
}
