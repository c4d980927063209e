//! What stands beside an answer: the curve it is a point of, what limits it, how far to trust it.

use std::path::Path;

use crate::report::{Options, Report, read};
use crate::tests::answers::{confirmation, planted};
use crate::tests::fixture::Fixture;
use crate::tests::holds;
use crate::tests::lessons::near;
use crate::tests::machines::full;
use crate::tests::refreshed;
use crate::tests::telemetry::plant_capped;
use crossover_results::analysis::answer::crossover_answer::{headlines, of_runs};
use crossover_results::analysis::answer::speedup_curve::along;
use crossover_results::analysis::bottleneck::{self, Bottleneck};
use crossover_results::analysis::limits::Kind;
use crossover_results::analysis::trust::{self, Grade};
use crossover_results::model::Cost;
use crossover_results::model::id::Device;
use crossover_results::model::role::Residency;
use crossover_words::Clock;

fn report(root: &Path) -> Report {
    read(root, root, &Options::default()).unwrap()
}

fn limit(report: &Report, name: &str, size: u64) -> Option<Bottleneck> {
    let (group, row) = name.split_once('/').unwrap();
    let series = report.machine.group(group).unwrap().find(row).unwrap();
    bottleneck::of(series, series.at(size).unwrap(), &report.machine)
}

#[test]
fn a_kernel_is_limited_by_its_launch_then_by_what_it_does() {
    let dir = crate::tests::folder();
    full(dir.path(), "Example GPU");
    let report = report(dir.path());
    let kind = |name, size| limit(&report, name, size).map(|found| found.kind);
    // 1.38 µs of 1.9 µs behind a gate, 2.45 µs of 4.4 µs without one.
    for (name, planted) in [
        ("matmul/gpu/cublas", 1380.0 / 1900.0),
        ("matmul/gpu/cublas-eager", 2450.0 / 4400.0),
    ] {
        let found = limit(&report, name, 4).unwrap();
        assert_eq!(found.kind, Kind::Launch);
        assert!(
            (found.share.unwrap() / planted - 1.0).abs() < 0.01,
            "{found:?}"
        );
        assert!(
            found.words.starts_with("launches take at least "),
            "{found:?}"
        );
        assert_eq!(kind(name, 8192), Some(Kind::Compute));
    }
    assert_eq!(kind("matmul/gpu/transfer-pinned", 2048), Some(Kind::Link));
    assert_eq!(
        kind("nested_sine/gpu/fused-gated", 1 << 28),
        Some(Kind::Memory)
    );
    assert_eq!(
        kind("nested_sine/gpu/fused-gated", 1 << 22),
        Some(Kind::Cache)
    );
    // The CPU launches nothing, and a clock that measures no work has no limit.
    assert_ne!(kind("matmul/cpu/best", 4), Some(Kind::Launch));
    assert_eq!(kind("matmul/gpu/submit", 4), None);
}

#[test]
fn a_launch_takes_all_of_the_time_at_most() {
    let dir = crate::tests::folder();
    let f = full(dir.path(), "Example GPU");
    let cost = |_| Cost {
        launches: Some(1000),
        ..Cost::default()
    };
    f.curve("mine/gpu/many", Clock::Events, &[8], |_| 1e3, cost);
    let found = limit(&report(dir.path()), "mine/gpu/many", 8).unwrap();
    assert_eq!((found.kind, found.share), (Kind::Launch, Some(1.0)));
}

#[test]
fn the_curve_passes_through_what_the_processes_say() {
    let dir = crate::tests::folder();
    let mut f = Fixture::new(dir.path(), Some("Example GPU"));
    planted(&f);
    let curve = |root: &Path| {
        let report = report(root);
        let found = headlines(&report.found).next().unwrap();
        let group = report.machine.group("matmul").unwrap();
        let series = group.on(Device::Gpu).next().unwrap();
        along(found, group, series)
    };
    // The run's own process is ahead from 48 on.
    let alone = curve(dir.path());
    let at = |size: f64| *alone.iter().find(|at| at.size == size).unwrap();
    near(at(48.0).ratio, 1.0);
    assert!(at(1536.0).low < 32.0 && at(1536.0).high > 32.0);
    assert!(alone.iter().all(|at| at.processes == 1));

    let asked = confirmation(
        Residency::Queued,
        "cublas-eager",
        [-4.0, -2.0, 0.0, 2.0, 4.0],
    );
    f.confirm(asked);
    let confirmed = curve(dir.path());
    let sizes: Vec<f64> = confirmed.iter().map(|at| at.size).collect();
    // Of the run's own sizes those outside what the processes were asked about.
    assert_eq!(sizes, [8.0, 48.0, 80.0, 96.0, 112.0, 128.0, 192.0, 1536.0]);
    let crossing = confirmed[3];
    near(crossing.ratio, 1.0);
    assert_eq!(crossing.processes, 5);
    assert!((0.8..0.99).contains(&crossing.low) && (1.01..1.25).contains(&crossing.high));
    near(confirmed[7].ratio, 16.0);
}

#[test]
fn an_answer_is_trusted_by_what_it_rests_on() {
    let dir = crate::tests::folder();
    let mut f = Fixture::new(dir.path(), Some("Example GPU"));
    planted(&f);
    let grade = |interval| {
        let report = report(dir.path());
        let found = headlines(&report.found).next().unwrap();
        let machine = &report.machine;
        let trust = trust::of(found, machine, machine, &[], &of_runs(machine), interval);
        assert_eq!(trust.runs.len(), 1);
        trust.grade()
    };
    assert_eq!(grade(Some((15.0, 17.0))), Grade::Thin);
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    assert_eq!(grade(Some((15.0, 17.0))), Grade::Firm);
    // The width of the speedup's interval is no reason for doubt.
    assert_eq!(grade(Some((10.0, 26.0))), Grade::Firm);
}

#[test]
fn every_mark_of_trust_leads_to_its_evidence() {
    let (dir, root) = crate::tests::folders();
    let mut f = full(&root, "Example GPU");
    f.confirm(confirmation(Residency::Queued, "cublas-eager", [0.0; 5]));
    planted(&f);
    plant_capped(&f);
    let (page, ..) = refreshed(&root, dir.path());
    let links: Vec<&str> = (page.split("#evidence-").skip(1))
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(links.len(), 3 + 2, "{links:?}");
    for link in links {
        assert!(page.contains(&format!("id=\"evidence-{link}\"")), "{link}");
    }
    holds(
        &page,
        &[
            "Firm: 5 processes agree.",
            "Unconfirmed: measured by one process.",
            "CPU time over GPU time in each process",
            "No further processes confirmed this answer.",
        ],
    );
}
