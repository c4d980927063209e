//! What the chart at the top works on, as JSON.

use serde_json::{Value, json};

use crate::assemble::Assembled;
use crate::page::answers::Answered;
use crate::page::group::{file, one_size, remarks};
use crate::page::runs::earlier_run;
use crate::page::verdict::{Verdicts, said};
use crate::static_plots;
use crossover_draw::ink::{self, Family};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::pairs::best_cpu;
use crossover_results::analysis::bottleneck::{self, Bottleneck};
use crossover_results::analysis::limits::Kind;
use crossover_results::analysis::rate::{self, Work};
use crossover_results::analysis::telemetry;
use crossover_results::model::LinkBytes;
use crossover_results::model::group_info::Unit;
use crossover_results::model::telemetry::{Telemetry, TelemetryEvent};
use crossover_results::model::verified::Verified;
use crossover_results::store::curves::{Benchmark, Group, Series};
use crossover_results::store::machine::MachineResults;

pub(super) fn json(
    report: &Assembled,
    answers: &[Answered],
    verdicts: Option<&Verdicts>,
) -> String {
    let groups: Vec<Value> = report
        .group_names()
        .iter()
        .filter(|name| !one_size(report, name))
        .map(|name| group(report, name, answers, verdicts))
        .collect();
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    json!({ "groups": groups, "kinds": kinds, "said": said(verdicts) }).to_string()
}

/// To six digits, which is more than is shown and keeps the page small.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn group(
    report: &Assembled,
    name: &str,
    answers: &[Answered],
    verdicts: Option<&Verdicts>,
) -> Value {
    let groups: Vec<&Group> = report.groups(name).collect();
    let topic = report.topic(name);
    let work = rate::work(&groups);
    // Each curve with its machine, in the order in which the script counts them.
    let mut all: Vec<(&MachineResults, &Series)> = Vec::new();
    for machine in report.machines() {
        if let Some(group) = machine.group(name) {
            all.extend(group.series.iter().map(|series| (machine, series)));
        }
    }
    let of_group = answers.iter().filter(|a| a.found.group == name);
    let place = |series: &Series| all.iter().position(|(_, s)| std::ptr::eq(*s, series));
    let coloured = static_plots::coloured(report, name);
    let class = |series: &Series| {
        let drawn = coloured.iter().find(|d| std::ptr::eq(d.series, series))?;
        Some(drawn.role().class())
    };
    let roofs = |work| -> Vec<Value> {
        let limits = static_plots::limits(report, name, work);
        limits
            .iter()
            .map(|l| json!({ "label": l.label, "value": l.value, "cpu": l.family == Family::Cpu }))
            .collect()
    };
    json!({
        "name": name,
        "title": topic.title,
        "symbol": topic.symbol,
        "axis": topic.axis,
        "sizes": sizes(topic.unit),
        "compares": topic.compares,
        "unit": work.map(Work::unit),
        "series": all.iter().map(|(machine, s)| series(report, machine, s, class(s), work)).collect::<Vec<_>>(),
        "answers": of_group.map(|a| answer(a, place(a.series))).collect::<Vec<_>>(),
        "host": report.machine.group(name).map(best),
        "verdict": verdicts.zip(report.machine.group(name)).map(|(v, group)| v.json(group)),
        "flops": roofs(Work::Flop),
        "bytes": roofs(Work::Bytes),
    })
}

/// How sizes are written, as the tables do.
fn sizes(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Powers => "powers",
        Unit::Bytes => "bytes",
        Unit::Time => "time",
    }
}

fn series(
    report: &Assembled,
    machine: &MachineResults,
    series: &Series,
    class: Option<String>,
    work: Option<Work>,
) -> Value {
    let own = std::ptr::eq(machine, &report.machine);
    let rows: Vec<Value> = series
        .points
        .iter()
        .enumerate()
        .map(|(i, b)| {
            let amount = work.and_then(|w| w.amount(series, i));
            json!([
                b.size,
                short(b.median_ns),
                short(b.low_ns()),
                short(b.high_ns()),
                amount.map(short),
                facts(machine, series, b),
            ])
        })
        .collect();
    json!({
        "name": series.name(),
        "machine": (!own).then(|| machine.hardware()),
        "own": own,
        "device": series.device,
        "class": class,
        "dash": ink::dash(series.clock),
        "clock": series.clock_name(),
        "counts": series.measures_work(),
        "rows": rows,
    })
}

