//! How much time the ceilings of the CPU get.

use std::time::Duration;

/// How long the CPU's ceilings are measured, before the first benchmark and again after the last. The
/// best repetition counts: whatever else runs on a CPU only ever slows it, and nothing may exceed a
/// limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Repetitions of the arithmetic, and the length of each.
    pub(super) arithmetic: (usize, Duration),
    /// The same of each point of the memory's curve.
    pub(super) memory: (usize, Duration),
    /// The largest working set in bytes.
    pub(super) largest: usize,
}

impl Effort {
    /// Two to three seconds on two cores. The largest working set is beyond the last-level cache of
    /// most processors. Those of servers have 256 MiB and more, and a working set of that size would
    /// tell nothing of the memory.
    pub(crate) const WHOLE: Self = Self {
        arithmetic: (10, Duration::from_millis(25)),
        memory: (3, Duration::from_millis(5)),
        largest: 1 << 30,
    };
    /// Some 50 ms, for a run whose shares of the limits nobody reads: caches alone.
    pub(crate) const BRIEF: Self = Self {
        arithmetic: (1, Duration::from_millis(5)),
        memory: (1, Duration::from_millis(1)),
        largest: 4 << 20,
    };
}
