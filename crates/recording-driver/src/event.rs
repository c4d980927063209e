//! Events: when work was done, by the virtual clock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::call::{DRIVER, exported};
use crate::objects::{Event, PENDING, Record, Work};
use crate::state::{Outcome, known, removed};

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

exported! { DRIVER:
    fn cuEventCreate(state, flags: u32) -> u64 {
        let device = state.current()?;
        let times = flags & DISABLE_TIMING == 0;
        let name = state.names.next("e");
        let kind = if times { "" } else { ", which does not time" };
        log!("create {name}{kind}");
        let event = Event {
            name,
            device,
            times,
            ..Event::default()
        };
        let handle = state.made();
        state.events.insert(handle, event);
        Ok(handle)
    }

    fn cuEventDestroy_v2(state, event: u64) {
        let event = removed(&mut state.events, event, "event")?;
        log!("destroy {}", event.name);
        Ok(())
    }

    fn cuEventRecord(state, event: u64, stream: u64) {
        let stream = state.usable_stream(stream)?;
        let on = &state.streams[&stream];
        let (capture, device) = (on.capture.clone(), on.device);
        let event = known(&mut state.events, event, "event")?;
        let name = event.name.clone();
        of_same_device(&name, event.device, device)?;
        event.captured = capture;
        if event.captured.is_some() {
            log!("capture: record {name} on {}", on.name);
            return Ok(());
        }
        let time = Arc::new(AtomicU64::new(PENDING));
        let record = Record { stream, time };
        event.last = Some(record.clone());
        state.enqueue(stream, Work::Record(record), |on| format!("record {name} on {on}"))
    }

    // Makes a stream wait for the work before an event's record.
    fn cuStreamWaitEvent(state, stream: u64, event: u64, _flags: u32) {
        let stream = state.usable_stream(stream)?;
        let event = known(&mut state.events, event, "event")?;
        let (name, last) = (event.name.clone(), event.last.clone());
        if let Some(after) = event.captured.clone() {
            return state.join_capture(stream, &name, after);
        }
        if state.streams[&stream].capture.is_some() {
            return Err(state.spoiled(fault!(
                CAPTURE_ISOLATION,
                "a captured stream waits for {name}, which was recorded outside"
            )));
        }
        let Some(record) = last else {
            return Ok(());
        };
        state.enqueue(stream, Work::Wait(record), |on| format!("{on} waits for {name}"))
    }

    fn cuEventSynchronize(state, event: u64) {
        let event = known(&mut state.events, event, "event")?;
        log!("wait for {}", event.name);
        if event.captured.is_some() {
            return Err(fault!(CAPTURED_EVENT, "{} was recorded in a capture", event.name));
        }
        if let Some(record) = event.last.clone() {
            state.finish_until(record.stream, || record.is_done());
            state.clock.wait_until(record.time().unwrap_or(0));
        }
        Ok(())
    }

    // Milliseconds from one event to the other.
    fn cuEventElapsedTime_v2(state, start: u64, end: u64) -> f32 {
        let mut time = |handle| {
            let event = known(&mut state.events, handle, "event")?;
            let name = &event.name;
            let record = event.last.as_ref().filter(|_| event.times);
            let record = record.ok_or_else(|| fault!(
                INVALID_HANDLE,
                "{name} was never recorded, or created without timing"
            ))?;
            let time = record.time().ok_or_else(|| fault!(NOT_READY, "{name} is ahead"))?;
            let tick = state.devices[event.device].description.event_tick_ns;
            Ok((time - time % tick, name.clone(), event.device))
        };
        let ((start, name, from), (end, _, to)) = (time(start)?, time(end)?);
        of_same_device(&name, from, to)?;
        Ok(((end as f64 - start as f64) / 1e6) as f32)
    }
}

/// # Errors
/// The event is used with a stream or an event of another device.
fn of_same_device(event: &str, device: usize, other: usize) -> Outcome {
    if device == other {
        return Ok(());
    }
    Err(fault!(
        INVALID_HANDLE,
        "{event} of device {device} is used with what is of device {other}"
    ))
}
