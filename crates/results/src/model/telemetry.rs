//! The readings of NVML during a benchmark.

use serde::{Deserialize, Serialize};

use crate::model::environment::PcieLink;

/// The readings of NVML during warm-up and samples of a GPU benchmark, ten per second, thinned to at
/// most [`Telemetry::MOST_POINTS`].
///
/// A series has an entry for each of `time_ms`, or is empty where the device does not report it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Telemetry {
    /// Milliseconds since the warm-up began, or since a routine began to record its own, ascending.
    pub time_ms: Vec<u32>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Vec<Option<u32>>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Vec<Option<u32>>,
    /// Share of NVML's own last sample period (up to a second) in which a kernel ran, percent.
    pub utilisation_percent: Vec<Option<u32>>,
    /// Power draw, watts; newer devices report the average of the last second.
    pub power_w: Vec<Option<f64>>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Vec<Option<u32>>,
    /// The PCIe link at the last reading, under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<PcieLink>,
    /// Throttling and falls of the clock that began or ended meanwhile, by time. Thinning loses
    /// none, and at most [`Telemetry::MOST_EVENTS`] are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<TelemetryEvent>,
    /// Whether no reading had the reasons of throttling: then missing events mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub throttling_unknown: bool,
    /// Energy that the device took; `None` where it has no counter, and where the samples took less
    /// time than the counter resolves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
}

impl Telemetry {
    /// Upper bound on its points, since it is committed with the results.
    pub const MOST_POINTS: usize = 60;
    /// Upper bound on its events.
    pub const MOST_EVENTS: usize = 16;
}

/// Something that began or ended while a benchmark ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetryEvent {
    /// Milliseconds since the warm-up began.
    pub time_ms: u32,
    /// Kind of the event.
    pub kind: TelemetryEventKind,
    /// The reasons of the throttling, or the clocks before and after.
    pub detail: String,
}

/// Kinds of [`TelemetryEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TelemetryEventKind {
    /// The device began to slow its clock, or the reasons for it changed.
    ThrottlingSetIn,
    /// The device no longer slows its clock.
    ThrottlingEnded,
    /// The SM clock fell by more than 3 % below the highest seen before.
    ClockFell,
    /// The SM clock came back after such a fall.
    ClockRecovered,
}

/// Energy over the samples of a benchmark and the gaps between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Joules by the device's own counter.
    pub joules: f64,
    /// Seconds between the first and the last reading of the counter.
    pub seconds: f64,
    /// Iterations that ran between these readings.
    pub iterations: u64,
}

impl Energy {
    /// Joules per iteration.
    pub fn per_iteration(&self) -> f64 {
        self.joules / self.iterations as f64
    }
}

/// State of the GPU around one benchmark, from NVML.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// SM clock right after the last sample, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Throttle reasons that slow the clock (idle and application settings left out); `None` where the
    /// driver does not tell.
    pub throttle_reasons: Option<Vec<String>>,
}
