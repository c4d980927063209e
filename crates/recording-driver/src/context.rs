//! Contexts: which one is current on a thread, and what is in one.

use std::cell::Cell;

use crate::fault::{Fault, code};
use crate::log;
use crate::objects::Context;
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

impl State {
    /// Whether there is a device of this number.
    pub(crate) fn check_device_number(&self, device: i32) -> Answer {
        match (0..self.description.devices).contains(&device) {
            true => Ok(()),
            false => Err(Fault::new(
                code::INVALID_DEVICE,
                format!("there is no device {device}"),
            )),
        }
    }

    /// The primary context of a device.
    pub(crate) fn primary(&self, device: i32) -> Option<u64> {
        let mut contexts = self.contexts.iter();
        contexts
            .find(|(_, c)| c.device == device)
            .map(|(&handle, _)| handle)
    }

    /// Retains the primary context of a device.
    pub(crate) fn retain(&mut self, device: i32) -> Answer<u64> {
        self.check_device_number(device)?;
        if let Some(handle) = self.primary(device) {
            self.contexts.entry(handle).and_modify(|c| c.retained += 1);
            return Ok(handle);
        }
        let handle = self.made();
        let context = Context {
            device,
            retained: 1,
        };
        self.contexts.insert(handle, context);
        Ok(handle)
    }

    /// Releases it, and with the last release frees what is in it.
    pub(crate) fn release(&mut self, device: i32) -> Answer {
        let handle = self.primary(device).ok_or_else(|| {
            Fault::new(code::INVALID_CONTEXT, "the primary context is not active")
        })?;
        let context = self.contexts.get_mut(&handle).expect("found just now");
        context.retained -= 1;
        if context.retained > 0 {
            return Ok(());
        }
        self.synchronize_context(handle);
        if self.contexts.len() == 1 {
            for left in self.leaks() {
                log::call(format_args!("the context ends with {left}"));
            }
        }
        let left = self.memory.live().filter(|a| a.context == handle);
        for base in left.map(|a| a.base).collect::<Vec<_>>() {
            self.memory.free(base);
            self.give_back(base);
        }
        self.streams.retain(|_, s| s.context != handle);
        self.events.retain(|_, e| e.context != handle);
        self.modules.retain(|_, m| m.context != handle);
        let modules = &self.modules;
        self.functions
            .retain(|_, f| modules.contains_key(&f.module));
        self.contexts.remove(&handle);
        Ok(())
    }

    /// The context that is current on this thread.
    pub(crate) fn current(&self) -> Answer<u64> {
        let current = CURRENT.get();
        match self.contexts.contains_key(&current) {
            true => Ok(current),
            false => {
                let why = match current {
                    0 => "no context is current on this thread",
                    _ => "the context that is current on this thread was destroyed",
                };
                Err(Fault::new(code::INVALID_CONTEXT, why))
            }
        }
    }

    /// The device of the context that is current on this thread.
    pub(crate) fn current_device(&self) -> Answer<i32> {
        Ok(self.contexts[&self.current()?].device)
    }

    /// Bytes of device memory that are taken.
    pub(crate) fn taken(&self, device: i32) -> u64 {
        let contexts = self.contexts.iter().filter(|(_, c)| c.device == device);
        let handles: Vec<u64> = contexts.map(|(&handle, _)| handle).collect();
        let held = |context: u64| handles.contains(&context);
        let allocated = self.memory.live().filter(|a| held(a.context));
        let allocated = allocated.map(|a| match a.kind {
            crate::memory::Kind::Device | crate::memory::Kind::Managed => a.bytes,
            _ => 0,
        });
        let pools = self.pools.values().filter(|pool| pool.device == device);
        handles.len() as u64 * self.description.context_bytes
            + allocated.sum::<u64>()
            + pools.map(|pool| pool.reserved).sum::<u64>()
    }

    /// Whether `bytes` more fit on the device.
    pub(crate) fn check_room(&self, device: i32, bytes: u64) -> Answer {
        let free = self
            .description
            .memory_bytes
            .saturating_sub(self.taken(device));
        if bytes <= free {
            return Ok(());
        }
        let why = format!("{bytes} B are asked for and {free} B are free");
        Err(Fault::new(code::OUT_OF_MEMORY, why))
    }
}
