//! SIGINT, SIGTERM and SIGHUP: the first ends the run after the sample that is being taken, a
//! second one of the same kind ends the process.

use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal that asked for the end.
pub(crate) fn signal() -> Option<i32> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(signal),
    }
}

/// Ends the run as SIGHUP would, if no signal has: the process that drives it is gone.
pub(crate) fn end() {
    const SIGHUP: i32 = 1;
    let _ = SIGNAL.compare_exchange(0, SIGHUP, Ordering::SeqCst, Ordering::SeqCst);
}

/// Notes signals from here on.
pub(crate) fn catch() {
    extern "C" fn note(signal: i32) {
        SIGNAL.store(signal, Ordering::SeqCst);
    }
    let once = SigAction::new(
        SigHandler::Handler(note),
        SaFlags::SA_RESETHAND | SaFlags::SA_RESTART,
        SigSet::empty(),
    );
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which a handler may.
        let _ = unsafe { sigaction(signal, &once) };
    }
}
