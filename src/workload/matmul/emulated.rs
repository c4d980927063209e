//! f64 emulated by products of integers, as cuBLAS offers it.

use std::rc::Rc;

use cudarc::cublas::sys::{
    cublasEmulationStrategy_t::CUBLAS_EMULATION_STRATEGY_EAGER, cublasHandle_t,
    cublasSetEmulationStrategy, cublasStatus_t, culib,
};

use crate::device::gpu::cublas_error;
use crate::device::{Absence, Gpu};
use crate::workload::matmul::gemm::Call;
use crate::workload::matmul::gpu::by_cublas;
use crate::workload::matmul::problem::Matmul;
use crate::workload::routine::Made;

const TOO_OLD: Absence = Absence::NoLibrary {
    library: "cuBLAS 13.1",
    remedy: "install that of CUDA 13.0 Update 2 or a later one for float64 emulated by integers",
};

/// `cublasSetFixedPointEmulationMantissaBitCountPointer`, which the bindings leave out: where in device
/// memory the library says how many bits it has kept, or null.
type SetBitCount = unsafe extern "C" fn(cublasHandle_t, *mut i32) -> cublasStatus_t;

/// cuBLAS in f64 emulated by integers (the Ozaki scheme): each row of A and column of B is cut into slices
/// of 8 bits, as many as float64's own error asks for, whose products tensor cores add up exactly. The
/// library is asked to emulate wherever it can, and the notes say how many bits it has kept.
///
/// # Errors
/// An [`Absence`] with a library or a device that is too old for it, and where the library takes float64
/// after all; errors of CUDA and cuBLAS, out of memory included.
pub fn emulated(gpu: &Rc<Gpu>, problem: &Rc<Matmul<f64>>) -> Made {
    gpu.require((8, 0), "float64 emulated by integers")?;
    let blas = gpu.blas()?;
    // SAFETY: the type is that of the library's documentation.
    let Ok(set_bit_count) = (unsafe {
        culib().get::<SetBitCount>(b"cublasSetFixedPointEmulationMantissaBitCountPointer")
    }) else {
        return Err(TOO_OLD.into());
    };
    // SAFETY: the handle lives in `blas`; products that are not emulated do not ask for the strategy.
    unsafe { cublasSetEmulationStrategy(*blas.handle(), CUBLAS_EMULATION_STRATEGY_EAGER) }
        .result()
        .map_err(cublas_error)?;
    let mut work = by_cublas(gpu, problem, Call::Emulated)?;
    let bits = work.upload(&[-1i32])?;
    let written_to = |place| {
        // SAFETY: the place lives until the library has forgotten it, after the call that writes there.
        let set = unsafe { set_bit_count(*blas.handle(), place) };
        set.result().map_err(cublas_error)
    };
    written_to(bits.address as *mut i32)?;
    let run = work.steps.run();
    written_to(std::ptr::null_mut())?;
    run?;
    let bits = work.memory.read(bits)?[0];
    if bits < 1 {
        let n = problem.order();
        let takes = format!(
            "cuBLAS does not emulate a product of order {n} here, but computes it in float64"
        );
        return Err(Absence::Size { takes }.into());
    }
    work.notes
        .push(format!("emulated with {bits} bits of each operand"));
    Ok(Box::new(work))
}
