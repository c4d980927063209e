//! What the first call pays and a warm one does not, each phase measured in fresh processes:
//! the executable starts itself again, with the driver's JIT cache off.
//!
//! The clock is the host's, the device synchronised at the end of each phase.

mod child;

use std::rc::Rc;

use super::fresh::{Phase, Processes, Task};
use super::{Routine, RoutineError, Workload};
use crate::device::Gpu;
use crate::device::kernel::Source;
use crate::record::Cost;

pub(super) use child::measure;

/// The kernel of the first launch.
pub static COLD_START: Source = Source {
    name: "cold_start.cu",
    text: include_str!("../../../kernels/cold_start.cu"),
    options: &[],
    oldest: (7, 5),
};

/// The measured processes.
pub struct ColdStart {
    processes: Rc<Processes>,
}

impl Workload for ColdStart {
    fn new(_: u64) -> Self {
        Self {
            processes: Rc::new(Processes::new(Task::ColdStart)),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }
}

/// Nothing but time.
pub fn cost(_: u64) -> Cost {
    Cost::default()
}

type Made = Result<Box<dyn Routine>, RoutineError>;

/// Phases for `cargo bench`.
pub mod gpu {
    use super::*;

    macro_rules! phases {
        ($($(#[$doc:meta])* $function:ident => $name:literal),* $(,)?) => {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// When a fresh process cannot be run, or its libraries are absent.
            pub fn $function(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>) -> Made {
                phase(gpu, problem, $name)
            }
        )*};
    }

    phases! {
        /// `cuInit`: the driver starts.
        driver_init => "driver-init",
        /// The context of the device.
        context => "context",
        /// The first stream.
        first_stream => "first-stream",
        /// A further stream.
        warm_stream => "warm-stream",
        /// The first allocation, 1 MiB.
        first_alloc => "first-alloc",
        /// A further allocation.
        warm_alloc => "warm-alloc",
        /// CUDA C++ to PTX by NVRTC, the library's own start included.
        nvrtc_compile => "nvrtc-compile",
        /// The same once more.
        warm_nvrtc_compile => "warm-nvrtc-compile",
        /// PTX to machine code by the driver's JIT, its cache off.
        ptx_jit => "ptx-jit",
        /// Machine code loaded as it is.
        cubin_load => "cubin-load",
        /// The first launch, waited for.
        first_launch => "first-launch",
        /// A further launch, waited for.
        warm_launch => "warm-launch",
        /// A cuBLAS handle and its first product, N = 256, waited for.
        first_gemm => "first-gemm",
        /// A further product.
        warm_gemm => "warm-gemm",
    }

    fn phase(gpu: &Rc<Gpu>, problem: &Rc<ColdStart>, name: &'static str) -> Made {
        use crate::device::{Absence, kernel::NO_NVRTC, present};
        if name.contains("gemm") {
            gpu.blas()?;
        }
        let needs_nvrtc = ["nvrtc", "ptx", "cubin", "launch"];
        if needs_nvrtc.iter().any(|n| name.contains(n)) && !present::nvrtc() {
            return Err(Box::<Absence>::new(NO_NVRTC));
        }
        Ok(Box::new(Phase::new(
            gpu,
            &problem.processes,
            name,
            "values of the first launch and the first product that are wrong, every one",
        )))
    }
}
