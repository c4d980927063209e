use serde::{Deserialize, Serialize};

use crate::device::environment::PcieLink;

/// What NVML saw while a GPU benchmark was warmed up and sampled, at ten looks a second,
/// thinned to at most [`Strip::MOST_POINTS`].
///
/// A series has an entry for each of `time_ms`, or is empty where the device does not report
/// it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Strip {
    /// Milliseconds since the warm-up began, ascending.
    pub time_ms: Vec<u32>,
    /// SM clock, MHz.
    pub sm_clock_mhz: Vec<Option<u32>>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Vec<Option<u32>>,
    /// Share of the last sample period of NVML's own (up to a second) in which a kernel ran,
    /// percent.
    pub utilisation_percent: Vec<Option<u32>>,
    /// Power draw, watts; newer devices report the average of the last second.
    pub power_w: Vec<Option<f64>>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Vec<Option<u32>>,
    /// The link at the last look, under load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie: Option<PcieLink>,
    /// What set in or ended meanwhile, by time; none is lost to the thinning, and at most
    /// [`Strip::MOST_EVENTS`] are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<StripEvent>,
    /// Energy the device took; `None` where it has no counter, and where the samples were
    /// over before the counter could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
}

impl Strip {
    /// Points a strip holds at most: it is committed with the results.
    pub const MOST_POINTS: usize = 60;
    /// Events a strip holds at most.
    pub const MOST_EVENTS: usize = 16;
}

/// Something that set in or ended while a benchmark ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StripEvent {
    /// Milliseconds since the warm-up began.
    pub time_ms: u32,
    /// What happened.
    pub kind: StripEventKind,
    /// The reasons of the throttling, or the clocks before and after.
    pub detail: String,
}

/// Kinds of [`StripEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StripEventKind {
    /// The device began to slow its clock, or the reasons for it changed.
    ThrottlingSetIn,
    /// It no longer does.
    ThrottlingEnded,
    /// The SM clock fell by more than 3 % below the highest seen before.
    ClockFell,
    /// It came back.
    ClockRecovered,
}

/// Energy over the samples of a benchmark, that of the gaps between them included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Joules by the device's own counter.
    pub joules: f64,
    /// Seconds between the two readings of the counter.
    pub seconds: f64,
    /// Iterations between them.
    pub iterations: u64,
}

impl Energy {
    /// Joules of one iteration.
    pub fn per_iteration(&self) -> f64 {
        self.joules / self.iterations as f64
    }
}
