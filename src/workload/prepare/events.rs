//! Events that time.

use cudarc::driver::{CudaEvent, sys::CUevent_flags};

use crate::device::gpu::Gpu;
use crate::timing::CudaError;

/// An event that can time. Without flags cudarc creates one that cannot.
pub(crate) fn timing_event(gpu: &Gpu) -> Result<CudaEvent, CudaError> {
    (gpu.context())
        .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
        .map_err(|e| CudaError::new("cuEventCreate", e))
}

/// Time between two events, ns.
pub(crate) fn nanoseconds(start: &CudaEvent, end: &CudaEvent) -> Result<f64, CudaError> {
    let ms = start.elapsed_ms(end);
    let ms = ms.map_err(|e| CudaError::new("cuEventElapsedTime", e))?;
    Ok(f64::from(ms) * 1e6)
}
