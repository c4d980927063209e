//! Devices, contexts and errors.

use std::ffi::c_char;

use crate::context;
use crate::device::description;
use crate::driver::{driver, given, put, put_text};
use crate::fault::{self, Fault, code};
use crate::log;
use crate::real::function;
use crate::state::refused;

/// The driver's numbers of errors, with their names and what they say.
const ERRORS: &[(i32, &str, &str)] = &[
    (0, "CUDA_SUCCESS\0", "no error\0"),
    (1, "CUDA_ERROR_INVALID_VALUE\0", "invalid argument\0"),
    (2, "CUDA_ERROR_OUT_OF_MEMORY\0", "out of memory\0"),
    (3, "CUDA_ERROR_NOT_INITIALIZED\0", "initialization error\0"),
    (4, "CUDA_ERROR_DEINITIALIZED\0", "driver shutting down\0"),
    (
        34,
        "CUDA_ERROR_STUB_LIBRARY\0",
        "CUDA driver is a stub library\0",
    ),
    (
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE\0",
        "CUDA-capable device(s) is/are busy or unavailable\0",
    ),
    (
        100,
        "CUDA_ERROR_NO_DEVICE\0",
        "no CUDA-capable device is detected\0",
    ),
    (
        101,
        "CUDA_ERROR_INVALID_DEVICE\0",
        "invalid device ordinal\0",
    ),
    (
        200,
        "CUDA_ERROR_INVALID_IMAGE\0",
        "device kernel image is invalid\0",
    ),
    (
        201,
        "CUDA_ERROR_INVALID_CONTEXT\0",
        "invalid device context\0",
    ),
    (
        400,
        "CUDA_ERROR_INVALID_HANDLE\0",
        "invalid resource handle\0",
    ),
    (500, "CUDA_ERROR_NOT_FOUND\0", "named symbol not found\0"),
    (600, "CUDA_ERROR_NOT_READY\0", "device not ready\0"),
    (
        700,
        "CUDA_ERROR_ILLEGAL_ADDRESS\0",
        "an illegal memory access was encountered\0",
    ),
    (
        701,
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES\0",
        "too many resources requested for launch\0",
    ),
    (
        702,
        "CUDA_ERROR_LAUNCH_TIMEOUT\0",
        "the launch timed out and was terminated\0",
    ),
    (
        712,
        "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED\0",
        "part or all of the requested memory range is already mapped\0",
    ),
    (
        713,
        "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED\0",
        "pointer does not correspond to a registered memory region\0",
    ),
    (
        715,
        "CUDA_ERROR_ILLEGAL_INSTRUCTION\0",
        "an illegal instruction was encountered\0",
    ),
    (
        719,
        "CUDA_ERROR_LAUNCH_FAILED\0",
        "unspecified launch failure\0",
    ),
    (
        801,
        "CUDA_ERROR_NOT_SUPPORTED\0",
        "operation not supported\0",
    ),
    (
        900,
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED\0",
        "operation not permitted when stream is capturing\0",
    ),
    (
        901,
        "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED\0",
        "operation failed due to a previous error during capture\0",
    ),
    (
        903,
        "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED\0",
        "capture was not initiated in this stream\0",
    ),
    (
        904,
        "CUDA_ERROR_STREAM_CAPTURE_UNJOINED\0",
        "capturing stream has unjoined work\0",
    ),
    (
        905,
        "CUDA_ERROR_STREAM_CAPTURE_ISOLATION\0",
        "dependency created on uncaptured work in another stream\0",
    ),
    (
        907,
        "CUDA_ERROR_CAPTURED_EVENT\0",
        "operation not permitted on an event last recorded in a capturing stream\0",
    ),
    (
        908,
        "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD\0",
        "attempt to terminate a thread-local capture sequence from another thread\0",
    ),
    (999, "CUDA_ERROR_UNKNOWN\0", "unknown error\0"),
];

fn error(error: i32) -> Option<&'static (i32, &'static str, &'static str)> {
    ERRORS.iter().find(|(number, ..)| *number == error)
}

