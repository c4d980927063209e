//! Graphs: work with edges, made by capture, and replayed.

use std::sync::Arc;

use crate::clock::Time;
use crate::log;
use crate::state::{Answer, State, known};
use crate::work::Work;

/// What a capture made.
#[derive(Clone)]
pub(crate) struct Graph {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Node>,
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) work: Work,
    /// Indices of the nodes that come before it.
    pub(crate) after: Vec<usize>,
}

/// A graph that can be launched.
pub(crate) struct Executable {
    pub(crate) graph: Arc<Graph>,
}

impl State {
    pub(crate) fn instantiate(&mut self, handle: u64) -> Answer<u64> {
        let graph = known(&mut self.graphs, handle, "graph")?.clone();
        log::call(format_args!("instantiate {}", graph.name));
        let handle = self.made();
        let graph = Arc::new(graph);
        self.executables.insert(handle, Executable { graph });
        Ok(handle)
    }

    pub(crate) fn destroy_graph(&mut self, handle: u64) -> Answer {
        let name = &known(&mut self.graphs, handle, "graph")?.name;
        log::call(format_args!("destroy {name}"));
        self.graphs.remove(&handle);
        Ok(())
    }

    pub(crate) fn destroy_executable(&mut self, handle: u64) -> Answer {
        let name = &known(&mut self.executables, handle, "instantiated graph")?
            .graph
            .name;
        log::call(format_args!("destroy the instance of {name}"));
        self.executables.remove(&handle);
        Ok(())
    }

    pub(crate) fn upload_graph(&mut self, handle: u64, stream: u64) -> Answer {
        let stream = self.usable_stream(stream)?;
        let graph = &known(&mut self.executables, handle, "instantiated graph")?.graph;
        let on = &self.streams[&stream].name;
        log::call(format_args!("upload {} on {on}", graph.name));
        Ok(())
    }

    pub(crate) fn launch_graph(&mut self, handle: u64, stream: u64) -> Answer {
        let stream = self.usable_stream(stream)?;
        let graph = &known(&mut self.executables, handle, "instantiated graph")?.graph;
        let graph = graph.clone();
        let text = format!("launch {} of {} nodes", graph.name, graph.nodes.len());
        self.clock.host += self.description.launch_ns;
        self.enqueue(stream, Work::Graph(graph), |on| format!("{text} on {on}"))
    }

    /// Runs the nodes, each once those before it are done.
    pub(crate) fn run_graph(&mut self, graph: &Graph, start: Time) -> Time {
        let mut ends = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let before = node.after.iter().map(|&at| ends[at]);
            let ready = before.max().unwrap_or(start);
            ends.push(self.run(&node.work, ready, true).unwrap_or(ready));
        }
        ends.into_iter().max().unwrap_or(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exact, launched};

    #[test]
    fn a_graph_of_two_branches_takes_as_long_as_the_longer() {
        let (mut state, _) = exact();
        let (one, other) = (
            state.create_stream(true).unwrap(),
            state.create_stream(true).unwrap(),
        );
        let (fork, join) = (
            state.create_event(2).unwrap(),
            state.create_event(2).unwrap(),
        );
        let ((), lines) = log::lines_of(|| {
            state.begin_capture(one, 1).unwrap();
            launched(&mut state, one);
            state.record(fork, one).unwrap();
            state.wait_event(other, fork).unwrap();
            launched(&mut state, other);
            state.record(join, other).unwrap();
            launched(&mut state, one);
            launched(&mut state, one);
            state.wait_event(one, join).unwrap();
            launched(&mut state, one);
        });
        assert_eq!(
            lines.last().unwrap(),
            "node 5 after 4, 2: launch k grid (1,1,1) block (1,1,1) shared 0 on s1 ()"
        );
        let graph = state.end_capture(one).unwrap();
        assert_eq!(state.graphs[&graph].nodes.len(), 5);
        let executable = state.instantiate(graph).unwrap();
        state.launch_graph(executable, one).unwrap();
        state.synchronize_stream(one).unwrap();
        let description = state.description;
        let ns = description.launch_ns + 4 * description.kernel_ns;
        // The launches of the capture cost the host its time too.
        assert_eq!(
            state.streams[&one].time % description.launch_ns,
            ns % description.launch_ns
        );
        state.destroy_executable(executable).unwrap();
        assert!(state.launch_graph(executable, one).is_err());
        state.destroy_graph(graph).unwrap();
        assert_eq!(state.leaks(), ["s1", "s2", "e1", "e2"]);
    }
}
