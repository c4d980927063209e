//! Streams and captures.

use crate::driver::{driver, given, put};
use crate::state::known;

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

driver! {
    fn cuStreamCreate(to: *mut u64, flags: u32) = |state| {
        state.given = given(to);
        let stream = state.create_stream(flags & NON_BLOCKING != 0)?;
        put(to, stream)
    };

    fn cuStreamCreateWithPriority(to: *mut u64, flags: u32, _priority: i32) = |state| {
        state.given = given(to);
        let stream = state.create_stream(flags & NON_BLOCKING != 0)?;
        put(to, stream)
    };

    fn cuStreamDestroy_v2(stream: u64) = |state| state.destroy_stream(stream);

    fn cuStreamSynchronize(stream: u64) = |state| state.synchronize_stream(stream);

    fn cuStreamQuery(stream: u64) = |state| state.query_stream(stream);

    fn cuStreamGetCtx(stream: u64, to: *mut u64) = |state| {
        let context = known(&mut state.streams, stream, "stream")?.context;
        put(to, context)
    };

    fn cuStreamWaitEvent(stream: u64, event: u64, _flags: u32) = |state| {
        state.wait_event(stream, event)
    };

    fn cuStreamBeginCapture_v2(stream: u64, mode: u32) = |state| state.begin_capture(stream, mode);

    fn cuStreamEndCapture(stream: u64, to: *mut u64) = |state| {
        put(to, 0)?;
        state.given = given(to);
        let graph = state.end_capture(stream)?;
        put(to, graph)
    };

    fn cuStreamIsCapturing(stream: u64, to: *mut u32) = |state| {
        let status = state.is_capturing(stream)?;
        put(to, status)
    };
}
