//! The cores that a thread may use.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Keeps a thread on some cores. When this is dropped, the thread may use those that it had before.
pub struct OnCores(CpuSet);

impl OnCores {
    /// Keeps this thread on those of these cores that it may use; `None` where that is none of them.
    pub fn new(cores: &[usize]) -> Option<Self> {
        let this_thread = Pid::from_raw(0);
        let before = sched_getaffinity(this_thread).ok()?;
        let mut kept = CpuSet::new();
        for &core in cores {
            if before.is_set(core).unwrap_or(false) {
                kept.set(core).ok()?;
            }
        }
        sched_setaffinity(this_thread, &kept).ok()?;
        Some(Self(before))
    }
}

impl Drop for OnCores {
    fn drop(&mut self) {
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}
