//! Phases for `cargo bench`.

use std::rc::Rc;

use crate::device::absence::Absence;
use crate::device::gpu::Gpu;
use crate::device::kernel::NO_NVRTC;
use crate::device::libraries;
use crate::workload::child_process::Phase;
use crate::workload::cold_start::problem::ColdStart;
use crate::workload::routine::{Routine, RoutineError};

type Made = Result<Box<dyn Routine>, RoutineError>;

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
    if name.contains("gemm") {
        gpu.blas()?;
    }
    let needs_nvrtc = ["nvrtc", "ptx", "cubin", "launch"];
    if needs_nvrtc.iter().any(|n| name.contains(n)) && !libraries::nvrtc() {
        return Err(Box::<Absence>::new(NO_NVRTC));
    }
    Ok(Box::new(Phase::new(
        gpu,
        &problem.processes,
        name,
        "values of the first launch and the first product that are wrong, every one",
    )))
}
