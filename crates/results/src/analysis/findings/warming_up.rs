//! After how many calls a new process is warm, and after how many it is paid to prepare them: to compile,
//! to capture and instantiate a graph, to choose the fastest of several ways.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::model::role::{Launches, Measures, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::{self, Submit, Wall};
use crossover_words::units;

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
    let head = [
        "work",
        "first",
        "of it the host",
        "last",
        "of it the host",
        "warm from",
    ];
    let id = "warming_up.calls";
    let finding =
        Finding::new(&group.name, id, String::new()).tabled(caption.to_owned(), &head, rows);
    Some(finding.rests_on(warm.into_iter().flat_map(|s| &s.points)))
}

pub(super) fn prepared(_: &Context, group: &Group) -> Option<Finding> {
    use Phase::{GraphCapture, GraphInstantiate, KernelCompile};
    let warm = |launches| {
        let of = |s: &&Series| s.role.launches == Some(launches) && s.role.library.is_none();
        each_call(group, Wall).find(of)?.points.last()
    };
    let once = |phase| {
        let of = |s: &&Series| s.role.does == Measures::Starts(phase);
        gpu(group, Wall).find(of)?.points.last()
    };
    let eager = warm(Launches::OneByOne)?;
    let graph = (
        &[GraphCapture, GraphInstantiate][..],
        "capturing and instantiating a graph",
    );
    let fused = (&[KernelCompile][..], "compiling a fused kernel");
    let (mut finding, mut said) = (
        Finding::new(&group.name, "warming_up.prepared", String::new()),
        Vec::new(),
    );
    for (launches, (phases, words)) in [(Launches::Graph, graph), (Launches::Fused, fused)] {
        let phases: Option<Vec<&Benchmark>> = phases.iter().map(|&phase| once(phase)).collect();
        let (Some(call), Some(phases)) = (warm(launches), phases) else {
            continue;
        };
        let takes: f64 = phases.iter().map(|b| b.median_ns).sum();
        let saves = eager.median_ns - call.median_ns;
        let paid = paid_after(takes, saves);
        let after = pays(paid, saves);
        said.push(format!("{words} takes {} and {after}", units::time(takes)));
        finding = finding.rests_on(phases.into_iter().chain([eager, call]));
    }
    finding.text = format!("{}.", sentence(&said.join("; ")));
    (!said.is_empty()).then_some(finding)
}

/// What it costs to choose the fastest of several ways, and after how many calls that is paid: of each
/// row at the largest size at which it chose.
pub(super) fn calibrated(_: &Context, group: &Group) -> Option<Finding> {
    let figure = |b: &Benchmark, key| b.extra.get(key).copied().filter(|ns: &f64| ns.is_finite());
    let chose = |series: &Series| {
        series.points.iter().rev().find_map(|b| {
            let takes = figure(b, "calibration_ns")?;
            Some((b.clone(), takes, figure(b, "calibration_saves_ns")?))
        })
    };
    let found: Vec<_> = group.series.iter().filter_map(chose).collect();
    if found.is_empty() {
        return None;
    }
    let row = |(b, takes, saves): &(Benchmark, f64, f64)| {
        let calls = paid_after(*takes, *saves).map_or("never".to_owned(), units::count);
        let times = [*takes, *saves].map(units::time);
        [b.id.clone()]
            .into_iter()
            .chain(times)
            .chain([calls])
            .collect()
    };
    let head = [
        "benchmark",
        "choosing takes",
        "a call takes less by",
        "calls until it is paid",
    ];
    let caption = "What it takes to choose the fastest of several ways, and what that saves compared with \
                   the middle one of them.";
    let id = format!("calibration.{}", group.name);
    let finding = Finding::new(&group.name, id, String::new()).tabled(
        caption.to_owned(),
        &head,
        found.iter().map(row).collect(),
    );
    Some(finding.rests_on(found.iter().map(|(b, ..)| b)))
}

/// Calls after which what takes so long once is paid; `None` where a call saves nothing.
fn paid_after(takes: f64, saves: f64) -> Option<f64> {
    Some((takes / saves).ceil()).filter(|_| saves > 0.0)
}

fn pays(paid: Option<f64>, saves: f64) -> String {
    paid.map_or("is never paid".to_owned(), |calls| {
        let (calls, saves) = (units::count(calls), units::time(saves));
        format!("is paid after {calls} calls, each of which takes {saves} less")
    })
}

fn each_call(group: &Group, clock: Clock) -> impl Iterator<Item = &Series> {
    gpu(group, clock).filter(|s| s.role.does == Measures::Starts(Phase::EachCall))
}
