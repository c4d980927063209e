//! Exported functions: a call returns a planted fault, or works on the state of the process.

use std::ffi::{CStr, c_char};

use crate::fault::{self, Fault, code};
use crate::state::{Outcome, State, lock};

/// The driver, or a library beside it.
pub(crate) struct Library {
    /// The statuses that its functions return, unless they are the driver's own errors.
    pub(crate) statuses: Option<Statuses>,
    /// Whether refused calls are lines of the log.
    pub(crate) logged: bool,
}

/// The errors of a library.
pub(crate) struct Statuses {
    /// All of them, because the bindings may know no others.
    pub(crate) all: &'static [i32],
    /// For `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) invalid: i32,
    /// For `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) no_memory: i32,
    /// For other errors of the driver.
    pub(crate) failed: i32,
}

/// Exports functions of a library, which work on the state of the process.
macro_rules! exported {
    ($library:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = |$state:pat_param| $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, non_snake_case)]
            unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                $library.call(stringify!($name), |$state| $body)
            }
        )*
    };
}
pub(crate) use exported;

/// Calls that need no context, and are allowed after it was lost.
const WITHOUT_CONTEXT: [&str; 3] = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"];

impl Library {
    /// Makes a call, and returns its error.
    pub(crate) fn call(&self, function: &str, body: impl FnOnce(&mut State) -> Outcome) -> i32 {
        let needs_context = self.statuses.is_none() && !WITHOUT_CONTEXT.contains(&function);
        if let Some(code) = fault::injected(function) {
            if needs_context && fault::is_sticky(code) {
                lock().lost = Some(code);
            }
            let fault = Fault::new(self.status(code), "a fault that the test asked for");
            return self.refused(function, &fault);
        }
        let mut state = lock();
        if let Some(code) = state.lost.filter(|_| needs_context) {
            return code;
        }
        let answer = body(&mut state);
        drop(state);
        answer.map_or_else(
            |fault| {
                let code = self.status(fault.code);
                self.refused(function, &Fault { code, ..fault })
            },
            |()| 0,
        )
    }

    /// The library's status for an error of the driver. A status of its own stays.
    fn status(&self, code: i32) -> i32 {
        match &self.statuses {
            None => code,
            Some(statuses) if code == code::INVALID_VALUE => statuses.invalid,
            Some(statuses) if statuses.all.contains(&code) => code,
            Some(statuses) if code == code::OUT_OF_MEMORY => statuses.no_memory,
            Some(statuses) => statuses.failed,
        }
    }

    fn refused(&self, function: &str, fault: &Fault) -> i32 {
        match self.logged {
            true => refused(function, fault),
            false => fault.code,
        }
    }
}

/// Logs why a call fails, and aborts the process if the real library would continue with corrupted
/// memory.
pub(crate) fn refused(function: &str, fault: &Fault) -> i32 {
    let Fault { code, why, .. } = fault;
    if fault.corrupts {
        log!("{function} would corrupt memory: {why}");
        eprintln!("the recording driver ends the process at {function}: {why}");
        std::process::abort();
    }
    // The answer `not ready` to a query is normal while waiting.
    if *code != code::NOT_READY {
        log!("{function} fails with {code}: {why}");
    }
    *code
}

/// Writes a result through a pointer.
pub(crate) fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(Fault::invalid("there is nowhere to write the answer"));
    }
    // SAFETY: every function has the caller promise that its pointers are valid.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Reads the value at a pointer.
pub(crate) fn get<T: Copy>(from: *const T) -> Outcome<T> {
    if from.is_null() {
        return Err(Fault::invalid("an argument is null"));
    }
    // SAFETY: the caller promises that its pointers are valid.
    Ok(unsafe { from.read_unaligned() })
}

/// Writes the handle or address of a new object.
pub(crate) fn make<H: TryFrom<u64>>(to: *mut H, made: u64) -> Outcome {
    let made = H::try_from(made).map_err(|_| Fault::invalid("there are no more handles"))?;
    put(to, made)
}

/// Reads a C string.
pub(crate) fn text(from: *const c_char) -> Outcome<String> {
    if from.is_null() {
        return Err(Fault::invalid("a text is null"));
    }
    // SAFETY: the caller promises a C string that ends.
    let text = unsafe { CStr::from_ptr(from) };
    Ok(text.to_string_lossy().into_owned())
}

/// Writes bytes from an address on.
pub(crate) fn put_bytes(to: *mut u8, bytes: impl IntoIterator<Item = u8>) -> Outcome {
    let mut all = bytes.into_iter().enumerate();
    all.try_for_each(|(at, byte)| put(to.wrapping_add(at), byte))
}
