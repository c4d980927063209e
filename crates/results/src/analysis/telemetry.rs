//! Reasons why the GPU was slow during a benchmark, and the energy of an iteration, by its telemetry.

use crate::model::environment::Environment;
use crate::model::record::{Energy, TelemetryEvent, TelemetryEventKind};
use crate::statistics::median::median;
use crate::statistics::positive;
use crate::store::curves::Benchmark;
use crossover_words::units;

/// Iterations must fill this share of the time between two readings of the energy counter. Otherwise
/// other work, such as the launch before a gate closes, and the idle device between samples would be
/// counted.
const FILLED: f64 = 0.9;

/// The reasons of throttling that are a limit of power: the driver's, and the board's own.
const POWER: [&str; 2] = ["power cap", "hardware power brake"];

/// Why the clock was low while a benchmark ran: the reasons of throttling, and whether it fell. Empty
/// if it was not, and without telemetry.
pub fn slowed(benchmark: &Benchmark) -> Vec<&str> {
    use TelemetryEventKind::{ClockFell, ThrottlingSetIn};
    let of_kind = |kind| events(benchmark).filter(move |e| e.kind == kind);
    let meanwhile = of_kind(ThrottlingSetIn).flat_map(|e| e.detail.split(", "));
    let after = benchmark.throttle_reasons.iter().flatten();
    let fell = of_kind(ClockFell).map(|_| "clock fell");
    let mut words = Vec::new();
    for word in meanwhile.chain(after.map(String::as_str)).chain(fell) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Whether there was throttling; `None` where that is not known.
pub fn throttled(benchmark: &Benchmark) -> Option<bool> {
    let after = benchmark.throttle_reasons.as_ref().map(|r| !r.is_empty());
    let told = (benchmark.telemetry.as_ref()).filter(|seen| !seen.throttling_unknown);
    let set_in = |e: &TelemetryEvent| e.kind == TelemetryEventKind::ThrottlingSetIn;
    let meanwhile = told.map(|seen| seen.events.iter().any(set_in));
    // `Some` is greater than `None`, and true greater than false.
    after.max(meanwhile)
}

/// A result of a device whose clock the power cap held down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capped {
    /// Median of the SM clock while it was sampled, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// The power limit in force, watts.
    pub cap_w: Option<f64>,
}

impl Capped {
    /// `median SM clock 1,365 MHz under the 700 W power cap`.
    pub fn words(&self) -> String {
        let cap = cap_words(self.cap_w);
        match self.sm_clock_mhz {
            Some(mhz) => format!("median SM clock {} under {cap}", units::megahertz(mhz)),
            None => format!("under {cap}"),
        }
    }
}

/// `the 700 W power cap`.
pub(crate) fn cap_words(cap_w: Option<f64>) -> String {
    cap_w.map_or("the power cap".to_owned(), |w| {
        format!("the {w:.0} W power cap")
    })
}

/// The clock and the cap of a result, where the power cap was in force at any time while it was
/// warmed up and sampled, or right after.
pub fn capped(benchmark: &Benchmark, environment: Option<&Environment>) -> Option<Capped> {
    let capped = slowed(benchmark)
        .into_iter()
        .any(|word| POWER.contains(&word));
    let limit = environment.and_then(|e| e.gpu.as_ref()?.power_limit_w);
    capped.then(|| Capped {
        sm_clock_mhz: sm_clock_mhz(benchmark),
        cap_w: limit.and_then(positive),
    })
}

/// Median of the SM clocks that were seen while kernels ran, MHz.
pub fn sm_clock_mhz(benchmark: &Benchmark) -> Option<f64> {
    let seen = benchmark.telemetry.as_ref()?;
    let idle = |at: usize| seen.utilisation_percent.get(at) == Some(&Some(0));
    let clocks = seen.sm_clock_mhz.iter().enumerate();
    let busy = clocks.filter(|(at, _)| !idle(*at));
    let known = busy.filter_map(|(_, clock)| clock.filter(|clock| *clock > 0));
    median(known.map(f64::from))
}

/// The events during a benchmark, by time.
pub fn events(benchmark: &Benchmark) -> impl Iterator<Item = &TelemetryEvent> {
    benchmark
        .telemetry
        .iter()
        .flat_map(|telemetry| &telemetry.events)
}

/// `SM clock fell from 1980 to 1740 MHz`.
pub fn words(event: &TelemetryEvent) -> String {
    let detail = &event.detail;
    match event.kind {
        TelemetryEventKind::ThrottlingSetIn => format!("throttling set in: {detail}"),
        TelemetryEventKind::ThrottlingEnded => format!("throttling ended: {detail}"),
        TelemetryEventKind::ClockFell => format!("SM clock fell {detail}"),
        TelemetryEventKind::ClockRecovered => format!("SM clock recovered: {detail}"),
    }
}

/// Joules of one iteration, where the device counts them and iterations filled the time.
pub fn energy_j(benchmark: &Benchmark) -> Option<f64> {
    positive(energy(benchmark)?.per_iteration())
}

/// Median of the power that NVML read, watts. On newer devices each reading is the average of a
/// second.
pub fn power_w(benchmark: &Benchmark) -> Option<f64> {
    let read = benchmark.telemetry.iter().flat_map(|seen| &seen.power_w);
    median(read.flatten().copied().filter(|watts| *watts > 0.0))
}

fn energy(benchmark: &Benchmark) -> Option<Energy> {
    let energy = benchmark.telemetry.as_ref()?.energy?;
    let filled = energy.iterations as f64 * benchmark.median_ns * 1e-9 / energy.seconds;
    let work = benchmark.clock.is_some_and(|clock| clock.measures_work());
    (work && filled >= FILLED).then_some(energy)
}
