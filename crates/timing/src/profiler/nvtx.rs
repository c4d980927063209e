//! Ranges that Nsight shows, through NVIDIA's NVTX library where it is installed.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::Library;

/// CUDA 13 ships the first, older toolkits the second.
const NAMES: [&str; 4] = [
    "libnvtx3interop.so.1",
    "libnvtx3interop.so",
    "libnvToolsExt.so.1",
    "libnvToolsExt.so",
];

struct Nvtx {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
}

/// No tool listens: NVTX says so at the first range, and that does not change.
static DEAF: AtomicBool = AtomicBool::new(false);

fn nvtx() -> Option<&'static Nvtx> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    NVTX.get_or_init(load).as_ref()
}

fn load() -> Option<Nvtx> {
    // SAFETY: the library's initialisers run; it is NVIDIA's.
    let library = NAMES
        .iter()
        .find_map(|n| unsafe { Library::new(*n) }.ok())?;
    let nvtx = || -> Result<Nvtx, libloading::Error> {
        Ok(Nvtx {
            // SAFETY: the type is that of `nvToolsExt.h`; the library is never unloaded.
            push: *unsafe { library.get("nvtxRangePushA\0") }?,
            // SAFETY: as above.
            pop: *unsafe { library.get("nvtxRangePop\0") }?,
        })
    };
    let found = nvtx().ok();
    std::mem::forget(library);
    found
}

/// Begins a range of this thread. Returns whether there is one to [`pop`].
pub(crate) fn push(name: &str) -> bool {
    if DEAF.load(Ordering::Relaxed) {
        return false;
    }
    let Some(nvtx) = nvtx() else {
        DEAF.store(true, Ordering::Relaxed);
        return false;
    };
    let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
    // SAFETY: a string that ends in zero and lives until the call returns, which copies it.
    let depth = unsafe { (nvtx.push)(name.as_ptr()) };
    if depth < 0 {
        DEAF.store(true, Ordering::Relaxed);
    }
    depth >= 0
}

/// Ends the last range that this thread began.
pub(crate) fn pop() {
    if let Some(nvtx) = nvtx() {
        // SAFETY: no arguments. A range that is not there is an error without effect.
        unsafe { (nvtx.pop)() };
    }
}
