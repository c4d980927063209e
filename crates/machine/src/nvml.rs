//! The state of a device from NVML, the driver's management library: clocks, power, temperature,
//! throttling, and other processes. Without NVML every value is absent.

use std::sync::OnceLock;

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::{Device, Nvml};

use crate::monitor::{Reading, Source};
use crossover_results::model::environment::{GpuInfo, PcieLink};
use crossover_results::model::record::DeviceState;
use crossover_timing::DeviceProperties;

/// One device as NVML sees it.
pub struct Monitor {
    device: Device<'static>,
}

/// The library, opened at the first call and kept: opening it takes milliseconds, and
/// devices borrow from it.
fn library() -> Option<&'static Nvml> {
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    NVML.get_or_init(|| Nvml::init().ok()).as_ref()
}

/// Version of the kernel driver.
pub(super) fn driver_version() -> Option<String> {
    library()?.sys_driver_version().ok()
}

impl Monitor {
    /// The device in NVML; `None` where NVML is absent or does not know it.
    pub fn open(device: &DeviceProperties) -> Option<Self> {
        let nvml = library()?;
        // The bus id comes first: CUDA and NVML number devices differently, and under MIG
        // CUDA's UUID is that of a slice.
        let device = nvml
            .device_by_pci_bus_id(device.pci_bus_id.as_str())
            .or_else(|_| nvml.device_by_uuid(device.uuid.as_str()))
            .ok()?;
        Some(Self { device })
    }

    /// SM clock and throttle reasons at this moment. Takes microseconds to
    /// milliseconds on the host and nothing on the device. Call it outside the timed window.
    pub fn state(&self) -> DeviceState {
        DeviceState {
            sm_clock_mhz: self.device.clock_info(Clock::SM).ok(),
            throttle_reasons: self
                .device
                .current_throttle_reasons()
                .map(|reasons| slowing(reasons).into_iter().map(str::to_owned).collect())
                .ok(),
        }
    }

    /// Adds limits, link, temperature and mode of the device to what CUDA says of it.
    pub(super) fn complete(&self, info: GpuInfo) -> GpuInfo {
        let device = &self.device;
        let now = self.read();
        let generation = device.max_pcie_link_gen().ok();
        let link = generation.zip(device.max_pcie_link_width().ok());
        let highest = device.max_clock_info(Clock::SM).ok();
        let set = device.applications_clock(Clock::SM).ok();
        let set = set.zip(device.default_applications_clock(Clock::SM).ok());
        GpuInfo {
            max_sm_clock_mhz: highest,
            sm_clock_mhz: now.sm_clock_mhz,
            holds_sm_clock: holds_clock(now.sm_clock_mhz.zip(highest), set),
            max_memory_clock_mhz: device.max_clock_info(Clock::Memory).ok(),
            pcie: link.map(|(generation, width)| PcieLink { generation, width }),
            pcie_current: now.pcie,
            power_limit_w: device.enforced_power_limit().ok().map(watts),
            power_limit_default_w: device.power_management_limit_default().ok().map(watts),
            temperature_c: now.temperature_c,
            // `None` on a device without this mode.
            mig: device.mig_mode().ok().map(|mode| mode.current == 1),
            ..info
        }
    }

    /// Free and total device memory, bytes.
    pub fn memory_bytes(&self) -> Option<(u64, u64)> {
        let memory = self.device.memory_info().ok()?;
        Some((memory.free, memory.total))
    }

    /// Number of other processes with a compute context on the device. In a container NVML lists
    /// process ids of the host, among which this process is not recognised.
    pub(super) fn other_processes(&self) -> u32 {
        let processes = self.device.running_compute_processes().unwrap_or_default();
        let foreign = (processes.iter()).filter(|process| process.pid != std::process::id());
        foreign.count() as u32
    }
}

impl Source for Monitor {
    fn read(&self) -> Reading {
        let device = &self.device;
        let reasons = device.current_throttle_reasons().ok();
        let generation = device.current_pcie_link_gen().ok();
        let link = generation.zip(device.current_pcie_link_width().ok());
        Reading {
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            utilisation_percent: device.utilization_rates().ok().map(|share| share.gpu),
            power_w: device.power_usage().ok().map(watts),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            pcie: link.map(|(generation, width)| PcieLink { generation, width }),
            idle: reasons.is_some_and(|r| r.contains(ThrottleReasons::GPU_IDLE)),
            throttle_reasons: reasons.map(slowing),
        }
    }

    fn energy_j(&self) -> Option<f64> {
        let millijoules = self.device.total_energy_consumption().ok()?;
        Some(millijoules as f64 / 1e3)
    }
}

/// Whether a setting holds the clock, by the clock now and the highest, and the applications clock that is set and the
/// default: an idle device lowers its clock to less than a fifth (H200, A100, T4), unless it is locked.
fn holds_clock(clock: Option<(u32, u32)>, set: Option<(u32, u32)>) -> Option<bool> {
    if set.is_some_and(|(set, default)| set != default) {
        return Some(true);
    }
    clock.and_then(|(now, highest)| (3 * now < highest).then_some(false))
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1e3
}

/// The reasons for which the clock is lower than the device could hold. An idle GPU and clocks set by
/// the user are no throttling.
fn slowing(reasons: ThrottleReasons) -> Vec<&'static str> {
    [
        (ThrottleReasons::SW_POWER_CAP, "power cap"),
        (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
        (ThrottleReasons::SYNC_BOOST, "sync boost group"),
        (
            ThrottleReasons::SW_THERMAL_SLOWDOWN,
            "software thermal slowdown",
        ),
        (
            ThrottleReasons::HW_THERMAL_SLOWDOWN,
            "hardware thermal slowdown",
        ),
        (
            ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN,
            "hardware power brake",
        ),
    ]
    .into_iter()
    .filter(|(reason, _)| reasons.contains(*reason))
    .map(|(_, name)| name)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_user_settings_are_no_throttling() {
        assert!(slowing(ThrottleReasons::empty()).is_empty());
        let harmless = ThrottleReasons::GPU_IDLE
            | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING
            | ThrottleReasons::DISPLAY_CLOCK_SETTING;
        assert!(slowing(harmless).is_empty());
        assert_eq!(
            slowing(ThrottleReasons::GPU_IDLE | ThrottleReasons::SW_POWER_CAP),
            ["power cap"]
        );
        assert_eq!(slowing(ThrottleReasons::all()).len(), 6);
    }

    #[test]
    fn a_clock_that_fell_is_not_held_and_one_that_did_not_may_be() {
        let default = Some((1980, 1980));
        assert_eq!(holds_clock(Some((345, 1980)), default), Some(false));
        assert_eq!(
            holds_clock(Some((345, 1980)), Some((1200, 1980))),
            Some(true)
        );
        assert_eq!(holds_clock(Some((1980, 1980)), default), None);
        assert_eq!(holds_clock(None, None), None);
    }

    #[test]
    fn a_device_that_is_not_there_has_no_monitor() {
        let mut nowhere = DeviceProperties::default();
        nowhere.uuid = "GPU-00000000-0000-0000-0000-000000000000".to_owned();
        nowhere.pci_bus_id = "ffff:ff:1f.0".to_owned();
        assert!(Monitor::open(&nowhere).is_none());
    }
}
