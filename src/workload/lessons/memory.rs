//! The cost of an allocation in each iteration: with the synchronous allocator, with the stream-ordered
//! one that returns its memory at every synchronisation, with the same one configured to keep it, and
//! with a buffer that is reused.
//!
//! The size is the number of bytes. One iteration allocates, writes the last word, copies it to
//! memory of the routine (so that the allocation is known to be usable), releases, and
//! synchronises.

use std::collections::BTreeMap;
use std::rc::Rc;

use cudarc::driver::sys::{self, CUmemPool_attribute as A};
use cudarc::driver::{CudaSlice, DevicePtr, result};

use crate::device::Gpu;
use crate::model::{Allocator, Verified};
use crate::timing::{Called, CudaError};
use crate::workload::prepare::Prepared;
use crate::workload::routine::{Result, Routine, Workload};

/// The value of the last word of each allocation.
const WORD: u32 = 0x5EED_CAFE;

/// A number of bytes to allocate; no inputs.
pub struct Memory {
    bytes: u64,
}

impl Workload for Memory {
    fn new(size: u64) -> Self {
        Self { bytes: size }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(size: u64) -> u64 {
        2 * size
    }
}

/// Allocates, writes, copies out and releases with one allocator.
///
/// # Errors
/// Errors of CUDA.
pub fn allocation(
    gpu: &Rc<Gpu>,
    problem: &Rc<Memory>,
    allocator: Allocator,
) -> Result<Box<dyn Routine>> {
    let mut work = Prepared::new(gpu)?;
    let source = match allocator {
        Allocator::Malloc => AllocatedFrom::Synchronous,
        Allocator::MallocAsync => AllocatedFrom::Pool(Pool::new(gpu, 0)?),
        Allocator::MallocAsyncKept => AllocatedFrom::Pool(Pool::new(gpu, u64::MAX)?),
        Allocator::Reuse => AllocatedFrom::Kept(gpu.alloc(problem.bytes as usize)?),
    };
    let word = work.unobserved::<u32>(1)?;
    let allocation = Rc::new(Allocation {
        gpu: gpu.clone(),
        bytes: problem.bytes as usize,
        source,
    });
    let iteration = allocation.clone();
    // SAFETY: the routine owns the word.
    (work.steps).call(move |_| unsafe { iteration.run(word.address) });
    work.measure = Some(Box::new(move |_| Ok(allocation.pool_usage()?)));
    work.check_by(move |memory| {
        let is_wrong = memory.read(word)? != [WORD];
        Ok(Verified {
            error: f64::from(u8::from(is_wrong)),
            bound: 0.0,
            method: "the last word of the allocation reads back".to_owned(),
        })
    });
    Ok(Box::new(work))
}

enum AllocatedFrom {
    Synchronous,
    Pool(Pool),
    Kept(CudaSlice<u8>),
}

struct Allocation {
    gpu: Rc<Gpu>,
    bytes: usize,
    source: AllocatedFrom,
}

impl Allocation {
    fn allocate(&self) -> Result<sys::CUdeviceptr, CudaError> {
        let bytes = self.bytes;
        match &self.source {
            AllocatedFrom::Synchronous => {
                // SAFETY: `run` and `pool_usage` give each address to `release` once, after its last use.
                unsafe { result::malloc_sync(bytes) }.called("cuMemAlloc")
            }
            AllocatedFrom::Pool(pool) => {
                let stream = self.gpu.stream().cu_stream();
                // SAFETY: `self` owns the pool, and `run` and `pool_usage` give each address to `release` once.
                unsafe { result::mem_pool::alloc_async(pool.pool, bytes, stream) }
                    .called("cuMemAllocFromPoolAsync")
            }
            AllocatedFrom::Kept(buffer) => Ok(buffer.device_ptr(self.gpu.stream()).0),
        }
    }

    fn release(&self, address: sys::CUdeviceptr) -> Result<(), CudaError> {
        match &self.source {
            AllocatedFrom::Synchronous => {
                self.gpu.synchronize()?;
                // SAFETY: allocated by `allocate`, and the stream is idle.
                unsafe { result::free_sync(address) }.called("cuMemFree")
            }
            AllocatedFrom::Pool(_) => {
                // SAFETY: allocated by `allocate`; freed in stream order after its last use.
                unsafe { result::free_async(address, self.gpu.stream().cu_stream()) }
                    .called("cuMemFreeAsync")?;
                self.gpu.synchronize()
            }
            AllocatedFrom::Kept(_) => self.gpu.synchronize(),
        }
    }

