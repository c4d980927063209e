//! Why something on the GPU cannot be used, each with its remedy.

use std::fmt;

/// Why a GPU, or a library that drives it, cannot be used here. Absence is a value: whatever
/// does not need the missing part still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The device cannot be opened.
    Device(crossover_timing::Absence),
    /// The device is older than what one implementation needs.
    DeviceLacks {
        /// What it lacks, for example `FP8 tensor cores`.
        what: &'static str,
        /// Oldest compute capability that has it: major, minor.
        oldest: (u32, u32),
        /// The device's name.
        name: String,
        /// The device's compute capability: major, minor.
        compute_capability: (u32, u32),
    },
    /// GPU use was switched off by the user.
    SwitchedOff {
        /// The setting that did it.
        setting: &'static str,
    },
    /// A library of the CUDA toolkit is not installed.
    NoLibrary {
        /// The library, such as `NVRTC` or `cuBLAS`.
        library: &'static str,
        /// What to do about it, as the end of a sentence.
        remedy: &'static str,
    },
    /// A library does not take this size.
    Size {
        /// Which sizes it takes, and the one that was asked for, in a sentence.
        takes: String,
    },
    /// A library is installed and fails.
    Failed {
        /// The call.
        call: &'static str,
        /// The library's message.
        message: String,
    },
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::Device(absence) => {
                absence.fmt(f)?;
                match absence {
                    crossover_timing::Absence::NoSuchDevice { .. }
                    | crossover_timing::Absence::DeviceTooOld { .. } => {
                        write!(f, " with CROSSOVER_DEVICE")
                    }
                    _ => Ok(()),
                }
            }
            Absence::DeviceLacks {
                what,
                oldest,
                name,
                compute_capability: (major, minor),
            } => write!(
                f,
                "{name} (compute capability {major}.{minor}) has no {what}; they came with {}.{}: \
                 choose another GPU with CROSSOVER_DEVICE",
                oldest.0, oldest.1
            ),
            Absence::SwitchedOff { setting } => {
                write!(
                    f,
                    "the GPU is switched off by {setting}; unset it to measure the GPU"
                )
            }
            Absence::NoLibrary { library, remedy } => {
                write!(f, "{library} was not found; {remedy}")
            }
            Absence::Size { takes } => write!(f, "{takes}; other sizes run"),
            Absence::Failed { call, message } => {
                write!(
                    f,
                    "{call} failed: {message}; check the library's installation, `nvidia-smi` and \
                     the kernel log"
                )
            }
        }
    }
}

impl std::error::Error for Absence {}

impl From<crossover_timing::Absence> for Absence {
    fn from(absence: crossover_timing::Absence) -> Self {
        Absence::Device(absence)
    }
}

impl From<crossover_timing::CudaError> for Absence {
    fn from(error: crossover_timing::CudaError) -> Self {
        Absence::Device(error.into())
    }
}
