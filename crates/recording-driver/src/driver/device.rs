//! Devices, contexts and errors.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;
use std::time::Duration;

use crate::context::{self, check_device_number};
use crate::device::UUID;
use crate::driver::{driver, make, put, put_text};
use crate::fault::{Fault, code};
use crate::log;

/// If it is set, a wait for the context takes as long as by the virtual clock.
const WAITS: &str = "RECORDING_DRIVER_WAITS";

/// The driver's errors, a line each: its number, its name, and what it says.
const ERRORS: &str = include_str!("errors.txt");

/// Name and text of an error, which live as long as the process.
fn error(number: i32) -> &'static [CString; 2] {
    static TEXTS: OnceLock<BTreeMap<i32, [CString; 2]>> = OnceLock::new();
    let texts = TEXTS.get_or_init(|| {
        let line = |line: &str| {
            let (number, rest) = line.split_once(' ')?;
            let (name, text) = rest.split_once(' ')?;
            let texts = [CString::new(name).ok()?, CString::new(text).ok()?];
            Some((number.parse().ok()?, texts))
        };
        ERRORS.lines().filter_map(line).collect()
    });
    texts.get(&number).unwrap_or_else(|| &texts[&UNKNOWN])
}

/// `CUDA_ERROR_UNKNOWN`.
const UNKNOWN: i32 = 999;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(number: i32, to: *mut *const c_char) -> i32 {
    put(to, error(number)[0].as_ptr()).map_or(code::INVALID_VALUE, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(number: i32, to: *mut *const c_char) -> i32 {
    put(to, error(number)[1].as_ptr()).map_or(code::INVALID_VALUE, |()| 0)
}

driver! {
    fn cuInit(_flags: u32) = |_state| Ok(());

    fn cuDriverGetVersion(to: *mut i32) = |state| put(to, state.description.driver);

    fn cuDeviceGetCount(to: *mut i32) = |_state| put(to, 1);

    fn cuDeviceGet(to: *mut i32, ordinal: i32) = |_state| {
        check_device_number(ordinal)?;
        put(to, ordinal)
    };

    fn cuDeviceGetName(to: *mut c_char, length: i32, device: i32) = |state| {
        check_device_number(device)?;
        put_text(to, length, &state.description.name)
    };

    fn cuDeviceTotalMem_v2(to: *mut usize, device: i32) = |state| {
        check_device_number(device)?;
        put(to, state.description.memory_bytes as usize)
    };

    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: i32) = |_state| {
        check_device_number(device)?;
        put(to, UUID)
    };

    fn cuDeviceGetAttribute(to: *mut i32, attribute: i32, device: i32) = |state| {
        check_device_number(device)?;
        let of = state.description;
        let value = match attribute {
            1..=3 => 1024,
            16 => of.multiprocessors,
            17 | 18 | 20 | 34 | 50 | 88 | 100 | 101 => 0,
            33 => of.pci_bus,
            38 => of.l2_bytes,
            75 => of.compute_capability.0,
            76 => of.compute_capability.1,
            97 => of.shared_per_block_optin,
            // What a device can do: map host memory, overlap, pools, managed memory and the like.
            15 | 19 | 31 | 41 | 78..=80 | 83 | 86 | 89..=95 | 99 | 102 | 115 => 1,
            _ => {
                let why = format!("a device's attribute {attribute} is not known here");
                return Err(Fault::new(code::INVALID_VALUE, why));
            }
        };
        put(to, value)
    };

    fn cuDevicePrimaryCtxRetain(to: *mut u64, device: i32) = |state| {
        check_device_number(device)?;
        make(state, to, |state| Ok(state.retain()))
    };

    fn cuDevicePrimaryCtxRelease_v2(_device: i32) = |state| state.release();

    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) = |state| {
        check_device_number(device)?;
        put(flags, 0)?;
        put(active, i32::from(state.context.is_some()))
    };

    fn cuCtxSetCurrent(context: u64) = |state| {
        if context != 0 && state.context != Some(context) {
            return Err(Fault::new(code::INVALID_CONTEXT, "there is no such context"));
        }
        context::set_current(context);
        Ok(())
    };

    fn cuCtxGetCurrent(to: *mut u64) = |_state| put(to, context::get_current());

    fn cuCtxSynchronize() = |state| {
        state.check_current()?;
        log::call("wait for the context");
        state.check_no_capture("cuCtxSynchronize")?;
        let begun = state.clock.host;
        state.synchronize_context();
        if std::env::var_os(WAITS).is_some() {
            std::thread::sleep(Duration::from_nanos(state.clock.host - begun));
        }
        Ok(())
    };

    fn cuCtxResetPersistingL2Cache() = |state| {
        state.check_current()?;
        log::call("reset the persisting lines of the L2 cache");
        Ok(())
    };

}
