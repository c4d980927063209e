//! The kernels of nested sine, and their launches.

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Gpu, kernel::Source};
use crate::timing::Launch;
use crate::workload::prepare::kernels;
use crate::workload::routine::RoutineError;

/// The kernels.
pub static NESTED_SINE: Source = kernels!("nested_sine.cu");

/// Threads per block: `THREADS` in the source.
const THREADS: u64 = 128;

/// A kernel, with the number of its vectors of 16 bytes per thread.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    pub(super) source: &'static Source,
    pub(super) name: &'static str,
    pub(super) vectors: u64,
}

/// The kernel that fuses the four passes.
pub(crate) const FUSED: Kernel = Kernel {
    source: &NESTED_SINE,
    name: "sine_fused",
    vectors: 2,
};

impl Kernel {
    /// On `n` elements from and to device addresses that are multiples of 16.
    pub(crate) fn launch(
        self,
        gpu: &Gpu,
        from: CUdeviceptr,
        to: CUdeviceptr,
        n: u64,
    ) -> Result<Launch, RoutineError> {
        const LANES: u64 = 16 / size_of::<f32>() as u64;
        let blocks = n.div_ceil(LANES * self.vectors * THREADS).max(1);
        let blocks = u32::try_from(blocks)
            .ok()
            .filter(|&blocks| blocks <= i32::MAX as u32)
            .ok_or_else(|| format!("{n} elements need more blocks than a grid has"))?;
        let launch = gpu.launch(self.source, self.name, blocks, THREADS as u32)?;
        Ok(launch.arg(from).arg(to).arg(n))
    }
}
