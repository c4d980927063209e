//! `char *crossover_recording_driver(const char *)`, which a test looks up in the loaded library by `dlsym`.
//! It is exported by nothing else: whoever finds it knows that kernels execute nothing here.
//!
//! | text | what it does |
//! | --- | --- |
//! | `== name` | writes the text into the log, and begins the phase of that name for [faults](crate::fault::FAULTS) |
//! | another | plans this [fault](crate::fault::FAULTS) in place of the one before, lets names begin at 1 again, and returns the calls so far: lines `phase function count`, separated by tabs |

use std::ffi::{CStr, CString, c_char};

use crate::fault;
use crate::log::Names;
use crate::state::lock;

#[unsafe(no_mangle)]
unsafe extern "C" fn crossover_recording_driver(text: *const c_char) -> *mut c_char {
    // SAFETY: the caller promises a string of C.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let Some(phase) = text.strip_prefix("== ") else {
        lock().names = Names::default();
        let calls = CString::new(fault::plan(&text));
        return calls.map_or(std::ptr::null_mut(), CString::into_raw);
    };
    fault::enter(phase);
    log!("{text}");
    std::ptr::null_mut()
}
