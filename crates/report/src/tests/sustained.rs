//! What is said of a product under load: burst, what is held, from when on, watts and clock. In the
//! first second no watts are told, since a device may average them over that and the time before.

use crate::tests::fixture::{Fixture, Planted};
use crate::tests::lessons::{findings, near, says, silent};
use crossover_results::model::telemetry::Telemetry;
use crossover_results::model::{Cost, Format, Measures, Role};
use crossover_words::Clock::Events;

const MS: u64 = 1_000_000;

/// A time since the start, the time of a product there, watts and clock.
fn plant(f: &Fixture, name: &str, format: Format, at_ms: u64, ns: f64, seen: Option<(f64, u32)>) {
    let id = format!("load/gpu/{name}/{}", at_ms * MS);
    let mut planted = Planted::new(&id, Events, ns).cost(Cost {
        flop: Some(1.2e11),
        ..Cost::default()
    });
    planted.role = Some(Role {
        format,
        does: Measures::Sustains,
        ..Role::gpu()
    });
    if let Some((watts, mhz)) = seen {
        planted.telemetry = Some(Telemetry {
            time_ms: vec![at_ms as u32],
            sm_clock_mhz: vec![Some(mhz)],
            power_w: vec![Some(watts)],
            ..Telemetry::default()
        });
    }
    f.plant(&planted);
}

#[test]
fn burst_and_what_is_held_are_told_with_watts_and_clock() {
    let all = findings(|f| {
        let cold = Some((350.0, 1980));
        for (at, ns, seen) in [
            (100, 120e3, Some((300.0, 1980))),
            (500, 130e3, Some((650.0, 1800))),
            (2_000, 151e3, Some((695.0, 1500))),
            (20_000, 150e3, Some((699.0, 1410))),
        ] {
            plant(f, "a", Format::Fp8, at, ns, seen);
        }
        for at in [100, 20_000] {
            plant(f, "b", Format::F32, at, 2.4e6, cold);
            plant(f, "c", Format::Fp16, at, 3e5 + at as f64, None);
        }
    });
    let held = says(
        &all,
        "sustained.load",
        &[
            "held 50.0 TFLOP/s, less 0.0 %, held from n = 100,000,000, power 350 W, SM clock 1,980 MHz; FP16: \
             burst 400 TFLOP/s, held 375 TFLOP/s, less 6.2 %, held from n = 20,000,000,000; FP8: burst \
             1.00 PFLOP/s, held 800 TFLOP/s, less 20 %, held from n = 2,000,000,000, power 699 W, SM clock \
             1,410 MHz.",
            "The device may draw 700 W.",
        ],
    );
    near(held.figures["fp8_ratio"], 0.8);
    near(held.figures["fp8_power_w"], 699.0);
    near(held.figures["fp8_held_from_ns"], 2e9);
    assert_eq!(held.benchmarks.len(), 2 + 2 + 3);
    // It is no answer; formats are compared by their roles, here after the longest load.
    silent(&all, "winner");
    says(
        &all,
        "precision.formats",
        &["at n = 20,000,000,000 in lower", "speed 16× faster"],
    );
}

#[test]
fn one_time_alone_says_nothing_of_what_is_held() {
    let one = findings(|f| plant(f, "a", Format::Fp8, 100, 1e5, None));
    silent(&one, "sustained");
}
