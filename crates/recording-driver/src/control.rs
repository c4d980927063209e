//! What a test asks of the loaded library, by `dlsym`. All of these take and give plain C types.
//!
//! | symbol | what it does |
//! | --- | --- |
//! | `void crossover_recording_driver(void)` | is exported by nothing else: whoever finds it knows that kernels execute nothing here |
//! | `void crossover_recording_driver_mark(const char *)` | writes `== text` into the log, and begins the phase of that name for [faults](crate::fault::FAULTS) |
//! | `void crossover_recording_driver_restart_names(void)` | names begin at 1 again |

use std::ffi::{CStr, c_char};

use crate::state::lock;
use crate::{fault, log};

/// Names a file that gets, when the process ends, how often each function was called in each phase: a
/// line `phase function count` each, between tabs. From it a test knows which faults there can be.
pub const CALLS: &str = "RECORDING_DRIVER_CALLS";

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver() {}

#[unsafe(no_mangle)]
unsafe extern "C" fn crossover_recording_driver_mark(text: *const c_char) {
    // SAFETY: the caller promises a string of C.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    fault::enter(&text);
    log::call(format_args!("== {text}"));
}

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver_restart_names() {
    lock().names.restart();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report;

/// What is written when the process ends.
extern "C" fn report() {
    if let Some(path) = std::env::var_os(CALLS) {
        // Nobody is left to be told of an error.
        let _ = std::fs::write(path, fault::calls());
    }
}
