//! Captures: streams whose work becomes nodes of a graph.

use crate::fault::{Fault, code};
use crate::log;
use crate::objects::{Capture, CapturePlace, Graph, Node, Work};
use crate::state::{Answer, State, known};

impl State {
    pub(crate) fn begin_capture(&mut self, stream: u64) -> Answer {
        let stream = self.usable_stream(stream)?;
        let begun = &self.streams[&stream];
        if begun.is_legacy {
            let why = "the default stream cannot be captured";
            return Err(Fault::new(code::CAPTURE_UNSUPPORTED, why));
        }
        if begun.capture.is_some() {
            let why = format!("{} is being captured already", begun.name);
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        log::call(format_args!("capture {}", begun.name));
        let capture = self.handle();
        let begun = Capture {
            origin: stream,
            nodes: Vec::new(),
            spoiled: false,
        };
        self.captures.insert(capture, begun);
        let after = Vec::new();
        self.place(stream, Some(CapturePlace { capture, after }));
        Ok(())
    }

    fn place(&mut self, stream: u64, place: Option<CapturePlace>) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.capture = place;
        }
    }

    pub(crate) fn end_capture(&mut self, stream: u64) -> Answer<u64> {
        let stream = self.usable_stream(stream)?;
        let ended = &self.streams[&stream];
        let name = ended.name.clone();
        let Some(place) = ended.capture.clone() else {
            let why = format!("{name} is not being captured");
            return Err(Fault::new(code::INVALID_VALUE, why));
        };
        let capture = &self.captures[&place.capture];
        if capture.origin != stream {
            let why = format!("the capture was not begun on {name}");
            return Err(Fault::new(code::CAPTURE_UNMATCHED, why));
        }
        let capture = self
            .captures
            .remove(&place.capture)
            .expect("found just now");
        let joined = reached(&capture.nodes, &place.after);
        let mut forked = None;
        for other in self.streams.values_mut() {
            let Some(at) = other.capture.take_if(|p| p.capture == place.capture) else {
                continue;
            };
            if at.after.iter().any(|&node| !joined[node]) {
                forked = Some(other.name.clone());
            }
        }
        if capture.spoiled {
            let why = format!("the capture of {name} was spoiled by an earlier call");
            return Err(Fault::new(code::CAPTURE_INVALIDATED, why));
        }
        if let Some(forked) = forked {
            let why =
                format!("{forked} joined the capture of {name} and {name} does not wait for it");
            return Err(Fault::new(code::CAPTURE_UNJOINED, why));
        }
        let graph = self.names.next("graph");
        let nodes = capture.nodes;
        log::call(format_args!(
            "end of capture: {graph} of {} nodes",
            nodes.len()
        ));
        let handle = self.made();
        self.graphs.insert(handle, Graph { name: graph, nodes });
        Ok(handle)
    }

    /// Makes work of a captured stream a node.
    pub(crate) fn add_node(
        &mut self,
        stream: u64,
        work: Work,
        text: impl FnOnce(&str) -> String,
    ) -> Answer {
        let stream = known(&mut self.streams, stream, "stream")?;
        let place = stream.capture.as_mut().expect("the caller has looked");
        let capture = self.captures.get_mut(&place.capture).expect("it goes on");
        if capture.spoiled {
            let why = format!(
                "the capture of {} was spoiled by an earlier call",
                stream.name
            );
            return Err(Fault::new(code::CAPTURE_INVALIDATED, why));
        }
        let index = capture.nodes.len();
        let after = std::mem::replace(&mut place.after, vec![index]);
        if log::enabled() {
            let numbers: Vec<String> = after.iter().map(|at| (at + 1).to_string()).collect();
            let behind = match numbers.is_empty() {
                true => String::new(),
                false => format!(" after {}", numbers.join(", ")),
            };
            log::call(format_args!(
                "node {}{behind}: {}",
                index + 1,
                text(&stream.name)
            ));
        }
        capture.nodes.push(Node { work, after });
        Ok(())
    }

    /// A stream waits for an event that was recorded in a capture, and so becomes part of it.
    pub(crate) fn join_capture(&mut self, stream: u64, event: &str, place: CapturePlace) -> Answer {
        if !self.captures.contains_key(&place.capture) {
            let why = format!("{event} was recorded in a capture that has ended");
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        let joining = known(&mut self.streams, stream, "stream")?;
        log::call(format_args!("capture: {} waits for {event}", joining.name));
        match &mut joining.capture {
            None => joining.capture = Some(place),
            Some(at) if at.capture == place.capture => {
                for node in place.after {
                    if !at.after.contains(&node) {
                        at.after.push(node);
                    }
                }
            }
            Some(_) => {
                let why = format!("{event} was recorded in another capture");
                return Err(self.spoil_capture(stream, code::CAPTURE_ISOLATION, &why));
            }
        }
        Ok(())
    }

    /// Ends what the capture of a stream could become, and says why.
    pub(crate) fn spoil_capture(&mut self, stream: u64, code: i32, why: &str) -> Fault {
        let place = self.streams.get(&stream).and_then(|s| s.capture.as_ref());
        if let Some(capture) = place.and_then(|place| self.captures.get_mut(&place.capture)) {
            capture.spoiled = true;
        }
        Fault::new(code, why)
    }

    /// Calls that may wait for a stream are not allowed while one is being captured. One thread calls.
    pub(crate) fn check_no_capture(&mut self, what: &str) -> Answer {
        let Some(capture) = self.captures.values_mut().next() else {
            return Ok(());
        };
        capture.spoiled = true;
        let why = format!("{what} is not allowed while a stream is being captured");
        Err(Fault::new(code::CAPTURE_UNSUPPORTED, why))
    }
}

