//! Whether a CUDA library can be called. cudarc panics at the first call into a library that is absent,
//! and at the first missing symbol of an empty one, so each library is tried once and a panic is
//! caught. The recording driver of the tests, which executes nothing, is recognised here.
//! An [`Absence`] has the reason and the remedy.

use std::sync::OnceLock;

use cudarc::driver::sys;

use crossover_timing::catch_panic;

/// Why kernels are left out on a machine without NVRTC.
pub const NO_NVRTC: Absence = Absence::NoLibrary {
    library: "NVRTC",
    remedy: "install the CUDA toolkit's NVRTC (libnvrtc) to run kernels that are compiled at run time",
};

/// Why products by cuBLAS are left out on a machine without it.
pub const NO_CUBLAS: Absence = Absence::NoLibrary {
    library: "cuBLAS",
    remedy: "install the CUDA toolkit's cuBLAS (libcublas) to run its products",
};

/// Whether NVRTC can be opened and called.
pub fn nvrtc() -> bool {
    nvrtc_version().is_some()
}

/// NVRTC's version (major, minor); `None` where it is absent or broken.
pub fn nvrtc_version() -> Option<(u32, u32)> {
    static VERSION: OnceLock<Option<(u32, u32)>> = OnceLock::new();
    *VERSION.get_or_init(|| {
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            return None;
        }
        catch_panic(|| {
            let (mut major, mut minor) = (0, 0);
            // SAFETY: both pointers are valid for the call.
            unsafe { cudarc::nvrtc::sys::nvrtcVersion(&mut major, &mut minor) }
                .result()
                .ok()
                .map(|()| (major as u32, minor as u32))
        })
        .ok()
        .flatten()
    })
}

/// cuBLAS's version, for example `13.1.0`; `None` where it is absent or broken.
pub fn cublas_version() -> Option<String> {
    use cudarc::cublas::sys::{cublasGetProperty, libraryPropertyType as Property};
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    VERSION
        .get_or_init(|| {
            if !cublas() {
                return None;
            }
            let property = |which| {
                let mut value = 0;
                // SAFETY: the pointer is valid for the call, which needs no handle.
                unsafe { cublasGetProperty(which, &mut value) }
                    .result()
                    .ok()
                    .map(|()| value)
            };
            catch_panic(|| {
                Some(format!(
                    "{}.{}.{}",
                    property(Property::MAJOR_VERSION)?,
                    property(Property::MINOR_VERSION)?,
                    property(Property::PATCH_LEVEL)?
                ))
            })
            .ok()
            .flatten()
        })
        .clone()
}

/// Whether cuBLAS can be opened. Creating a handle may still fail.
pub fn cublas() -> bool {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
    *PRESENT.get_or_init(|| unsafe { cudarc::cublas::sys::is_culib_present() })
}

/// Exported by that driver and by no other.
const SYMBOL: &[u8] = b"crossover_recording_driver\0";

/// Whether the loaded driver is the one that tests put in place of NVIDIA's. It writes no results of
/// kernels, so nothing can be compared, and its device times are invented. It is recognised by a symbol
/// that it exports, not by a setting.
pub fn recorded() -> bool {
    static RECORDED: OnceLock<bool> = OnceLock::new();
    // SAFETY: opens the library, whose initialisers are the vendor's, and looks a name up without
    // calling what it finds.
    *RECORDED.get_or_init(|| unsafe {
        sys::is_culib_present() && sys::culib().get::<unsafe extern "C" fn()>(SYMBOL).is_ok()
    })
}

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
