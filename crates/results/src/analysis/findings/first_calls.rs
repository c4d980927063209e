//! The first calls of a new process: the cost of the first and its parts, after how many it is warm,
//! and after how many its preparations (compiling, capturing and instantiating a graph) have paid off.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::analysis::reuse::{First, Start, phase, phase_of, start, words};
use crate::model::role::{Launches, Measures, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crate::store::machine_results::MachineResults;
use crossover_words::Clock::{self, Submit, Wall};
use crossover_words::units;

/// Share of a phase from which on the sentence names it.
const NAMED: f64 = 0.01;

pub(super) fn costs(context: &Context) -> Vec<Finding> {
    let kernel = one(context, First::Kernel, "cold_start.kernel", "kernel");
    let product = one(
        context,
        First::Product,
        "cold_start.product",
        "cuBLAS product",
    );
    [kernel, product].into_iter().flatten().collect()
}

fn one(context: &Context, first: First, id: &str, what: &str) -> Option<Finding> {
    let start = start(context.machine, first)?;
    let (total, warm) = (start.total_ns(), start.warm?);
    let named = start.phases.iter().filter(|b| b.median_ns >= NAMED * total);
    let named = named.map(|b| format!("{} {}", words(b), units::percent(b.median_ns / total)));
    let cubin = cubin(context.machine, &start);
    let spared = cubin.map_or(String::new(), |(cubin, compiling)| {
        format!(
            "; a CUBIN compiled beforehand loads in {} instead of {}",
            units::time(cubin.median_ns),
            units::time(compiling)
        )
    });
    let text = format!(
        "The first {what} of a new process takes {}, {} as long as a warm one ({}): {}{spared}.",
        units::time(total),
        units::factor(total / warm.median_ns),
        units::time(warm.median_ns),
        named.collect::<Vec<String>>().join(", "),
    );
    let cubin = cubin.map(|(cubin, _)| cubin);
    let rests = start.phases.into_iter().chain([warm]).chain(cubin);
    Some(Finding::new(&warm.group, id, text).rests_on(rests))
}

/// Loading what was compiled beforehand, and how long compiling takes, ns.
fn cubin<'a>(machine: &'a MachineResults, start: &Start) -> Option<(&'a Benchmark, f64)> {
    let takes = |phase| {
        let mut phases = start.phases.iter();
        Some(phases.find(|b| phase_of(b) == Some(phase))?.median_ns)
    };
    let compiling = takes(Phase::NvrtcCompile)? + takes(Phase::PtxJit)?;
    Some((phase(machine, Phase::CubinLoad)?, compiling))
}

/// A call is warm if it and those after it take at most this many times as long as the last.
const WARM: f64 = 1.1;

pub(super) fn calls(_: &Context, group: &Group) -> Option<Finding> {
    let (mut warm, mut rows) = (Vec::new(), Vec::new());
    for series in each_call(group, Wall).filter(|s| s.points.len() > 1) {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let is_warm = |b: &&Benchmark| b.median_ns <= WARM * last.median_ns;
        let from = series.points.iter().rev().take_while(is_warm).last()?;
        let what = series.role.method.as_deref();
        let what = what.unwrap_or(&series.implementation);
        let submitted = each_call(group, Submit).find(|s| s.role.method == series.role.method);
        let host = |call: &Benchmark| {
            let part = submitted.and_then(|s| s.at(call.size));
            part.map_or(String::new(), |b| units::time(b.median_ns))
        };
        let (cold, late) = (units::time(first.median_ns), units::time(last.median_ns));
        let from = format!("call {}", from.size);
        rows.push(vec![
            sentence(what),
            cold,
            host(first),
            late,
            host(last),
            from,
        ]);
        warm.push(series);
    }
    if rows.is_empty() {
        return None;
    }
    let caption =
        "The calls of a new process: until the device is done, and the host's part of it.";
    let head = "work | first | of it the host | last | of it the host | warm from";
    let id = "warming_up.calls";
    let finding = Finding::table(&group.name, id, caption.to_owned(), head, rows);
    Some(finding.rests_on(warm.into_iter().flat_map(|s| &s.points)))
}

pub(super) fn prepared(_: &Context, group: &Group) -> Option<Finding> {
    use Phase::{GraphCapture, GraphInstantiate, KernelCompile};
    let warm = |launches| {
        let is_warm = |s: &&Series| s.role.launches == Some(launches) && s.role.library.is_none();
        each_call(group, Wall).find(is_warm)?.points.last()
    };
    let once = |phase| {
        let is_phase = |s: &&Series| s.role.measures == Measures::Starts(phase);
        gpu(group, Wall).find(is_phase)?.points.last()
    };
    let eager = warm(Launches::OneByOne)?;
    let graph = (Launches::Graph, vec![GraphCapture, GraphInstantiate]);
    let fused = (Launches::Fused, vec![KernelCompile]);
    let way = |((launches, phases), words): ((Launches, Vec<Phase>), &str)| {
        let call = warm(launches)?;
        let phases: Vec<&Benchmark> = phases.into_iter().map(once).collect::<Option<_>>()?;
        let takes: f64 = phases.iter().map(|b| b.median_ns).sum();
        let saves = eager.median_ns - call.median_ns;
        let paid = if saves > 0.0 {
            format!(
                "is paid after {} calls, each of which takes {} less",
                units::count((takes / saves).ceil()),
                units::time(saves)
            )
        } else {
            "is never paid".to_owned()
        };
        let text = format!("{words} takes {} and {paid}", units::time(takes));
        Some((text, [phases, vec![eager, call]].concat()))
    };
    let ways = [
        (graph, "capturing and instantiating a graph"),
        (fused, "compiling a fused kernel"),
    ];
    let (texts, rests): (Vec<_>, Vec<_>) = ways.into_iter().filter_map(way).unzip();
    let text = format!("{}.", sentence(&texts.join("; ")));
    let finding = Finding::new(&group.name, "warming_up.prepared", text);
    (!texts.is_empty()).then(|| finding.rests_on(rests.concat()))
}

fn each_call(group: &Group, clock: Clock) -> impl Iterator<Item = &Series> {
    gpu(group, clock).filter(|s| s.role.measures == Measures::Starts(Phase::EachCall))
}
