//! Functions that a test looks up in the loaded library by `dlsym`. All take and return plain C types.
//!
//! | symbol | what it does |
//! | --- | --- |
//! | `void crossover_recording_driver(void)` | is exported by nothing else: whoever finds it knows that kernels execute nothing here |
//! | `void crossover_recording_driver_mark(const char *)` | writes `== text` into the log, and begins the phase of that name for [faults](crate::fault::FAULTS) |
//! | `void crossover_recording_driver_restart_names(void)` | names begin at 1 again |

use std::ffi::{CStr, c_char};

use crate::fault;
use crate::state::lock;

/// Names a file for the number of calls of each function in each phase, written when the process ends:
/// lines `phase function count`, separated by tabs. A test derives the possible faults from it.
pub const CALLS: &str = "RECORDING_DRIVER_CALLS";

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

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report;

/// Written when the process ends.
extern "C" fn report() {
    if let Some(path) = std::env::var_os(CALLS) {
        // An error could no longer be reported.
        let _ = std::fs::write(path, fault::calls());
    }
}
