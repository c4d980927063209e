//! Devices, contexts and errors.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::OnceLock;
use std::time::Duration;

use super::DRIVER;
use crate::call::{exported, make, put, put_bytes};
use crate::context;
use crate::device::UUID;
use crate::fault::{Fault, code};

/// If it is set, a wait for the context takes as long as on the virtual clock.
const WAITS: &str = "RECORDING_DRIVER_WAITS";

/// The driver's errors, a line each: number, name and text.
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

exported! { DRIVER:
    fn cuInit(_flags: u32) = |_state| Ok(());

    fn cuDriverGetVersion(to: *mut i32) = |state| put(to, state.devices[0].description.driver);

    fn cuDeviceGetCount(to: *mut i32) = |state| put(to, state.devices.len() as i32);

    fn cuDeviceGet(to: *mut i32, ordinal: i32) = |state| {
        state.device(ordinal)?;
        put(to, ordinal)
    };

    fn cuDeviceGetName(to: *mut u8, length: i32, device: i32) = |state| {
        let name = state.device(device)?.description.name.bytes().take(length as usize - 1);
        put_bytes(to, name.chain([0]))
    };

    fn cuDeviceTotalMem_v2(to: *mut usize, device: i32) = |state| {
        put(to, state.device(device)?.description.memory_bytes as usize)
    };

    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: i32) = |_state| {
        let mut uuid = UUID;
        uuid[15] += device as u8;
        put(to, uuid)
    };

    fn cuDeviceGetAttribute(to: *mut i32, attribute: i32, device: i32) = |state| {
        let of = state.device(device)?.description;
        let value = match attribute {
            1..=3 => 1024,
            16 => of.multiprocessors,
            17 | 18 | 20 | 34 | 50 | 88 | 100 | 101 => 0,
            33 => of.pci_bus + device,
            38 => of.l2_bytes,
            75 => of.compute_capability_major,
            76 => of.compute_capability_minor,
            97 => of.shared_per_block_optin,
            // Capabilities of the device: mapped host memory, overlap, pools, managed memory and the
            // like.
            15 | 19 | 31 | 41 | 78..=80 | 83 | 86 | 89..=95 | 99 | 102 | 115 => 1,
            other => return Err(Fault::unknown("a device's attribute", other)),
        };
        put(to, value)
    };

    fn cuDevicePrimaryCtxRetain(to: *mut u64, device: i32) = |state| {
        make(to, state.retain(device)?)
    };

    fn cuDevicePrimaryCtxRelease_v2(device: i32) = |state| state.release(device);

    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) = |state| {
        put(flags, 0)?;
        put(active, i32::from(state.device(device)?.context != 0))
    };

    fn cuCtxSetCurrent(context: u64) = |_state| {
        context::set_current(context);
        Ok(())
    };

    fn cuCtxGetCurrent(to: *mut u64) = |_state| put(to, context::get_current());

    fn cuCtxSynchronize() = |state| {
        let device = state.current()?;
        log!("wait for the context");
        state.check_no_capture("cuCtxSynchronize")?;
        let begun = state.clock.host;
        state.synchronize_device(device);
        if std::env::var_os(WAITS).is_some() {
            std::thread::sleep(Duration::from_nanos(state.clock.host - begun));
        }
        Ok(())
    };

    fn cuCtxResetPersistingL2Cache() = |state| {
        state.current()?;
        log!("reset the persisting lines of the L2 cache");
        Ok(())
    };

    fn cuDeviceGetP2PAttribute(to: *mut i32, attribute: i32, device: i32, peer: i32) = |state| {
        let (first, other) = (state.device(device)?.description, state.device(peer)?.description);
        let has_link = device != peer && first.peer_access && other.peer_access;
        match attribute {
            // Access, and atomics over NVLink.
            2 | 3 => put(to, i32::from(has_link)),
            other => Err(Fault::unknown("an attribute of two devices", other)),
        }
    };

    fn cuCtxEnablePeerAccess(context: u64, _flags: u32) = |state| state.enable_peer(context);
}
