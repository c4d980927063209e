//! `summary.json`: the report as data. Its form is `docs/summary.schema.json`.

use serde::Serialize;

use std::collections::BTreeMap;

use crate::analysis::crossover::pairs::Found;
use crate::analysis::findings::finding::Finding;
use crate::analysis::limits::Share;
use crate::analysis::reuse::Reuse;
use crate::analysis::{limits, telemetry};
use crate::model::environment::Environment;
use crate::model::record::{BandwidthCurve, Ceiling};
use crate::model::role::{Data, Role};
use crate::model::topic::Topic;
use crate::report::assemble::Assembled;
use crate::results::machine::{Machine, NOT_REACHED};
use crate::results::problem::Problem;

/// Version of the form. A field may be added without raising it; none changes its meaning.
pub(super) const SCHEMA: u32 = 2;

/// The whole file.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    schema: u32,
    machine: String,
    /// Committed results of another machine, for want of any measured here.
    other: bool,
    environment: Option<Environment>,
    run: Option<String>,
    started: Option<String>,
    ceilings: BTreeMap<String, Ceiling>,
    bandwidth: BTreeMap<String, BandwidthCurve>,
    /// In their order.
    groups: Vec<Topic>,
    benchmarks: Vec<Row>,
    crossovers: Vec<Crossover>,
    break_even: Vec<BreakEven>,
    findings: Vec<Finding>,
    left_out: Vec<LeftOut>,
    others: Vec<Other>,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    group: String,
    device: crate::model::id::Device,
    implementation: String,
    size: u64,
    clock: Option<&'static str>,
    role: Role,
    median_ns: f64,
    mean_ns: Option<f64>,
    ci_low_ns: Option<f64>,
    ci_high_ns: Option<f64>,
    low_ns: f64,
    high_ns: f64,
    spread: Option<f64>,
    flop: Option<f64>,
    bytes: Option<f64>,
    link_bytes: Option<f64>,
    error: Option<f64>,
    error_bound: Option<f64>,
    samples: Option<usize>,
    unsteady: Option<String>,
    throttled: Option<bool>,
    slowed: Vec<String>,
    sm_clock_mhz: Option<f64>,
    power_cap_w: Option<f64>,
    energy_j: Option<f64>,
    limit: Option<&'static str>,
    limit_share: Option<f64>,
    cached: bool,
    run: Option<String>,
}

#[derive(Debug, Serialize)]
struct Crossover {
    group: String,
    cpu: String,
    gpu: String,
    gpu_machine: Option<String>,
    question: Data,
    clock: &'static str,
    headline: bool,
    answer: &'static str,
    size: Option<f64>,
    size_low: Option<f64>,
    size_high: Option<f64>,
    measured: Option<bool>,
    range: [f64; 2],
    speedup: f64,
    speedup_size: f64,
    /// Null where one process answers, as the interval of the speedup is.
    processes: Option<usize>,
    speedup_low: Option<f64>,
    speedup_high: Option<f64>,
}

#[derive(Debug, Serialize)]
struct BreakEven {
    group: String,
    transfer: String,
    resident: String,
    rows: Vec<BreakEvenRow>,
}

#[derive(Debug, Serialize)]
struct BreakEvenRow {
    size: u64,
    /// Null where no number of operations pays.
    operations: Option<f64>,
    /// Null where no number of calls pays or the cold start is unknown.
    calls: Option<f64>,
}

#[derive(Debug, Serialize)]
struct LeftOut {
    what: String,
    reason: String,
}

#[derive(Debug, Serialize)]
struct Other {
    machine: String,
    environment: Option<Environment>,
    started: Option<String>,
    ceilings: BTreeMap<String, Ceiling>,
    bandwidth: BTreeMap<String, BandwidthCurve>,
    benchmarks: Vec<Row>,
    crossovers: Vec<Crossover>,
}

/// The summary of a report.
pub(super) fn summary(report: &Assembled) -> Summary {
    let main = &report.machine;
    Summary {
        schema: SCHEMA,
        machine: main.name.clone(),
        other: main.other,
        environment: main.environment.clone(),
        run: main.run.as_ref().map(|r| r.run.clone()),
        started: main.run.as_ref().map(|r| r.started.clone()),
        ceilings: sound(main),
        bandwidth: bandwidth(main),
        groups: report
            .group_names()
            .iter()
            .map(|name| report.topic(name))
            .collect(),
        benchmarks: rows(main),
        crossovers: crossovers(&report.found),
        break_even: report.reuse.iter().map(break_even).collect(),
        findings: report.findings.clone(),
        left_out: left_out(main),
        others: report.others.iter().map(other).collect(),
    }
}

fn other((machine, found): &(Machine, Vec<Found>)) -> Other {
    Other {
        machine: machine.name.clone(),
        environment: machine.environment.clone(),
        started: machine.run.as_ref().map(|r| r.started.clone()),
        ceilings: sound(machine),
        bandwidth: bandwidth(machine),
        benchmarks: rows(machine),
        crossovers: crossovers(found),
    }
}