    /// An iteration, which copies the last word to `word`.
    ///
    /// # Safety
    /// There must be room for a word.
    unsafe fn run(&self, word: sys::CUdeviceptr) -> Result<(), CudaError> {
        let stream = self.gpu.stream().cu_stream();
        let address = self.allocate()?;
        let last = address + (self.bytes - size_of::<u32>()) as sys::CUdeviceptr;
        // SAFETY: the last word of the allocation, which is a multiple of four bytes.
        let set = unsafe { sys::cuMemsetD32Async(last, WORD, 1, stream) };
        let used = CudaError::check("cuMemsetD32Async", set).and_then(|()| {
            // SAFETY: one word of the allocation; the caller promises room for it.
            unsafe { result::memcpy_dtod_async(word, last, size_of::<u32>(), stream) }
                .called("cuMemcpyDtoDAsync")
        });
        // Released also where using it failed.
        self.release(address)?;
        used
    }

    /// Bytes that the pool holds: before an allocation, during it, after it, and after its unused memory is returned.
    fn pool_usage(&self) -> Result<BTreeMap<String, f64>, CudaError> {
        let AllocatedFrom::Pool(pool) = &self.source else {
            return Ok(BTreeMap::new());
        };
        let mut figures = pool.usage()?;
        let address = self.allocate()?;
        self.gpu.synchronize()?;
        figures.extend(pool.held("allocated")?);
        self.release(address)?;
        figures.extend(pool.held("released")?);
        pool.trim()?;
        figures.extend(pool.held("trimmed")?);
        Ok(figures)
    }
}

/// A memory pool of the routine's own, so that its figures and its threshold are the routine's.
struct Pool {
    gpu: Rc<Gpu>,
    pool: sys::CUmemoryPool,
}

impl Pool {
    fn new(gpu: &Rc<Gpu>, release_threshold: u64) -> Result<Self, CudaError> {
        gpu.bind()?;
        // SAFETY: all zeros is a valid value of this plain C struct: no handle export, no
        // security attributes, no size limit.
        let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = gpu.properties().ordinal as i32;
        // SAFETY: the properties are valid for the call.
        let pool = unsafe { result::mem_pool::create(&properties) }.called("cuMemPoolCreate")?;
        let this = Self {
            gpu: gpu.clone(),
            pool,
        };
        let mut threshold = release_threshold;
        // SAFETY: the pool is alive; the attribute is a 64-bit number.
        unsafe {
            result::mem_pool::set_attribute(
                pool,
                sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut threshold).cast(),
            )
        }
        .called("cuMemPoolSetAttribute")?;
        Ok(this)
    }

    /// Bytes that the pool holds now, the most that it held, and the most that were in use.
    fn usage(&self) -> Result<BTreeMap<String, f64>, CudaError> {
        self.attributes([
            ("reserved", A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
            ("peak", A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
            ("used_peak", A::CU_MEMPOOL_ATTR_USED_MEM_HIGH),
        ])
    }

    /// Bytes of it that are in use at a moment, and that it holds.
    fn held(&self, when: &str) -> Result<BTreeMap<String, f64>, CudaError> {
        let [used, reserved] = ["used", "reserved"].map(|what| format!("{what}_{when}"));
        self.attributes([
            (&used, A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
            (&reserved, A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
        ])
    }

    fn attributes<const N: usize>(
        &self,
        attributes: [(&str, A); N],
    ) -> Result<BTreeMap<String, f64>, CudaError> {
        let get = |(what, attribute)| {
            let mut value = 0u64;
            // SAFETY: the pool is alive; these attributes are 64-bit numbers.
            unsafe {
                result::mem_pool::get_attribute(self.pool, attribute, (&raw mut value).cast())
            }
            .called("cuMemPoolGetAttribute")?;
            Ok((format!("pool_{what}_bytes"), value as f64))
        };
        attributes.into_iter().map(get).collect()
    }

    /// Returns the pool's unused memory to the driver.
    fn trim(&self) -> Result<(), CudaError> {
        // SAFETY: the pool is alive.
        CudaError::check("cuMemPoolTrimTo", unsafe {
            sys::cuMemPoolTrimTo(self.pool, 0)
        })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // If the context keeps an error, cudarc's own functions return it and neither bind nor wait. `synchronize`
        // would take the kept error away, which `check_earlier` reports.
        let _ = self.gpu.bind();
        // SAFETY: the GPU's own stream.
        let waited = unsafe { result::stream::synchronize(self.gpu.stream().cu_stream()) };
        self.gpu.context().record_err(waited);
        // SAFETY: made in `new`, destroyed once; everything allocated from it was released.
        let destroyed = unsafe { result::mem_pool::destroy(self.pool) };
        self.gpu.context().record_err(destroyed);
    }
}
