//! The state of all stand-ins, behind one lock, and access to it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::cublas::Blas;
use crate::cublaslt;
use crate::cufft::Plan;
use crate::device::{Description, description};
use crate::fault::{Fault, code};
use crate::image::Image;
use crate::memory::Memory;
use crate::names::Names;
use crate::nvrtc::Program;
use crate::objects::{Capture, Event, Function, Graph, Pool, Stream};

/// The result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

pub(crate) struct State {
    pub(crate) description: &'static Description,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) memory: Memory,
    /// The active primary contexts, by device: handle, and how many times it was retained.
    pub(crate) contexts: BTreeMap<i32, (u64, u32)>,
    pub(crate) pools: BTreeMap<u64, Pool>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    pub(crate) events: BTreeMap<u64, Event>,
    pub(crate) modules: BTreeMap<u64, Image>,
    pub(crate) functions: BTreeMap<u64, Function>,
    /// The active capture.
    pub(crate) capture: Option<Capture>,
    pub(crate) graphs: BTreeMap<u64, Graph>,
    /// Graphs that can be launched.
    pub(crate) executables: BTreeMap<u64, Arc<Graph>>,
    pub(crate) blas: BTreeMap<u64, Blas>,
    pub(crate) descriptions: BTreeMap<u64, cublaslt::Description>,
    pub(crate) layouts: BTreeMap<u64, cublaslt::Layout>,
    /// The most bytes of workspace of each preference.
    pub(crate) preferences: BTreeMap<u64, u64>,
    pub(crate) plans: BTreeMap<u64, Plan>,
    pub(crate) programs: BTreeMap<u64, Program>,
    /// The code that the real NVRTC made for a real driver, with the image of the same source.
    pub(crate) compiled_for_real: Vec<(Vec<u8>, String)>,
    /// The error that persists, once it occurred.
    pub(crate) lost: Option<i32>,
    handles: u64,
    /// The handle or address that the real library returned for the object that this call makes.
    pub(crate) given: Option<u64>,
}

impl State {
    pub(crate) fn new(description: &'static Description) -> Self {
        Self {
            description,
            clock: Clock::new(description),
            names: Names::default(),
            memory: Memory::default(),
            contexts: BTreeMap::new(),
            pools: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            capture: None,
            graphs: BTreeMap::new(),
            executables: BTreeMap::new(),
            blas: BTreeMap::new(),
            descriptions: BTreeMap::new(),
            layouts: BTreeMap::new(),
            preferences: BTreeMap::new(),
            plans: BTreeMap::new(),
            programs: BTreeMap::new(),
            compiled_for_real: Vec::new(),
            lost: None,
            handles: 0,
            given: None,
        }
    }

    /// The handle of a new object: the real library's, or one that was never used before, so that use
    /// after its destruction is always noticed.
    pub(crate) fn made(&mut self) -> u64 {
        // The numbers between are those of a graph's nodes.
        self.handles += 0x1000;
        self.given.take().unwrap_or(self.handles)
    }

    /// Objects that were not released, a line each.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let memory = self
            .memory
            .live()
            .map(|a| format!("{}, {} B", a.name, a.bytes));
        let streams = self.streams.values().filter(|stream| !stream.is_legacy);
        let executables = self.executables.values();
        let pools = self.pools.values().filter(|pool| !pool.is_default);
        let library = [
            ("matmul description", self.descriptions.len()),
            ("layout", self.layouts.len()),
            ("preference", self.preferences.len()),
        ];
        memory
            .chain(streams.map(|stream| stream.name.clone()))
            .chain(self.events.values().map(|event| event.name.clone()))
            .chain(self.graphs.values().map(|graph| graph.name.clone()))
            .chain(executables.map(|graph| format!("{}, instantiated", graph.name)))
            .chain(pools.map(|pool| pool.name.clone()))
            .chain(self.blas.values().map(|blas| blas.name.clone()))
            .chain(self.plans.values().map(|plan| plan.name.clone()))
            .chain((library.into_iter()).flat_map(|(of, n)| std::iter::repeat_n(of.to_owned(), n)))
            .collect()
    }
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();

/// The state of this process.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    let state = STATE.get_or_init(|| Mutex::new(State::new(description())));
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a table, or the driver's error for a handle that is none.
pub(crate) fn known<T>(
    table: &mut BTreeMap<u64, T>,
    handle: u64,
    what: impl Display,
) -> Outcome<&mut T> {
    table.get_mut(&handle).ok_or_else(|| {
        let why = format!("there is no such {what}, or it was destroyed");
        Fault::new(code::INVALID_HANDLE, why)
    })
}
