//! The devices with their primary contexts: on which threads they are current, and their memory.

use std::cell::Cell;
use std::collections::BTreeSet;

use crate::device::Description;
use crate::fault::{Fault, code};
use crate::state::{Outcome, State};

thread_local! {
    /// The context that is current on this thread; 0 without one.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Sets the context that is current on this thread.
pub(crate) fn set_current(context: u64) {
    CURRENT.set(context);
}

/// The context that is current on this thread.
pub(crate) fn get_current() -> u64 {
    CURRENT.get()
}

/// A device, by the index of which its memory, streams, events and modules are known.
pub(crate) struct Device {
    pub(crate) description: &'static Description,
    /// Its primary context; 0 where nobody has retained it.
    pub(crate) context: u64,
    retained: u32,
    /// Devices whose memory it may use.
    peers: BTreeSet<usize>,
}

impl Device {
    pub(crate) fn new(description: &'static Description) -> Self {
        Self {
            description,
            context: 0,
            retained: 0,
            peers: BTreeSet::new(),
        }
    }
}

impl State {
    /// The device with this number.
    pub(crate) fn device(&mut self, ordinal: i32) -> Outcome<&mut Device> {
        let device = usize::try_from(ordinal).ok();
        let device = device.and_then(|at| self.devices.get_mut(at));
        device.ok_or_else(|| Fault::new(code::INVALID_DEVICE, "there are fewer devices"))
    }

    /// The index of the device with this context.
    pub(crate) fn of_context(&self, context: u64) -> Outcome<usize> {
        let mut devices = self.devices.iter();
        let found = devices.position(|device| context != 0 && device.context == context);
        found.ok_or_else(|| {
            let why = "no context is current on this thread, or it was destroyed";
            Fault::new(code::INVALID_CONTEXT, why)
        })
    }

    /// The index of the device whose context is current on this thread.
    pub(crate) fn current(&self) -> Outcome<usize> {
        self.of_context(CURRENT.get())
    }

    /// Retains the primary context of a device.
    pub(crate) fn retain(&mut self, ordinal: i32) -> Outcome<u64> {
        let new = self.made();
        let device = self.device(ordinal)?;
        device.retained += 1;
        if device.context == 0 {
            device.context = new;
        }
        Ok(device.context)
    }

    /// Releases it; the last release frees what the context has.
    pub(crate) fn release(&mut self, ordinal: i32) -> Outcome {
        let device = self.device(ordinal)?;
        device.retained = device.retained.saturating_sub(1);
        if device.retained > 0 || device.context == 0 {
            return Ok(());
        }
        let at = ordinal as usize;
        self.synchronize_device(at);
        for left in self.leaks(at) {
            log!("the context ends with {left}");
        }
        self.memory.release_all(at);
        self.streams.retain(|_, stream| stream.device != at);
        self.events.retain(|_, event| event.device != at);
        self.modules.retain(|_, module| module.device != at);
        self.functions.retain(|_, function| function.device != at);
        self.devices[at] = Device::new(self.devices[at].description);
        Ok(())
    }

    /// Lets the current device use the memory of the device with this context.
    pub(crate) fn enable_peer(&mut self, context: u64) -> Outcome {
        let (here, peer) = (self.current()?, self.of_context(context)?);
        if here == peer {
            return Err(fault!(INVALID_DEVICE, "a device is no peer of its own"));
        }
        if !self.devices[here].peers.insert(peer) {
            return Err(fault!(
                PEER_ACCESS_ALREADY_ENABLED,
                "device {here} may already use the memory of device {peer}"
            ));
        }
        log!("let device {here} use the memory of device {peer}");
        Ok(())
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
        let (of, name) = (allocation.device, &allocation.name);
        let is_allowed = match allocation.pool.and_then(|pool| self.pools.get(&pool)) {
            Some(pool) => pool.peers.contains(&device),
            None => self.devices[device].peers.contains(&of),
        };
        match of == device || is_allowed || !allocation.kind.on_device() {
            true => Ok(()),
            false => Err(Fault::corrupts(format!(
                "device {device} uses {name} of device {of}, and has no access to it"
            ))),
        }
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
        let allocated = self
            .memory
            .live()
            .filter(|a| a.kind.on_device() && a.device == device);
        of_context + allocated.map(|a| a.bytes).sum::<u64>()
    }

    /// Whether `bytes` more fit on a device.
    pub(crate) fn check_room(&self, device: usize, bytes: u64) -> Outcome {
        let total = self.devices[device].description.memory_bytes;
        let free = total.saturating_sub(self.taken(device));
        if bytes <= free {
            return Ok(());
        }
        Err(fault!(
            OUT_OF_MEMORY,
            "{bytes} B are asked for and {free} B are free"
        ))
    }
}
