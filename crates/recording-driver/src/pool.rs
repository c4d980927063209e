//! Memory pools, from which `cuMemAllocAsync` allocates in stream order. Memory that a pool keeps is
//! not modelled.

use std::collections::BTreeSet;

use crate::fault::code;
use crate::memory::Kind;
use crate::objects::{Pool, Work};
use crate::state::{Outcome, State, known, removed};

impl State {
    /// The default pool of a device.
    pub(crate) fn default_pool(&mut self, device: usize) -> u64 {
        let mut pools = self.pools.iter();
        let found = pools.find(|(_, pool)| pool.is_default && pool.device == device);
        found.map(|(&handle, _)| handle).unwrap_or_else(|| {
            let name = "the default pool".to_owned();
            self.insert_pool(name, device, true)
        })
    }

    pub(crate) fn create_pool(&mut self, device: usize) -> u64 {
        let name = self.names.next("pool");
        log!("create {name}");
        self.insert_pool(name, device, false)
    }

    fn insert_pool(&mut self, name: String, device: usize, is_default: bool) -> u64 {
        let handle = self.made();
        let pool = Pool {
            name,
            device,
            peers: BTreeSet::new(),
            is_default,
        };
        self.pools.insert(handle, pool);
        handle
    }

    pub(crate) fn destroy_pool(&mut self, handle: u64) -> Outcome {
        let pool = removed(&mut self.pools, handle, "memory pool")?;
        log!("destroy {}", pool.name);
        Ok(())
    }

    /// Enqueues an allocation of `bytes` bytes; without a pool, from the default one of the stream's
    /// device.
    pub(crate) fn allocate_async(
        &mut self,
        pool: Option<u64>,
        bytes: u64,
        stream: u64,
    ) -> Outcome<u64> {
        let stream = self.usable_stream(stream)?;
        let handle = match pool {
            Some(pool) => pool,
            None => self.default_pool(self.streams[&stream].device),
        };
        if self.streams[&stream].capture.is_some() {
            return Err(fault!(
                NOT_SUPPORTED,
                "an allocation in a capture makes a graph node that is not modelled here"
            ));
        }
        let pool = known(&mut self.pools, handle, "memory pool")?;
        let device = pool.device;
        let from = match pool.is_default {
            true => String::new(),
            false => format!(" from {}", pool.name),
        };
        self.check_room(device, bytes)?;
        let of = (device, Some(handle));
        let allocation = (self.memory).allocate(Kind::Device, bytes, of, &mut self.names)?;
        let (name, on) = (&allocation.name, &self.streams[&stream].name);
        log!("allocate {name} {bytes} B{from} on {on}");
        Ok(allocation.base)
    }

    /// Enqueues a free of memory to its pool. No later call may use it.
    pub(crate) fn free_async(&mut self, address: u64, stream: u64) -> Outcome {
        let stream = self.usable_stream(stream)?;
        let allocation = self.memory.starting_at(address)?;
        let name = allocation.name.clone();
        if allocation.kind != Kind::Device || self.streams[&stream].capture.is_some() {
            let why = format!("{name} was not allocated by cuMemAllocAsync, outside of a capture");
            return Err(self.spoil_capture(code::INVALID_VALUE, why));
        }
        self.memory.free(address);
        self.enqueue(stream, Work::Free(address), |on| {
            format!("free {name} on {on}")
        })
    }
}
