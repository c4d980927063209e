//! Memory pools, from which `cuMemAllocAsync` allocates in stream order.

use crate::fault::{Fault, code};
use crate::log;
use crate::memory::Kind;
use crate::objects::{Pool, Work};
use crate::state::{Answer, State, known};

/// The driver reserves memory for a pool in pieces of this size.
const PIECE: u64 = 32 << 20;

impl State {
    /// The pool that belongs to the device.
    pub(crate) fn default_pool(&mut self) -> u64 {
        let found = self.pools.iter().find(|(_, pool)| pool.is_default);
        match found {
            Some((&handle, _)) => handle,
            None => self.insert_pool("the default pool".to_owned(), true),
        }
    }

    pub(crate) fn create_pool(&mut self) -> u64 {
        let name = self.names.next("pool");
        log::call(format_args!("create {name}"));
        self.insert_pool(name, false)
    }

    fn insert_pool(&mut self, name: String, is_default: bool) -> u64 {
        let handle = self.made();
        let pool = Pool {
            name,
            is_default,
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
        };
        self.pools.insert(handle, pool);
        handle
    }

    pub(crate) fn destroy_pool(&mut self, handle: u64) -> Answer {
        let pool = known(&mut self.pools, handle, "memory pool")?;
        if pool.used > 0 {
            let why = format!("{} still holds {} B in use", pool.name, pool.used);
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        log::call(format_args!("destroy {}", pool.name));
        self.pools.remove(&handle);
        Ok(())
    }

    /// Enqueues an allocation of `bytes` bytes.
    pub(crate) fn allocate_async(&mut self, pool: u64, bytes: u64, stream: u64) -> Answer<u64> {
        let stream = self.usable_stream(stream)?;
        if self.streams[&stream].capture.is_some() {
            let why = "an allocation in a capture makes a graph node that is not modelled here";
            return Err(Fault::new(code::NOT_SUPPORTED, why));
        }
        let held = known(&mut self.pools, pool, "memory pool")?;
        let needed = (held.used + bytes).next_multiple_of(PIECE);
        let more = needed.saturating_sub(held.reserved);
        self.check_room(more.min(bytes))?;
        let allocation =
            self.memory
                .allocate(Kind::Pool(pool), bytes, &mut self.names, self.given.take())?;
        let (base, name) = (allocation.base, allocation.name.clone());
        let pool = known(&mut self.pools, pool, "memory pool")?;
        pool.used += bytes;
        pool.used_high = pool.used_high.max(pool.used);
        pool.reserved = pool.reserved.max(needed);
        pool.reserved_high = pool.reserved_high.max(pool.reserved);
        let from = if pool.is_default {
            String::new()
        } else {
            format!(" from {}", pool.name)
        };
        let on = &self.streams[&stream].name;
        log::call(format_args!("allocate {name} {bytes} B{from} on {on}"));
        Ok(base)
    }

    /// Enqueues that memory is given back to its pool. No later call may use it.
    pub(crate) fn free_async(&mut self, address: u64, stream: u64) -> Answer {
        let stream = self.usable_stream(stream)?;
        let allocation = self.memory.starting_at(address)?;
        let (name, kind) = (allocation.name.clone(), allocation.kind);
        if !matches!(kind, Kind::Pool(_) | Kind::Device) {
            let why = format!("{name} was not allocated by cuMemAllocAsync");
            return Err(Fault::new(code::INVALID_VALUE, why));
        }
        if self.streams[&stream].capture.is_some() {
            let why = format!("{name} was not allocated in the capture that is to free it");
            return Err(self.spoil_capture(stream, code::INVALID_VALUE, &why));
        }
        self.memory.free(address);
        self.enqueue(stream, Work::Free(address), |on| {
            format!("free {name} on {on}")
        })
    }

    /// What happens to a freed allocation when its stream gets there.
    pub(crate) fn give_back(&mut self, base: u64) {
        let Some(allocation) = self.memory.get_mut(base) else {
            return;
        };
        if let Kind::Pool(pool) = allocation.kind
            && let Some(pool) = self.pools.get_mut(&pool)
        {
            pool.used = pool.used.saturating_sub(allocation.bytes);
        }
        self.memory.release(base);
    }

    /// What pools do when the host has waited: they keep no more than their threshold.
    pub(crate) fn trim_pools(&mut self) {
        for pool in self.pools.values_mut() {
            let keep = pool.used.next_multiple_of(PIECE);
            if pool.reserved > pool.threshold.max(keep) {
                pool.reserved = keep.max(pool.threshold.next_multiple_of(PIECE));
            }
        }
    }
}
