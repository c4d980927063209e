//! Streams: queues of work that runs in order, as late as possible: when the host waits for it or
//! queries it. So a missing wait shows: a host that reads too early reads old content.

use std::collections::VecDeque;

use crate::clock::Time;
use crate::fault::{Fault, code};
use crate::objects::{Progress, Stream, Used, Work};
use crate::state::{Outcome, State, known};

/// The handles that callers use for the legacy default stream.
const LEGACY: [u64; 2] = [0, 1];

impl State {
    pub(crate) fn create_stream(&mut self, non_blocking: bool) -> Outcome<u64> {
        let device = self.current()?;
        let name = self.names.next("s");
        log!("create {name}");
        let handle = self.made();
        self.insert_stream(handle, name, device, non_blocking);
        Ok(handle)
    }

    fn insert_stream(&mut self, handle: u64, name: String, device: usize, non_blocking: bool) {
        let stream = Stream {
            name,
            device,
            non_blocking,
            is_legacy: false,
            queue: VecDeque::new(),
            time: 0,
            capture: None,
        };
        self.streams.insert(handle, stream);
    }

    pub(crate) fn destroy_stream(&mut self, handle: u64) -> Outcome {
        known(&mut self.streams, handle, "stream")?;
        self.finish(handle);
        let stream = self.streams.remove(&handle).expect("known");
        log!("destroy {}", stream.name);
        self.capture.take_if(|capture| capture.origin == handle);
        Ok(())
    }

    /// The handle of a stream that this thread may put work into: the legacy default stream of the
    /// current device for 0.
    pub(crate) fn usable_stream(&mut self, handle: u64) -> Outcome<u64> {
        let device = self.current()?;
        if LEGACY.contains(&handle) {
            return Ok(self.legacy(device));
        }
        known(&mut self.streams, handle, "stream")?;
        Ok(handle)
    }

    /// The legacy default stream of a device.
    fn legacy(&mut self, device: usize) -> u64 {
        let mut streams = self.streams.iter();
        if let Some((&handle, _)) = streams.find(|(_, s)| s.is_legacy && s.device == device) {
            return handle;
        }
        let handle = self.made();
        self.insert_stream(handle, "the default stream".to_owned(), device, false);
        self.streams
            .entry(handle)
            .and_modify(|s| s.is_legacy = true);
        handle
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
        if stream.is_legacy {
            self.check_no_capture("work on the default stream")?;
            self.finish_blocking_streams(handle);
        }
        // A full queue blocks the host until its first piece of work is done, gate or not.
        let depth = self.devices[self.streams[&handle].device]
            .description
            .queue_depth;
        while self.streams[&handle].queue.len() >= depth {
            self.run_next(handle, true);
            let time = self.streams[&handle].time;
            self.clock.wait_until(time);
        }
        let now = self.clock.host;
        let stream = self.streams.get_mut(&handle).expect("known");
        stream.queue.push_back((now, work));
        if stream.is_legacy {
            self.finish(handle);
        }
        Ok(())
    }

    /// Puts a library's kernel into a stream. `text` describes it, such as `cublasSgemm_v2 64 x 64 x 64
    /// f32 in 32F: d3 = d2 d1`. It takes the time of `flop` operations at the device's stated rate.
    /// Memory in `used` must still exist when it runs, in each replay of a graph.
    pub(crate) fn launch_library(
        &mut self,
        stream: u64,
        text: &str,
        flop: f64,
        used: Vec<Used>,
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
        let work = Work::Library { flop, used };
        self.enqueue(stream, work, |on| format!("{text} on {on}"))
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
        let on = self.devices[stream.device].description;
        if let Work::Wait(record) = &work {
            while !record.is_done() {
                match self.run_next(record.stream, forced) {
                    Progress::Something => {}
                    Progress::Nothing => break,
                    Progress::Blocked => {
                        self.put_back(handle, enqueued, work);
                        return Progress::Blocked;
                    }
                }
            }
        }
        match self.run(on, &work, start, forced) {
            Some(end) => {
                self.streams.get_mut(&handle).expect("it had work").time = end;
                Progress::Something
            }
            None => {
                self.put_back(handle, enqueued, work);
                Progress::Blocked
            }
        }
    }

    fn put_back(&mut self, handle: u64, enqueued: Time, work: Work) {
        let stream = self.streams.get_mut(&handle).expect("it had work");
        stream.queue.push_front((enqueued, work));
    }

    /// Runs the work that does not need the host to wait. Returns whether the stream is then idle.
    pub(crate) fn advance(&mut self, handle: u64) -> bool {
        loop {
            match self.run_next(handle, false) {
                Progress::Something => {}
                Progress::Nothing => return true,
                Progress::Blocked => return false,
            }
        }
    }

    /// Runs everything; gates open by their timeout.
    pub(crate) fn finish(&mut self, handle: u64) {
        loop {
            // A gate is forced only if nothing else can run.
            if self.advance(handle) {
                return;
            }
            self.run_next(handle, true);
        }
    }

    /// Runs a stream until a record of an event is done.
    pub(crate) fn finish_until(&mut self, stream: u64, done: impl Fn() -> bool) {
        while !done() {
            match self.run_next(stream, false) {
                Progress::Something => {}
                Progress::Blocked => drop(self.run_next(stream, true)),
                Progress::Nothing => return,
            }
        }
    }

    fn finish_blocking_streams(&mut self, legacy: u64) {
        let device = self.streams[&legacy].device;
        let blocking = self.streams.iter();
        let blocking = blocking.filter(|(_, s)| !s.non_blocking && s.device == device);
        for handle in blocking.map(|(&handle, _)| handle).collect::<Vec<_>>() {
            self.finish(handle);
            let ended = self.streams[&handle].time;
            let legacy = self.streams.get_mut(&legacy).expect("the caller's");
            legacy.time = legacy.time.max(ended);
        }
    }

    pub(crate) fn synchronize_stream(&mut self, handle: u64) -> Outcome {
        let handle = self.usable_stream(handle)?;
        let stream = &self.streams[&handle];
        log!("wait for {}", stream.name);
        if stream.capture.is_some() {
            let why = "the host waits for a stream that is being captured".to_owned();
            return Err(self.spoil_capture(code::CAPTURE_UNSUPPORTED, why));
        }
        self.finish(handle);
        let ended = self.streams[&handle].time;
        self.clock.wait_until(ended);
        Ok(())
    }

    /// Runs all work of a device, and makes the host wait for it.
    pub(crate) fn synchronize_device(&mut self, device: usize) {
        let streams = self.streams.iter().filter(|(_, s)| s.device == device);
        for handle in streams.map(|(&handle, _)| handle).collect::<Vec<_>>() {
            self.finish(handle);
            let ended = self.streams[&handle].time;
            self.clock.wait_until(ended);
        }
    }
}
