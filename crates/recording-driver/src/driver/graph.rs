//! Graphs.

use super::DRIVER;
use crate::call::{exported, make, put};
use crate::fault::Fault;
use crate::real;
use crate::state::known;

exported! { DRIVER:
    fn cuGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) = |state| {
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
    };

    fn cuGraphNodeGetType(node: u64, to: *mut u32) = |state| {
        if real::passes() {
            return Ok(());
        }
        let kind = state.graphs.iter().find_map(|(handle, graph)| {
            let at = usize::try_from(node.checked_sub(handle + 1)?).ok()?;
            graph.nodes.get(at).map(|node| node.work.node_type())
        });
        put(to, kind.ok_or_else(|| Fault::invalid("there is no such node"))?)
    };

    fn cuGraphInstantiateWithFlags(to: *mut u64, graph: u64, _flags: u64) = |state| make(state, to, |state| state.instantiate(graph));

    fn cuGraphUpload(executable: u64, stream: u64) = |state| state.upload_graph(executable, stream);

    fn cuGraphLaunch(executable: u64, stream: u64) = |state| state.launch_graph(executable, stream);

    fn cuGraphExecDestroy(executable: u64) = |state| state.destroy_executable(executable);

    fn cuGraphDestroy(graph: u64) = |state| state.destroy_graph(graph);
}
