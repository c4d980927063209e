//! Graphs.

use super::DRIVER;
use crate::call::{exported, make, put};
use crate::fault::Fault;
use crate::memory::{Kind, Region};
use crate::objects::Work;
use crate::state::{Outcome, State, known};

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Default)]
struct Params {
    from: Side,
    to: Side,
    extent: [usize; 3],
}

/// One side of the copy.
#[repr(C)]
#[derive(Default)]
struct Side {
    offset: [usize; 4],
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    reserved: u64,
    pitch: [usize; 2],
}

impl Side {
    fn of(region: &Region) -> Self {
        let on_device = region.kind.is_some_and(Kind::on_device);
        Self {
            memory_type: 1 + u32::from(on_device),
            host: region.content as u64,
            device: region.base.unwrap_or_default(),
            ..Self::default()
        }
    }
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
        put(to, work(state, node)?.node_type())
    };

    fn cuGraphMemcpyNodeGetParams(node: u64, to: *mut Params) = |state| {
        match work(state, node)? {
            Work::Copy(copy) => put(to, Params {
                from: Side::of(&copy.from),
                to: Side::of(&copy.to),
                ..Params::default()
            }),
            _ => Err(Fault::invalid("the node is no copy")),
        }
    };

    fn cuGraphInstantiateWithFlags(to: *mut u64, graph: u64, _flags: u64) = |state| make(to, state.instantiate(graph)?);

    fn cuGraphUpload(executable: u64, stream: u64) = |state| state.upload_graph(executable, stream);

    fn cuGraphLaunch(executable: u64, stream: u64) = |state| state.launch_graph(executable, stream);

    fn cuGraphExecDestroy(executable: u64) = |state| state.destroy_executable(executable);

    fn cuGraphDestroy(graph: u64) = |state| state.destroy_graph(graph);
}
