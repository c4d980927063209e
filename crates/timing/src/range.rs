//! Names for parts of the code, for profiles.

use std::marker::PhantomData;

/// Names what this thread does until the guard is dropped. Ranges may nest.
///
/// A profile shows for each range its host time and the device time of the work that was launched
/// in it. While no profile is recorded, a range costs one load. Without the feature `profiler` it
/// does nothing, so library code may always call it.
///
/// ```
/// let forward = crossover_timing::range("forward");
/// // launches of the forward pass
/// drop(forward);
/// ```
pub fn range(name: &str) -> Range {
    #[cfg(not(feature = "profiler"))]
    let _ = name;
    Range {
        #[cfg(feature = "profiler")]
        recorded: crate::profiler::ranges::enter(name),
        _this_thread: PhantomData,
    }
}

/// The guard of a [`range`]: the range ends when it is dropped.
#[derive(Debug)]
#[must_use = "the range ends when its guard is dropped"]
pub struct Range {
    #[cfg(feature = "profiler")]
    recorded: Option<crate::profiler::ranges::Entered>,
    /// CUPTI keeps a stack per thread, so the guard must not move to another thread.
    _this_thread: PhantomData<*const ()>,
}

impl Drop for Range {
    fn drop(&mut self) {
        #[cfg(feature = "profiler")]
        if let Some(entered) = self.recorded.take() {
            crate::profiler::ranges::leave(entered);
        }
    }
}
