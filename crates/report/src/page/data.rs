//! The data of the pages' script: each group with its answers, decisions, charts and implementations, and
//! with every text that the script shows as it stands. Large parts are moved into their place, because
//! `json!` copies.

use serde_json::{Value, json};

use crate::answers::GroupAnswer;
use crate::charts::{self, Chart, More, Shown};
use crate::decisions::Decision;
use crate::group::{GroupView, Implementation};
use crate::page::link;
use crossover_draw::plot::{Axis, Curve, Dot, Limit, Quantity};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::{limits, telemetry};
use crossover_results::model::group_info::Unit;
use crossover_results::store::curves::{Benchmark, Series};
use crossover_words::units;

/// The data of a group on the first page.
pub(super) fn summary(group: &GroupView, decision: Option<&Decision>) -> Value {
    let mut data = of_group(group, decision);
    let speedup = charts::of_places(group, Shown::Speedup);
    data["charts"]["places"]["speedup"] = speedup.and_then(chart).into();
    data
}

/// The data of a group on its own page.
pub(super) fn details(group: &GroupView, decision: Option<&Decision>) -> Value {
    let mut data = of_group(group, decision);
    let rows = group.implementations.iter();
    for shown in Shown::ALL {
        let places = charts::of_places(group, shown);
        let all = charts::of_implementations(group, shown, rows.clone());
        data["charts"]["places"][shown.name()] = places.and_then(chart).into();
        data["charts"]["all"][shown.name()] = all.and_then(chart).into();
    }
    data["implementations"] = rows.map(|code| row(group, code)).collect();
    data
}

fn of_group(group: &GroupView, decision: Option<&Decision>) -> Value {
    let answer = |answer: &GroupAnswer| {
        json!({
            "place": answer.found.question,
            "wins": answer_in_words::wins(answer.found),
            "cause": answer.cause(),
            "evidence": link::of_answer(answer.found),
        })
    };
    let topic = &group.topic;
    json!({
        "name": group.name,
        "title": topic.title,
        "symbol": topic.symbol,
        "axis": topic.axis,
        "unit": match topic.unit {
            Unit::Count => "count",
            Unit::Powers => "powers",
            Unit::Bytes => "bytes",
            Unit::Time => "time",
        },
        "page": link::of_group(group.name),
        "unmeasured": group.unmeasured,
        "answers": group.answers.iter().map(answer).collect::<Vec<_>>(),
        "decision": decision.map(|decision| &decision.json),
    })
}

/// An implementation, with the texts of each of its cells.
fn row(group: &GroupView, code: &Implementation) -> Value {
    let series = code.series;
    let cells = |b: &Benchmark| {
        let share = limits::with_launches(series, b, code.machine);
        let speedup = group.speedup(series, b);
        let slowed = telemetry::slowed(b).join(", ");
        let notes = [
            (!slowed.is_empty()).then(|| format!("▾ {slowed}")),
            b.unsteady.as_ref().map(|_| "± unsteady".to_owned()),
            (!series.measures_work()).then(|| "does not measure the work".to_owned()),
        ];
        json!({
            "size": b.size,
            "ns": short(b.median_ns),
            "time": units::time(b.median_ns),
            "speedup": speedup.map(|at| units::speedup(at.ratio)),
            "share": share.map(|share| share.words()),
            "notes": notes.into_iter().flatten().collect::<Vec<_>>(),
            "best": is_best(group, series, b),
        })
    };
    let mut row = json!({
        "name": code.name,
        "device": series.device,
        "clock": series.clock_name(),
    });
    row["rows"] = series.points.iter().map(cells).collect();
    row
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
fn chart(Chart { plot, more }: Chart) -> Option<Value> {
    let frame = plot.frame()?;
    let axis = |axis: &Axis, text: &dyn Fn(f64) -> String| {
        let tick = |at: &f64| json!({"at": at, "text": text(*at)});
        json!({"ends": axis.ends, "ticks": axis.ticks.iter().map(tick).collect::<Value>()})
    };
    let limit = |limit: &Limit| {
        let colour = limit.paint.property();
        json!({"label": limit.label, "value": limit.value, "colour": colour})
    };
    let largest = frame.sizes.ends.1;
    let mut chart = json!({
        "axis": plot.size_label,
        "lowest_first": plot.quantity == Quantity::Time,
        "x": axis(&frame.sizes, &|at| plot.size_label(at, largest)),
        "y": axis(&frame.values, &|at| plot.value_label(at)),
        "limits": plot.limits.iter().map(limit).collect::<Value>(),
    });
    let curves = plot.curves.iter().zip(more);
    let curves = curves.map(|(drawn, more)| curve(drawn, more, plot.quantity));
    chart["curves"] = curves.collect();
    Some(chart)
}

/// A number that is drawn: with more digits than are shown, and few, to keep the page small.
fn short(value: f64) -> f64 {
    units::significant(value, 5)
}

fn curve(drawn: &Curve, more: More, quantity: Quantity) -> Value {
    let words = |value: f64| match quantity {
        Quantity::Time => units::time(value),
        Quantity::Rate(unit) => units::rate(value, unit),
        Quantity::Ratio | Quantity::Speedup => units::factor(value),
    };
    let dot = |dot: &Dot| {
        let [value, low, high] = [dot.value, dot.low, dot.high].map(short);
        json!({"size": dot.size, "value": value, "low": low, "high": high, "text": words(dot.value)})
    };
    let single = |(size, value): (u64, f64)| json!({"size": size, "value": short(value)});
    let crossing = more.answer.and_then(|answer| {
        let change = answer.crossing.for_good()?;
        let [size, low, high] = [change.size, change.low, change.high].map(short);
        Some(json!({"size": size, "low": low, "high": high, "text": answer_in_words::size(answer)}))
    });
    let mut curve = json!({
        "label": drawn.label,
        "colour": drawn.paint.property(),
        "place": more.answer.map(|answer| answer.question),
        "clock": more.clock,
        "crossing": crossing,
    });
    curve["dots"] = drawn.dots.iter().map(dot).collect();
    curve["single"] = more.single.into_iter().map(single).collect();
    curve
}
