//! SIGINT, SIGTERM and SIGHUP: the first one ends the run after the current sample, a second one of the
//! same kind ends the process, unless signals are held. On Windows, Ctrl-C and Ctrl-Break count as SIGINT.

use std::sync::atomic::{AtomicI32, Ordering};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal that was received.
pub fn signal() -> Option<i32> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Ends the run as SIGHUP would, unless a signal was received: the driving process is gone.
pub fn end() {
    const SIGHUP: i32 = 1;
    let _ = SIGNAL.compare_exchange(0, SIGHUP, Ordering::SeqCst, Ordering::SeqCst);
}

/// Records signals from now on, the first one of each kind.
pub fn catch() {
    crate::platform::catch_signals(true);
}

/// Records signals from now on, and holds them: none of them ends the process, which must clean up.
pub fn hold() {
    crate::platform::catch_signals(false);
}

/// Called by a handler: stores to an atomic, which a handler may.
pub(crate) extern "C" fn note(signal: i32) {
    SIGNAL.store(signal, Ordering::SeqCst);
}