/// Which nodes come before `last`, or are among them.
fn reached(nodes: &[Node], last: &[usize]) -> Vec<bool> {
    let mut reached = vec![false; nodes.len()];
    let mut left = last.to_vec();
    while let Some(node) = left.pop() {
        if !std::mem::replace(&mut reached[node], true) {
            left.extend(&nodes[node].after);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{launched, opened};

    fn capturing() -> (State, u64) {
        let (mut state, _) = opened();
        let stream = state.create_stream(true).unwrap();
        state.begin_capture(stream).unwrap();
        (state, stream)
    }

    #[test]
    fn what_waits_spoils_a_capture() {
        let waits: [fn(&mut State, u64) -> Answer; 3] = [
            |state, stream| state.synchronize_stream(stream),
            |state, _| state.allocate(64).map(drop),
            |state, _| state.allocate_host(64).map(drop),
        ];
        for wait in waits {
            let (mut state, stream) = capturing();
            let fault = wait(&mut state, stream).unwrap_err();
            assert_eq!(fault.code, code::CAPTURE_UNSUPPORTED);
            let ended = state.end_capture(stream).unwrap_err();
            assert_eq!(ended.code, code::CAPTURE_INVALIDATED);
            state.synchronize_stream(stream).unwrap();
        }
    }

    #[test]
    fn a_stream_that_joined_must_be_waited_for() {
        let (mut state, _) = opened();
        let (stream_1, stream_2) = (
            state.create_stream(true).unwrap(),
            state.create_stream(true).unwrap(),
        );
        let event = state.create_event(2).unwrap();
        state.begin_capture(stream_1).unwrap();
        state.record(event, stream_1).unwrap();
        state.wait_event(stream_2, event).unwrap();
        launched(&mut state, stream_2);
        assert_eq!(
            state.synchronize_event(event).unwrap_err().code,
            code::CAPTURED_EVENT
        );
        assert_eq!(
            state.end_capture(stream_2).unwrap_err().code,
            code::CAPTURE_UNMATCHED
        );
        let fault = state.end_capture(stream_1).unwrap_err();
        assert_eq!(fault.code, code::CAPTURE_UNJOINED);
        assert_eq!(
            fault.why,
            "s2 joined the capture of s1 and s1 does not wait for it"
        );
    }
}
