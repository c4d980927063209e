//! Exported functions: a call returns a planted fault, or works on the state of the process.

use std::ffi::{CStr, c_char};

use crate::fault::{self, Fault, code};
use crate::state::{Outcome, State, lock};

/// The driver, or a library beside it, with the statuses that its functions return.
pub(crate) struct Library {
    /// All statuses, because the bindings may know no others; none for the driver's own errors.
    pub(crate) all: &'static [i32],
    /// For `CUDA_ERROR_INVALID_VALUE`.
    pub(crate) invalid: i32,
    /// For `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(crate) no_memory: i32,
    /// For other errors of the driver.
    pub(crate) failed: i32,
}

pub(crate) const DRIVER: Library = Library {
    all: &[],
    invalid: code::INVALID_VALUE,
    no_memory: code::OUT_OF_MEMORY,
    failed: code::ILLEGAL_ADDRESS,
};

/// Functions of a library, which get the state and their own arguments. Each is exported by its name,
/// counted, and fails as a test has planned. A result `-> T` is written through a pointer that the
/// caller gives before the other arguments, a result `=> T` through a pointer after them.
macro_rules! exported {
    ($library:ident: $(
        fn $name:ident($state:ident $(, $argument:ident: $type:ty)* $(,)?)
        $(-> $first:ty)? $(=> $last:ty)? $body:block
    )*) => { $(
        #[allow(clippy::too_many_arguments, non_snake_case)]
        pub(crate) fn $name(
            $state: &mut crate::state::State $(, $argument: $type)*
        ) -> crate::state::Outcome $(<$first>)? $(<$last>)? $body

        const _: () = {
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, clippy::let_unit_value, non_snake_case)]
            unsafe extern "C" fn $name(
                $(first: *mut $first,)? $($argument: $type,)* $(last: *mut $last,)?
            ) -> i32 {
                $library.call(stringify!($name), |state| {
                    let _made = self::$name(state $(, $argument)*)?;
                    $(crate::call::put::<$first>(first, _made)?;)?
                    $(crate::call::put::<$last>(last, _made)?;)?
                    Ok(())
                })
            }
        };
    )* };
}
pub(crate) use exported;

/// Calls that need no context, and are allowed after it was lost.
const WITHOUT_CONTEXT: [&str; 3] = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"];

impl Library {
    /// Makes a call, and returns its error.
    pub(crate) fn call(&self, function: &str, body: impl FnOnce(&mut State) -> Outcome) -> i32 {
        let needs_context = self.all.is_empty() && !WITHOUT_CONTEXT.contains(&function);
        let planted = fault::injected(function);
        let mut state = lock();
        let answer = match (planted, state.lost.filter(|_| needs_context)) {
            (Some(fault), _) => {
                // The driver ends a capture also where it returns an error.
                if function == "cuStreamEndCapture" {
                    state.end_capture();
                }
                Err(fault)
            }
            (None, Some(code)) => return code,
            (None, None) => body(&mut state),
        };
        if let Err(fault) = &answer
            && needs_context
            && fault::is_sticky(fault.code)
        {
            state.lost = Some(fault.code);
        }
        drop(state);
        answer.map_or_else(|fault| self.refused(function, &fault), |()| 0)
    }

    /// The library's status for an error of the driver. A status of its own stays.
    fn status(&self, code: i32) -> i32 {
        match code {
            code::INVALID_VALUE => self.invalid,
            // A test has a call do nothing.
            0 => 0,
            code if self.all.is_empty() || self.all.contains(&code) => code,
            code::OUT_OF_MEMORY => self.no_memory,
            _ => self.failed,
        }
    }

    /// Logs why a call fails, and aborts the process if the real library would continue with corrupted
    /// memory.
    pub(crate) fn refused(&self, function: &str, fault: &Fault) -> i32 {
        let (code, why) = (self.status(fault.code), &fault.why);
        if fault.corrupts {
            log!("{function} would corrupt memory: {why}");
            eprintln!("the recording driver ends the process at {function}: {why}");
            std::process::abort();
        }
        // The answer `not ready` to a query is normal while waiting, and NVML is asked as often as time
        // passes.
        if code != code::NOT_READY && !function.starts_with("nvml") {
            log!("{function} fails with {code}: {why}");
        }
        code
    }
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
    let mut numbered = bytes.into_iter().enumerate();
    numbered.try_for_each(|(at, byte)| put(to.wrapping_add(at), byte))
}
