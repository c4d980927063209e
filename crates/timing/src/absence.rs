//! The reasons why no device can be timed, each with its remedy.

use crate::cuda_error::CudaError;

/// Why a GPU cannot be used here, in a sentence with its remedy. Absence is a value: whatever
/// does not need the GPU still runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Absence {
    /// The driver's library (`libcuda`) is not installed.
    #[error("no NVIDIA driver found (libcuda); install the driver to measure a GPU")]
    NoDriver,
    /// The driver's library is installed and cannot be called, for example a toolkit's stub.
    #[error(
        "the NVIDIA driver library cannot be used ({message}); keep the toolkit's stubs folder off the \
         library path and check the driver's installation"
    )]
    BrokenDriver {
        /// The error of the first call.
        message: String,
    },
    /// The driver is installed and sees no device.
    #[error(
        "the NVIDIA driver sees no GPU; check `nvidia-smi`, CUDA_VISIBLE_DEVICES and the container's device access"
    )]
    NoDevice,
    /// The driver supports no CUDA version from 12.8 on.
    #[error(
        "the NVIDIA driver supports CUDA {}.{}; CUDA {}.{} is the oldest supported: update the driver to 570 or newer",
        cuda.0, cuda.1, OLDEST_CUDA.0, OLDEST_CUDA.1
    )]
    DriverTooOld {
        /// CUDA version the driver supports: major, minor.
        cuda: (u32, u32),
    },
    /// There is no device of the index asked for.
    #[error(
        "there is no GPU {ordinal}: this machine has {count}, numbered from 0; choose one of them"
    )]
    NoSuchDevice {
        /// The index asked for.
        ordinal: usize,
        /// How many devices there are.
        count: usize,
    },
    /// The device's compute capability is below 7.5 (Turing).
    #[error(
        "{name} has compute capability {}.{}; {}.{} (Turing) is the oldest supported: choose another GPU",
        compute_capability.0, compute_capability.1, OLDEST_DEVICE.0, OLDEST_DEVICE.1
    )]
    DeviceTooOld {
        /// Its name.
        name: String,
        /// Its compute capability: major, minor.
        compute_capability: (u32, u32),
    },
    /// A stream does not belong to the device's primary context.
    #[error(
        "the stream does not belong to the primary context of GPU {ordinal}, which the CUDA runtime uses; \
         make it in that context (cuDevicePrimaryCtxRetain), or name the stream's own GPU"
    )]
    OtherContext {
        /// The index of the device.
        ordinal: usize,
    },
    /// A driver call failed while the device was opened.
    #[error("{0}; check `nvidia-smi` and the kernel log")]
    Failed(#[from] CudaError),
}

/// The driver must support this CUDA version (major, minor) or a newer one:
/// `cuEventElapsedTime_v2`, which cudarc calls, came with 12.8.
pub(crate) const OLDEST_CUDA: (u32, u32) = (12, 8);
/// Oldest compute capability (major, minor) that is supported: the oldest that CUDA 13 compiles
/// for.
pub(crate) const OLDEST_DEVICE: (u32, u32) = (7, 5);
