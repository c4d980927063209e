//! The telemetry of a benchmark: what the page shows of it, and where it says nothing.

use std::fs;

use serde_json::Value;

use crate::analysis::telemetry;
use crate::model::{Cost, Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
use crate::report::assemble::Options;
use crate::report::tests::fixture::{Fixture, Planted, full};
use crate::report::write;
use crate::results::machine::Machine;
use crate::timing::Clock::{EventsGated, Submit};

/// A telemetry of half a second in which the clock falls under the power cap.
pub(crate) fn capped() -> Telemetry {
    let event = |time_ms, kind, detail: &str| TelemetryEvent {
        time_ms,
        kind,
        detail: detail.into(),
    };
    Telemetry {
        time_ms: vec![0, 100, 200, 300, 400, 500],
        sm_clock_mhz: [1980, 1980, 1500, 1455, 1470, 1470].map(Some).into(),
        memory_clock_mhz: vec![Some(3201); 6],
        power_w: [210.0, 540.5, 690.2, 701.0, 699.9, 700.3].map(Some).into(),
        temperature_c: vec![Some(41), Some(45), None, Some(52), Some(54), Some(55)],
        utilisation_percent: vec![Some(100); 6],
        events: vec![
            event(200, TelemetryEventKind::ThrottlingSetIn, "power cap"),
            event(200, TelemetryEventKind::ClockFell, "from 1980 to 1500 MHz"),
        ],
        energy: Some(Energy {
            joules: 300.0,
            seconds: 0.5,
            iterations: 100,
        }),
        ..Telemetry::default()
    }
}

/// A product of 5 ms that was held down, beside the curves of a whole machine.
pub(crate) fn plant_capped(f: &Fixture) {
    let cost = Cost {
        flop: Some(2.0 * 4096f64.powi(3)),
        bytes: Some(12.0 * 4096f64.powi(2)),
        ..Cost::default()
    };
    let mut planted = Planted::new("matmul/gpu/cublas/4096", EventsGated, 5e6).cost(cost);
    planted.telemetry = Some(capped());
    planted.extra = [("pool_peak_bytes".into(), f64::from(32 << 20))].into();
    f.plant(&planted);
}

#[test]
fn the_page_marks_what_was_held_down_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    let f = full(&root, "Example GPU");
    let page = || {
        let written = write::refresh(&root, dir.path(), &Options::default()).unwrap();
        let summary: Value =
            serde_json::from_str(&fs::read_to_string(written.summary()).unwrap()).unwrap();
        (fs::read_to_string(written.page).unwrap(), summary)
    };
    let (html, _) = page();
    assert!(!html.contains("class=\"slowed\""));
    assert!(!html.contains(">energy<"), "no column without a figure");
    plant_capped(&f);
    let (html, summary) = page();
    for text in [
        "▾ power cap, clock fell",
        "in 1 of",
        "at 200 ms throttling set in: power cap; at 200 ms SM clock fell from 1980 to 1500 MHz",
        "3.00 J, 45.8 GFLOP/J",
        "pool peak 32 MiB",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let rows = summary["benchmarks"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|r| r["id"] == id).unwrap();
    let held = row("matmul/gpu/cublas/4096");
    assert_eq!(held["throttled"], true);
    assert_eq!(held["slowed"][0], "power cap");
    assert_eq!(held["energy_j"], 3.0);
    let free = row("matmul/gpu/cublas/2048");
    assert_eq!(free["throttled"], false);
    assert_eq!(free["slowed"].as_array().unwrap().len(), 0);
    assert_eq!(free["energy_j"], Value::Null);
}

#[test]
fn energy_is_that_of_the_iterations_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let f = Fixture::new(dir.path(), Some("Example GPU"));
    let plant = |id: &'static str, clock, ns: f64| {
        let mut planted = Planted::new(id, clock, ns);
        planted.telemetry = Some(capped());
        f.plant(&planted);
    };
    plant("matmul/gpu/cublas/1", EventsGated, 4.9e6);
    // A launch before each gate is in the joules, but not among the iterations.
    plant("matmul/gpu/cublas/2", EventsGated, 2.5e6);
    plant("matmul/gpu/submit/1", Submit, 4.9e6);
    let machine = Machine::read(dir.path(), "here", false);
    let of = |name: &str, size| {
        let series = machine.group("matmul").unwrap().find(name).unwrap();
        telemetry::energy_j(series.at(size).unwrap())
    };
    assert_eq!(of("gpu/cublas", 1), Some(3.0));
    assert_eq!(of("gpu/cublas", 2), None);
    assert_eq!(of("gpu/submit", 1), None);
}
