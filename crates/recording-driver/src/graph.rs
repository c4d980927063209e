//! Graphs: work with edges, made by capture, and replayed.

use std::sync::Arc;

use crate::clock::Time;
use crate::device::Description;
use crate::objects::{Graph, Work};
use crate::state::{Outcome, State, known, removed};

impl State {
    pub(crate) fn instantiate(&mut self, handle: u64) -> Outcome<u64> {
        let graph = known(&mut self.graphs, handle, "graph")?.clone();
        log!("instantiate {}", graph.name);
        let handle = self.made();
        self.executables.insert(handle, Arc::new(graph));
        Ok(handle)
    }

    pub(crate) fn destroy_graph(&mut self, handle: u64) -> Outcome {
        let graph = removed(&mut self.graphs, handle, "graph")?;
        log!("destroy {}", graph.name);
        Ok(())
    }

    pub(crate) fn destroy_executable(&mut self, handle: u64) -> Outcome {
        let graph = removed(&mut self.executables, handle, "instantiated graph")?;
        log!("destroy the instance of {}", graph.name);
        Ok(())
    }

    pub(crate) fn upload_graph(&mut self, handle: u64, stream: u64) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let graph = known(&mut self.executables, handle, "instantiated graph")?;
        let on = &self.streams[&stream].name;
        log!("upload {} on {on}", graph.name);
        Ok(())
    }

    pub(crate) fn launch_graph(&mut self, handle: u64, stream: u64) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let graph = known(&mut self.executables, handle, "instantiated graph")?.clone();
        let text = format!("launch {} of {} nodes", graph.name, graph.nodes.len());
        let device = self.streams[&stream].device;
        self.clock.host += self.devices[device].description.launch_ns;
        self.enqueue(stream, Work::Graph(graph), |on| format!("{text} on {on}"))
    }

    /// Runs the nodes, each once those before it are done.
    pub(crate) fn run_graph(&mut self, on: &Description, graph: &Graph, start: Time) -> Time {
        let mut ends = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let before = node.after.iter().map(|&at| ends[at]);
            let ready = before.max().unwrap_or(start);
            ends.push(self.run(on, &node.work, ready, true).unwrap_or(ready));
        }
        ends.into_iter().max().unwrap_or(start)
    }
}
