//! The context of the device: on which threads it is current, and its memory.

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
    /// Retains the primary context.
    pub(crate) fn retain(&mut self) -> u64 {
        self.retained += 1;
        let context = self.context.unwrap_or_else(|| self.made());
        self.context = Some(context);
        context
    }

    /// Releases it; the last release frees its memory.
    pub(crate) fn release(&mut self) -> Outcome {
        self.retained = self.retained.saturating_sub(1);
        if self.retained > 0 {
            return Ok(());
        }
        self.synchronize_context();
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
        self.context = None;
        Ok(())
    }

    /// Fails if no context is current on this thread.
    pub(crate) fn check_current(&self) -> Outcome {
        match self.context {
            Some(context) if context == CURRENT.get() => Ok(()),
            _ => {
                let why = "no context is current on this thread, or it was destroyed";
                Err(Fault::new(code::INVALID_CONTEXT, why))
            }
        }
    }

    /// Bytes of allocated device memory.
    pub(crate) fn taken(&self) -> u64 {
        let allocated = self.memory.live().filter(|a| a.kind.on_device());
        let context = self.context.map_or(0, |_| self.description.context_bytes);
        context + allocated.map(|a| a.bytes).sum::<u64>()
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
