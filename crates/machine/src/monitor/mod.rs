//! Telemetry: reads the state of a device while a benchmark runs on it.

mod recorder;
mod watch;

use std::time::Duration;

use crossover_results::model::environment::PcieLink;

pub use watch::Watch;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_millis(100);

/// The state of a device at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// SM clock, MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Memory clock, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Share of NVML's last sample period in which a kernel ran, percent.
    pub utilisation_percent: Option<u32>,
    /// Power draw, watts.
    pub power_w: Option<f64>,
    /// Temperature, degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The PCIe link; an idle one runs at a lower generation.
    pub pcie: Option<PcieLink>,
    /// Reasons for which the device lowers its clock; `None` if the driver does not tell.
    pub throttle_reasons: Option<Vec<&'static str>>,
    /// Whether the clock is low because the device is idle.
    pub idle: bool,
}

/// Where readings come from: NVML, or a test.
pub trait Source: Send + Sync {
    /// Reads the state of the device now.
    fn read(&self) -> Reading;
    /// Energy since the driver was loaded, joules; `None` where there is no counter.
    fn energy_j(&self) -> Option<f64>;
}
