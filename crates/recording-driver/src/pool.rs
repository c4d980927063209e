//! Memory pools, from which `cuMemAllocAsync` allocates in stream order. Memory that a pool keeps is
//! not modelled.

use crate::call::{DRIVER, exported, get};
use crate::fault::Fault;
use crate::memory::Kind;
use crate::objects::{Node, Pool, Work};
use crate::state::{Outcome, State, known, removed};

/// The beginning of `CUmemPoolProps`. A location is a type and the number of a device.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PoolProperties {
    types: [i32; 2],
    location: [i32; 2],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Access {
    location: [i32; 2],
    flags: i32,
}

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: u32 = 4;
/// `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const USED_CURRENT: u32 = 7;
/// `CU_MEMPOOL_ATTR_USED_MEM_HIGH`.
const USED_HIGH: u32 = 8;

/// The handle of a device's default pool.
pub(crate) fn default_pool(device: usize) -> u64 {
    0x100 + device as u64
}

exported! { DRIVER:
    fn cuDeviceGetDefaultMemPool(state, device: i32) -> u64 {
        state.device(device)?;
        Ok(default_pool(device as usize))
    }

    fn cuDeviceGetMemPool(state, device: i32) -> u64 {
        cuDeviceGetDefaultMemPool(state, device)
    }

    fn cuMemPoolCreate(state, properties: *const PoolProperties) -> u64 {
        let [_, device] = get(properties)?.location;
        state.device(device)?;
        let (name, handle) = (state.names.next("pool"), state.made());
        log!("create {name}");
        let device = device as usize;
        state.pools.insert(handle, Pool { name, device, ..Pool::default() });
        Ok(handle)
    }

    fn cuMemPoolSetAccess(state, pool: u64, accesses: *const Access, count: usize) {
        for at in 0..count {
            let Access { location: [_, device], flags } = get(accesses.wrapping_add(at))?;
            state.device(device)?;
            let peers = &mut known(&mut state.pools, pool, "memory pool")?.peers;
            match flags {
                0 => peers.remove(&(device as usize)),
                _ => peers.insert(device as usize),
            };
        }
        Ok(())
    }

    fn cuMemPoolDestroy(state, pool: u64) {
        let pool = removed(&mut state.pools, pool, "memory pool")?;
        log!("destroy {}", pool.name);
        Ok(())
    }

    fn cuMemPoolSetAttribute(state, pool: u64, attribute: u32, _from: *const u64) {
        let pool = known(&mut state.pools, pool, "memory pool")?;
        match attribute {
            RELEASE_THRESHOLD => Ok(()),
            USED_HIGH => {
                pool.used_high = 0;
                Ok(())
            }
            other => Err(Fault::unknown("a memory pool's attribute", other)),
        }
    }

    fn cuMemPoolGetAttribute(state, pool: u64, attribute: u32) => u64 {
        let pool = known(&mut state.pools, pool, "memory pool")?;
        match attribute {
            USED_CURRENT => Ok(pool.used),
            USED_HIGH => Ok(pool.used_high),
            other => Err(Fault::unknown("a memory pool's attribute", other)),
        }
    }

    fn cuMemAllocAsync(state, bytes: usize, stream: u64) -> u64 {
        let stream = state.usable_stream(stream)?;
        let pool = default_pool(state.streams[&stream].device);
        state.allocate_from(pool, "", bytes, stream)
    }

    fn cuMemAllocFromPoolAsync(state, bytes: usize, pool: u64, stream: u64) -> u64 {
        let from = format!(" from {}", known(&mut state.pools, pool, "memory pool")?.name);
        state.allocate_from(pool, &from, bytes, stream)
    }

    // Enqueues a free of memory to its pool. No later call may use it.
    fn cuMemFreeAsync(state, address: u64, stream: u64) {
        let stream = state.usable_stream(stream)?;
        let allocation = state.memory.starting_at(address)?;
        let (name, kind) = (allocation.name.clone(), allocation.kind);
        let (pool, bytes) = (allocation.pool, allocation.bytes);
        let is_captured = state.streams[&stream].capture.is_some();
        let is_own = |node: &Node| matches!(node.work, Work::Allocation(own) if own == address);
        let mut nodes = state.capture.iter().flat_map(|capture| &capture.nodes);
        if kind != Kind::Device || is_captured != nodes.any(is_own) {
            return Err(state.spoiled(fault!(
                INVALID_VALUE,
                "{name} was not allocated by cuMemAllocAsync in the same capture, or outside of one"
            )));
        }
        state.memory.free(address);
        if is_captured {
            let free = Work::FreeAllocation(address);
            return state.add_node(stream, free, |on| format!("free {name} on {on}"));
        }
        if let Some(pool) = pool.and_then(|pool| state.pools.get_mut(&pool)) {
            // Memory that a graph allocated was not counted.
            pool.used = pool.used.saturating_sub(bytes);
        }
        state.enqueue(stream, Work::Free(address), |on| format!("free {name} on {on}"))
    }
}

impl State {
    /// Enqueues an allocation of `bytes` bytes.
    fn allocate_from(&mut self, pool: u64, from: &str, bytes: usize, stream: u64) -> Outcome<u64> {
        let stream = self.usable_stream(stream)?;
        let owner = (self.pools[&pool].device, Some(pool));
        let on = self.streams[&stream].name.clone();
        let (address, name) = self.allocate(Kind::Device, bytes, owner)?;
        let name = name.to_owned();
        if self.streams[&stream].capture.is_some() {
            let text = |on: &str| format!("allocate {name} {bytes} B{from} on {on}");
            self.add_node(stream, Work::Allocation(address), text)?;
            return Ok(address);
        }
        log!("allocate {name} {bytes} B{from} on {on}");
        let pool = known(&mut self.pools, pool, "memory pool")?;
        pool.used += bytes as u64;
        pool.used_high = pool.used_high.max(pool.used);
        Ok(address)
    }
}
