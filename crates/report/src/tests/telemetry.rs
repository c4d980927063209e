//! The telemetry of a benchmark: what the page shows of it, and where it says nothing.

use crate::tests::fixture::{Fixture, Planted};
use crate::tests::holds;
use crate::tests::lessons::{findings, says};
use crate::tests::machines::full;
use crate::tests::refreshed;
use crossover_results::analysis::telemetry;
use crossover_results::model::{Cost, Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
use crossover_results::store::machine::MachineResults;
use crossover_words::Clock::{Events, EventsGated, Submit, Wall};

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
    let machine = MachineResults::read(&root, "here", false);
    let of = |size| {
        machine
            .group("matmul")
            .unwrap()
            .find("gpu/cublas")
            .unwrap()
            .at(size)
    };
    let held = of(4096).unwrap();
    assert_eq!(telemetry::throttled(held), Some(true));
    assert_eq!(telemetry::slowed(held)[0], "power cap");
    assert_eq!(telemetry::energy_j(held), Some(3.0));
    let free = of(2048).unwrap();
    assert_eq!(telemetry::throttled(free), Some(false));
    assert!(telemetry::slowed(free).is_empty());
    assert_eq!(telemetry::energy_j(free), None);
}

/// Telemetry of its own tells a result that ran freely from one of a device that tells nothing.
#[test]
fn what_no_driver_told_is_not_known() {
    let (_dir, root) = crate::tests::folders();
    let f = full(&root, "Example GPU");
    let sizes = [(4096, false), (8192, true)];
    for (size, throttling_unknown) in sizes {
        let id = format!("matmul/gpu/cublas/{size}");
        let mut planted = Planted::new(&id, EventsGated, 5e6);
        planted.telemetry = Some(Telemetry {
            throttling_unknown,
            events: Vec::new(),
            ..capped()
        });
        f.plant(&planted);
    }
    let machine = MachineResults::read(&root, "here", false);
    let series = machine.group("matmul").unwrap().find("gpu/cublas").unwrap();
    let said = sizes.map(|(size, _)| telemetry::throttled(series.at(size).unwrap()));
    assert_eq!(said, [Some(false), None]);
}

/// Whatever is compared carries the clock and the cap, and what ran freely does not.
#[test]
fn a_result_under_the_power_cap_carries_its_clock_wherever_it_is_compared() {
    let (dir, root) = crate::tests::folders();
    let f = full(&root, "Example GPU");
    let said = || refreshed(&root, dir.path());
    let free = said();
    assert!(!free.0.contains("W power cap") && !free.1.contains("W power cap"));
    let sizes = [64, 8192];
    for (name, clock, sizes) in [
        ("precision/gpu/f32", EventsGated, &sizes[1..]),
        ("precision/gpu/fp16", EventsGated, &sizes[1..]),
        // The headline answer, at its smallest size that matters and at its largest.
        ("matmul/gpu/cublas-eager", Events, &sizes),
    ] {
        for size in sizes {
            let id = format!("{name}/{size}");
            let flop = 2.0 * (*size as f64).powi(3);
            let mut planted = Planted::new(&id, clock, 4.4e3 + flop / 50.5e3);
            planted.telemetry = Some(capped());
            f.plant(&planted);
        }
    }
    let (page, _, record) = said();
    let clock = "(median SM clock 1,485 MHz under the 700 W power cap)";
    assert!(page.contains(clock), "the evidence");
    assert!(page.contains("▾ 1,485 MHz"));
    let findings = record["findings"].as_array().unwrap();
    let text = |id: &str| {
        let found = findings.iter().find(|finding| finding["id"] == id);
        found.unwrap()["text"].as_str().unwrap().to_owned()
    };
    let precision = text("precision.formats");
    let both = " Under the 700 W power cap, at these median SM clocks: gpu/f32 (1,485 MHz) and \
                gpu/fp16 (1,485 MHz).";
    assert!(precision.ends_with(both), "{precision}");
    let winner = text("winner.matmul.queued");
    holds(&winner, &["gpu/cublas-eager at N = 8,192 (1,485 MHz)"]);
    let free = text("fusing.traffic");
    assert!(!free.contains("power cap"), "{free}");
}

#[test]
fn many_results_under_the_cap_are_told_by_their_range() {
    let all = findings(|f| {
        for (name, clock, mhz) in [("spin-wall", Wall, 1965), ("spin-events", Events, 1395)] {
            for size in [1_000u32, 10_000, 100_000, 1_000_000] {
                let id = format!("timing_methods/gpu/{name}/{size}");
                let mut planted = Planted::new(&id, clock, 1.2 * f64::from(size));
                let mut seen = capped();
                seen.sm_clock_mhz = vec![Some(mhz); 6];
                planted.telemetry = Some(seen);
                f.plant(&planted);
            }
        }
    });
    let words = "Of these results, 8 ran under the 700 W power cap, at median SM clocks from \
                 1,395 MHz to 1,965 MHz.";
    let finding = says(&all, "timing.timing_methods", &[words]);
    assert_eq!(finding.figures["power_capped"], 8.0);
}

#[test]
fn energy_is_that_of_the_iterations_or_none() {
    let dir = crate::tests::folder();
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
    let machine = MachineResults::read(dir.path(), "here", false);
    let of = |name: &str, size| {
        let series = machine.group("matmul").unwrap().find(name).unwrap();
        telemetry::energy_j(series.at(size).unwrap())
    };
    assert_eq!(of("gpu/cublas", 1), Some(3.0));
    assert_eq!(of("gpu/cublas", 2), None);
    assert_eq!(of("gpu/submit", 1), None);
}
