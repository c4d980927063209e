//! The devices with their primary contexts: on which threads they are current, and their memory.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::call::{DRIVER, exported, put, put_bytes};
use crate::device::{Description, UUID};
use crate::fault::Fault;
use crate::memory::{Allocation, Kind};
use crate::state::{Outcome, State};
use crate::stream::default_stream;

/// If it is set, a wait for the context takes as long as on the virtual clock; if it is `streams`, a wait for a
/// stream does too.
pub(crate) const WAITS: &str = "RECORDING_DRIVER_WAITS";

thread_local! {
    /// The context that is current on this thread; 0 without one.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// A device, by the index of which its memory, streams, events and modules are known.
pub(crate) struct Device {
    pub(crate) description: &'static Description,
    /// Its primary context; 0 where nobody has retained it.
    pub(crate) context: u64,
    retained: u32,
    /// Devices whose memory it may use.
    peers: BTreeSet<usize>,
    /// Streams that have run kernels since the last context beside the primary one was destroyed.
    kernel_streams: BTreeSet<u64>,
    /// Resets of persisting lines since then.
    resets: usize,
}

impl Device {
    pub(crate) fn new(description: &'static Description) -> Self {
        Self {
            description,
            context: 0,
            retained: 0,
            peers: BTreeSet::new(),
            kernel_streams: BTreeSet::new(),
            resets: 0,
        }
    }

    /// Notes that a stream runs a kernel. Returns by how many nanoseconds each kernel takes longer: each reset of
    /// persisting lines counts as a stream.
    pub(crate) fn runs_kernel(&mut self, stream: u64) -> u64 {
        self.kernel_streams.insert(stream);
        let is_long = self.kernel_streams.len() + self.resets > self.description.short_streams;
        u64::from(is_long) * self.description.long_launch_ns
    }
}

exported! { DRIVER:
    fn cuInit(_state, _flags: u32) {
        Ok(())
    }

    fn cuDriverGetVersion(state) -> i32 {
        Ok(state.devices[0].description.driver)
    }

    fn cuDeviceGetCount(state) -> i32 {
        Ok(state.devices.len() as i32)
    }

    fn cuDeviceGet(state, ordinal: i32) -> i32 {
        state.device(ordinal).map(|_| ordinal)
    }

    fn cuDeviceGetName(state, to: *mut u8, length: i32, device: i32) {
        let name = state.device(device)?.description.name.bytes().take(length as usize - 1);
        put_bytes(to, name.chain([0]))
    }

    fn cuDeviceTotalMem_v2(state, device: i32) -> usize {
        Ok(state.device(device)?.description.memory_bytes as usize)
    }

    fn cuDeviceGetUuid_v2(_state, device: i32) -> [u8; 16] {
        let mut uuid = UUID;
        uuid[15] += device as u8;
        Ok(uuid)
    }

    fn cuDeviceGetAttribute(state, attribute: i32, device: i32) -> i32 {
        let description = state.device(device)?.description;
        Ok(match attribute {
            1..=3 => 1024,
            13 => description.sm_clock_mhz as i32 * 1_000,
            16 => description.multiprocessors,
            17 | 18 | 20 | 34 | 50 | 88 | 100 | 101 => 0,
            33 => description.pci_bus + device,
            36 => description.memory_clock_mhz as i32 * 1_000,
            37 => description.memory_bus_bits,
            38 => description.l2_bytes,
            75 => description.compute_capability_major,
            76 => description.compute_capability_minor,
            97 => description.shared_per_block_optin,
            // Capabilities of the device: mapped host memory, overlap, pools, managed memory and the
            // like.
            15 | 19 | 31 | 41 | 78..=80 | 83 | 86 | 89..=95 | 99 | 102 | 115 => 1,
            other => return Err(Fault::unknown("a device's attribute", other)),
        })
    }

    fn cuDeviceGetP2PAttribute(state, attribute: i32, device: i32, peer: i32) -> i32 {
        let (first, other) = (state.device(device)?.description, state.device(peer)?.description);
        let has_link = device != peer && first.peer_access && other.peer_access;
        match attribute {
            // Access, and atomics over NVLink.
            2 | 3 => Ok(i32::from(has_link)),
            other => Err(Fault::unknown("an attribute of two devices", other)),
        }
    }

    fn cuDevicePrimaryCtxRetain(state, ordinal: i32) -> u64 {
        let new = state.made();
        let device = state.device(ordinal)?;
        device.retained += 1;
        if device.context == 0 {
            device.context = new;
            let (at, name) = (ordinal as usize, "the default stream".to_owned());
            state.insert_stream(default_stream(at), name, at);
        }
        Ok(state.devices[ordinal as usize].context)
    }

    // The last release frees what the context has.
    fn cuDevicePrimaryCtxRelease_v2(state, ordinal: i32) {
        let device = state.device(ordinal)?;
        device.retained = device.retained.saturating_sub(1);
        if device.retained > 0 || device.context == 0 {
            return Ok(());
        }
        let at = ordinal as usize;
        state.finish_device(at);
        for left in state.leaks(at) {
            log!("the context ends with {left}");
        }
        state.memory.release_all(at);
        state.streams.retain(|_, stream| stream.device != at);
        state.events.retain(|_, event| event.device != at);
        state.modules.retain(|_, module| module.device != at);
        state.functions.retain(|_, function| function.device != at);
        state.devices[at] = Device::new(state.devices[at].description);
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(state, device: i32, flags: *mut u32, active: *mut i32) {
        put(flags, 0)?;
        put(active, i32::from(state.device(device)?.context != 0))
    }

    fn cuCtxSetCurrent(_state, context: u64) {
        CURRENT.set(context);
        Ok(())
    }

    fn cuCtxGetCurrent(_state) -> u64 {
        Ok(CURRENT.get())
    }

    fn cuCtxSynchronize(state) {
        let device = state.current()?;
        log!("wait for the context");
        state.check_no_capture("cuCtxSynchronize")?;
        let begun = state.clock.host;
        state.finish_device(device);
        if std::env::var_os(WAITS).is_some() {
            std::thread::sleep(Duration::from_nanos(state.clock.host - begun));
        }
        Ok(())
    }

    // A context beside the primary one, which becomes current.
    fn cuCtxCreate_v2(state, _flags: u32, ordinal: i32) -> u64 {
        let context = state.made();
        let on = state.device(ordinal)?.description;
        let at = ordinal as usize;
        let free = on.memory_bytes.saturating_sub(state.taken(at));
        if on.context_bytes > free {
            return Err(fault!(OUT_OF_MEMORY, "a context needs {} B and {free} B are free", on.context_bytes));
        }
        log!("create a second context of device {at}");
        state.other_contexts.insert(context, (at, CURRENT.replace(context)));
        Ok(context)
    }

    fn cuCtxDestroy_v2(state, context: u64) {
        let ended = state.other_contexts.remove(&context);
        let (at, before) =
            ended.ok_or_else(|| fault!(INVALID_CONTEXT, "no such context was created"))?;
        log!("destroy the second context of device {at}");
        if CURRENT.get() == context {
            CURRENT.set(before);
        }
        let device = &mut state.devices[at];
        device.kernel_streams.clear();
        device.resets = 0;
        Ok(())
    }

    fn cuCtxGetLimit(state, limit: i32) -> usize {
        let other = state.other_contexts.get(&CURRENT.get()).map(|(at, _)| *at);
        let on = state.devices[other.map_or_else(|| state.current(), Ok)?].description;
        match limit {
            // Memory of the L2 cache that is set aside for persisting lines.
            6 if on.compute_capability_major < 8 => {
                Err(fault!(UNSUPPORTED_LIMIT, "no line persists on this device"))
            }
            6 if other.is_some() => Ok(on.l2_bytes as usize / 16 * 3),
            6 => Ok(on.persisting_bytes),
            other => Err(Fault::unknown("a limit", other)),
        }
    }

    fn cuCtxResetPersistingL2Cache(state) {
        let at = state.current()?;
        state.devices[at].resets += 1;
        log!("reset the persisting lines of the L2 cache");
        Ok(())
    }

    // Lets the current device use the memory of the device with this context.
    fn cuCtxEnablePeerAccess(state, context: u64, _flags: u32) {
        let (here, peer) = (state.current()?, state.of_context(context)?);
        if here == peer {
            return Err(fault!(INVALID_DEVICE, "a device is no peer of its own"));
        }
        if !state.devices[here].peers.insert(peer) {
            return Err(fault!(
                PEER_ACCESS_ALREADY_ENABLED,
                "device {here} may already use the memory of device {peer}"
            ));
        }
        log!("let device {here} use the memory of device {peer}");
        Ok(())
    }
}

impl State {
    /// The device with this number.
    pub(crate) fn device(&mut self, ordinal: i32) -> Outcome<&mut Device> {
        let device = usize::try_from(ordinal).ok();
        let device = device.and_then(|at| self.devices.get_mut(at));
        device.ok_or_else(|| fault!(INVALID_DEVICE, "there are fewer devices"))
    }

    /// The index of the device with this context.
    pub(crate) fn of_context(&self, context: u64) -> Outcome<usize> {
        let mut devices = self.devices.iter();
        let found = devices.position(|device| context != 0 && device.context == context);
        let why = "no context is current on this thread, or it was destroyed";
        found.ok_or_else(|| fault!(INVALID_CONTEXT, "{why}"))
    }

    /// The index of the device of a stream that this thread may put work into.
    pub(crate) fn stream_device(&mut self, stream: u64) -> Outcome<usize> {
        let stream = self.usable_stream(stream)?;
        Ok(self.streams[&stream].device)
    }

    /// The index of the device whose context is current on this thread.
    pub(crate) fn current(&self) -> Outcome<usize> {
        self.of_context(CURRENT.get())
    }

    /// Whether work on a device may use memory of another: its context, or the memory's pool, allows
    /// it.
    ///
    /// # Errors
    /// It may not, or the address is wrong.
    pub(crate) fn check_access(&self, device: usize, address: u64) -> Outcome {
        let Some(allocation) = self.memory.holding(address) else {
            return Ok(());
        };
        let (owner, name) = (allocation.device, &allocation.name);
        let is_allowed = match allocation.pool.and_then(|pool| self.pools.get(&pool)) {
            Some(pool) => pool.peers.contains(&device),
            None => self.devices[device].peers.contains(&owner),
        };
        if owner == device || is_allowed || allocation.kind == Kind::Pinned {
            return Ok(());
        }
        Err(Fault::corrupts(format!(
            "device {device} uses {name} of device {owner}, and has no access to it"
        )))
    }

    /// Whether memory is of the device with this context.
    ///
    /// # Errors
    /// It is of another device.
    pub(crate) fn check_owner(&self, address: u64, context: u64) -> Outcome {
        let device = self.of_context(context)?;
        match self.memory.holding(address) {
            Some(allocation) if allocation.device != device => Err(fault!(
                INVALID_VALUE,
                "{} is of device {}, and the context of device {device}",
                allocation.name,
                allocation.device
            )),
            _ => Ok(()),
        }
    }

    /// Bytes of a device's memory that are taken.
    pub(crate) fn taken(&self, device: usize) -> u64 {
        let Device {
            description,
            context,
            ..
        } = self.devices[device];
        let of_context = u64::from(context != 0) * description.context_bytes;
        let of_device = |a: &&Allocation| a.kind == Kind::Device && a.device == device;
        let allocated = self.memory.live().filter(of_device);
        of_context + allocated.map(|a| a.bytes).sum::<u64>()
    }
}
