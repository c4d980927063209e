//! Streams: queues of work that runs in order, as late as possible: when the host waits for it or
//! queries it. So a missing wait shows: a host that reads too early reads old content.

use std::time::Duration;

use crate::call::{DRIVER, exported};
use crate::context::WAITS;
use crate::effects::Effect;
use crate::fault::Fault;
use crate::objects::{Progress, Stream, Used, Work};
use crate::state::{Outcome, State, known, removed};

/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default stream.
const NON_BLOCKING: u32 = 1;

/// The handle of a device's default stream. Small numbers are the driver's own names of streams.
pub(crate) fn default_stream(device: usize) -> u64 {
    0x100 + device as u64
}

exported! { DRIVER:
    fn cuStreamCreate(state, flags: u32) -> u64 {
        let device = state.current()?;
        if flags != NON_BLOCKING {
            return Err(Fault::unknown("a stream with the flags", flags));
        }
        let name = state.names.next("s");
        log!("create {name}");
        let handle = state.made();
        state.insert_stream(handle, name, device);
        Ok(handle)
    }

    fn cuStreamDestroy_v2(state, handle: u64) {
        // The host does not wait for its work.
        state.finish_until(handle, || false);
        let stream = removed(&mut state.streams, handle, "stream")?;
        log!("destroy {}", stream.name);
        state.capture.take_if(|capture| capture.origin == handle);
        Ok(())
    }

    fn cuStreamSynchronize(state, handle: u64) {
        let handle = state.usable_stream(handle)?;
        log!("wait for {}", state.streams[&handle].name);
        if state.streams[&handle].capture.is_some() {
            return Err(state.spoiled(fault!(
                CAPTURE_UNSUPPORTED,
                "the host waits for a stream that is being captured"
            )));
        }
        let begun = state.clock.host;
        state.finish(handle);
        if std::env::var_os(WAITS).is_some_and(|value| value == "streams") {
            std::thread::sleep(Duration::from_nanos(state.clock.host - begun));
        }
        Ok(())
    }

    fn cuStreamGetCtx(state, stream: u64) => u64 {
        let device = known(&mut state.streams, stream, "stream")?.device;
        Ok(state.devices[device].context)
    }
}

impl State {
    pub(crate) fn insert_stream(&mut self, handle: u64, name: String, device: usize) {
        let stream = Stream {
            name,
            device,
            ..Stream::default()
        };
        self.streams.insert(handle, stream);
    }

    /// The handle of a stream that this thread may put work into: the default stream of the current
    /// device for 0 and 1.
    pub(crate) fn usable_stream(&mut self, handle: u64) -> Outcome<u64> {
        let device = self.current()?;
        if handle < 2 {
            return Ok(default_stream(device));
        }
        let is_captured = known(&mut self.streams, handle, "stream")?
            .capture
            .is_some();
        if is_captured && self.capture.as_ref().is_some_and(|capture| capture.spoiled) {
            return Err(fault!(
                CAPTURE_INVALIDATED,
                "a stream of a capture that an earlier call has spoiled"
            ));
        }
        Ok(handle)
    }

    /// Puts work at a stream's end, or into the capture that it is in. `text` gets the stream's name.
    pub(crate) fn enqueue(
        &mut self,
        handle: u64,
        work: Work,
        text: impl FnOnce(&str) -> String,
    ) -> Outcome {
        let stream = known(&mut self.streams, handle, "stream")?;
        if stream.capture.is_some() {
            return self.add_node(handle, work, text);
        }
        log!("{}", text(&stream.name));
        // A full queue blocks the host until its first piece of work is done, gate or not.
        let depth = self.devices[stream.device].description.queue_depth;
        while self.streams[&handle].queue.len() >= depth {
            self.run_next(handle, true);
            self.clock.wait_until(self.streams[&handle].time);
        }
        let now = self.clock.host;
        let stream = self.streams.get_mut(&handle).expect("known");
        stream.queue.push_back((now, work));
        Ok(())
    }

    /// Puts a kernel into a stream. Memory in `used` must still exist when it runs, in each replay of
    /// a graph.
    pub(crate) fn launch(
        &mut self,
        stream: u64,
        effect: Effect,
        used: Vec<Used>,
        text: impl FnOnce(&str) -> String,
    ) -> Outcome {
        if let Some(code) = self.lost {
            return Err(Fault::new(code, "the context is lost"));
        }
        let stream = self.usable_stream(stream)?;
        let device = self.streams[&stream].device;
        for used in &used {
            self.check_access(device, used.address)?;
        }
        self.clock.host += self.devices[device].description.launch_ns;
        let correlation = self.tool.launched();
        let work = Work::Kernel {
            effect,
            used,
            correlation,
        };
        self.enqueue(stream, work, text)
    }

    /// Runs the first piece of work of a stream. A closed gate stays, unless it is `forced`: then the
    /// time passes after which it opens by itself.
    fn run_next(&mut self, handle: u64, forced: bool) -> Progress {
        let Some(stream) = self.streams.get_mut(&handle) else {
            return Progress::Nothing;
        };
        let Some((enqueued, work)) = stream.queue.pop_front() else {
            return Progress::Nothing;
        };
        let start = enqueued.max(stream.time);
        let device = &mut self.devices[stream.device];
        let on = device.description;
        if let Work::Kernel { .. } | Work::Graph(_) = work {
            self.clock.longer = device.runs_kernel(handle);
        }
        let mut end = None;
        if self.has_reached(&work, forced) {
            self.running = handle;
            end = self.run(on, &work, start, forced);
        }
        let stream = self.streams.get_mut(&handle).expect("it had work");
        match end {
            Some(end) => {
                stream.time = end;
                Progress::Something
            }
            None => {
                stream.queue.push_front((enqueued, work));
                Progress::Blocked
            }
        }
    }

    /// Runs what comes before a record that another stream waits for. Returns whether no gate is
    /// before it.
    fn has_reached(&mut self, work: &Work, forced: bool) -> bool {
        let Work::Wait(record) = work else {
            return true;
        };
        while !record.is_done() {
            match self.run_next(record.stream, forced) {
                Progress::Something => {}
                Progress::Nothing => return true,
                Progress::Blocked => return false,
            }
        }
        true
    }

    /// Runs the work before the first closed gate.
    pub(crate) fn advance(&mut self, handle: u64) {
        while self.run_next(handle, false) == Progress::Something {}
    }

    /// Runs a stream until a record of an event is done. A gate is forced only if nothing else can
    /// run.
    pub(crate) fn finish_until(&mut self, stream: u64, done: impl Fn() -> bool) {
        while !done() {
            match self.run_next(stream, false) {
                Progress::Something => {}
                Progress::Blocked => drop(self.run_next(stream, true)),
                Progress::Nothing => return,
            }
        }
    }

    /// Runs all work of a stream, gates by their timeout, and makes the host wait for it.
    pub(crate) fn finish(&mut self, handle: u64) {
        self.finish_until(handle, || false);
        self.clock.wait_until(self.streams[&handle].time);
    }

    /// The same for all streams of a device, the newest first: nothing orders them.
    pub(crate) fn finish_device(&mut self, device: usize) {
        let streams = self.streams.iter().filter(|(_, s)| s.device == device);
        for handle in streams.map(|(&handle, _)| handle).rev().collect::<Vec<_>>() {
            self.finish(handle);
        }
    }
}
