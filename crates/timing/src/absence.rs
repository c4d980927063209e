//! Why no device can be timed, each with its remedy.

use std::fmt;

use crate::cuda_error::CudaError;

/// Why a GPU cannot be used here, in a sentence with its remedy. Absence is a value: whatever
/// does not need the GPU still runs.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The driver's library (`libcuda`) is not installed.
    NoDriver,
    /// The driver's library is installed and cannot be called, for example a toolkit's stub.
    BrokenDriver {
        /// What happened at the first call.
        message: String,
    },
    /// The driver is installed and sees no device.
    NoDevice,
    /// The driver supports no CUDA version from [`OLDEST_CUDA`] on.
    DriverTooOld {
        /// CUDA version the driver supports: major, minor.
        cuda: (u32, u32),
    },
    /// There is no device of the index asked for.
    NoSuchDevice {
        /// The index asked for.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The device's compute capability is below [`OLDEST_DEVICE`].
    DeviceTooOld {
        /// Its name.
        name: String,
        /// Its compute capability: major, minor.
        compute_capability: (u32, u32),
    },
    /// A stream does not belong to the device's primary context.
    OtherContext {
        /// The index of the device.
        ordinal: usize,
    },
    /// A driver call failed while the device was opened.
    Failed {
        /// The call.
        call: &'static str,
        /// The driver's message.
        message: String,
    },
}

/// The driver must support this CUDA version (major, minor) or a newer one:
/// `cuEventElapsedTime_v2`, which cudarc calls, came with 12.8.
pub const OLDEST_CUDA: (u32, u32) = (12, 8);
/// Oldest compute capability (major, minor) that is supported: the oldest that CUDA 13 compiles
/// for.
pub const OLDEST_DEVICE: (u32, u32) = (7, 5);

/// The sentence: it is what `main` prints of an error that it returns.
impl fmt::Debug for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NoDriver => write!(
                f,
                "no NVIDIA driver found (libcuda); install the driver to measure a GPU"
            ),
            Absence::BrokenDriver { message } => write!(
                f,
                "the NVIDIA driver library cannot be used ({message}); \
                 keep the toolkit's stubs folder off the library path and check the driver's installation"
            ),
            Absence::NoDevice => write!(
                f,
                "the NVIDIA driver sees no GPU; check `nvidia-smi`, CUDA_VISIBLE_DEVICES and the container's device access"
            ),
            Absence::DriverTooOld { cuda } => write!(
                f,
                "the NVIDIA driver supports CUDA {}.{}; CUDA {}.{} is the oldest supported: update the driver to 570 or newer",
                cuda.0, cuda.1, OLDEST_CUDA.0, OLDEST_CUDA.1
            ),
            Absence::NoSuchDevice { ordinal, count } => write!(
                f,
                "there is no GPU {ordinal}: this machine has {count}, numbered from 0; choose one of them"
            ),
            Absence::DeviceTooOld {
                name,
                compute_capability: (major, minor),
            } => write!(
                f,
                "{name} has compute capability {major}.{minor}; {}.{} (Turing) is the oldest supported: choose another GPU",
                OLDEST_DEVICE.0, OLDEST_DEVICE.1
            ),
            Absence::OtherContext { ordinal } => write!(
                f,
                "the stream does not belong to the primary context of GPU {ordinal}, which the CUDA runtime uses; \
                 make it in that context (cuDevicePrimaryCtxRetain), or name the stream's own GPU"
            ),
            Absence::Failed { call, message } => {
                write!(
                    f,
                    "{call} failed: {message}; check `nvidia-smi` and the kernel log"
                )
            }
        }
    }
}

impl std::error::Error for Absence {}

/// A call that failed while the device was opened.
impl From<CudaError> for Absence {
    fn from(error: CudaError) -> Self {
        Absence::Failed {
            call: error.call,
            message: error.message,
        }
    }
}
