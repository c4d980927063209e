//! `summary.json`: the report as data. Its form is `docs/summary.schema.json`.

use serde::Serialize;

use std::collections::BTreeMap;

use crate::assemble::Assembled;
use crossover_results::analysis::answer::crossover_answer::CrossoverAnswer;
#[cfg(feature = "schema")]
use crossover_results::analysis::answer::row::clocks;
use crossover_results::analysis::answer::row::{Crossover, crossovers};
use crossover_results::analysis::findings::finding::Finding;
use crossover_results::analysis::limits::Share;
use crossover_results::analysis::reuse::Reuse;
use crossover_results::analysis::{limits, telemetry};
use crossover_results::model::LinkBytes;
use crossover_results::model::environment::Environment;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::record::{BandwidthCurve, Ceiling};
use crossover_results::model::role::Role;
use crossover_results::store::machine::{MachineResults, NOT_REACHED};
use crossover_results::store::unreadable::Unreadable;

/// Version of the form. A field may be added without raising it; none changes its meaning.
pub(super) const SCHEMA: u32 = 1;

/// One report as data. Times are nanoseconds; null is what is not known.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "crossover summary.json"))]
pub(super) struct Summary {
    /// Version of this form.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    schema: u32,
    machine: String,
    /// These are another machine's committed results, for want of any measured here.
    other: bool,
    environment: Option<Environment>,
    run: Option<String>,
    started: Option<String>,
    ceilings: BTreeMap<String, Ceiling>,
    /// Bandwidth over the working set by name: gpu_read, gpu_copy, cpu_read, cpu_copy.
    bandwidth: BTreeMap<String, BandwidthCurve>,
    /// The groups in their order, as each describes itself.
    groups: Vec<GroupInfo>,
    benchmarks: Vec<Row>,
    crossovers: Vec<Crossover>,
    break_even: Vec<BreakEven>,
    findings: Vec<Finding>,
    left_out: Vec<LeftOut>,
    others: Vec<Other>,
}

/// One benchmark.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row {
    /// `<group>/<cpu|gpu>/<implementation>/<size>`
    id: String,
    group: String,
    device: crossover_results::model::id::Device,
    implementation: String,
    size: u64,
    /// What the times mean; null for a result without a sidecar.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = clocks([None]))))]
    clock: Option<&'static str>,
    role: Role,
    /// Median time of one iteration.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    median_ns: f64,
    mean_ns: Option<f64>,
    /// Confidence interval (95 %) of the median.
    ci_low_ns: Option<f64>,
    ci_high_ns: Option<f64>,
    /// The median of another process lies between this and high_ns with a probability of 95 %;
    /// ci_low_ns and ci_high_ns hold that of this process.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    low_ns: f64,
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    high_ns: f64,
    /// 1.4826 times the median absolute deviation of the samples, over the median.
    spread: Option<f64>,
    /// Floating-point operations of one iteration.
    flop: Option<f64>,
    /// Fewest bytes one iteration must move through memory.
    bytes: Option<f64>,
    /// Bytes that cross the link between host and device.
    link_bytes: Option<LinkBytes>,
    /// Measured error against float64.
    error: Option<f64>,
    /// Largest error accepted.
    error_bound: Option<f64>,
    samples: Option<usize>,
    /// What is unsteady about the samples; such a result decides nothing.
    unsteady: Option<String>,
    /// Whether the GPU's clock was held down; null where it is not known.
    throttled: Option<bool>,
    /// What held the GPU's clock down while it was sampled: the reasons of throttling, and whether
    /// the clock fell.
    slowed: Vec<String>,
    /// Median of the SM clock while it was warmed up and sampled, MHz.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    sm_clock_mhz: Option<f64>,
    /// The power limit in force, watts, of a result that ran under it; null where the power cap
    /// held no clock down, or the limit is unknown.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    power_cap_w: Option<f64>,
    /// Energy of one iteration by the device's own counter, joules; null where it has none or
    /// something beside the iterations ran.
    #[cfg_attr(feature = "schema", schemars(extend("exclusiveMinimum" = 0)))]
    energy_j: Option<f64>,
    /// The limit that binds.
    limit: Option<&'static str>,
    /// Achieved over that limit, as the run of the benchmark measured it, or over the peak of the
    /// number format at the clock that was seen: at most 1, and null where it is above the limit.
    limit_share: Option<f64>,
    /// True where the GPU's L2 cache serves part of the data, so that no limit of them is known and
    /// limit and limit_share are null.
    cached: bool,
    /// Name of the run it comes from.
    run: Option<String>,
}

/// How often data must be used on the device to pay for moving them there.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BreakEven {
    group: String,
    transfer: String,
    resident: String,
    rows: Vec<BreakEvenRow>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BreakEvenRow {
    size: u64,
    /// Operations on data moved once that pay for moving it; null where none do.
    operations: Option<f64>,
    /// Calls that pay for the cold start; null where none do or it is unknown.
    calls: Option<f64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LeftOut {
    what: String,
    reason: String,
}

/// Another machine.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Other {
    machine: String,
    environment: Option<Environment>,
    started: Option<String>,
    ceilings: BTreeMap<String, Ceiling>,
    /// Bandwidth over the working set by name: gpu_read, gpu_copy, cpu_read, cpu_copy.
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
            .groups
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

fn other((machine, found): &(MachineResults, Vec<CrossoverAnswer>)) -> Other {
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
fn sound(machine: &MachineResults) -> BTreeMap<String, Ceiling> {
    let limits = &machine.limits;
    let mut ceilings = limits.ceilings.clone();
    ceilings.retain(|name, _| limits.ceiling(name).is_some());
    ceilings
}

/// Likewise, without the points that are no rate.
fn bandwidth(machine: &MachineResults) -> BTreeMap<String, BandwidthCurve> {
    let mut curves = machine.limits.curves.clone();
    for curve in curves.values_mut() {
        let sound = |rate: f64| rate.is_finite() && rate > 0.0;
        curve.points.retain(|point| sound(point.rate));
    }
    curves
}

fn rows(machine: &MachineResults) -> Vec<Row> {
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
                link_bytes: b.cost.link_bytes.filter(|bytes| bytes.sum().is_finite()),
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

fn left_out(machine: &MachineResults) -> Vec<LeftOut> {
    let one = |what: &str, reason: &str| LeftOut {
        what: what.into(),
        reason: reason.into(),
    };
    let problems = machine.problems.iter();
    problems
        .map(|Unreadable { what, reason }| one(what, reason))
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
