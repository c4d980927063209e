//! Captures: streams whose work becomes nodes of a graph. Only one capture can be active.

use std::sync::Arc;

use crate::call::{DRIVER, exported};
use crate::fault::Fault;
use crate::log;
use crate::objects::{Capture, Graph, Node, Work};
use crate::state::{Outcome, State, known};
use crate::stream::default_stream;

exported! { DRIVER:
    fn cuStreamBeginCapture_v2(state, stream: u64, _mode: u32) {
        let stream = state.usable_stream(stream)?;
        state.check_no_capture("another capture")?;
        let begun = known(&mut state.streams, stream, "stream")?;
        if stream == default_stream(begun.device) {
            return Err(fault!(CAPTURE_UNSUPPORTED, "the default stream cannot be captured"));
        }
        log!("capture {}", begun.name);
        begun.capture = Some(Vec::new());
        state.capture = Some(Capture {
            origin: stream,
            nodes: Vec::new(),
            spoiled: false,
        });
        Ok(())
    }

    fn cuStreamEndCapture(state, stream: u64) => u64 {
        let ended = known(&mut state.streams, stream, "stream")?;
        let name = ended.name.clone();
        let capture = state.capture.take_if(|capture| capture.origin == stream);
        let Some(Capture { nodes, spoiled, .. }) = capture else {
            return Err(fault!(CAPTURE_UNMATCHED, "no capture was begun on {name}"));
        };
        let joined = reached(&nodes, ended.capture.as_deref().unwrap_or_default());
        let mut forked = None;
        for other in state.streams.values_mut() {
            let after = other.capture.take().unwrap_or_default();
            if after.iter().any(|&node| !joined[node]) {
                forked = Some(other.name.clone());
            }
        }
        state.events.values_mut().for_each(|e| e.captured = None);
        let mut graph = Graph { name: String::new(), nodes, has_kept: Arc::default() };
        if spoiled || forked.is_some() {
            state.take_unallocated(&graph);
        }
        if spoiled {
            return Err(fault!(
                CAPTURE_INVALIDATED,
                "the capture of {name} was spoiled by an earlier call"
            ));
        }
        if let Some(forked) = forked {
            return Err(fault!(
                CAPTURE_UNJOINED,
                "{forked} joined the capture of {name} and {name} does not wait for it"
            ));
        }
        graph.name = state.names.next("graph");
        log!("end of capture: {} of {} nodes", graph.name, graph.nodes.len());
        let handle = state.made();
        state.graphs.insert(handle, graph);
        Ok(handle)
    }
}

impl State {
    /// Takes away what a graph that was never launched would have allocated and kept.
    pub(crate) fn take_unallocated(&mut self, graph: &Graph) {
        for address in graph.kept() {
            self.memory.free(address);
            self.memory.release(address);
        }
    }

    /// Ends the capture of the process without a graph, and takes away the memory that it would have allocated.
    pub(crate) fn end_capture(&mut self) {
        if let Some(Capture { nodes, .. }) = self.capture.take() {
            self.take_unallocated(&Graph {
                name: String::new(),
                nodes,
                has_kept: Arc::default(),
            });
        }
        self.streams.values_mut().for_each(|s| s.capture = None);
        self.events.values_mut().for_each(|e| e.captured = None);
    }

    /// Adds work of a captured stream as a node.
    pub(crate) fn add_node(
        &mut self,
        stream: u64,
        work: Work,
        text: impl FnOnce(&str) -> String,
    ) -> Outcome {
        let stream = known(&mut self.streams, stream, "stream")?;
        let capture = self.capture.as_mut().expect("a captured stream has one");
        let index = capture.nodes.len();
        let after = stream.capture.replace(vec![index]).unwrap_or_default();
        if log::enabled() {
            let numbers: Vec<String> = after.iter().map(|at| (at + 1).to_string()).collect();
            let behind = if numbers.is_empty() {
                String::new()
            } else {
                format!(" after {}", numbers.join(", "))
            };
            log!("node {}{behind}: {}", index + 1, text(&stream.name));
        }
        capture.nodes.push(Node { work, after });
        Ok(())
    }

    /// A stream that waits for an event recorded after these nodes becomes part of the capture.
    pub(crate) fn join_capture(&mut self, stream: u64, event: &str, after: Vec<usize>) -> Outcome {
        let joining = known(&mut self.streams, stream, "stream")?;
        log!("capture: {} waits for {event}", joining.name);
        let at = joining.capture.get_or_insert_default();
        for node in after {
            if !at.contains(&node) {
                at.push(node);
            }
        }
        Ok(())
    }

    /// Invalidates the capture that a call is not allowed in.
    pub(crate) fn spoiled(&mut self, fault: Fault) -> Fault {
        if let Some(capture) = &mut self.capture {
            capture.spoiled = true;
        }
        fault
    }

    /// Calls that may wait for a stream are forbidden during a capture. Only one thread calls.
    pub(crate) fn check_no_capture(&mut self, what: &str) -> Outcome {
        if self.capture.is_none() {
            return Ok(());
        }
        Err(self.spoiled(fault!(
            CAPTURE_UNSUPPORTED,
            "{what} is not allowed while a stream is being captured"
        )))
    }
}

/// Whether each node is in `last` or comes before one of these.
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
