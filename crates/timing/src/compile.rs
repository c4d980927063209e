//! Compiles CUDA C++ at run time.

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule};
use cudarc::nvrtc::{Ptx, result, sys};

use crate::cuda_error::{Called, CudaError};
use crate::panic::catch_panic;

/// Compiles CUDA C++ with NVRTC to machine code of the context's device, and loads it.
///
/// cudarc's `compile_ptx` leaves the last step to the driver, and a driver that is older than NVRTC refuses:
/// `CUDA_ERROR_UNSUPPORTED_PTX_VERSION`.
///
/// # Errors
/// There is no NVRTC; its log, where it rejects the source; the driver's errors.
pub fn compile(context: &Arc<CudaContext>, source: &str) -> Result<Arc<CudaModule>, CudaError> {
    let capability = context.compute_capability();
    let (major, minor) = capability.called("cuDeviceGetAttribute")?;
    let options = [format!("--gpu-architecture=sm_{major}{minor}")];
    let compiled = catch_panic(|| machine_code("source.cu", source, &options));
    let absent = "no NVRTC found: install the CUDA toolkit's NVRTC (libnvrtc)";
    let compiled = compiled.unwrap_or_else(|_| Err(absent.to_owned()));
    let (image, _log) =
        compiled.map_err(|why| CudaError::with_message("nvrtcCompileProgram", why))?;
    (context.load_module(Ptx::from_binary(image))).called("cuModuleLoadData")
}

/// The machine code of a source, and the compiler's log. Panics without NVRTC.
///
/// # Errors
/// The error and the log.
#[doc(hidden)]
pub fn machine_code(
    name: &str,
    source: &str,
    options: &[String],
) -> Result<(Vec<u8>, String), String> {
    let [name, source] = [name, source].map(CString::new);
    let [name, source] = [name.map_err(in_words)?, source.map_err(in_words)?];
    let program = result::create_program(&source, Some(&name)).map_err(in_words)?;
    // SAFETY: `program` was created above, and is destroyed below.
    let compiled = unsafe { result::compile_program(program, options) };
    // SAFETY: as above.
    let log = unsafe { result::get_program_log(program) }.unwrap_or_default();
    let log: String = log.iter().map(|&byte| byte as u8 as char).collect();
    let log = log.trim_end_matches('\0').trim().to_owned();
    // SAFETY: as above.
    let image = compiled.and_then(|()| unsafe { image(program) });
    // SAFETY: created above, and destroyed once. An error leaves nothing to do.
    let _ = unsafe { result::destroy_program(program) };
    match image {
        Ok(image) => Ok((image, log)),
        Err(error) => Err(format!("{error}\n{log}")),
    }
}

/// # Safety
/// The program must be alive and compiled.
unsafe fn image(program: sys::nvrtcProgram) -> Result<Vec<u8>, result::NvrtcError> {
    let mut size = 0;
    // SAFETY: the caller's; the address is valid for the write.
    unsafe { sys::nvrtcGetCUBINSize(program, &mut size) }.result()?;
    let mut image = vec![0u8; size];
    // SAFETY: the caller's; the buffer has the size that NVRTC asks for.
    unsafe { sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()) }.result()?;
    Ok(image)
}

fn in_words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
