//! NCCL, opened at run time: the functions that collective operations need. cudarc's bindings do not look for
//! `libnccl.so.2`, the only name that packages have.
//! <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api.html>

use std::env;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use cudarc::driver::sys::{CUdeviceptr, CUstream};
use libloading::Library;

use crate::libraries::Absence;
use crossover_timing::CudaError;

/// Names the library, or the folder that it is in, such as `nvidia/nccl/lib` of a Python package.
const VARIABLE: &str = "CROSSOVER_NCCL";
/// Allows NCCL to use NVLink multicast.
const MULTICAST: &str = "NCCL_NVLS_ENABLE";
/// `ncclFloat32`.
const FLOAT: c_int = 7;
/// `ncclSum`.
const SUM: c_int = 0;

/// A communicator of the library.
type Handle = *mut c_void;

/// The identity of a communicator, equal in all its processes: `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UniqueId(pub [u8; 128]);

/// Declares the functions, and looks all of them up.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The opened library.
        #[allow(non_snake_case, reason = "the library's names")]
        pub struct Nccl {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
            version: String,
        }

        impl Nccl {
            /// Looks the functions up.
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the types are those of NVIDIA's header.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }?,)*
                    version: String::new(),
                })
            }
        }
    };
}

functions! {
    ncclGetVersion(*mut c_int) -> c_int;
    ncclGetErrorString(c_int) -> *const c_char;
    ncclGetUniqueId(*mut UniqueId) -> c_int;
    ncclCommInitRank(*mut Handle, c_int, UniqueId, c_int) -> c_int;
    ncclCommAbort(Handle) -> c_int;
    ncclAllReduce(*const c_void, *mut c_void, usize, c_int, c_int, Handle, CUstream) -> c_int;
    ncclGroupStart() -> c_int;
    ncclGroupEnd() -> c_int;
}

impl Nccl {
    /// The library, opened at the first call: the one that `CROSSOVER_NCCL` names, or else the one that the
    /// loader finds.
    ///
    /// # Errors
    /// There is none, or it has another interface.
    pub fn open() -> Result<&'static Self, Absence> {
        static OPENED: OnceLock<Result<Nccl, Absence>> = OnceLock::new();
        OPENED.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// An id for the communicators of all processes, made by one of them.
    ///
    /// # Errors
    /// The library's.
    pub fn unique_id(&self) -> Result<UniqueId, CudaError> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is valid for the write.
        let status = unsafe { (self.ncclGetUniqueId)(&mut id) };
        self.check("ncclGetUniqueId", status).map(|()| id)
    }

    /// Communicators of `own` devices of this process, the first of which is device `first` of all `size` devices.
    /// `bind` makes the context of one current. Waits until all processes have called this with the same id, and
    /// as long as the library takes: if it hangs, for ever.
    ///
    /// # Errors
    /// The library's, and those of `bind`.
    pub fn communicators(
        &'static self,
        id: UniqueId,
        [first, own, size]: [usize; 3],
        bind: impl Fn(usize) -> Result<(), CudaError>,
    ) -> Result<Vec<Communicator>, CudaError> {
        // Within the group an error would leave those that have begun waiting for the rest, for ever.
        (0..own).try_for_each(&bind)?;
        let mut handles = vec![std::ptr::null_mut(); own];
        self.together(|| {
            (handles.iter_mut().enumerate()).try_for_each(|(at, handle)| {
                bind(at)?;
                let rank = (first + at) as c_int;
                // SAFETY: the pointer is valid for the write, until the calls are made.
                let status = unsafe { (self.ncclCommInitRank)(handle, size as c_int, id, rank) };
                self.check("ncclCommInitRank", status)
            })
        })?;
        let communicator = |handle| Communicator { nccl: self, handle };
        Ok(handles.into_iter().map(communicator).collect())
    }

    /// Makes calls for several devices as one, without which the first would wait for the others.
    ///
    /// # Errors
    /// The library's, and those of the calls.
    pub fn together(&self, calls: impl FnOnce() -> Result<(), CudaError>) -> Result<(), CudaError> {
        // SAFETY: neither function takes anything, and each start has its end.
        self.check("ncclGroupStart", unsafe { (self.ncclGroupStart)() })?;
        let called = calls();
        // SAFETY: as above.
        let ended = self.check("ncclGroupEnd", unsafe { (self.ncclGroupEnd)() });
        called.and(ended)
    }

    fn check(&self, call: &'static str, status: c_int) -> Result<(), CudaError> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a text that lives as long as it does, for any number.
        let text = unsafe { CStr::from_ptr((self.ncclGetErrorString)(status)) };
        let text = text.to_string_lossy();
        Err(CudaError::with_message(
            call,
            format!("{text}; NCCL_DEBUG=WARN prints more"),
        ))
    }
}

