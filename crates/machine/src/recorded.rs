//! Detects the recording driver of the tests, which executes nothing.

use std::sync::OnceLock;

use cudarc::driver::sys;

/// Exported by that driver and by no other.
const SYMBOL: &[u8] = b"crossover_recording_driver\0";

/// Whether the loaded driver is the one that tests put in place of NVIDIA's. It writes no results of
/// kernels, so nothing can be compared, and its device times are invented. It is recognised by a symbol
/// that it exports, not by a setting.
pub fn recorded() -> bool {
    static RECORDED: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens the library, whose initialisers are the vendor's, and looks a name up without
    // calling what it finds.
    *RECORDED.get_or_init(|| unsafe {
        sys::is_culib_present() && sys::culib().get::<unsafe extern "C" fn()>(SYMBOL).is_ok()
    })
}
