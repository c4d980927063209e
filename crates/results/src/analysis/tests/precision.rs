//! What the findings of the group `precision` say: speed, error and energy, in the planted
//! direction, and nothing without them.

use super::lessons::{findings, near, says};
use super::{Fixture, Planted};
use crate::model::{Energy, Telemetry};
use crossover_words::Clock::{Events, EventsGated};

#[test]
fn slower_is_said_and_what_is_missing_is_not() {
    let all = findings(|f| {
        for (name, ns) in [("f32", 1e6), ("fp16", 2e6)] {
            let id = format!("precision/gpu/{name}/64");
            f.row(&id, Events, ns);
        }
    });
    let formats = says(
        &all,
        "precision.formats",
        &["FP16: time 2.00 ms, speed 2× slower"],
    );
    near(formats.figures["fp16_ratio"], 0.5);
}

#[test]
fn energy_is_told_where_it_is_known() {
    let counted = |f: &Fixture, name: &str, size: u64, ns: f64, joules: f64, iterations: u64| {
        let id = format!("precision/gpu/{name}/{size}");
        let mut planted = Planted::new(&id, EventsGated, ns);
        planted.telemetry = Some(Telemetry {
            energy: Some(Energy {
                joules: joules * iterations as f64,
                seconds: 0.5,
                iterations,
            }),
            ..Telemetry::default()
        });
        f.plant(&planted);
    };
    let all = findings(|f| {
        counted(f, "f32", 4096, 5e6, 1.5, 100);
        counted(f, "fp16", 4096, 0.5e6, 0.15, 1000);
    });
    says(
        &all,
        "precision.formats",
        &["energy 1.50 J", "energy 150 mJ"],
    );
    let idle = findings(|f| {
        // Half of the time was filled by something else.
        counted(f, "f32", 8192, 25e6, 20.0, 10);
        counted(f, "fp16", 8192, 2.5e6, 1.2, 200);
    });
    let formats = says(&idle, "precision.formats", &["energy 1.20 J"]);
    assert!(!formats.text.contains("20.0 J"), "{}", formats.text);
}
