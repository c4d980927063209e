//! The state of all stand-ins, behind one lock, and access to it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::context::Device;
use crate::cublas::Blas;
use crate::cublaslt::Described;
use crate::cufft::Plan;
use crate::cupti::Tool;
use crate::device::{Description, descriptions};
use crate::fault::Fault;
use crate::log::Names;
use crate::memory::Memory;
use crate::nccl::{Communicator, Sum};
use crate::nvrtc::Program;
use crate::objects::{Capture, Event, Function, Graph, Module, Pool, Stream};
use crate::pool::default_pool;

/// The result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

/// The first handle of an object that was made. Those below are the devices' own.
const FIRST: u64 = 0x1000;

/// The objects of every kind, by their handles.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) devices: Vec<Device>,
    /// Contexts beside the primary ones, with their devices and the contexts that were current before.
    pub(crate) other_contexts: BTreeMap<u64, (usize, u64)>,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) memory: Memory,
    pub(crate) pools: BTreeMap<u64, Pool>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    pub(crate) events: BTreeMap<u64, Event>,
    pub(crate) modules: BTreeMap<u64, Module>,
    pub(crate) functions: BTreeMap<u64, Function>,
    /// The active capture.
    pub(crate) capture: Option<Capture>,
    pub(crate) graphs: BTreeMap<u64, Graph>,
    /// Graphs that can be launched.
    pub(crate) executables: BTreeMap<u64, Arc<Graph>>,
    pub(crate) blas: BTreeMap<u64, Blas>,
    /// Descriptions, layouts and preferences of cuBLASLt.
    pub(crate) described: BTreeMap<u64, Described>,
    pub(crate) plans: BTreeMap<u64, Plan>,
    pub(crate) communicators: BTreeMap<u64, Arc<Communicator>>,
    /// The calls of NCCL's group, while it is open.
    pub(crate) sums: Option<Vec<Sum>>,
    pub(crate) programs: BTreeMap<u64, Program>,
    pub(crate) tool: Tool,
    /// The stream whose work runs.
    pub(crate) running: u64,
    /// The error that persists, once it occurred.
    pub(crate) lost: Option<i32>,
    handles: u64,
}

impl State {
    pub(crate) fn new(devices: &'static [Description]) -> Self {
        let pool = |device| Pool {
            name: "the default pool".to_owned(),
            device,
            ..Pool::default()
        };
        Self {
            devices: devices.iter().map(Device::new).collect(),
            pools: (0..devices.len())
                .map(|at| (default_pool(at), pool(at)))
                .collect(),
            ..Self::default()
        }
    }

    /// The handle of a new object, never used before, so that use after its destruction is always
    /// noticed.
    pub(crate) fn made(&mut self) -> u64 {
        // The numbers between are those of a graph's nodes.
        self.handles += FIRST;
        self.handles
    }

    /// Objects of a device that were not released, a line each; with the first device those that are
    /// of no device.
    pub(crate) fn leaks(&self, device: usize) -> Vec<String> {
        let memory = self.memory.live().filter(|a| a.device == device);
        let streams = self.streams.range(FIRST..).map(|(_, stream)| stream);
        let streams = streams.filter(|stream| stream.device == device);
        let events = self.events.values().filter(|event| event.device == device);
        let of_device = (memory.map(|a| format!("{}, {} B", a.name, a.bytes)))
            .chain(streams.map(|stream| stream.name.clone()))
            .chain(events.map(|event| event.name.clone()));
        let executables = self.executables.values();
        let of_none = (self.graphs.values().map(|graph| graph.name.clone()))
            .chain(executables.map(|graph| format!("{}, instantiated", graph.name)))
            .chain(self.pools.range(FIRST..).map(|(_, pool)| pool.name.clone()))
            .chain(self.blas.values().map(|blas| blas.name.clone()))
            .chain(self.plans.values().map(|plan| plan.name.clone()))
            .chain(self.described.values().map(|entry| entry.what.to_owned()));
        of_device.chain(of_none.filter(|_| device == 0)).collect()
    }
}

/// The state of this process.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(|| Mutex::new(State::new(descriptions())));
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a table, or the driver's error for a handle that is none.
pub(crate) fn known<'t, T>(
    table: &'t mut BTreeMap<u64, T>,
    handle: u64,
    what: &str,
) -> Outcome<&'t mut T> {
    let there = table.get_mut(&handle);
    there.ok_or_else(|| {
        fault!(
            INVALID_HANDLE,
            "there is no such {what}, or it was destroyed"
        )
    })
}

/// Takes the entry of a table away, unless it is a device's own.
pub(crate) fn removed<T>(table: &mut BTreeMap<u64, T>, handle: u64, what: &str) -> Outcome<T> {
    known(table, handle, what)?;
    if handle < FIRST {
        return Err(Fault::invalid(format!("no call destroys a default {what}")));
    }
    Ok(table.remove(&handle).expect("it is known"))
}
