//! Streams and captures.

use super::DRIVER;
use crate::call::{exported, make, put};
use crate::state::known;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

exported! { DRIVER:
    fn cuStreamCreate(to: *mut u64, flags: u32) = |state| make(to, state.create_stream(flags & NON_BLOCKING != 0)?);

    fn cuStreamDestroy_v2(stream: u64) = |state| state.destroy_stream(stream);

    fn cuStreamSynchronize(stream: u64) = |state| state.synchronize_stream(stream);

    fn cuStreamGetCtx(stream: u64, to: *mut u64) = |state| {
        let device = known(&mut state.streams, stream, "stream")?.device;
        put(to, state.devices[device].context)
    };

    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) = |state| {
        state.wait_event(stream, event)
    };

    fn cuStreamBeginCapture_v2(stream: u64, _mode: u32) = |state| state.begin_capture(stream);

    fn cuStreamEndCapture(stream: u64, to: *mut u64) = |state| {
        put(to, 0)?;
        make(to, state.end_capture(stream)?)
    };

}
