//! Memory, copies, sets and pools.

use std::ffi::c_int;

use crate::context::check_device_number;
use crate::copies::{Direction, Side};
use crate::driver::{driver, make, put};
use crate::fault::{Fault, code};

/// `CUDA_MEMCPY2D`.
#[repr(C)]
struct Rows {
    from: Rectangle,
    to: Rectangle,
    width: usize,
    height: usize,
}

/// One side of it.
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

/// `CU_MEMORYTYPE_HOST`, `_DEVICE` and `_UNIFIED`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

impl Rectangle {
    fn side(&self) -> Result<Side, Fault> {
        let begin = match self.memory_type {
            HOST => self.host,
            DEVICE | UNIFIED => self.device,
            other => {
                let why = format!("memory of type {other} is not known here");
                return Err(Fault::new(code::INVALID_VALUE, why));
            }
        };
        Ok(Side {
            address: begin + (self.y * self.pitch + self.x) as u64,
            pitch: self.pitch as u64,
        })
    }
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Location {
    kind: u32,
    id: c_int,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const ON_DEVICE: u32 = 1;

/// Numbers of `CUmemPool_attribute`.
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED: u32 = 7;
const USED_HIGH: u32 = 8;

driver! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) = |state| {
        let (left, all) = state.memory_info()?;
        put(free, left as usize)?;
        put(total, all as usize)
    };

    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) = |state| make(state, to, |state| state.allocate(bytes as u64));

    fn cuMemAllocManaged(to: *mut u64, bytes: usize, _flags: u32) = |state| make(state, to, |state| state.allocate_managed(bytes as u64));

    fn cuMemHostAlloc(to: *mut u64, bytes: usize, _flags: u32) = |state| make(state, to, |state| state.allocate_host(bytes as u64));

    fn cuMemFree_v2(address: u64) = |state| state.free(address);

    fn cuMemFreeHost(address: u64) = |state| state.free_host(address);

    fn cuMemHostRegister_v2(address: u64, bytes: usize, _flags: u32) = |state| {
        state.register_host(address, bytes as u64)
    };

    fn cuMemHostUnregister(address: u64) = |state| state.unregister_host(address);

    fn cuMemHostGetDevicePointer_v2(to: *mut u64, address: u64, _flags: u32) = |state| {
        let address = state.device_pointer(address)?;
        put(to, address)
    };

    fn cuMemAllocAsync(to: *mut u64, bytes: usize, stream: u64) = |state| {
        state.check_current()?;
        let pool = state.default_pool();
        make(state, to, |state| state.allocate_async(pool, bytes as u64, stream))
    };

    fn cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, pool: u64, stream: u64) = |state| make(state, to, |state| state.allocate_async(pool, bytes as u64, stream));

    fn cuMemFreeAsync(address: u64, stream: u64) = |state| state.free_async(address, stream);

    fn cuMemPrefetchAsync_v2(
        address: u64,
        bytes: usize,
        location: Location,
        _flags: u32,
        stream: u64,
    ) = |state| {
        state.prefetch(address, bytes as u64, location.kind == ON_DEVICE, stream)
    };

    fn cuMemcpyHtoD_v2(to: u64, from: u64, bytes: usize) = |state| {
        state.copy_bytes(Direction::ToDevice, to, from, bytes as u64, None)
    };

    fn cuMemcpyDtoH_v2(to: u64, from: u64, bytes: usize) = |state| {
        state.copy_bytes(Direction::ToHost, to, from, bytes as u64, None)
    };

    fn cuMemcpyHtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy_bytes(Direction::ToDevice, to, from, bytes as u64, Some(stream))
    };

    fn cuMemcpyDtoHAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy_bytes(Direction::ToHost, to, from, bytes as u64, Some(stream))
    };

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) = |state| {
        state.copy_bytes(Direction::OnDevice, to, from, bytes as u64, Some(stream))
    };

    fn cuMemcpy2DAsync_v2(rows: *const Rows, stream: u64) = |state| {
        // SAFETY: the caller promises that the description is valid.
        let rows = unsafe { &*rows };
        let direction = match (rows.from.memory_type, rows.to.memory_type) {
            (HOST, DEVICE) => Direction::ToDevice,
            (DEVICE, HOST) => Direction::ToHost,
            (DEVICE, DEVICE) => Direction::OnDevice,
            _ => Direction::Any,
        };
        let size = (rows.width as u64, rows.height as u64);
        state.copy_rows(direction, rows.to.side()?, rows.from.side()?, size, Some(stream))
    };

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: u64) = |state| {
        state.set(to, value.into(), 1, count as u64, stream)
    };

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: u64) = |state| {
        state.set(to, value, 4, count as u64, stream)
    };

    fn cuDeviceGetDefaultMemPool(to: *mut u64, device: i32) = |state| {
        check_device_number(device)?;
        make(state, to, |state| Ok(state.default_pool()))
    };

    fn cuMemPoolCreate(to: *mut u64, _properties: u64) = |state| make(state, to, |state| Ok(state.create_pool()));

    fn cuMemPoolDestroy(pool: u64) = |state| state.destroy_pool(pool);

    fn cuMemPoolGetAttribute(pool: u64, attribute: u32, to: *mut u64) = |state| {
        let pool = crate::state::known(&mut state.pools, pool, "memory pool")?;
        put(to, match attribute {
            RELEASE_THRESHOLD => pool.threshold,
            RESERVED => pool.reserved,
            RESERVED_HIGH => pool.reserved_high,
            USED => pool.used,
            USED_HIGH => pool.used_high,
            _ => return Err(unknown(attribute)),
        })
    };

    fn cuMemPoolSetAttribute(pool: u64, attribute: u32, from: *const u64) = |state| {
        // SAFETY: the caller promises that the value is there; these attributes have 64 bits.
        let value = unsafe { from.read_unaligned() };
        let pool = crate::state::known(&mut state.pools, pool, "memory pool")?;
        match attribute {
            RELEASE_THRESHOLD => pool.threshold = value,
            RESERVED_HIGH => pool.reserved_high = pool.reserved,
            USED_HIGH => pool.used_high = pool.used,
            _ => return Err(unknown(attribute)),
        }
        Ok(())
    };
}

fn unknown(attribute: u32) -> Fault {
    let why = format!("a memory pool's attribute {attribute} is not known here");
    Fault::new(code::INVALID_VALUE, why)
}
