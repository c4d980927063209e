//! Events: when work was done, by the virtual clock.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::fault::{Fault, code};
use crate::objects::{Event, PENDING, Record, Work};
use crate::state::{Outcome, State, known, removed};

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

impl State {
    pub(crate) fn create_event(&mut self, flags: u32) -> Outcome<u64> {
        let device = self.current()?;
        let times = flags & DISABLE_TIMING == 0;
        let name = self.names.next("e");
        let kind = if times { "" } else { ", which does not time" };
        log!("create {name}{kind}");
        let handle = self.made();
        let event = Event {
            name,
            device,
            times,
            last: None,
            captured: None,
        };
        self.events.insert(handle, event);
        Ok(handle)
    }

    pub(crate) fn destroy_event(&mut self, handle: u64) -> Outcome {
        let event = removed(&mut self.events, handle, "event")?;
        log!("destroy {}", event.name);
        Ok(())
    }

    pub(crate) fn record(&mut self, event: u64, stream: u64) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let on = &self.streams[&stream];
        let (capture, device) = (on.capture.clone(), on.device);
        let event = known(&mut self.events, event, "event")?;
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
        self.enqueue(stream, Work::Record(record), |on| {
            format!("record {name} on {on}")
        })
    }

    /// Makes a stream wait for the work before an event's record.
    pub(crate) fn wait_event(&mut self, stream: u64, event: u64) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let event = known(&mut self.events, event, "event")?;
        let (name, last) = (event.name.clone(), event.last.clone());
        if let Some(after) = event.captured.clone() {
            return self.join_capture(stream, &name, after);
        }
        if self.streams[&stream].capture.is_some() {
            let why = format!("a captured stream waits for {name}, which was recorded outside");
            return Err(self.spoil_capture(code::CAPTURE_ISOLATION, why));
        }
        let Some(record) = last else {
            return Ok(());
        };
        self.enqueue(stream, Work::Wait(record), |on| {
            format!("{on} waits for {name}")
        })
    }

    pub(crate) fn synchronize_event(&mut self, handle: u64) -> Outcome {
        let event = known(&mut self.events, handle, "event")?;
        log!("wait for {}", event.name);
        if event.captured.is_some() {
            return Err(fault!(
                CAPTURED_EVENT,
                "{} was recorded in a capture",
                event.name
            ));
        }
        if let Some(record) = event.last.clone() {
            self.finish_until(record.stream, || record.is_done());
            self.clock.wait_until(record.time().unwrap_or(0));
        }
        Ok(())
    }

    /// Milliseconds from one event to the other.
    pub(crate) fn elapsed(&mut self, start: u64, end: u64) -> Outcome<f32> {
        let mut time = |handle| {
            let event = known(&mut self.events, handle, "event")?;
            let name = &event.name;
            let record = event.last.as_ref().filter(|_| event.times);
            let record = record.ok_or_else(|| {
                let why = format!("{name} was never recorded, or created without timing");
                Fault::new(code::INVALID_HANDLE, why)
            })?;
            let not_ready = || Fault::new(code::NOT_READY, format!("{name} is ahead"));
            let time = record.time().ok_or_else(not_ready)?;
            Ok((time, name.clone(), event.device))
        };
        let ((start, name, from), (end, _, to)) = (time(start)?, time(end)?);
        of_same_device(&name, from, to)?;
        Ok(((end as f64 - start as f64) / 1e6) as f32)
    }
}

/// # Errors
/// The event is used with a stream or an event of another device.
fn of_same_device(event: &str, device: usize, other: usize) -> Outcome {
    match device == other {
        true => Ok(()),
        false => Err(Fault::new(
            code::INVALID_HANDLE,
            format!("{event} of device {device} is used with what is of device {other}"),
        )),
    }
}
