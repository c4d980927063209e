//! Counts the kernels, copies and memory sets that a call of a library enqueues, which libraries do
//! not document.

use crate::device::{Gpu, graph::Graph};
use crate::timing::CudaError;

/// Launches of one call of a library. A product of a few rows, for example, may clear counters,
/// compute pieces of the sum and add them up. The call is made once, so that the library loads what
/// it needs, and then captured. Where it cannot be captured, it counts as four, the most
/// that any product was seen to launch.
///
/// # Errors
/// Those of the call.
pub(crate) fn launches(
    gpu: &Gpu,
    call: impl Fn() -> Result<(), CudaError>,
) -> Result<u32, CudaError> {
    call()?;
    gpu.synchronize()?;
    const MOST_SEEN: u32 = 4;
    Ok(Graph::count(gpu.stream(), call).map_or(MOST_SEEN, |count| count.max(1)))
}
