//! The context of the device: on which threads it is current, and what is in it.

use std::cell::Cell;

use crate::fault::{Fault, code};
use crate::log;
use crate::memory::Kind;
use crate::state::{Answer, State};

thread_local! {
    /// The context that is current on this thread; 0 without one.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Sets the context that is current on this thread.
pub(crate) fn set_current(context: u64) {
    CURRENT.set(context);
}

/// The handle that is current on this thread.
pub(crate) fn get_current() -> u64 {
    CURRENT.get()
}

/// There is one device.
pub(crate) fn check_device_number(device: i32) -> Answer {
    match device {
        0 => Ok(()),
        _ => Err(Fault::new(
            code::INVALID_DEVICE,
            format!("there is no device {device}"),
        )),
    }
}

impl State {
    /// Retains the primary context.
    pub(crate) fn retain(&mut self) -> u64 {
        self.retained += 1;
        let context = self.context.unwrap_or_else(|| self.made());
        self.context = Some(context);
        context
    }

    /// Releases it, and with the last release frees what is in it.
    pub(crate) fn release(&mut self) -> Answer {
        self.retained = self.retained.checked_sub(1).ok_or_else(|| {
            Fault::new(code::INVALID_CONTEXT, "the primary context is not active")
        })?;
        if self.retained > 0 {
            return Ok(());
        }
        self.synchronize_context();
        for left in self.leaks() {
            log::call(format_args!("the context ends with {left}"));
        }
        for base in self.memory.live().map(|a| a.base).collect::<Vec<_>>() {
            self.memory.free(base);
            self.give_back(base);
        }
        self.streams.clear();
        self.events.clear();
        self.modules.clear();
        self.functions.clear();
        self.context = None;
        Ok(())
    }

    /// Fails where no context is current on this thread.
    pub(crate) fn check_current(&self) -> Answer {
        match self.context {
            Some(context) if context == CURRENT.get() => Ok(()),
            _ => {
                let why = "no context is current on this thread, or it was destroyed";
                Err(Fault::new(code::INVALID_CONTEXT, why))
            }
        }
    }

    /// Bytes of device memory that are taken.
    pub(crate) fn taken(&self) -> u64 {
        let allocated = self.memory.live().map(|a| match a.kind {
            Kind::Device | Kind::Managed => a.bytes,
            _ => 0,
        });
        let context = self.context.map_or(0, |_| self.description.context_bytes);
        let pools = self.pools.values().map(|pool| pool.reserved);
        context + allocated.sum::<u64>() + pools.sum::<u64>()
    }

    /// Whether `bytes` more fit on the device.
    pub(crate) fn check_room(&self, bytes: u64) -> Answer {
        let free = self.description.memory_bytes.saturating_sub(self.taken());
        if bytes <= free {
            return Ok(());
        }
        let why = format!("{bytes} B are asked for and {free} B are free");
        Err(Fault::new(code::OUT_OF_MEMORY, why))
    }
}
