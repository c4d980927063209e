//! The state of all stand-ins, behind one lock, and access to it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::clock::Clock;
use crate::device::{Description, description};
use crate::fault::{self, Fault, code};
use crate::log;
use crate::memory::Memory;
use crate::names::Names;
use crate::objects::{Capture, Event, Executable, Function, Graph, Module, Pool, Stream};

/// What a call returns.
pub(crate) type Answer<T = ()> = Result<T, Fault>;

pub(crate) struct State {
    pub(crate) description: &'static Description,
    pub(crate) clock: Clock,
    pub(crate) names: Names,
    pub(crate) memory: Memory,
    /// The primary context, and how often it was retained.
    pub(crate) context: Option<u64>,
    pub(crate) retained: u32,
    pub(crate) pools: BTreeMap<u64, Pool>,
    pub(crate) streams: BTreeMap<u64, Stream>,
    pub(crate) events: BTreeMap<u64, Event>,
    pub(crate) modules: BTreeMap<u64, Module>,
    pub(crate) functions: BTreeMap<u64, Function>,
    pub(crate) captures: BTreeMap<u64, Capture>,
    pub(crate) graphs: BTreeMap<u64, Graph>,
    pub(crate) executables: BTreeMap<u64, Executable>,
    /// The error that stays, once there was one.
    pub(crate) lost: Option<i32>,
    handles: u64,
    /// The handle or the address that the real driver has given for what this call makes.
    pub(crate) given: Option<u64>,
}

impl State {
    pub(crate) fn new(description: &'static Description) -> Self {
        Self {
            description,
            clock: Clock::new(description),
            names: Names::default(),
            memory: Memory::default(),
            context: None,
            retained: 0,
            pools: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            captures: BTreeMap::new(),
            graphs: BTreeMap::new(),
            executables: BTreeMap::new(),
            lost: None,
            handles: 0x1000,
            given: None,
        }
    }

    /// A handle that was never given before, so that one which is used after it was destroyed is
    /// always noticed.
    pub(crate) fn handle(&mut self) -> u64 {
        self.handles += 0x10;
        self.handles
    }

    /// The handle of what a call makes: the real driver's, or a new one.
    pub(crate) fn made(&mut self) -> u64 {
        let new = self.handle();
        self.given.take().unwrap_or(new)
    }

    /// What was not given back, a line each.
    pub(crate) fn leaks(&self) -> Vec<String> {
        let memory = self
            .memory
            .live()
            .map(|a| format!("{}, {} B", a.name, a.bytes));
        let streams = self.streams.values().filter(|stream| !stream.is_legacy);
        let streams = streams.map(|stream| match stream.capture {
            Some(_) => format!("{}, whose capture was not ended", stream.name),
            None => stream.name.clone(),
        });
        let events = self.events.values().map(|event| event.name.clone());
        let graphs = self.graphs.values().map(|graph| graph.name.clone());
        let executables = self.executables.values();
        let executables = executables.map(|e| format!("{}, instantiated", e.graph.name));
        let pools = self.pools.values().filter(|pool| !pool.is_default);
        memory
            .chain(streams)
            .chain(events)
            .chain(graphs)
            .chain(executables)
            .chain(pools.map(|pool| pool.name.clone()))
            .collect()
    }

    /// Names begin at 1 again; what is there already is called `earlier` from now on.
    pub(crate) fn restart_names(&mut self) {
        self.names.restart();
        let memory = self.memory.live_mut().map(|a| &mut a.name);
        let streams = self.streams.values_mut().filter(|s| !s.is_legacy);
        let streams = streams.map(|s| &mut s.name);
        let events = self.events.values_mut().map(|e| &mut e.name);
        let pools = self.pools.values_mut().filter(|pool| !pool.is_default);
        let pools = pools.map(|p| &mut p.name);
        for name in memory.chain(streams).chain(events).chain(pools) {
            if !name.starts_with("earlier ") {
                name.insert_str(0, "earlier ");
            }
        }
    }
}

static STATE: OnceLock<Mutex<State>> = OnceLock::new();

/// The state of this process.
pub(crate) fn lock() -> MutexGuard<'static, State> {
    let state = STATE.get_or_init(|| Mutex::new(State::new(description())));
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless another thread is in a call.
pub(crate) fn try_lock() -> Option<MutexGuard<'static, State>> {
    STATE.get()?.try_lock().ok()
}

/// What a program asks before there is a context, and may ask when its context is lost.
const WITHOUT_CONTEXT: [&str; 3] = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"];

/// Makes a call of the driver: counts it, fails it where a test wants that or the context is lost,
/// and turns what `body` answers into the driver's number. Where the real driver has answered, `body`
/// only follows.
pub(crate) fn call(
    function: &str,
    real: impl FnOnce() -> Option<i32>,
    body: impl FnOnce(&mut State) -> Answer,
) -> i32 {
    let needs_context = !WITHOUT_CONTEXT.contains(&function);
    if let Some(code) = fault::injected(function) {
        if needs_context && fault::is_sticky(code) {
            lock().lost = Some(code);
        }
        return refused(
            function,
            &Fault::new(code, "a fault that the test asked for"),
        );
    }
    match real() {
        None => {}
        // A capture ends even if it becomes no graph.
        Some(code) if code != 0 && function != "cuStreamEndCapture" => {
            return refused(function, &Fault::new(code, "so the real driver says"));
        }
        Some(code) => {
            let mut state = lock();
            let followed = body(&mut state);
            state.given = None;
            follow(function, followed);
            return code;
        }
    }
    let mut state = lock();
    if let Some(code) = state.lost.filter(|_| needs_context) {
        return code;
    }
    match body(&mut state) {
        Ok(()) => 0,
        Err(fault) => {
            drop(state);
            refused(function, &fault)
        }
    }
}

/// Writes down that the recording driver would have refused what the real one accepts.
pub(crate) fn follow(function: &str, followed: Answer) {
    if let Err(Fault { code, why, .. }) = followed
        && code != code::NOT_READY
    {
        log::call(format_args!(
            "{function} is accepted, and would be refused here: {why}"
        ));
    }
}

/// Writes down why a call fails, and ends the process where the real driver would go on with
/// corrupted memory.
pub(crate) fn refused(function: &str, fault: &Fault) -> i32 {
    let Fault { code, why, .. } = fault;
    if fault.corrupts {
        log::call(format_args!("{function} would corrupt memory: {why}"));
        eprintln!("the recording driver ends the process at {function}: {why}");
        std::process::abort();
    }
    // A query that is not ready is how waiting looks.
    if *code != code::NOT_READY {
        log::call(format_args!("{function} fails with {code}: {why}"));
    }
    *code
}

/// The entry of a table, or the driver's error for a handle that is none.
pub(crate) fn known<T>(
    table: &mut BTreeMap<u64, T>,
    handle: u64,
    what: impl Display,
) -> Answer<&mut T> {
    table.get_mut(&handle).ok_or_else(|| {
        let why = format!("there is no such {what}, or it was destroyed");
        Fault::new(code::INVALID_HANDLE, why)
    })
}
