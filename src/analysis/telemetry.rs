//! What the telemetry of a benchmark says: what slowed the GPU meanwhile, and what energy an
//! iteration took.

use crate::model::telemetry::{TelemetryEvent, TelemetryEventKind};
use crate::results::curves::Benchmark;

/// Share of the time between two readings of the energy counter that iterations must fill for
/// its joules to be theirs. What else runs then, such as the launch before a gate closes, and
/// an idle device's draw between samples would be counted as theirs.
const FILLED: f64 = 0.9;

/// What held the clock down while a benchmark ran: the reasons of throttling, and whether the
/// clock fell. Empty where nothing did, and where nobody looked.
pub(crate) fn slowed(benchmark: &Benchmark) -> Vec<&str> {
    use TelemetryEventKind::{ClockFell, ThrottlingSetIn};
    let of = |kind| events(benchmark).filter(move |e| e.kind == kind);
    let meanwhile = of(ThrottlingSetIn).flat_map(|e| e.detail.split(", "));
    let after = benchmark.throttle_reasons.iter().flatten();
    let fell = of(ClockFell).map(|_| "clock fell");
    let mut words = Vec::new();
    for word in meanwhile.chain(after.map(String::as_str)).chain(fell) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Whether throttling was seen; `None` where nobody looked.
pub(crate) fn throttled(benchmark: &Benchmark) -> Option<bool> {
    let after = benchmark.throttle_reasons.as_ref()?;
    let meanwhile = events(benchmark).any(|e| e.kind == TelemetryEventKind::ThrottlingSetIn);
    Some(meanwhile || !after.is_empty())
}

/// What happened while a benchmark ran, by time.
pub(crate) fn events(benchmark: &Benchmark) -> impl Iterator<Item = &TelemetryEvent> {
    benchmark
        .telemetry
        .iter()
        .flat_map(|telemetry| &telemetry.events)
}

/// `SM clock fell from 1980 to 1740 MHz`.
pub(crate) fn words(event: &TelemetryEvent) -> String {
    let detail = &event.detail;
    match event.kind {
        TelemetryEventKind::ThrottlingSetIn => format!("throttling set in: {detail}"),
        TelemetryEventKind::ThrottlingEnded => format!("throttling ended: {detail}"),
        TelemetryEventKind::ClockFell => format!("SM clock fell {detail}"),
        TelemetryEventKind::ClockRecovered => format!("SM clock recovered: {detail}"),
    }
}

/// Joules of one iteration, where the device counts them and iterations filled the time.
pub(crate) fn energy_j(benchmark: &Benchmark) -> Option<f64> {
    let energy = benchmark.telemetry.as_ref()?.energy?;
    let filled = energy.iterations as f64 * benchmark.median_ns * 1e-9 / energy.seconds;
    let work = benchmark.clock.is_some_and(|clock| clock.measures_work());
    let joules = energy.per_iteration();
    (work && filled >= FILLED && joules.is_finite() && joules > 0.0).then_some(joules)
}
