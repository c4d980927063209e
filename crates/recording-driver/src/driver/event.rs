//! Events.

use super::DRIVER;
use crate::call::{exported, make, put};

exported! { DRIVER:
    fn cuEventCreate(to: *mut u64, flags: u32) = |state| make(to, state.create_event(flags)?);

    fn cuEventDestroy_v2(event: u64) = |state| state.destroy_event(event);

    fn cuEventRecord(event: u64, stream: u64) = |state| state.record(event, stream);

    fn cuEventSynchronize(event: u64) = |state| state.synchronize_event(event);

    fn cuEventElapsedTime_v2(to: *mut f32, start: u64, end: u64) = |state| {
        let milliseconds = state.elapsed(start, end)?;
        put(to, milliseconds)
    };
}