/// What else is known of a benchmark; what is not is left out, to keep the page small.
fn facts(machine: &MachineResults, series: &Series, b: &Benchmark) -> Value {
    let bottleneck = bottleneck::of(series, b, machine);
    let kind = |bottleneck: &Bottleneck| Kind::ALL.iter().position(|k| *k == bottleneck.kind);
    let mut facts = json!({
        "kind": bottleneck.as_ref().and_then(kind),
        "reached": bottleneck.as_ref().and_then(|found| Some((1e4 * found.share?).round() / 1e4)),
        "share": bottleneck.as_ref().map(|found| &found.words),
        "roof": roof(series, b),
        "joules": telemetry::energy_j(b).map(short),
        "error": b.verified.as_ref().filter(|v| v.error > 0.0).map(Verified::words),
        "slowed": Some(telemetry::slowed(b).join(", ")).filter(|s| !s.is_empty()),
        "capped": telemetry::capped(b, machine.environment.as_ref()).map(|c| c.words()),
        "unsteady": b.unsteady,
        "remarks": Some(remarks(b).join("; ")).filter(|s| !s.is_empty()),
        "run": earlier_run(b, machine),
        "telemetry": b.telemetry.as_ref().map(lines),
    });
    if let Some(facts) = facts.as_object_mut() {
        facts.retain(|_, value| !value.is_null());
    }
    facts
}

/// Its place in a roofline: FLOP per byte, of the link where bytes cross it, and FLOP/s.
fn roof(series: &Series, b: &Benchmark) -> Option<[f64; 2]> {
    let sound = |value: &f64| value.is_normal() && *value > 0.0;
    let bytes = match series.crosses_link() {
        true => b.cost.link_bytes.map(LinkBytes::sum),
        false => b.cost.bytes,
    };
    let flop = b.cost.flop.filter(sound)?;
    let place = [flop / bytes.filter(sound)?, b.rate(flop)];
    (series.measures_work() && place.iter().all(sound)).then(|| place.map(short))
}

/// The time of the best CPU code by size, with its name.
fn best(group: &Group) -> Vec<Value> {
    let (curve, names) = best_cpu(group);
    let points = curve.points().iter().zip(names);
    points
        .map(|(at, (_, name))| {
            json!([
                at.size,
                short(at.median),
                short(at.low),
                short(at.high),
                name
            ])
        })
        .collect()
}

fn answer(answer: &Answered, series: Option<usize>) -> Value {
    let f = answer.found;
    let change = f.crossing.for_good();
    let speedup = answer.speedup.iter().map(|at| {
        json!([
            at.size,
            short(at.ratio),
            short(at.low),
            short(at.high),
            at.processes
        ])
    });
    let dots = f
        .processes
        .iter()
        .flatten()
        .filter(|duel| duel.size > 0)
        .map(|duel| (duel.size, duel.cpu_ns / duel.gpu_ns));
    json!({
        "question": f.question.name(),
        "series": series,
        "machine": f.gpu_machine,
        "from": answer_in_words::size(f),
        "size": change.map(|c| c.size),
        "low": change.map(|c| c.low),
        "high": change.map(|c| c.high),
        "cause": answer.cause(),
        "evidence": format!("{}#{}", file(&f.group), answer.anchor()),
        "speedup": speedup.collect::<Vec<_>>(),
        "dots": dots.filter(|(_, ratio)| ratio.is_normal() && *ratio > 0.0).map(|(size, ratio)| json!([size, short(ratio)])).collect::<Vec<_>>(),
    })
}

/// Values one after the other, each with how often it stands there: most of what NVML says stays
/// the same from one reading to the next.
fn runs<T: PartialEq + serde::Serialize>(values: &[T]) -> Vec<Value> {
    let same = values.chunk_by(|a, b| a == b);
    same.flat_map(|run| [json!(run[0]), json!(run.len())])
        .collect()
}

/// The lines of a telemetry in the order in which the script draws them, null for one that says
/// nothing, and what happened at each time. Times are those since the reading before.
fn lines(seen: &Telemetry) -> Value {
    let changes = seen.memory_clock_mhz.windows(2).any(|w| w[0] != w[1]);
    let watts = seen.power_w.iter().map(|w| w.map(f64::round));
    let before = std::iter::once(&0).chain(&seen.time_ms);
    let steps: Vec<i64> = (seen.time_ms.iter().zip(before))
        .map(|(at, before)| i64::from(*at) - i64::from(*before))
        .collect();
    let at = |events: &[TelemetryEvent]| {
        let what: Vec<String> = events.iter().map(telemetry::words).collect();
        json!({ "ms": events[0].time_ms, "what": what })
    };
    json!({
        "time": runs(&steps),
        "lines": [
            runs(&seen.sm_clock_mhz),
            changes.then(|| runs(&seen.memory_clock_mhz)),
            runs(&watts.collect::<Vec<_>>()),
            runs(&seen.temperature_c),
            runs(&seen.utilisation_percent),
        ],
        "events": seen.events.chunk_by(|a, b| a.time_ms == b.time_ms).map(at).collect::<Vec<_>>(),
    })
}
