//! What a test asks of the loaded library, by `dlsym`. All of these take and give plain C types.
//!
//! | symbol | what it does |
//! | --- | --- |
//! | `const char *crossover_recording_driver(void)` | is exported by nothing else: whoever finds it knows that kernels execute nothing here. The name of the device's description |
//! | `void crossover_recording_driver_mark(const char *)` | writes `== text` into the log, and begins the phase of that name for [faults](crate::fault::FAULTS) |
//! | `void crossover_recording_driver_restart_names(void)` | names begin at 1 again; what is there already is called `earlier d1` |

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use crate::device::description;
use crate::library::Named;
use crate::state::{State, lock, try_lock};
use crate::{cublas, cublaslt, cufft, fault, log};

/// Names a file that gets, when the process ends, how often each function was called in each phase: a
/// line `phase function count` each, between tabs. From it a test knows which faults there can be.
pub const CALLS: &str = "RECORDING_DRIVER_CALLS";

/// What the driver's libraries give out.
static HANDLES: [&dyn Named; 5] = [
    &cublas::HANDLES,
    &cublaslt::DESCRIPTIONS,
    &cublaslt::LAYOUTS,
    &cublaslt::PREFERENCES,
    &cufft::PLANS,
];

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    let name = || CString::new(description().name.as_str()).unwrap_or_default();
    NAME.get_or_init(name).as_ptr()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn crossover_recording_driver_mark(text: *const c_char) {
    // SAFETY: the caller promises a string of C.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    fault::enter(&text);
    log::call(format_args!("== {text}"));
}

#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver_restart_names() {
    lock().restart_names();
    HANDLES.iter().for_each(|handles| handles.restart_names());
}

/// What was not given back, to the driver and to its libraries, by name and number: addresses, which
/// it is found by, are in no order.
fn leaks(state: &State) -> Vec<String> {
    let mut leaks = state.leaks();
    leaks.extend(HANDLES.iter().flat_map(|handles| handles.leaks()));
    leaks.sort_by_cached_key(|leak| {
        let digits = leak
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(leak.len());
        let (noun, rest) = leak.split_at(digits);
        let number = rest.split(|c: char| !c.is_ascii_digit()).next();
        let number = number.and_then(|number| number.parse::<u64>().ok());
        (noun.to_owned(), number)
    });
    leaks
}

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report;

/// What is written when the process ends.
extern "C" fn report() {
    if let Some(state) = try_lock() {
        for leak in leaks(&state) {
            log::call(format_args!("at the end of the process: {leak}"));
        }
    }
    if let Some(path) = std::env::var_os(CALLS) {
        // Nobody is left to be told of an error.
        let _ = std::fs::write(path, fault::calls());
    }
}