/// JSON has no NaN, and a limit that is not a number is no limit.
fn sound(machine: &Machine) -> BTreeMap<String, Ceiling> {
    let limits = &machine.limits;
    let mut ceilings = limits.ceilings.clone();
    ceilings.retain(|name, _| limits.ceiling(name).is_some());
    ceilings
}

/// Likewise, without the points that are no rate.
fn bandwidth(machine: &Machine) -> BTreeMap<String, BandwidthCurve> {
    let mut curves = machine.limits.curves.clone();
    for curve in curves.values_mut() {
        let sound = |rate: f64| rate.is_finite() && rate > 0.0;
        curve.points.retain(|point| sound(point.rate));
    }
    curves
}

fn rows(machine: &Machine) -> Vec<Row> {
    let finite = |n: Option<f64>| n.filter(|n| n.is_finite());
    let mut rows = Vec::new();
    for series in machine.groups.iter().flat_map(|g| &g.series) {
        for b in &series.points {
            let share = limits::share(series, b, machine);
            rows.push(Row {
                id: b.id.clone(),
                group: b.group.clone(),
                device: b.device,
                implementation: b.implementation.clone(),
                size: b.size,
                clock: b.clock.map(|c| c.name()),
                role: b.role.clone(),
                median_ns: b.median_ns,
                mean_ns: b.mean_ns,
                ci_low_ns: b.interval_ns.map(|i| i.0),
                ci_high_ns: b.interval_ns.map(|i| i.1),
                low_ns: b.low_ns(),
                high_ns: b.high_ns(),
                spread: finite(b.spread),
                flop: finite(b.cost.flop),
                bytes: finite(b.cost.bytes),
                link_bytes: finite(b.cost.link_bytes),
                error: finite(b.verified.as_ref().map(|v| v.error)),
                error_bound: finite(b.verified.as_ref().map(|v| v.bound)),
                samples: b.samples,
                unsteady: b.unsteady.clone(),
                throttled: telemetry::throttled(b),
                slowed: telemetry::slowed(b)
                    .into_iter()
                    .map(str::to_owned)
                    .collect(),
                sm_clock_mhz: telemetry::sm_clock_mhz(b),
                power_cap_w: telemetry::capped(b, machine.environment.as_ref())
                    .and_then(|c| c.cap_w),
                energy_j: telemetry::energy_j(b),
                limit: share.and_then(|s| s.limit()),
                limit_share: finite(share.and_then(|s| s.fraction())),
                cached: share == Some(Share::Cached),
                run: b.run.clone(),
            });
        }
    }
    rows
}

fn crossovers(found: &[Found]) -> Vec<Crossover> {
    let one = |f: &Found| {
        let change = f.crossing.for_good();
        Crossover {
            group: f.group.clone(),
            cpu: f.cpu.clone(),
            gpu: f.gpu.clone(),
            gpu_machine: f.gpu_machine.clone(),
            question: f.question,
            clock: f.clock,
            headline: f.headline,
            answer: f.crossing.answer.name(),
            size: change.map(|c| c.size),
            size_low: change.map(|c| c.low),
            size_high: change.map(|c| c.high),
            measured: change.map(|c| c.measured),
            range: [f.crossing.range.0, f.crossing.range.1],
            speedup: f.speedup,
            speedup_size: f.speedup_size,
            processes: f.confirmed.map(|c| c.processes),
            speedup_low: f.confirmed.map(|c| c.speedup_interval.0),
            speedup_high: f.confirmed.map(|c| c.speedup_interval.1),
        }
    };
    found.iter().map(one).collect()
}

fn break_even(reuse: &Reuse) -> BreakEven {
    let finite = |n: f64| Some(n).filter(|n| n.is_finite());
    BreakEven {
        group: reuse.group.clone(),
        transfer: reuse.transfer.clone(),
        resident: reuse.resident.clone(),
        rows: reuse
            .rows
            .iter()
            .map(|r| BreakEvenRow {
                size: r.size,
                operations: finite(r.operations),
                calls: r.calls.and_then(finite),
            })
            .collect(),
    }
}

fn left_out(machine: &Machine) -> Vec<LeftOut> {
    let one = |what: &str, reason: &str| LeftOut {
        what: what.into(),
        reason: reason.into(),
    };
    let problems = machine.problems.iter();
    problems
        .map(|Problem { what, reason }| one(what, reason))
        .chain(machine.failed().iter().map(|f| one(&f.id, &f.error)))
        .chain(
            machine
                .not_reached()
                .into_iter()
                .map(|id| one(id, NOT_REACHED)),
        )
        .chain(machine.skipped().iter().map(|s| one(&s.id, &s.reason)))
        .collect()
}
