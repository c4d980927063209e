use std::sync::{Mutex, MutexGuard};

/// Held by a test for as long as it uses the device. A test of another thread that
/// synchronises or loads a module would wait behind this one's gate, and the gate for it.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static DEVICE: Mutex<()> = Mutex::new(());
    DEVICE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
