//! Passing calls through to the real libraries.
//!
//! The recording driver then only follows: the real driver answers, its handles and addresses are the
//! keys of the names, nothing is executed here, and the log is the same. If this driver would refuse a
//! call that the real one accepts, the log has a line about it.

use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names the real libraries by their full paths, separated by colons, because a search would find the
/// stand-in. A call goes to the first library that has its function.
pub const REAL: &str = "RECORDING_DRIVER_REAL";

/// A second copy of this library can be the real one of the first, in tests.
static IS_REAL: AtomicBool = AtomicBool::new(false);

/// The first copy calls this in the second.
#[unsafe(no_mangle)]
extern "C" fn crossover_recording_driver_be_real() {
    IS_REAL.store(true, Ordering::Relaxed);
}

/// Whether this is the copy that plays the real driver, which logs nothing.
pub(crate) fn is_real() -> bool {
    IS_REAL.load(Ordering::Relaxed)
}

/// Whether calls of the driver are passed through.
pub(crate) fn passes() -> bool {
    static PASSES: OnceLock<bool> = OnceLock::new();
    !is_real() && *PASSES.get_or_init(|| function::<*const c_void>("cuInit").is_some())
}

/// A function of the real libraries.
pub(crate) fn function<F: Copy>(name: &str) -> Option<F> {
    if is_real() {
        return None;
    }
    let name = CString::new(name).ok()?;
    libraries().iter().find_map(|&library| {
        // SAFETY: the library is open and stays so.
        let symbol = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
        // SAFETY: the caller names the documented type, a pointer to a function.
        (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy(&symbol) })
    })
}

/// Their handles.
fn libraries() -> &'static [usize] {
    static LIBRARIES: OnceLock<Vec<usize>> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let paths = std::env::var(REAL).unwrap_or_default();
        let paths = paths.split(':').filter(|path| !path.is_empty());
        let opened = paths.map(|path| match open(path) {
            Ok(library) => library as usize,
            Err(what) => {
                eprintln!("the recording driver cannot use {REAL}={path}: {what}");
                std::process::abort();
            }
        });
        opened.collect()
    })
}

fn open(path: &str) -> Result<*mut c_void, String> {
    // NVRTC looks for this library by its name, and takes the one that is loaded.
    let folder = Path::new(path)
        .parent()
        .and_then(|folder| folder.read_dir().ok());
    for file in folder.into_iter().flatten().flatten() {
        let file = file.path().to_string_lossy().into_owned();
        if path.contains("libnvrtc") && file.contains("libnvrtc-builtins.so") {
            load(&file)?;
        }
    }
    let library = load(path)?;
    // SAFETY: the library was just opened; the function takes nothing.
    unsafe {
        let be_real = libc::dlsym(library, c"crossover_recording_driver_be_real".as_ptr());
        if !be_real.is_null() {
            std::mem::transmute::<*mut c_void, extern "C" fn()>(be_real)();
        }
    }
    Ok(library)
}

fn load(path: &str) -> Result<*mut c_void, String> {
    let path = CString::new(path).map_err(|error| error.to_string())?;
    // Its own calls must find itself instead of the stand-in.
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_DEEPBIND;
    // SAFETY: opens a library that the environment names; its initialisers are the vendor's.
    let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
    if library.is_null() {
        // SAFETY: the last call failed, so that there is a message.
        let message = unsafe { CStr::from_ptr(libc::dlerror()) };
        return Err(message.to_string_lossy().into_owned());
    }
    Ok(library)
}
