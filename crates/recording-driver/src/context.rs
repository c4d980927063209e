//! The contexts of the devices: on which threads they are current, and their memory, which they share.

use std::cell::Cell;

use crate::fault::{Fault, code};
use crate::log;
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

impl State {
    /// Retains the primary context of a device.
    pub(crate) fn retain(&mut self, device: i32) -> u64 {
        let known = self.contexts.get(&device).copied();
        let (context, retained) = known.unwrap_or_else(|| (self.made(), 0));
        self.contexts.insert(device, (context, retained + 1));
        context
    }

    /// Releases it; the last release of the last context frees the memory.
    pub(crate) fn release(&mut self, device: i32) -> Outcome {
        let Some((context, retained)) = self.contexts.get_mut(&device) else {
            return Ok(());
        };
        *retained -= 1;
        if *retained > 0 {
            return Ok(());
        }
        let context = *context;
        self.synchronize_context(context);
        self.contexts.remove(&device);
        if !self.contexts.is_empty() {
            self.streams.retain(|_, stream| stream.context != context);
            return Ok(());
        }
        for left in self.leaks() {
            log::call(format_args!("the context ends with {left}"));
        }
        for base in self.memory.live().map(|a| a.base).collect::<Vec<_>>() {
            self.memory.free(base);
            self.memory.release(base);
        }
        self.streams.clear();
        self.events.clear();
        self.modules.clear();
        self.functions.clear();
        Ok(())
    }

    /// Fails if no context is current on this thread.
    pub(crate) fn check_current(&self) -> Outcome {
        let mut active = self.contexts.values();
        if active.any(|(context, _)| *context == CURRENT.get()) {
            return Ok(());
        }
        let why = "no context is current on this thread, or it was destroyed";
        Err(Fault::new(code::INVALID_CONTEXT, why))
    }

    /// Bytes of allocated device memory.
    pub(crate) fn taken(&self) -> u64 {
        let allocated = self.memory.live().filter(|a| a.kind.on_device());
        let contexts = self.contexts.len() as u64 * self.description.context_bytes;
        contexts + allocated.map(|a| a.bytes).sum::<u64>()
    }

    /// Whether `bytes` more fit on the device.
    pub(crate) fn check_room(&self, bytes: u64) -> Outcome {
        let free = self.description.memory_bytes.saturating_sub(self.taken());
        if bytes <= free {
            return Ok(());
        }
        let why = format!("{bytes} B are asked for and {free} B are free");
        Err(Fault::new(code::OUT_OF_MEMORY, why))
    }
}
