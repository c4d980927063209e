//! After how many calls a new process is warm, and what is prepared once.

use crate::analysis::findings::finding::{Context, Finding, gpu, sentence};
use crate::model::role::{Does, Launches, Phase};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::{Submit, Wall};
use crossover_words::units;

/// A call is as fast as the last one if it takes at most this many times as long.
const WARM: f64 = 1.1;

pub(super) fn find(_: &Context, group: &Group) -> Option<Finding> {
    let works: Vec<&Series> = calls(group, Wall).filter(|s| s.points.len() > 1).collect();
    let mut finding = Finding::new(&group.name, "warming_up.calls", String::new());
    let (mut said, mut rows) = (Vec::new(), Vec::new());
    for series in &works {
        let (Some(first), Some(last)) = (series.points.first(), series.points.last()) else {
            continue;
        };
        let cold = |b: &&Benchmark| b.median_ns > WARM * last.median_ns;
        let warm = series.points.iter().rev().take_while(|b| !cold(b)).last()?;
        let what = work(series);
        said.push(format!(
            "{what} takes {} in call {}, {} in call {}, and no more than a tenth longer than that from call {} on",
            units::time(first.median_ns),
            first.size,
            units::time(last.median_ns),
            last.size,
            warm.size,
        ));
        let host = calls(group, Submit).find(|s| {
            (&s.role.method, s.role.launches, s.role.library)
                == (
                    &series.role.method,
                    series.role.launches,
                    series.role.library,
                )
        });
        let times = |series: Option<&Series>, size: u64| {
            let time = series.and_then(|s| s.at(size)).map(|b| b.median_ns);
            time.map_or(String::new(), units::time)
        };
        let second = times(Some(series), first.size + 1);
        rows.push(vec![
            sentence(what),
            times(Some(series), first.size),
            times(host, first.size),
            second,
            times(Some(series), last.size),
            times(host, last.size),
            format!("call {}", warm.size),
        ]);
        let name = series.implementation.replace('-', "_");
        finding = finding
            .figure(&format!("{name}_first_ns"), first.median_ns)
            .figure(&format!("{name}_last_ns"), last.median_ns)
            .figure(&format!("{name}_warm_from"), warm.size as f64);
    }
    finding.text = format!("In a new process {}.", said.join("; "));
    let caption =
        "The calls of a new process: until the device is done, and the host's part of that.";
    let head = [
        "work",
        "first call",
        "of it the host",
        "second",
        "last",
        "of it the host",
        "warm from",
    ];
    let rests = works.iter().flat_map(|s| &s.points);
    (!rows.is_empty()).then(|| {
        finding
            .tabled(caption.to_owned(), &head, rows)
            .rests_on(rests)
    })
}

/// What is prepared once, and after how many calls that is paid by what a call takes less.
pub(super) fn prepared(_: &Context, group: &Group) -> Option<Finding> {
    let last = |launches| {
        let of = |s: &&Series| s.role.launches == Some(launches) && s.role.library.is_none();
        calls(group, Wall).find(of)?.points.last()
    };
    let eager = last(Launches::OneByOne)?;
    let mut finding = Finding::new(&group.name, "warming_up.prepared", String::new());
    let (mut said, mut rests) = (Vec::new(), vec![eager]);
    for (launches, phases, words, name) in [
        (
            Launches::Graph,
            &[Phase::GraphCapture, Phase::GraphInstantiate][..],
            "capturing launches and instantiating the graph",
            "graph",
        ),
        (
            Launches::Fused,
            &[Phase::KernelCompile],
            "compiling a fused kernel",
            "fused",
        ),
    ] {
        let phases = phases.iter().map(|phase| measured(group, *phase));
        let (Some(call), Some(phases)) = (last(launches), phases.collect::<Option<Vec<_>>>())
        else {
            continue;
        };
        let once: f64 = phases.iter().map(|b| b.median_ns).sum();
        let saved = eager.median_ns - call.median_ns;
        let paid = (saved > 0.0).then(|| (once / saved).ceil());
        said.push(match paid {
            Some(calls) => format!(
                "{words} takes {}, which is paid after {} calls that each take {} less",
                units::time(once),
                units::count(calls),
                units::time(saved)
            ),
            None => format!("{words} takes {}, which is never paid", units::time(once)),
        });
        finding = finding
            .figure(&format!("{name}_once_ns"), once)
            .figure(&format!("{name}_paid_after"), paid);
        rests.push(call);
        rests.extend(phases);
    }
    finding.text = format!("{}.", sentence(&said.join("; ")));
    (!said.is_empty()).then(|| finding.rests_on(rests))
}

fn calls(group: &Group, clock: crossover_words::Clock) -> impl Iterator<Item = &Series> {
    gpu(group, clock).filter(|s| s.role.does == Does::Starts(Phase::EachCall))
}

fn measured(group: &Group, phase: Phase) -> Option<&Benchmark> {
    let series = gpu(group, Wall).find(|s| s.role.does == Does::Starts(phase))?;
    series.points.last()
}

/// What is called, inside a sentence.
fn work(series: &Series) -> &str {
    series
        .role
        .method
        .as_deref()
        .unwrap_or(&series.implementation)
}
