//! Stands in for NVML: reports the described device, which is cool and never throttled.
//! <https://docs.nvidia.com/deploy/nvml-api/>
//!
//! Nothing here is logged: the suite reads a device from a thread of its own, several times per second
//! of the host's time, so the lines would differ from run to run.

use std::ffi::{c_char, c_uint, c_ulonglong};

use crate::call::{Library, Statuses, exported, get, put, put_bytes};
use crate::device::description;
use crate::fault::Fault;

/// nvmlReturn_t.
mod status {
    pub(super) const NOT_SUPPORTED: i32 = 3;
    pub(super) const INSUFFICIENT_SIZE: i32 = 7;
}

const NVML: Library = Library {
    statuses: Some(Statuses {
        all: &[1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 20, 25, 999],
        invalid: 2,
        no_memory: 20,
        failed: 999,
    }),
    logged: false,
};

/// A device draws this share of its power limit, percent.
const POWER: u32 = 40;
/// Degrees Celsius.
const TEMPERATURE: u32 = 40;
/// The device's handle.
const DEVICE: u64 = 0x9371_0000;

fn power_mw() -> u32 {
    description().power_limit_mw / 100 * POWER
}

/// The clock of the memory, or of everything else.
fn clock_mhz(which: c_uint) -> c_uint {
    /// `NVML_CLOCK_MEM`.
    const MEMORY: c_uint = 2;
    match which {
        MEMORY => description().memory_clock_mhz,
        _ => description().sm_clock_mhz,
    }
}

/// nvmlUtilization_t, percent.
#[repr(C)]
pub(crate) struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// nvmlMemory_v2_t.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// nvmlProcessInfo_t.
#[repr(C)]
pub(crate) struct Process {
    pid: c_uint,
    used: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// Exports functions that give a number of the device.
macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        exported! { NVML: $(fn $name(_device: u64, to: *mut $type) = |_state| put(to, $value);)* }
    };
}

numbers! {
    nvmlDeviceGetPowerUsage: c_uint = power_mw();
    nvmlDeviceGetEnforcedPowerLimit: c_uint = description().power_limit_mw;
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = description().power_limit_mw;
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = 0;
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = description().pcie_generation;
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = description().pcie_generation;
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = description().pcie_width;
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = description().pcie_width;
    nvmlDeviceGetUtilizationRates: Utilization = Utilization { gpu: 100, memory: 50 };
}

exported! { NVML:
    fn nvmlInit_v2() = |_state| Ok(());

    fn nvmlShutdown() = |_state| Ok(());

    fn nvmlSystemGetDriverVersion(to: *mut u8, length: c_uint) = |_state| {
        let version = &description().driver_version;
        if version.len() >= length as usize {
            return Err(Fault::new(status::INSUFFICIENT_SIZE, "NVML"));
        }
        put_bytes(to, version.bytes().chain([0]))
    };

    fn nvmlDeviceGetHandleByPciBusId_v2(_bus_id: *const c_char, to: *mut u64) = |_state| put(to, DEVICE);

    // Millijoules, by the virtual clock.
    fn nvmlDeviceGetTotalEnergyConsumption(_device: u64, to: *mut c_ulonglong) = |state| {
        let nanoseconds = u128::from(state.clock.host);
        put(to, (nanoseconds * u128::from(power_mw()) / 1_000_000_000) as u64)
    };

    fn nvmlDeviceGetClockInfo(_device: u64, which: c_uint, to: *mut c_uint) = |_state| {
        put(to, clock_mhz(which))
    };

    fn nvmlDeviceGetMaxClockInfo(_device: u64, which: c_uint, to: *mut c_uint) = |_state| {
        put(to, clock_mhz(which))
    };

    fn nvmlDeviceGetTemperature(_device: u64, _sensor: c_uint, to: *mut c_uint) = |_state| {
        put(to, TEMPERATURE)
    };

    fn nvmlDeviceGetMemoryInfo_v2(_device: u64, to: *mut Memory) = |state| {
        let version = get(to)?.version;
        let total = description().memory_bytes;
        let used = state.taken();
        put(to, Memory { version, total, reserved: 0, free: total - used, used })
    };

    fn nvmlDeviceGetMigMode(_device: u64, current: *mut c_uint, pending: *mut c_uint) = |_state| {
        // MIG came with the A100.
        if description().compute_capability_major < 8 {
            return Err(Fault::new(status::NOT_SUPPORTED, "NVML"));
        }
        put(current, 0)?;
        put(pending, 0)
    };

    // Only this process.
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        _device: u64,
        count: *mut c_uint,
        to: *mut Process,
    ) = |_state| {
        let room = get(count)?;
        put(count, 1)?;
        if room < 1 {
            return Err(Fault::new(status::INSUFFICIENT_SIZE, "NVML"));
        }
        let process = Process {
            pid: std::process::id(),
            used: 0,
            gpu_instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        };
        put(to, process)
    };
}
