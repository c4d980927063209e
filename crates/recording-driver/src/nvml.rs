//! Stands in for NVML: reports the described devices, which are cool and never throttled. The suite
//! does without what is missing here. <https://docs.nvidia.com/deploy/nvml-api/>
//!
//! Nothing here is logged: the suite reads a device from a thread of its own, several times per second
//! of the host's time, so the lines would differ from run to run.

use std::ffi::{c_char, c_uint, c_ulonglong};

use crate::call::{Library, exported, get, put, text};
use crate::device::descriptions;
use crate::fault::Fault;

/// `NVML_ERROR_NOT_FOUND`.
const NOT_FOUND: i32 = 6;

/// Numbers of nvmlReturn_t.
const NVML: Library = Library {
    all: &[1, 2, 3, 4, 6, 7, 9, 10, 12, 13, 15, 16, 17, 18, 20, 25, 999],
    invalid: 2,
    no_memory: 20,
    failed: 999,
};

/// Milliwatts of a device.
const POWER: c_uint = 280_000;
/// Degrees Celsius.
const TEMPERATURE: c_uint = 40;
/// The handle of the first device; those of others follow.
const DEVICES: u64 = 0x9371_0000;
/// `NVML_CLOCK_MEM`; other clocks are those of the multiprocessors.
const MEMORY_CLOCK: c_uint = 2;

fn index(device: u64) -> usize {
    (device - DEVICES) as usize
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

exported! { NVML:
    fn nvmlInit_v2(_state) {
        Ok(())
    }

    fn nvmlShutdown(_state) {
        Ok(())
    }

    // Such as 00000000:1B:00.0; the buses of the devices follow on that of the first.
    fn nvmlDeviceGetHandleByPciBusId_v2(_state, bus_id: *const c_char) => u64 {
        let bus_id = text(bus_id)?;
        let bus = bus_id.split(':').nth(1).and_then(|bus| i32::from_str_radix(bus, 16).ok());
        let mut devices = descriptions().iter().zip(0..);
        let found = devices.find(|(device, at)| bus == Some(device.pci_bus + at));
        let (_, at) = found.ok_or_else(|| Fault::new(NOT_FOUND, "NVML"))?;
        Ok(DEVICES + at as u64)
    }

    // Millijoules, by the virtual clock.
    fn nvmlDeviceGetTotalEnergyConsumption(state, _device: u64) => c_ulonglong {
        Ok(state.clock.host / 1_000 * c_ulonglong::from(POWER) / 1_000_000)
    }

    fn nvmlDeviceGetPowerUsage(_state, _device: u64) => c_uint {
        Ok(POWER)
    }

    fn nvmlDeviceGetTemperature(_state, _device: u64, _sensor: c_uint) => c_uint {
        Ok(TEMPERATURE)
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(_state, _device: u64) => c_ulonglong {
        Ok(0)
    }

    fn nvmlDeviceGetClockInfo(_state, device: u64, which: c_uint) => c_uint {
        let device = &descriptions()[index(device)];
        Ok(match which {
            MEMORY_CLOCK => device.memory_clock_mhz,
            _ => device.sm_clock_mhz,
        })
    }

    fn nvmlDeviceGetMemoryInfo_v2(state, device: u64, to: *mut Memory) {
        let version = get(to)?.version;
        let total = descriptions()[index(device)].memory_bytes;
        let used = state.taken(index(device));
        put(to, Memory { version, total, reserved: 0, free: total - used, used })
    }
}
