//! The telemetry of a benchmark: what the page shows of it, and where it says nothing.

use crate::tests::fixture::{Fixture, Planted};
use crate::tests::holds;
use crate::tests::machines::full;
use crate::tests::refreshed;
use crossover_results::model::{Cost, Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
use crossover_words::Clock::EventsGated;

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
    let (dir, root) = crate::tests::folders();
    let f = full(&root, "Example GPU");
    let page = || {
        let (html, _, record) = refreshed(&root, dir.path());
        (html, record)
    };
    let (html, _) = page();
    assert!(!html.contains("class=\"slowed\""));
    assert!(!html.contains(">energy<"), "no column without a figure");
    plant_capped(&f);
    let (html, _) = page();
    holds(
        &html,
        &[
            "power cap, clock fell: median SM clock",
            "held down (1 of",
            "at 200 ms throttling set in: power cap; at 200 ms SM clock fell from 1980 to 1500 MHz",
            "3.00 J, 45.8 GFLOP/J",
            "pool peak 32 MiB",
        ],
    );
}
