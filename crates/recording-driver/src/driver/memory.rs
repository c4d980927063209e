//! Memory, copies, sets and pools.

use super::DRIVER;
use crate::call::{exported, get, make, put};
use crate::copies::Side;
use crate::fault::Fault;
use crate::memory::Kind;
use crate::state::known;

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Rows {
    from: Rectangle,
    to: Rectangle,
    width: usize,
    height: usize,
}

/// One side of the copy.
#[repr(C)]
struct Rectangle {
    x: usize,
    y: usize,
    memory_type: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch: usize,
}

/// `CU_MEMORYTYPE_HOST`; that of device memory is the next number.
const HOST: u32 = 1;

/// `CU_POINTER_ATTRIBUTE_MEMORY_TYPE`.
const MEMORY_TYPE: u32 = 2;

impl Rectangle {
    fn side(&self) -> Side {
        let on_device = self.memory_type != HOST;
        let begin = if on_device { self.device } else { self.host };
        Side {
            address: begin + (self.y * self.pitch + self.x) as u64,
            on_device,
            pitch: self.pitch as u64,
        }
    }
}

/// The beginning of `CUmemPoolProps`. A location is a type and the number of a device.
#[repr(C)]
#[derive(Clone, Copy)]
struct PoolProperties {
    types: [i32; 2],
    location: [i32; 2],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Access {
    location: [i32; 2],
    flags: i32,
}

/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: u32 = 4;

exported! { DRIVER:
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) = |state| {
        let (left, all) = state.memory_info()?;
        put(free, left as usize)?;
        put(total, all as usize)
    };

    fn cuPointerGetAttribute(to: *mut u32, attribute: u32, address: u64) = |state| {
        match state.memory.side(address, 1, false)?.kind {
            Some(kind) if attribute == MEMORY_TYPE => put(to, HOST + u32::from(kind.on_device())),
            _ => Err(Fault::invalid("the memory is ordinary, or the attribute another one")),
        }
    };

    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) = |state| make(to, state.allocate(Kind::Device, bytes as u64)?);

    fn cuMemHostAlloc(to: *mut u64, bytes: usize, _flags: u32) = |state| make(to, state.allocate(Kind::Pinned, bytes as u64)?);

    fn cuMemFree_v2(address: u64) = |state| state.free(Kind::Device, address);

    fn cuMemFreeHost(address: u64) = |state| state.free(Kind::Pinned, address);

    fn cuMemHostGetDevicePointer_v2(to: *mut u64, address: u64, _flags: u32) = |state| {
        // The device's address of pinned memory equals the host's.
        let place = state.memory.side(address, 1, false)?;
        match place.kind {
            Some(Kind::Pinned) => put(to, address),
            _ => Err(fault!(INVALID_VALUE, "{} is not pinned", place.name)),
        }
    };

    fn cuMemAllocAsync(to: *mut u64, bytes: usize, stream: u64) = |state| {
        make(to, state.allocate_async(None, bytes as u64, stream)?)
    };

    fn cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, pool: u64, stream: u64) = |state| make(to, state.allocate_async(Some(pool), bytes as u64, stream)?);

    fn cuMemFreeAsync(address: u64, stream: u64) = |state| state.free_async(address, stream);

    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) = |state| {
        state.copy(Side::row(to, true), Side::row(from, false), (bytes as u64, 1), None)
    };

    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) = |state| {
        state.copy(Side::row(to, false), Side::row(from, true), (bytes as u64, 1), None)
    };

    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy(Side::row(to, true), Side::row(from, false), (bytes as u64, 1), Some(stream))
    };

    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy(Side::row(to, false), Side::row(from, true), (bytes as u64, 1), Some(stream))
    };

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy(Side::row(to, true), Side::row(from, true), (bytes as u64, 1), Some(stream))
    };

    fn cuMemcpy2DAsync_v2(rows: *const Rows, stream: u64) = |state| {
        // SAFETY: the caller promises that the description is valid.
        let rows = unsafe { &*rows };
        let size = (rows.width as u64, rows.height as u64);
        state.copy(rows.to.side(), rows.from.side(), size, Some(stream))
    };

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) = |state| {
        state.set(to, value.into(), [1, count as u64], stream)
    };

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: u64) = |state| {
        state.set(to, value, [4, count as u64], stream)
    };

    fn cuMemcpyPeerAsync(to: u64, of_to: u64, from: u64, of_from: u64, bytes: usize, stream: u64) = |state| {
        state.check_owner(to, of_to)?;
        state.check_owner(from, of_from)?;
        state.copy(Side::row(to, true), Side::row(from, true), (bytes as u64, 1), Some(stream))
    };

    fn cuDeviceGetDefaultMemPool(to: *mut u64, device: i32) = |state| {
        state.device(device)?;
        make(to, state.default_pool(device as usize))
    };

    fn cuMemPoolCreate(to: *mut u64, properties: *const PoolProperties) = |state| {
        let [_, device] = get(properties)?.location;
        state.device(device)?;
        make(to, state.create_pool(device as usize))
    };

    fn cuMemPoolSetAccess(pool: u64, accesses: *const Access, count: usize) = |state| {
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
    };

    fn cuMemPoolDestroy(pool: u64) = |state| state.destroy_pool(pool);

    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, _from: *const u64) = |state| {
        known(&mut state.pools, pool, "memory pool")?;
        match attribute {
            RELEASE_THRESHOLD => Ok(()),
            other => Err(Fault::unknown("a memory pool's attribute", other)),
        }
    };
}