/// What a program asks before there is a context; works without the state.
fn asked(
    function: &str,
    real: impl FnOnce() -> Option<i32>,
    answer: impl FnOnce() -> crate::state::Answer,
) -> i32 {
    let injected = fault::injected(function);
    if let (None, Some(code)) = (injected, real()) {
        return code;
    }
    let injected = injected.map(|code| Fault::new(code, "a fault that the test asked for"));
    match injected.map_or_else(answer, Err) {
        Ok(()) => 0,
        Err(fault) => refused(function, &fault),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(number: i32, to: *mut *const c_char) -> i32 {
    let name = error(number).map_or("CUDA_ERROR_UNKNOWN\0", |(_, name, _)| name);
    put(to, name.as_ptr().cast()).map_or(code::INVALID_VALUE, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(number: i32, to: *mut *const c_char) -> i32 {
    let text = error(number).map_or("unknown error\0", |(.., text)| text);
    put(to, text.as_ptr().cast()).map_or(code::INVALID_VALUE, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(flags: u32) -> i32 {
    type Function = unsafe extern "C" fn(u32) -> i32;
    // SAFETY: takes no pointer.
    let real = || function::<Function>("cuInit").map(|real| unsafe { real(flags) });
    asked("cuInit", real, || match description().devices {
        0 => Err(Fault::new(code::NO_DEVICE, "the description has no device")),
        _ => Ok(()),
    })
}

type Number = unsafe extern "C" fn(*mut i32) -> i32;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(to: *mut i32) -> i32 {
    // SAFETY: the caller's promise.
    let real = || function::<Number>("cuDriverGetVersion").map(|real| unsafe { real(to) });
    asked("cuDriverGetVersion", real, || put(to, description().driver))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetCount(to: *mut i32) -> i32 {
    // SAFETY: the caller's promise.
    let real = || function::<Number>("cuDeviceGetCount").map(|real| unsafe { real(to) });
    asked("cuDeviceGetCount", real, || put(to, description().devices))
}

driver! {
    fn cuDeviceGet(to: *mut i32, ordinal: i32) = |state| {
        state.check_device_number(ordinal)?;
        put(to, ordinal)
    };

    fn cuDeviceGetName(to: *mut c_char, length: i32, device: i32) = |state| {
        state.check_device_number(device)?;
        put_text(to, length, &state.description.name)
    };

    fn cuDeviceTotalMem_v2(to: *mut usize, device: i32) = |state| {
        state.check_device_number(device)?;
        put(to, state.description.memory_bytes as usize)
    };

    fn cuDeviceGetUuid(to: *mut [u8; 16], device: i32) = |state| {
        state.check_device_number(device)?;
        put(to, state.description.uuid(device))
    };

    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], device: i32) = |state| {
        state.check_device_number(device)?;
        put(to, state.description.uuid(device))
    };

    fn cuDeviceGetPCIBusId(to: *mut c_char, length: i32, device: i32) = |state| {
        state.check_device_number(device)?;
        let bus = state.description.pci_bus + device;
        put_text(to, length, &format!("0000:{bus:02X}:00.0"))
    };

    fn cuDeviceGetAttribute(to: *mut i32, attribute: i32, device: i32) = |state| {
        state.check_device_number(device)?;
        let of = state.description;
        let value = match attribute {
            1..=3 => 1024,
            4 => 64,
            5 => i32::MAX,
            6 | 7 => 65_535,
            8 => of.shared_per_block,
            9 => 65_536,
            10 => 32,
            11 => i32::MAX,
            12 | 82 => of.registers_per_block,
            13 => of.sm_clock_mhz as i32 * 1000,
            16 => of.multiprocessors,
            17 | 18 | 20 | 34 | 50 | 88 | 100 | 101 => 0,
            33 => of.pci_bus + device,
            35 => 0,
            32 => 1,
            36 => of.memory_clock_mhz as i32 * 1000,
            37 => of.memory_bus_bits,
            38 => of.l2_bytes,
            39 => of.threads_per_multiprocessor,
            40 => 2,
            75 => of.compute_capability.0,
            76 => of.compute_capability.1,
            81 => of.shared_per_multiprocessor,
            97 => of.shared_per_block_optin,
            106 => 32,
            111 => 1024,
            // What a device can do: map host memory, overlap, pools, managed memory and the like.
            15 | 19 | 31 | 41 | 78..=80 | 83 | 86 | 89..=95 | 99 | 102 | 115 => 1,
            _ => {
                let why = format!("a device's attribute {attribute} is not known here");
                return Err(Fault::new(code::INVALID_VALUE, why));
            }
        };
        put(to, value)
    };

    fn cuDeviceCanAccessPeer(to: *mut i32, device: i32, peer: i32) = |state| {
        state.check_device_number(device)?;
        state.check_device_number(peer)?;
        put(to, i32::from(device != peer))
    };

    fn cuDevicePrimaryCtxRetain(to: *mut u64, device: i32) = |state| {
        state.given = given(to);
        let context = state.retain(device)?;
        put(to, context)
    };

    fn cuDevicePrimaryCtxRelease_v2(device: i32) = |state| state.release(device);

    fn cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32) = |state| {
        state.check_device_number(device)?;
        put(flags, 0)?;
        put(active, i32::from(state.primary(device).is_some()))
    };

    fn cuCtxSetCurrent(context: u64) = |state| {
        if context != 0 && !state.contexts.contains_key(&context) {
            return Err(Fault::new(code::INVALID_CONTEXT, "there is no such context"));
        }
        context::set_current(context);
        Ok(())
    };

    fn cuCtxGetCurrent(to: *mut u64) = |_state| put(to, context::get_current());

    fn cuCtxGetDevice(to: *mut i32) = |state| {
        let device = state.current_device()?;
        put(to, device)
    };

    fn cuCtxSynchronize() = |state| {
        let context = state.current()?;
        log::call("wait for the context");
        state.check_no_capture("cuCtxSynchronize")?;
        state.synchronize_context(context);
        Ok(())
    };

    fn cuCtxResetPersistingL2Cache() = |state| {
        state.current()?;
        log::call("reset the persisting lines of the L2 cache");
        Ok(())
    };

    fn cuCtxSetFlags(_flags: u32) = |state| state.current().map(drop);

    fn cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) = |_state| {
        put(least, 0)?;
        put(greatest, -5)
    };

    fn cuCtxEnablePeerAccess(peer: u64, _flags: u32) = |state| {
        let current = state.current()?;
        let context = state.contexts.get_mut(&current).expect("it is current");
        if context.peers.contains(&peer) {
            return Err(Fault::new(704, "peer access is enabled already"));
        }
        context.peers.push(peer);
        log::call("enable access to the memory of a peer");
        Ok(())
    };
}
