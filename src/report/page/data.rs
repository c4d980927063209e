//! What the explorer works on, as JSON inside the page.

use serde_json::{Value, json};

use crate::analysis::crossover::pairs::Found;
use crate::analysis::crossover::words;
use crate::analysis::rate::{self, Work};
use crate::analysis::{limits, telemetry};
use crate::model::id::Device;
use crate::model::telemetry::{Telemetry, TelemetryEvent};
use crate::presentation::ink::{self, Role};
use crate::report::assemble::Assembled;
use crate::report::charts;
use crate::report::page::group::{one_size, remarks};
use crate::report::page::runs::earlier_run;
use crate::results::curves::{Benchmark, Group, Series};
use crate::results::machine::Machine;

/// Safe inside a script element whatever names the files held.
pub(super) fn json(report: &Assembled) -> String {
    let groups: Vec<Value> = report
        .group_names()
        .iter()
        .filter(|name| !one_size(report, name))
        .map(|name| group(report, name))
        .collect();
    json!({ "groups": groups })
        .to_string()
        .replace('<', "\\u003c")
}

fn group(report: &Assembled, name: &str) -> Value {
    let groups: Vec<&Group> = report.groups(name).collect();
    let topic = report.topic(name);
    let work = rate::work(&groups);
    let mut all = Vec::new();
    for (at, machine) in report.machines().enumerate() {
        let Some(group) = machine.group(name) else {
            continue;
        };
        for one in &group.series {
            all.push(series(report, group, machine, at, one, work));
        }
    }
    let found = report.found.iter().filter(|f| f.group == name);
    json!({
        "name": name,
        "title": topic.title,
        "symbol": topic.symbol,
        "axis": topic.axis,
        "sizes": topic.unit,
        "compares": topic.compares,
        "unit": work.map(Work::unit),
        "series": all,
        "crossings": found.map(crossing).collect::<Vec<_>>(),
    })
}

fn series(
    report: &Assembled,
    group: &Group,
    machine: &Machine,
    at: usize,
    series: &Series,
    work: Option<Work>,
) -> Value {
    let role = Role::Shade(
        charts::family(group, series.device),
        charts::index(group, series),
    );
    let headline = report.found.iter().any(|f| {
        f.group == group.name
            && f.headline
            && match series.device {
                Device::Cpu => at == 0 && f.cpu == series.implementation,
                Device::Gpu => {
                    f.gpu == series.implementation
                        && f.clock == series.clock_name()
                        && f.gpu_machine.is_some() == (at > 0)
                }
            }
    });
    let rows: Vec<Value> = series
        .points
        .iter()
        .enumerate()
        .map(|(i, b)| {
            let amount = work.and_then(|w| w.amount(series, i));
            json!([
                b.size,
                b.median_ns,
                b.low_ns(),
                b.high_ns(),
                amount,
                facts(machine, series, b),
            ])
        })
        .collect();
    json!({
        "name": series.name(),
        "machine": (at > 0).then(|| machine.hardware()),
        "own": at == 0,
        "device": series.device,
        "class": role.class(),
        "dash": ink::dash(series.clock),
        "clock": series.clock_name(),
        "counts": series.measures_work(),
        "headline": headline,
        "rows": rows,
    })
}

/// What else is known of a benchmark; what is not is left out, to keep the page small.
fn facts(machine: &Machine, series: &Series, b: &Benchmark) -> Value {
    let mut facts = json!({
        "share": limits::share(series, b, machine).map(|s| s.words()),
        "joules": telemetry::energy_j(b),
        "error": b.verified.as_ref().map(|v| v.error).filter(|e| *e > 0.0),
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

/// The lines of a telemetry in the order in which the script draws them, null for one that says
/// nothing, and what happened at each time.
fn lines(seen: &Telemetry) -> Value {
    let changes = seen.memory_clock_mhz.windows(2).any(|w| w[0] != w[1]);
    let watts = seen.power_w.iter().map(|w| w.map(f64::round));
    let at = |events: &[TelemetryEvent]| {
        let what: Vec<String> = events.iter().map(telemetry::words).collect();
        json!({ "ms": events[0].time_ms, "what": what })
    };
    json!({
        "time": seen.time_ms,
        "lines": [
            seen.sm_clock_mhz,
            changes.then_some(&seen.memory_clock_mhz),
            watts.collect::<Vec<_>>(),
            seen.temperature_c,
            seen.utilisation_percent,
        ],
        "events": seen.events.chunk_by(|a, b| a.time_ms == b.time_ms).map(at).collect::<Vec<_>>(),
    })
}

fn crossing(f: &Found) -> Value {
    let change = f.crossing.for_good();
    json!({
        "gpu": format!("gpu/{}", f.gpu),
        "clock": f.clock,
        "label": f.gpu_label(),
        "cpu": format!("cpu/{}", f.cpu),
        "machine": f.gpu_machine,
        "question": f.question.phrase(),
        "wins": words::wins(f),
        "size": change.map(|c| c.size),
        "low": change.map(|c| c.low),
        "high": change.map(|c| c.high),
    })
}
