//! Whether a CUDA library can be called. cudarc panics at the first call into a library that is absent,
//! and at the first missing symbol of an empty one, so each library is tried once and a panic is
//! caught. The recording driver of the tests, which executes nothing, is recognised here.

use std::sync::OnceLock;

use cudarc::driver::sys;

use crossover_timing::catch_panic;

use crate::absence::Absence;

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
