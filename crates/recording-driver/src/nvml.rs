//! Stands in for NVML: what the description says of the device, which is cool and never throttled.
//! <https://docs.nvidia.com/deploy/nvml-api/>
//!
//! Nothing here is written down: the suite reads a device from a thread of its own, several times
//! per second of the host's time, so that the lines would differ from run to run.

use std::ffi::{c_char, c_uint, c_ulonglong};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::device::description;
use crate::fault::Fault;
use crate::library::{Library, library};
use crate::state::{Answer, lock};

/// nvmlReturn_t.
mod status {
    pub(super) const UNINITIALIZED: i32 = 1;
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
const DEVICES: u64 = 0x9371_0000;

/// How often the library was initialised and not shut down.
static USERS: AtomicU32 = AtomicU32::new(0);

fn refused(code: i32) -> Fault {
    Fault::new(code, "NVML")
}

fn initialised() -> Answer {
    match USERS.load(Ordering::Relaxed) {
        0 => Err(refused(status::UNINITIALIZED)),
        _ => Ok(()),
    }
}

/// # Errors
/// The handle is none of a device.
fn known(device: u64) -> Answer {
    initialised()?;
    let devices = DEVICES..DEVICES + description().devices as u64;
    match devices.contains(&device) {
        true => Ok(()),
        false => Err(refused(status::INVALID_ARGUMENT)),
    }
}

/// Gives the handle of the device whose number is the right one.
fn find(to: *mut u64, is: impl Fn(i32) -> bool) -> Answer {
    initialised()?;
    let found = (0..description().devices).find(|&ordinal| is(ordinal));
    let ordinal = found.ok_or_else(|| refused(status::NOT_FOUND))?;
    NVML.put(to, DEVICES + ordinal as u64)
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

library! { NVML:
    fn nvmlInit_v2() = {
        USERS.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };

    fn nvmlShutdown() = {
        let one_less = |users: u32| users.checked_sub(1);
        let users = USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        users.map(drop).map_err(|_| refused(status::UNINITIALIZED))
    };

    fn nvmlSystemGetDriverVersion(to: *mut u8, length: c_uint) = {
        initialised()?;
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
        find(to, |ordinal| numbers == [0, (description().pci_bus + ordinal) as u32, 0, 0])
    };

    fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut u64) = {
        let uuid = NVML.text(uuid)?.replace("GPU-", "").replace('-', "");
        let digits = |bytes: [u8; 16]| bytes.map(|byte| format!("{byte:02x}")).concat();
        find(to, |ordinal| digits(description().uuid(ordinal)) == uuid)
    };

    fn nvmlDeviceGetPowerUsage(device: u64, to: *mut c_uint) = give(device, to, power_mw());

    fn nvmlDeviceGetEnforcedPowerLimit(device: u64, to: *mut c_uint) = {
        give(device, to, description().power_limit_mw)
    };

    fn nvmlDeviceGetPowerManagementDefaultLimit(device: u64, to: *mut c_uint) = {
        give(device, to, description().power_limit_mw)
    };

    // Millijoules, by the virtual clock.
    fn nvmlDeviceGetTotalEnergyConsumption(device: u64, to: *mut c_ulonglong) = {
        let nanoseconds = u128::from(lock().clock.host);
        give(device, to, (nanoseconds * u128::from(power_mw()) / 1_000_000_000) as u64)
    };

    fn nvmlDeviceGetCurrentClocksThrottleReasons(device: u64, to: *mut c_ulonglong) = {
        give(device, to, 0)
    };

    fn nvmlDeviceGetMaxPcieLinkGeneration(device: u64, to: *mut c_uint) = {
        give(device, to, description().pcie_generation)
    };

    fn nvmlDeviceGetCurrPcieLinkGeneration(device: u64, to: *mut c_uint) = {
        give(device, to, description().pcie_generation)
    };

    fn nvmlDeviceGetMaxPcieLinkWidth(device: u64, to: *mut c_uint) = {
        give(device, to, description().pcie_width)
    };

    fn nvmlDeviceGetCurrPcieLinkWidth(device: u64, to: *mut c_uint) = {
        give(device, to, description().pcie_width)
    };

    fn nvmlDeviceGetUtilizationRates(device: u64, to: *mut Utilization) = {
        give(device, to, Utilization { gpu: 100, memory: 50 })
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
        let used = lock().taken((device - DEVICES) as i32);
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

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_int};

    use super::*;

    fn handle(bus_id: &CStr) -> (c_int, u64) {
        let mut handle = 0;
        // SAFETY: a string and the address of a handle.
        let status = unsafe { nvmlDeviceGetHandleByPciBusId_v2(bus_id.as_ptr(), &mut handle) };
        (status, handle)
    }

    /// One test, since the library is initialised for the whole process.
    #[test]
    fn a_device_is_what_its_description_says() {
        // SAFETY: the addresses of values of the functions' types, or null.
        unsafe {
            assert_eq!(handle(c"0000:1b:00.0").0, status::UNINITIALIZED);
            assert_eq!(nvmlShutdown(), status::UNINITIALIZED);
            assert_eq!((nvmlInit_v2(), nvmlInit_v2(), nvmlShutdown()), (0, 0, 0));

            let (found, device) = handle(c"0000:1b:00.0");
            assert_eq!(found, 0);
            assert_eq!(handle(c"00000000:1B:00.0"), (0, device));
            assert_eq!(handle(c"0000:1c:00.0").0, status::NOT_FOUND);
            assert_eq!(handle(c"nowhere").0, status::NOT_FOUND);
            let mut by_uuid = 0;
            let uuid = c"GPU-7265632d-5a5a-5a5a-5a5a-5a5a5a5a5a00";
            assert_eq!(nvmlDeviceGetHandleByUUID(uuid.as_ptr(), &mut by_uuid), 0);
            assert_eq!(by_uuid, device);

            let mut version = [0; 80];
            let out = version.as_mut_ptr();
            assert_eq!(nvmlSystemGetDriverVersion(out, 80), 0);
            assert_eq!(CStr::from_ptr(out.cast()), c"580.95.05");
            assert_eq!(
                nvmlSystemGetDriverVersion(out, 9),
                status::INSUFFICIENT_SIZE
            );

            let mut value = 0;
            assert_eq!(nvmlDeviceGetPowerUsage(device, &mut value), 0);
            assert_eq!(value, 280_000);
            assert_eq!(nvmlDeviceGetClockInfo(device, 1, &mut value), 0);
            assert_eq!(value, 1980);
            assert_eq!(nvmlDeviceGetClockInfo(device, 2, &mut value), 0);
            assert_eq!(value, 3201);
            assert_eq!(nvmlDeviceGetMaxPcieLinkWidth(device, &mut value), 0);
            assert_eq!(value, 16);
            assert_eq!(nvmlDeviceGetTemperature(device, 0, &mut value), 0);
            assert_eq!(value, 40);
            for wrong in [
                nvmlDeviceGetTemperature(device, 1, &mut value),
                nvmlDeviceGetClockInfo(device, 4, &mut value),
                nvmlDeviceGetPowerUsage(device + 1, &mut value),
                nvmlDeviceGetPowerUsage(0, &mut value),
                nvmlDeviceGetPowerUsage(device, std::ptr::null_mut()),
            ] {
                assert_eq!(wrong, status::INVALID_ARGUMENT);
            }

            let mut memory = Memory {
                version: 0x0200_0028,
                total: 0,
                reserved: 0,
                free: 0,
                used: 0,
            };
            assert_eq!(nvmlDeviceGetMemoryInfo_v2(device, &mut memory), 0);
            assert_eq!(memory.total, 150_754_820_096);
            assert!(memory.free <= memory.total && memory.free + memory.used == memory.total);
            memory.version = 0;
            let refused = nvmlDeviceGetMemoryInfo_v2(device, &mut memory);
            assert_eq!(refused, status::ARGUMENT_VERSION_MISMATCH);

            let (mut count, mut processes) = (0, std::mem::zeroed::<[Process; 2]>());
            let out = processes.as_mut_ptr();
            let all =
                |count: &mut c_uint| nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
            assert_eq!((all(&mut count), count), (status::INSUFFICIENT_SIZE, 1));
            count = 2;
            assert_eq!((all(&mut count), count), (0, 1));
            assert_eq!(processes[0].pid, std::process::id());

            let (mut current, mut pending) = (7, 7);
            assert_eq!(nvmlDeviceGetMigMode(device, &mut current, &mut pending), 0);
            assert_eq!((current, pending), (0, 0));
            crate::fault::plan("nvmlDeviceGetMigMode:1:719");
            let failed = nvmlDeviceGetMigMode(device, &mut current, &mut pending);
            assert_eq!(failed, status::UNKNOWN);
            assert_eq!(nvmlShutdown(), 0);
        }
    }
}
