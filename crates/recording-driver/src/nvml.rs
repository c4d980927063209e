//! Stands in for NVML: what the description says of the device, which is cool and never throttled.
//! <https://docs.nvidia.com/deploy/nvml-api/>
//!
//! Nothing here is written down: the suite reads a device from a thread of its own, several times
//! per second of the host's time, so that the lines would differ from run to run.

use std::ffi::{c_char, c_uint, c_ulonglong};

use crate::device::description;
use crate::fault::Fault;
use crate::library::{Library, library};
use crate::state::{Answer, lock};

/// nvmlReturn_t.
mod status {
    pub(super) const INVALID_ARGUMENT: i32 = 2;
    pub(super) const NOT_SUPPORTED: i32 = 3;
    pub(super) const NOT_FOUND: i32 = 6;
    pub(super) const INSUFFICIENT_SIZE: i32 = 7;
    pub(super) const ARGUMENT_VERSION_MISMATCH: i32 = 25;
    pub(super) const UNKNOWN: i32 = 999;
}

const NVML: Library = Library {
    statuses: &[1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 20, 25, 999],
    invalid: status::INVALID_ARGUMENT,
    no_memory: 20,
    failed: status::UNKNOWN,
    logged: false,
    passes: false,
};

/// A device draws this share of its power limit, percent.
const POWER: u32 = 40;
/// Degrees Celsius.
const TEMPERATURE: u32 = 40;
/// A device's handle is this plus its number.
const DEVICE: u64 = 0x9371_0000;

fn refused(code: i32) -> Fault {
    Fault::new(code, "NVML")
}

/// # Errors
/// The handle is none of a device.
fn known(device: u64) -> Answer {
    match device {
        DEVICE => Ok(()),
        _ => Err(refused(status::INVALID_ARGUMENT)),
    }
}

/// Gives a number of a device.
fn give<T>(device: u64, to: *mut T, value: T) -> Answer {
    known(device)?;
    NVML.put(to, value)
}

fn power_mw() -> u32 {
    description().power_limit_mw / 100 * POWER
}

/// The clock of graphics, multiprocessors, memory or video: NVML_CLOCK_GRAPHICS and those after it.
fn clock_mhz(which: c_uint) -> Answer<c_uint> {
    match which {
        0 | 1 | 3 => Ok(description().sm_clock_mhz),
        2 => Ok(description().memory_clock_mhz),
        _ => Err(refused(status::INVALID_ARGUMENT)),
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

/// Exports functions that give a number of a device.
macro_rules! numbers {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        library! { NVML: $(fn $name(device: u64, to: *mut $type) = give(device, to, $value);)* }
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

library! { NVML:
    fn nvmlInit_v2() = Ok(());

    fn nvmlShutdown() = Ok(());

    fn nvmlSystemGetDriverVersion(to: *mut u8, length: c_uint) = {
            let version = &description().driver_version;
        if version.len() >= length as usize {
            return Err(refused(status::INSUFFICIENT_SIZE));
        }
        let mut all = version.bytes().chain([0]).enumerate();
        all.try_for_each(|(i, byte)| NVML.put(to.wrapping_add(i), byte))
    };

    // Takes a bus id of the driver, `0000:1b:00.0`, as well as NVML's own, which has eight digits of
    // the domain.
    fn nvmlDeviceGetHandleByPciBusId_v2(bus_id: *const c_char, to: *mut u64) = {
        let bus_id = NVML.text(bus_id)?;
        let numbers = bus_id.split([':', '.']).map(|part| u32::from_str_radix(part, 16));
        let numbers = numbers.collect::<Result<Vec<u32>, _>>().unwrap_or_default();
            match numbers == [0, description().pci_bus as u32, 0, 0] {
            true => NVML.put(to, DEVICE),
            false => Err(refused(status::NOT_FOUND)),
        }
    };

    // Millijoules, by the virtual clock.
    fn nvmlDeviceGetTotalEnergyConsumption(device: u64, to: *mut c_ulonglong) = {
        let nanoseconds = u128::from(lock().clock.host);
        give(device, to, (nanoseconds * u128::from(power_mw()) / 1_000_000_000) as u64)
    };

    fn nvmlDeviceGetClockInfo(device: u64, which: c_uint, to: *mut c_uint) = {
        give(device, to, clock_mhz(which)?)
    };

    fn nvmlDeviceGetMaxClockInfo(device: u64, which: c_uint, to: *mut c_uint) = {
        give(device, to, clock_mhz(which)?)
    };

    fn nvmlDeviceGetTemperature(device: u64, sensor: c_uint, to: *mut c_uint) = {
        if sensor != 0 {
            return Err(refused(status::INVALID_ARGUMENT));
        }
        give(device, to, TEMPERATURE)
    };

    fn nvmlDeviceGetMemoryInfo_v2(device: u64, to: *mut Memory) = {
        known(device)?;
        let version = NVML.get(to)?.version;
        if version as usize != size_of::<Memory>() | 2 << 24 {
            return Err(refused(status::ARGUMENT_VERSION_MISMATCH));
        }
        let total = description().memory_bytes;
        let used = lock().taken();
        NVML.put(to, Memory { version, total, reserved: 0, free: total - used, used })
    };

    fn nvmlDeviceGetMigMode(device: u64, current: *mut c_uint, pending: *mut c_uint) = {
        known(device)?;
        // MIG came with the A100.
        if description().compute_capability.0 < 8 {
            return Err(refused(status::NOT_SUPPORTED));
        }
        NVML.put(current, 0)?;
        NVML.put(pending, 0)
    };

    // This process alone.
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: u64,
        count: *mut c_uint,
        to: *mut Process,
    ) = {
        known(device)?;
        let room = NVML.get(count)?;
        NVML.put(count, 1)?;
        if room < 1 {
            return Err(refused(status::INSUFFICIENT_SIZE));
        }
        let process = Process {
            pid: std::process::id(),
            used: 0,
            gpu_instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        };
        NVML.put(to, process)
    };
}
