//! What the strip of a benchmark says: what slowed the GPU meanwhile, and what energy an
//! iteration took.

use super::model::Benchmark;
use crate::record::{StripEvent, StripEventKind};

/// Share of the time between two readings of the energy counter that iterations must fill for
/// its joules to be theirs. What else runs then, such as the launch before a gate closes, and
/// an idle device's draw between samples would be counted as theirs.
const FILLED: f64 = 0.9;

/// What held the clock down while a benchmark ran: the reasons of throttling, and whether the
/// clock fell. Empty where nothing did, and where nobody looked.
pub fn slowed(benchmark: &Benchmark) -> Vec<&str> {
    use StripEventKind::{ClockFell, ThrottlingSetIn};
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
pub fn throttled(benchmark: &Benchmark) -> Option<bool> {
    let after = benchmark.throttle_reasons.as_ref()?;
    let meanwhile = events(benchmark).any(|e| e.kind == StripEventKind::ThrottlingSetIn);
    Some(meanwhile || !after.is_empty())
}

/// What happened while a benchmark ran, by time.
pub fn events(benchmark: &Benchmark) -> impl Iterator<Item = &StripEvent> {
    benchmark.strip.iter().flat_map(|strip| &strip.events)
}

/// `SM clock fell from 1980 to 1740 MHz`.
pub fn words(event: &StripEvent) -> String {
    let detail = &event.detail;
    match event.kind {
        StripEventKind::ThrottlingSetIn => format!("throttling set in: {detail}"),
        StripEventKind::ThrottlingEnded => format!("throttling ended: {detail}"),
        StripEventKind::ClockFell => format!("SM clock fell {detail}"),
        StripEventKind::ClockRecovered => format!("SM clock recovered: {detail}"),
    }
}

/// Joules of one iteration, where the device counts them and iterations filled the time.
pub fn energy_j(benchmark: &Benchmark) -> Option<f64> {
    let energy = benchmark.strip.as_ref()?.energy?;
    let filled = energy.iterations as f64 * benchmark.median_ns * 1e-9 / energy.seconds;
    let work = benchmark.clock.is_some_and(|clock| clock.measures_work());
    let joules = energy.per_iteration();
    (work && filled >= FILLED && joules.is_finite() && joules > 0.0).then_some(joules)
}
