//! The reasons why a GPU feature cannot be used, each with its remedy.

/// Why a GPU, or a library that drives it, cannot be used here. Absence is a value: whatever
/// does not need the missing part still runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Absence {
    /// The device cannot be opened.
    #[error("{absence}{}", setting(.0), absence = .0)]
    Device(crossover_timing::Absence),
    /// The device is older than what one implementation needs.
    #[error(
        "{name} (compute capability {}.{}) has no {what}; they came with {}.{}: choose another GPU with \
         CROSSOVER_DEVICE",
        compute_capability.0, compute_capability.1, oldest.0, oldest.1
    )]
    DeviceLacks {
        /// The missing feature, for example `FP8 tensor cores`.
        what: &'static str,
        /// Oldest compute capability that has it: major, minor.
        oldest: (u32, u32),
        /// The device's name.
        name: String,
        /// The device's compute capability: major, minor.
        compute_capability: (u32, u32),
    },
    /// GPU use was switched off by the user.
    #[error("the GPU is switched off by {setting}; unset it to measure the GPU")]
    SwitchedOff {
        /// The setting that did it.
        setting: &'static str,
    },
    /// A library of the CUDA toolkit is not installed.
    #[error("{library} was not found; {remedy}")]
    NoLibrary {
        /// The library, such as `NVRTC` or `cuBLAS`.
        library: &'static str,
        /// The remedy, as the end of a sentence.
        remedy: &'static str,
    },
    /// Work on several devices, and a run with one.
    #[error(
        "it needs two GPUs: name them with CROSSOVER_DEVICE=0,1, or all with CROSSOVER_DEVICE=all"
    )]
    OneDevice,
    /// Work on several devices that have no access to each other's memory.
    #[error("device {first} and device {other} have no link for it ({link})")]
    NoPeer {
        /// Index of the first device.
        first: usize,
        /// Index of the other one.
        other: usize,
        /// The link in words.
        link: &'static str,
    },
    /// The link between two devices could not be tried.
    #[error(
        "the link between device {first} and device {other} could not be tried: {cause}; run again"
    )]
    Untried {
        /// Index of the first device.
        first: usize,
        /// Index of the other one.
        other: usize,
        /// The cause.
        cause: String,
    },
    /// A library does not take this size.
    #[error("{takes}; other sizes run")]
    Size {
        /// The sizes that it takes, and the requested one, in a sentence.
        takes: String,
    },
    /// A library is installed and fails.
    #[error(
        "{call} failed: {message}; check the library's installation, `nvidia-smi` and the kernel log"
    )]
    Failed {
        /// The call.
        call: &'static str,
        /// The library's message.
        message: String,
    },
}

/// The setting that the remedy of these absences refers to.
fn setting(absence: &crossover_timing::Absence) -> &'static str {
    use crossover_timing::Absence::{DeviceTooOld, NoSuchDevice};
    match absence {
        NoSuchDevice { .. } | DeviceTooOld { .. } => " with CROSSOVER_DEVICE",
        _ => "",
    }
}

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
