//! The links between two GPUs: what the driver reports, and whether data arrive.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crossover_results::model::environment::GpuLink;
use crossover_timing::{Called, CudaError, bind, synchronize};

/// The number of devices that the driver shows, once one was probed.
///
/// # Errors
/// The driver's.
pub fn count() -> Result<usize, CudaError> {
    let count = result::device::get_count().called("cuDeviceGetCount")?;
    Ok(count as usize)
}

/// The link that the driver reports, once both devices were probed.
///
/// # Errors
/// The driver's.
pub fn reported(first: usize, other: usize) -> Result<GpuLink, CudaError> {
    let device = |ordinal| result::device::get(ordinal as i32).called("cuDeviceGet");
    let (first, other) = (device(first)?, device(other)?);
    let attribute = |which, from, to| {
        let mut value = 0;
        // SAFETY: the pointer is valid for the write, and both devices exist.
        let status = unsafe { sys::cuDeviceGetP2PAttribute(&mut value, which, from, to) };
        CudaError::check("cuDeviceGetP2PAttribute", status).map(|()| value != 0)
    };
    use sys::CUdevice_P2PAttribute::*;
    let both = |which| {
        Ok::<_, CudaError>(attribute(which, first, other)? && attribute(which, other, first)?)
    };
    Ok(if !both(CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED)? {
        GpuLink::Host
    } else if both(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED)? {
        // PCIe has no atomics between GPUs.
        GpuLink::Nvlink
    } else {
        GpuLink::Pcie
    })
}

/// Lets the device of the first context use memory of the second that is of no pool.
///
/// # Errors
/// The driver's.
pub fn give_access(to: &CudaContext, of: &CudaContext) -> Result<(), CudaError> {
    bind(to)?;
    // SAFETY: both contexts are retained.
    let status = unsafe { sys::cuCtxEnablePeerAccess(of.cu_ctx(), 0) };
    match status {
        sys::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
        status => CudaError::check("cuCtxEnablePeerAccess", status),
    }
}

/// Two devices, and memory of each for a copy from the other and to it. It is freed with the process.
pub struct TriedLink([Side; 2]);

struct Side {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    source: CUdeviceptr,
    target: CUdeviceptr,
}

impl TriedLink {
    const BYTES: usize = 1 << 20;

    /// Opens both devices, and lets them use each other's memory.
    ///
    /// # Errors
    /// The driver's.
    pub fn open(first: usize, other: usize) -> Result<Self, CudaError> {
        let open = |ordinal| {
            let context = CudaContext::new(ordinal).called("cuDevicePrimaryCtxRetain")?;
            let stream = context.new_stream().called("cuStreamCreate")?;
            // SAFETY: written before it is read.
            let alloc = || unsafe { result::malloc_sync(Self::BYTES) }.called("cuMemAlloc");
            Ok(Side {
                source: alloc()?,
                target: alloc()?,
                context,
                stream,
            })
        };
        let sides = [open(first)?, open(other)?];
        give_access(&sides[0].context, &sides[1].context)?;
        give_access(&sides[1].context, &sides[0].context)?;
        Ok(Self(sides))
    }

    /// Copies a pattern between the devices, either way, and compares it. Where an IOMMU or a switch is set
    /// up wrongly, the copy arrives wrong, or never ends.
    ///
    /// # Errors
    /// The driver's.
    pub fn moves_data(&self) -> Result<bool, CudaError> {
        let bytes = Self::BYTES;
        let pattern: Vec<u8> = (0..bytes).map(|i| ((i * 167) ^ (i >> 8)) as u8).collect();
        let [first, other] = &self.0;
        for (from, to) in [(first, other), (other, first)] {
            let mut arrived = vec![0; bytes];
            let stream = from.stream.cu_stream();
            // SAFETY: all of them have as many bytes, and each wait comes before the next use.
            unsafe {
                bind(&from.context)?;
                result::memcpy_htod_async(from.source, &pattern, stream)
                    .called("cuMemcpyHtoDAsync")?;
                let contexts = [to, from].map(|side| side.context.cu_ctx());
                let [there, here] = contexts;
                result::memcpy_peer_async(there, to.target, here, from.source, bytes, stream)
                    .called("cuMemcpyPeerAsync")?;
                synchronize(&from.stream)?;
                bind(&to.context)?;
                result::memcpy_dtoh_async(&mut arrived, to.target, to.stream.cu_stream())
                    .called("cuMemcpyDtoHAsync")?;
                synchronize(&to.stream)?;
            }
            if arrived != pattern {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
