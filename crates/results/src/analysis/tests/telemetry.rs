//! Clocks, throttling and energy while benchmarks ran.

use super::{Fixture, check_with, machine};
use crate::analysis::telemetry;
use crate::model::{Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
use crossover_words::Clock::{Events, EventsGated, Submit, Wall};

/// A telemetry of half a second in which the clock falls under the power cap.
fn capped() -> Telemetry {
    Telemetry {
        time_ms: vec![0, 100, 200, 300, 400, 500],
        sm_clock_mhz: [1980, 1980, 1500, 1455, 1470, 1470].map(Some).into(),
        utilisation_percent: vec![Some(100); 6],
        events: vec![TelemetryEvent {
            time_ms: 200,
            kind: TelemetryEventKind::ThrottlingSetIn,
            detail: "power cap".into(),
        }],
        energy: Some(Energy {
            joules: 300.0,
            seconds: 0.5,
            iterations: 100,
        }),
        ..Telemetry::default()
    }
}

/// Telemetry of its own tells a result that ran freely from one of a device that tells nothing.
#[test]
fn throttling_that_no_driver_reports_is_unknown() {
    let sizes = [(4096, false), (8192, true)];
    let (machine, _) = machine(|f| {
        for (size, throttling_unknown) in sizes {
            let id = format!("matmul/gpu/cublas/{size}");
            let mut planted = f.benchmark(&id, EventsGated, 5e6);
            planted.telemetry = Some(Telemetry {
                throttling_unknown,
                events: Vec::new(),
                ..capped()
            });
            f.plant(planted);
        }
    });
    let series = machine.group("matmul").unwrap().find("gpu/cublas").unwrap();
    let found = sizes.map(|(size, _)| telemetry::throttled(series.at(size).unwrap()));
    assert_eq!(found, [Some(false), None]);
}

#[test]
fn many_results_under_the_cap_are_told_by_their_range() {
    let plant = |f: &mut Fixture| {
        for (name, clock, mhz) in [("spin-wall", Wall, 1965), ("spin-events", Events, 1395)] {
            for size in [1_000u32, 10_000, 100_000, 1_000_000] {
                let id = format!("timing_methods/gpu/{name}/{size}");
                let mut planted = f.benchmark(&id, clock, 1.2 * f64::from(size));
                let mut seen = capped();
                seen.sm_clock_mhz = vec![Some(mhz); 6];
                planted.telemetry = Some(seen);
                f.plant(planted);
            }
        }
    };
    let words = "Of these results, 8 ran under the 700 W power cap, at median SM clocks from \
                 1,395 MHz to 1,965 MHz.";
    check_with(plant, &format!("says timing.timing_methods: {words}"));
}

#[test]
fn energy_is_that_of_the_iterations_or_none() {
    let plant = |f: &Fixture, id: &'static str, clock, ns: f64| {
        let mut planted = f.benchmark(id, clock, ns);
        planted.telemetry = Some(capped());
        f.plant(planted);
    };
    let (machine, _) = machine(|f| {
        plant(f, "matmul/gpu/cublas/1", EventsGated, 4.9e6);
        // A launch before each gate is in the joules, but not among the iterations.
        plant(f, "matmul/gpu/cublas/2", EventsGated, 2.5e6);
        plant(f, "matmul/gpu/submit/1", Submit, 4.9e6);
    });
    let of = |name: &str, size| {
        let series = machine.group("matmul").unwrap().find(name).unwrap();
        telemetry::energy_j(series.at(size).unwrap())
    };
    assert_eq!(of("gpu/cublas", 1), Some(3.0));
    assert_eq!(of("gpu/cublas", 2), None);
    assert_eq!(of("gpu/submit", 1), None);
}
