//! Errors of CUDA calls.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::{DriverError, result, sys};

/// A CUDA call that failed, with the call's name and the driver's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} failed: {message}")]
#[non_exhaustive]
pub struct CudaError {
    /// The call, such as `cuLaunchKernel`.
    pub call: &'static str,
    /// Name and text of the error, such as
    /// `CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered`.
    pub message: String,
    /// Whether the context is lost: every later CUDA call in this process fails too, and only
    /// a new process can use the device again.
    pub sticky: bool,
    source: Option<DriverError>,
}

impl CudaError {
    /// The error of the driver function `call`, which cudarc returned.
    #[doc(hidden)]
    pub fn new(call: &'static str, error: DriverError) -> Self {
        let text = |r: Result<&std::ffi::CStr, DriverError>| {
            r.map(|s| s.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        Self {
            call,
            message: format!(
                "{}: {}{}",
                text(error.error_name()),
                text(error.error_string()),
                device_in_words(),
            ),
            sticky: is_sticky(error.0),
            source: Some(error),
        }
    }

    /// From now on, errors in this context name this device, if the process opens others too.
    #[doc(hidden)]
    pub fn name_device(context: sys::CUcontext, ordinal: usize) {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(context.addr(), ordinal);
    }

    /// The error of a function of another library, with that library's text. The context is assumed to
    /// be intact.
    #[doc(hidden)]
    pub fn with_message(call: &'static str, message: impl Into<String>) -> Self {
        Self {
            call,
            message: message.into(),
            sticky: false,
            source: None,
        }
    }

    /// Turns the status that the driver function `call` returned into a result.
    ///
    /// # Errors
    /// Any status but `CUDA_SUCCESS`.
    #[doc(hidden)]
    pub fn check(call: &'static str, status: sys::CUresult) -> Result<(), Self> {
        status.result().map_err(|e| Self::new(call, e))
    }
}

/// The devices that this process has opened, by the addresses of their contexts: the driver itself names no
/// device once a context is lost.
static OPENED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// ` (device 1)`, the device of the current context, if the process has opened several.
fn device_in_words() -> String {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.len() < 2 {
        return String::new();
    }
    let current = result::ctx::get_current().ok().flatten();
    let device = current.and_then(|context| opened.get(&context.addr()));
    device.map_or(String::new(), |device| format!(" (device {device})"))
}

/// Names the driver function in an error that cudarc returned.
#[doc(hidden)]
pub trait Called<T> {
    /// # Errors
    /// The driver's.
    fn called(self, call: &'static str) -> Result<T, CudaError>;
}

impl<T> Called<T> for Result<T, DriverError> {
    fn called(self, call: &'static str) -> Result<T, CudaError> {
        self.map_err(|error| CudaError::new(call, error))
    }
}

/// Whether the driver's documentation demands a new process after this status.
/// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>
fn is_sticky(status: sys::CUresult) -> bool {
    use sys::CUresult::*;
    matches!(
        status,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_DEINITIALIZED
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}
