//! CUPTI's library, loaded at run time.
//!
//! The functions are looked up here and not through cudarc's bindings: those panic where a
//! library or a symbol is absent, load by name alone, and return an enum that a newer library
//! may not keep to. cudarc's structs are what [`records`](super::records) is checked against.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use libloading::Library;

use super::absence::NoProfile;
use super::find::{NAMES, libraries};
use super::version::is_known;

/// A status: 0 is success. See `cupti_result.h`.
type Status = u32;
type Subscriber = *mut c_void;

/// Gives CUPTI a buffer: its address, its size, and an upper bound on its records (0: as many as
/// fit).
pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Called at an event that is subscribed to: user data, domain, event, details.
pub(super) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
/// Takes one back: context, stream, address, size, and how many bytes are valid.
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`
const FLUSH_FORCED: u32 = 1;
/// `CUPTI_CB_DOMAIN_DRIVER_API`
const DRIVER_API: u32 = 1;
/// `CUPTI_CB_DOMAIN_RUNTIME_API`
const RUNTIME_API: u32 = 2;
/// `CUPTI_CB_DOMAIN_RESOURCE`
pub(super) const RESOURCE: u32 = 3;
/// `CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING`
pub(super) const MODULE_UNLOAD_STARTING: u32 = 7;
/// `CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0`
const CUSTOM0: u32 = 3;
/// `CUPTI_ERROR_MAX_LIMIT_REACHED`: no more records in the buffer.
const NO_MORE: Status = 12;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident: fn($($argument:ty),*);)*) => {
        #[allow(non_snake_case)]
        struct Functions {
            $($(#[$doc])* $name: unsafe extern "C" fn($($argument),*) -> Status,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: the types are those of NVIDIA's headers, where each status is an enum of 32
                    // bits. `Cupti::of` never unloads the library.
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0")) }?,)*
                })
            }
        }
    };
}

functions! {
    cuptiGetVersion: fn(*mut u32);
    cuptiGetResultString: fn(Status, *mut *const c_char);
    cuptiGetTimestamp: fn(*mut u64);
    cuptiGetCallbackName: fn(u32, u32, *mut *const c_char);
    cuptiSubscribe: fn(*mut Subscriber, Callback, *mut c_void);
    cuptiUnsubscribe: fn(Subscriber);
    cuptiEnableCallback: fn(u32, Subscriber, u32, u32);
    cuptiActivityRegisterCallbacks: fn(Request, Complete);
    cuptiActivityEnable: fn(u32);
    cuptiActivityDisable: fn(u32);
    cuptiActivityFlushAll: fn(u32);
    cuptiActivityGetNextRecord: fn(*mut u8, usize, *mut *mut u8);
    cuptiActivityGetNumDroppedRecords: fn(*mut c_void, u32, *mut usize);
    cuptiActivityPushExternalCorrelationId: fn(u32, u64);
    cuptiActivityPopExternalCorrelationId: fn(u32, *mut u64);
}

/// Whether a thread of this process is subscribed: some versions of CUPTI serve several tools, whose records would mix.
static SUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// CUPTI, of a version whose records are known.
pub(super) struct Cupti {
    functions: Functions,
    pub(super) version: u32,
}

impl Cupti {
    /// The library, which is searched for once per process and stays loaded.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn get() -> Result<&'static Self, NoProfile> {
        static CUPTI: OnceLock<Result<Cupti, NoProfile>> = OnceLock::new();
        CUPTI.get_or_init(load).as_ref().map_err(Clone::clone)
    }

    /// From an open library.
    ///
    /// # Errors
    /// A symbol that is missing, or a version whose records are not known.
    fn of(library: Library, name: &str) -> Result<Self, NoProfile> {
        let broken = |message: String| NoProfile::BrokenLibrary {
            library: name.to_owned(),
            message,
        };
        let functions = Functions::of(&library).map_err(|e| broken(in_full(&e)))?;
        // Its threads and callbacks outlive its owner.
        std::mem::forget(library);
        let mut version = 0;
        // SAFETY: the address is valid for the write.
        let status = unsafe { (functions.cuptiGetVersion)(&mut version) };
        if status != 0 {
            return Err(broken(format!("cuptiGetVersion returned {status}")));
        }
        if !is_known(version) {
            return Err(NoProfile::UnknownVersion { version });
        }
        Ok(Self { functions, version })
    }

    fn check(&self, call: &'static str, status: Status) -> Result<(), NoProfile> {
        if status == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        // SAFETY: the address is valid for the write.
        let known = unsafe { (self.functions.cuptiGetResultString)(status, &mut text) } == 0;
        let text = match known && !text.is_null() {
            // SAFETY: a string of the library's own, which `Cupti::of` never unloads.
            true => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
            false => format!("status {status}"),
        };
        Err(NoProfile::of_status(call, status, text, self.version))
    }

    /// Now, on the clock of the records.
    pub(super) fn timestamp(&self) -> Result<u64, NoProfile> {
        let mut now = 0;
        // SAFETY: the address is valid for the write.
        let status = unsafe { (self.functions.cuptiGetTimestamp)(&mut now) };
        self.check("cuptiGetTimestamp", status)?;
        Ok(now)
    }

    /// The name of a function of the CUDA runtime or the driver, by its CUPTI number.
    pub(super) fn function(&self, is_of_the_runtime: bool, number: u32) -> Option<String> {
        let domain = if is_of_the_runtime {
            RUNTIME_API
        } else {
            DRIVER_API
        };
        let mut name = std::ptr::null();
        // SAFETY: the address is valid for the write.
        let status = unsafe { (self.functions.cuptiGetCallbackName)(domain, number, &mut name) };
        if status != 0 || name.is_null() {
            return None;
        }
        // SAFETY: a string of the library's own, which `Cupti::of` never unloads.
        let name = unsafe { CStr::from_ptr(name) };
        Some(name.to_string_lossy().into_owned())
    }

    /// Becomes the one tool that CUPTI serves in this process. `unloading` is called, on the thread that
    /// unloads it, before each module goes.
    ///
    /// # Errors
    /// Most often [`NoProfile::OtherProfiler`].
    ///
    /// # Safety
    /// `unloading` must accept any arguments, and must not unwind.
    pub(super) unsafe fn subscribe(
        &'static self,
        unloading: Callback,
    ) -> Result<Subscription, NoProfile> {
        if SUBSCRIBED.swap(true, Ordering::Acquire) {
            return Err(NoProfile::OtherProfiler);
        }
        let mut subscription = Subscription {
            cupti: self,
            subscriber: std::ptr::null_mut(),
        };
        let subscriber = &mut subscription.subscriber;
        // SAFETY: the address is valid for the write. The caller answers for the callback, and a function
        // is never freed.
        let status =
            unsafe { (self.functions.cuptiSubscribe)(subscriber, unloading, std::ptr::null_mut()) };
        self.check("cuptiSubscribe", status)?;
        let subscriber = subscription.subscriber;
        // SAFETY: `subscription` keeps the subscriber.
        let status = unsafe {
            (self.functions.cuptiEnableCallback)(1, subscriber, RESOURCE, MODULE_UNLOAD_STARTING)
        };
        self.check("cuptiEnableCallback", status)?;
        Ok(subscription)
    }

    /// # Safety
    /// The functions must hand out and take back buffers as `cupti_activity.h` asks, at any time
    /// and on any thread, until the process ends, and must not unwind.
    pub(super) unsafe fn register(
        &self,
        request: Request,
        complete: Complete,
    ) -> Result<(), NoProfile> {
        // SAFETY: the caller answers for what the functions do; functions are never freed.
        let status = unsafe { (self.functions.cuptiActivityRegisterCallbacks)(request, complete) };
        self.check("cuptiActivityRegisterCallbacks", status)
    }

    pub(super) fn enable(&self, kind: u32) -> Result<(), NoProfile> {
        // SAFETY: an unknown kind is an error; buffers are registered before.
        let status = unsafe { (self.functions.cuptiActivityEnable)(kind) };
        self.check("cuptiActivityEnable", status)
    }

    pub(super) fn disable(&self, kind: u32) -> Result<(), NoProfile> {
        // SAFETY: an unknown kind is an error.
        let status = unsafe { (self.functions.cuptiActivityDisable)(kind) };
        self.check("cuptiActivityDisable", status)
    }

    /// Makes CUPTI hand back every buffer, also those that are not full.
    pub(super) fn flush(&self) -> Result<(), NoProfile> {
        // SAFETY: no arguments to be wrong.
        let status = unsafe { (self.functions.cuptiActivityFlushAll)(FLUSH_FORCED) };
        self.check("cuptiActivityFlushAll", status)
    }

    /// Number of records lost since the last call.
    pub(super) fn dropped(&self) -> Result<u64, NoProfile> {
        let mut dropped = 0;
        // SAFETY: no context means the global queue; the address is valid for the write.
        let status = unsafe {
            (self.functions.cuptiActivityGetNumDroppedRecords)(
                std::ptr::null_mut(),
                0,
                &mut dropped,
            )
        };
        self.check("cuptiActivityGetNumDroppedRecords", status)?;
        Ok(dropped as u64)
    }

    /// The record after `record` (null: the first) in a buffer that CUPTI has handed back, `None`
    /// after the last.
    ///
    /// # Safety
    /// `buffer` must hold `valid` bytes that CUPTI has written, and `record` come from this call
    /// on the same buffer.
    pub(super) unsafe fn next_record(
        &self,
        buffer: *mut u8,
        valid: usize,
        mut record: *mut u8,
    ) -> Result<Option<*mut u8>, NoProfile> {
        // SAFETY: the caller answers for buffer and record; the address is valid for the write.
        let status =
            unsafe { (self.functions.cuptiActivityGetNextRecord)(buffer, valid, &mut record) };
        if status == NO_MORE {
            return Ok(None);
        }
        self.check("cuptiActivityGetNextRecord", status)?;
        Ok(Some(record))
    }

    /// From now on, driver calls of this thread are marked with `id`.
    pub(super) fn push(&self, id: u64) {
        // SAFETY: any number may be pushed. A failure leaves calls unmarked, and the range
        // without time on the device.
        let _ = unsafe { (self.functions.cuptiActivityPushExternalCorrelationId)(CUSTOM0, id) };
    }

    /// Driver calls of this thread are marked as before the last [`push`](Self::push).
    pub(super) fn pop(&self) {
        let mut id = 0;
        // SAFETY: the address is valid for the write; an empty stack is an error without effect.
        let _ = unsafe { (self.functions.cuptiActivityPopExternalCorrelationId)(CUSTOM0, &mut id) };
    }
}

/// CUPTI's subscription of this tool. It ends when this is dropped.
pub(super) struct Subscription {
    pub(super) cupti: &'static Cupti,
    subscriber: Subscriber,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if !self.subscriber.is_null() {
            // SAFETY: the subscriber came from `cuptiSubscribe` and ends once. Whatever this returns,
            // nothing is left to be done.
            let _ = unsafe { (self.cupti.functions.cuptiUnsubscribe)(self.subscriber) };
        }
        SUBSCRIBED.store(false, Ordering::Release);
    }
}

/// The first library that can be used: by name, as the loader finds it, then in the toolkits.
fn load() -> Result<Cupti, NoProfile> {
    let paths = libraries();
    let names = (NAMES.iter().map(|n| (*n).to_owned()))
        .chain(paths.iter().map(|p| p.to_string_lossy().into_owned()));
    first(names, |name| {
        // SAFETY: the library's initialisers run; it is NVIDIA's.
        unsafe { Library::new(name) }.map_err(|e| in_full(&e))
    })
}

/// The loader's own words stand in the error's source.
fn in_full(error: &libloading::Error) -> String {
    use std::error::Error;
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The first library that can be used, or the reason why the first one found cannot.
fn first(
    names: impl Iterator<Item = String>,
    open: impl Fn(&str) -> Result<Library, String>,
) -> Result<Cupti, NoProfile> {
    let mut reason = None;
    for name in names {
        let failure = match open(&name) {
            Ok(library) => match Cupti::of(library, &name) {
                Ok(cupti) => return Ok(cupti),
                Err(failure) => failure,
            },
            // The loader may not know a name, but a file that exists should load.
            Err(message) if name.contains('/') => NoProfile::BrokenLibrary {
                library: name,
                message,
            },
            Err(_) => continue,
        };
        reason.get_or_insert(failure);
    }
    Err(reason.unwrap_or(NoProfile::NoLibrary))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library without CUPTI's functions, as an empty stub is, and a file that is none.
    #[test]
    fn a_broken_library_is_named() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        for (broken, words) in [("libc.so.6", "cuptiGetVersion"), (manifest, "")] {
            let names = ["libcupti-not-there.so", broken].map(str::to_owned);
            let found = first(names.into_iter(), |name| {
                // SAFETY: a library of the system, or no library.
                unsafe { Library::new(name) }.map_err(|e| in_full(&e))
            });
            let reason = found.err().expect("none of these is CUPTI");
            assert!(
                matches!(&reason, NoProfile::BrokenLibrary { library, message }
                    if library == broken && message.contains(words)),
                "{reason}"
            );
        }
    }
}
