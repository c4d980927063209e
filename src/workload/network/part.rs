//! One part of a network on the GPU.

use cudarc::driver::CudaStream;

use crate::timing::{CudaError, Launch};
use crate::workload::network::chosen::ChosenProduct;

/// A product or a kernel that a network enqueues.
pub(crate) enum Part {
    Product(ChosenProduct),
    Kernel(Launch),
}

impl Part {
    /// Enqueues the part.
    ///
    /// # Safety
    /// The memory that the part was made for must live until it has run, nothing else may use that
    /// meanwhile, and the context must be current on this thread. A kernel's arguments must be those
    /// that it declares.
    pub(crate) unsafe fn enqueue(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Part::Product(product) => product.enqueue(stream),
                Part::Kernel(launch) => launch.launch(stream),
            }
        }
    }

    /// Upper bound on the places that it takes in the stream's queue.
    pub(crate) fn launches(&self) -> u32 {
        match self {
            Part::Product(product) => product.launches(),
            Part::Kernel(_) => 1,
        }
    }
}
