//! The links between two GPUs: what the driver reports, and whether data arrive.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result, sys};

use crossover_results::model::environment::GpuLink;
use crossover_timing::{Called, CudaError, bind};

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

/// Copies a pattern between the devices, either way, and compares it. Where an IOMMU or a switch is set
/// up wrongly, the copy arrives wrong, or never ends.
///
/// # Errors
/// The driver's.
pub fn moves_data(first: usize, other: usize) -> Result<bool, CudaError> {
    const BYTES: usize = 1 << 20;
    let pattern: Vec<u8> = (0..BYTES).map(|i| ((i * 167) ^ (i >> 8)) as u8).collect();
    let open = |ordinal| -> Result<(Arc<CudaContext>, Arc<CudaStream>), CudaError> {
        let context = CudaContext::new(ordinal).called("cuDevicePrimaryCtxRetain")?;
        let stream = context.new_stream().called("cuStreamCreate")?;
        Ok((context, stream))
    };
    let (first, other) = (open(first)?, open(other)?);
    give_access(&first.0, &other.0)?;
    give_access(&other.0, &first.0)?;
    for ((from, stream), (to, back)) in [(&first, &other), (&other, &first)] {
        let alloc = |context: &CudaContext| {
            bind(context)?;
            // SAFETY: written before it is read. It is freed with the process.
            unsafe { result::malloc_sync(BYTES) }.called("cuMemAlloc")
        };
        let (source, target) = (alloc(from)?, alloc(to)?);
        let mut arrived = vec![0; BYTES];
        // SAFETY: all of them have as many bytes, and each wait comes before the next use.
        unsafe {
            bind(from)?;
            result::memcpy_htod_async(source, &pattern, stream.cu_stream())
                .called("cuMemcpyHtoDAsync")?;
            result::memcpy_peer_async(
                to.cu_ctx(),
                target,
                from.cu_ctx(),
                source,
                BYTES,
                stream.cu_stream(),
            )
            .called("cuMemcpyPeerAsync")?;
            stream.synchronize().called("cuStreamSynchronize")?;
            bind(to)?;
            result::memcpy_dtoh_async(&mut arrived, target, back.cu_stream())
                .called("cuMemcpyDtoHAsync")?;
            back.synchronize().called("cuStreamSynchronize")?;
        }
        if arrived != pattern {
            return Ok(false);
        }
    }
    Ok(true)
}