/// A device's share in collective operations. When this is dropped, operations end in which a device still waits
/// for others.
pub struct Communicator {
    nccl: &'static Nccl,
    handle: Handle,
}

// SAFETY: NCCL takes calls for a communicator from any thread, one at a time, and a `&mut` or `&` of this is in one
// thread at a time, since it is not `Sync`.
unsafe impl Send for Communicator {}

impl Communicator {
    /// Enqueues that each value of f32 at `to` becomes the sum of those at `from` on all devices.
    ///
    /// # Safety
    /// Both addresses must be memory of the communicator's device for `values` values until the operation has
    /// run, and be equal or not overlap. The stream must be of that device.
    ///
    /// # Errors
    /// The library's.
    pub unsafe fn all_reduce(
        &self,
        [from, to]: [CUdeviceptr; 2],
        values: usize,
        stream: CUstream,
    ) -> Result<(), CudaError> {
        let (from, to) = (from as *const c_void, to as *mut c_void);
        let call = self.nccl.ncclAllReduce;
        // SAFETY: the caller promises memory and stream.
        let status = unsafe { call(from, to, values, FLOAT, SUM, self.handle, stream) };
        self.nccl.check("ncclAllReduce", status)
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // To destroy it, the other processes would have to make that call too. An error concerns nobody.
        // SAFETY: a communicator of this library, which is not used again.
        let _ = unsafe { (self.nccl.ncclCommAbort)(self.handle) };
    }
}

/// Switches NVLink multicast off in NCCL, which reads this from the environment, unless `NCCL_NVLS_ENABLE` is
/// set. Call this before the process starts a thread: if it has several, this does nothing, because one of them
/// may read the environment.
pub fn switch_multicast_off() {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads == 1 && env::var_os(MULTICAST).is_none() {
        // SAFETY: this thread is the only one, so none reads the environment meanwhile.
        unsafe { env::set_var(MULTICAST, "0") };
    }
}

/// Opens the library and keeps it open.
fn load() -> Result<Nccl, Absence> {
    let named = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let paths = match named.map(PathBuf::from) {
        Some(folder) if folder.is_dir() => vec![folder.join("libnccl.so.2")],
        Some(path) => vec![path],
        None => ["libnccl.so.2", "libnccl.so"].map(PathBuf::from).to_vec(),
    };
    // SAFETY: NVIDIA's library, whose initialisers and finalisers may run at any time.
    let opened = paths
        .iter()
        .find_map(|path| unsafe { Library::new(path) }.ok());
    let library = opened.ok_or(Absence::NoLibrary {
        library: "NCCL",
        remedy: "install NCCL (libnccl.so.2), or name its path in CROSSOVER_NCCL, to run collective operations",
    })?;
    let failed = |message| Absence::Failed {
        call: "NCCL",
        message,
    };
    let mut nccl = Nccl::of(&library).map_err(|error| failed(error.to_string()))?;
    std::mem::forget(library);
    let mut version = 0;
    // SAFETY: the pointer is valid for the write.
    let status = unsafe { (nccl.ncclGetVersion)(&mut version) };
    nccl.check("ncclGetVersion", status)
        .map_err(|error| failed(error.to_string()))?;
    let [major, minor, patch] = parts(version);
    nccl.version = format!("{major}.{minor}.{patch}");
    match major {
        2 => Ok(nccl),
        _ => Err(failed(format!("version {} is not 2", nccl.version))),
    }
}

/// Major, minor and patch version; before 2.9 a number had one digit less.
fn parts(version: c_int) -> [c_int; 3] {
    let major = if version < 10_000 { 1_000 } else { 10_000 };
    [version / major, version % major / 100, version % 100]
}

/// The version of the library, such as `2.28.9`.
///
/// # Errors
/// As [`Nccl::open`].
pub fn version() -> Result<String, Absence> {
    Nccl::open().map(|nccl| nccl.version.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test has a thread of its own.
    #[test]
    fn the_environment_of_several_threads_stays() {
        let before = env::var_os(MULTICAST);
        switch_multicast_off();
        let _ = Nccl::open();
        assert_eq!(env::var_os(MULTICAST), before);
    }
}
