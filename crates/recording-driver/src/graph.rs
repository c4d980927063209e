//! Graphs: work with edges, made by capture, and replayed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::{DRIVER, exported, put};
use crate::clock::Time;
use crate::device::Description;
use crate::fault::Fault;
use crate::memory::{Kind, Region};
use crate::objects::{Graph, Work};
use crate::state::{Outcome, State, known, removed};

/// `CUDA_MEMCPY3D` in words of eight bytes: two sides of eleven, and the size.
type Params = [u64; 25];

/// Kind, address on the host and address on the device of a side, behind its four offsets.
fn side(region: &Region) -> [u64; 3] {
    let kind = 1 + u64::from(region.kind == Some(Kind::Device));
    [kind, region.content as u64, region.base.unwrap_or_default()]
}

/// The work of a node.
fn work(state: &State, node: u64) -> Outcome<&Work> {
    let found = state.graphs.iter().find_map(|(handle, graph)| {
        let at = usize::try_from(node.checked_sub(handle + 1)?).ok()?;
        graph.nodes.get(at).map(|node| &node.work)
    });
    found.ok_or_else(|| Fault::invalid("there is no such node"))
}

exported! { DRIVER:
    fn cuGraphGetNodes(state, graph: u64, nodes: *mut u64, count: *mut usize) {
        let there = known(&mut state.graphs, graph, "graph")?.nodes.len();
        if !nodes.is_null() {
            // SAFETY: the caller promises room for as many nodes as it says.
            let room = unsafe { count.read_unaligned() };
            // As the driver of CUDA 13.0 answers on an H200.
            if room == 0 {
                return Err(Fault::invalid("a list of nodes has no room"));
            }
            for at in 0..room.min(there) {
                put(nodes.wrapping_add(at), graph + 1 + at as u64)?;
            }
        }
        put(count, there)
    }

    fn cuGraphNodeGetType(state, node: u64) => u32 {
        Ok(work(state, node)?.node_type())
    }

    fn cuGraphMemcpyNodeGetParams(state, node: u64) => Params {
        let Work::Copy(copy) = work(state, node)? else {
            return Err(Fault::invalid("the node is no copy"));
        };
        let mut params = [0; 25];
        params[4..7].copy_from_slice(&side(&copy.from));
        params[15..18].copy_from_slice(&side(&copy.to));
        Ok(params)
    }

    // The last of the fifteen words of `CUDA_MEM_ALLOC_NODE_PARAMS` is the address.
    fn cuGraphMemAllocNodeGetParams(state, node: u64) => [u64; 15] {
        match work(state, node)? {
            Work::Allocation(address) => Ok(std::array::from_fn(|at| *address * u64::from(at == 14))),
            _ => Err(Fault::invalid("the node is no allocation")),
        }
    }

    fn cuGraphMemFreeNodeGetParams(state, node: u64) => u64 {
        match work(state, node)? {
            Work::FreeAllocation(address) => Ok(*address),
            _ => Err(Fault::invalid("the node frees nothing")),
        }
    }

    // The data of an edge, of eight bytes, are those of a full dependency.
    fn cuGraphGetEdges_v2(state, graph: u64, from: *mut u64, to: *mut u64, data: *mut u64, count: *mut usize) {
        let nodes = &known(&mut state.graphs, graph, "graph")?.nodes;
        let numbered = nodes.iter().enumerate();
        let edges = numbered.flat_map(|(at, node)| node.after.iter().map(move |&before| [before, at]));
        let edges: Vec<_> = edges.map(|edge| edge.map(|at| graph + 1 + at as u64)).collect();
        if !from.is_null() {
            for (at, [before, after]) in edges.iter().enumerate() {
                put(from.wrapping_add(at), *before)?;
                put(to.wrapping_add(at), *after)?;
                put(data.wrapping_add(at), 0)?;
            }
        }
        put(count, edges.len())
    }

    fn cuGraphInstantiateWithFlags(state, graph: u64, _flags: u64) -> u64 {
        let graph = known(&mut state.graphs, graph, "graph")?.clone();
        log!("instantiate {}", graph.name);
        let handle = state.made();
        state.executables.insert(handle, Arc::new(graph));
        Ok(handle)
    }

    fn cuGraphUpload(state, executable: u64, stream: u64) {
        let stream = state.usable_stream(stream)?;
        let graph = known(&mut state.executables, executable, "instantiated graph")?;
        log!("upload {} on {}", graph.name, state.streams[&stream].name);
        Ok(())
    }

    fn cuGraphLaunch(state, executable: u64, stream: u64) {
        let stream = state.usable_stream(stream)?;
        let graph = known(&mut state.executables, executable, "instantiated graph")?.clone();
        if !graph.kept().is_empty() && graph.has_kept.swap(true, Ordering::Relaxed) {
            let why = format!("{} still has what it allocated in its last launch", graph.name);
            return Err(Fault::invalid(why));
        }
        let text = format!("launch {} of {} nodes", graph.name, graph.nodes.len());
        let device = state.streams[&stream].device;
        state.clock.host += state.devices[device].description.launch_ns;
        state.enqueue(stream, Work::Graph(graph), |on| format!("{text} on {on}"))
    }

    fn cuGraphExecDestroy(state, executable: u64) {
        let graph = removed(&mut state.executables, executable, "instantiated graph")?;
        log!("destroy the instance of {}", graph.name);
        Ok(())
    }

    fn cuGraphDestroy(state, graph: u64) {
        let graph = removed(&mut state.graphs, graph, "graph")?;
        log!("destroy {}", graph.name);
        if !graph.has_kept.load(Ordering::Relaxed) {
            state.take_unallocated(&graph);
        }
        for node in &graph.nodes {
            if let Work::FreeAllocation(address) = node.work {
                state.memory.release(address);
            }
        }
        Ok(())
    }
}

impl State {
    /// Runs the nodes, the last one first, and before each only those that it depends on. So a missing
    /// dependency shows.
    pub(crate) fn run_graph(&mut self, on: &Description, graph: &Graph, start: Time) -> Time {
        let mut ends = vec![None; graph.nodes.len()];
        let mut left: Vec<usize> = (0..graph.nodes.len()).collect();
        while let Some(&at) = left.last() {
            let node = &graph.nodes[at];
            let waits = node.after.iter().filter(|&&before| ends[before].is_none());
            if let Some(&before) = waits.max() {
                left.push(before);
                continue;
            }
            left.pop();
            if ends[at].is_none() {
                let ready = node.after.iter().filter_map(|&before| ends[before]).max();
                let ready = ready.unwrap_or(start);
                ends[at] = Some(self.run(on, &node.work, ready, true).unwrap_or(ready));
            }
        }
        ends.into_iter().flatten().max().unwrap_or(start)
    }
}
