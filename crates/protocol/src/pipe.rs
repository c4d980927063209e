//! How the command ends when the reader of its output goes away.

use nix::sys::signal::{SigHandler, Signal, signal};

/// Ends this process without a word when the reader of its output goes away (`| head -1`), as
/// other commands end: Rust would have it panic.
pub fn end_with_the_reader() {
    // SAFETY: the default action, set before any thread is started.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
}
