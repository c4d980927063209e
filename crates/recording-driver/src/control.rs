//! Functions that a test looks up in the loaded library by `dlsym`. All take and return plain C types.
//!
//! | symbol | what it does |
//! | --- | --- |
//! | `void crossover_recording_driver(void)` | is exported by nothing else: whoever finds it knows that kernels execute nothing here |
//! | `void crossover_recording_driver_mark(const char *)` | writes `== text` into the log, and begins the phase of that name for [faults](crate::fault::FAULTS) |
//! | `char *crossover_recording_driver_plan(const char *)` | plans a [fault](crate::fault::FAULTS) in place of the one before, and returns the calls so far: lines `phase function count`, separated by tabs |
//! | `void crossover_recording_driver_restart_names(void)` | names begin at 1 again |

use std::ffi::{CStr, CString, c_char};

use crate::fault;
use crate::state::lock;

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver() {}

#[unsafe(no_mangle)]
unsafe extern "C" fn crossover_recording_driver_mark(text: *const c_char) {
    // SAFETY: the caller promises a string of C.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    fault::enter(&text);
    log!("== {text}");
}

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver_restart_names() {
    lock().names.restart();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn crossover_recording_driver_plan(faults: *const c_char) -> *mut c_char {
    // SAFETY: the caller promises a string of C.
    let faults = unsafe { CStr::from_ptr(faults) }.to_string_lossy();
    let calls = CString::new(fault::plan(&faults));
    calls.map_or(std::ptr::null_mut(), CString::into_raw)
}
