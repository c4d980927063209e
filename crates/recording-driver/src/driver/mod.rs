//! The functions of `libcuda.so.1` that the suite and cudarc call, by their names and signatures
//! there. Handles are numbers, which nobody dereferences.

mod device;
mod event;
mod graph;
mod memory;
mod module;
mod stream;

use std::ffi::{CStr, c_char};

use crate::fault::{Fault, code};
use crate::real;
use crate::state::{Answer, State};

/// Exports functions of the driver: each is counted, may be failed by a test, and works on the
/// state of the process.
macro_rules! driver {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = |$state:pat_param| $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, non_snake_case)]
            unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                let real = || {
                    type Function = unsafe extern "C" fn($($type),*) -> i32;
                    let real = crate::real::function::<Function>(stringify!($name))?;
                    // SAFETY: the caller's promises to the driver.
                    Some(unsafe { real($($argument),*) })
                };
                crate::state::call(stringify!($name), real, |$state| $body)
            }
        )*
    };
}
use driver;

/// Writes what a call returns through a pointer, where the real driver has not done so.
fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(Fault::new(
            code::INVALID_VALUE,
            "there is nowhere to write the answer",
        ));
    }
    if !real::passes() {
        // SAFETY: every function of the driver has the caller promise that its pointers are valid.
        unsafe { to.write_unaligned(value) };
    }
    Ok(())
}

/// Gives the handle or the address of what `body` makes: the real driver's, where it has answered.
fn make(state: &mut State, to: *mut u64, body: impl FnOnce(&mut State) -> Answer<u64>) -> Answer {
    state.given = given(to);
    let made = body(state)?;
    put(to, made)
}

/// What the real driver has written there, if calls are passed through to it.
fn given(to: *const u64) -> Option<u64> {
    // SAFETY: as in `put`, and the real driver has just written it.
    real::passes().then(|| unsafe { to.read_unaligned() })
}

/// Reads a string of C.
fn text(from: *const c_char) -> Answer<String> {
    if from.is_null() {
        return Err(Fault::new(code::INVALID_VALUE, "a text is missing"));
    }
    // SAFETY: as in `put`.
    Ok(unsafe { CStr::from_ptr(from) }
        .to_string_lossy()
        .into_owned())
}

/// Writes a string of C into room for `length` bytes, cut to fit.
fn put_text(to: *mut c_char, length: i32, text: &str) -> Answer {
    let room = usize::try_from(length).unwrap_or(0);
    if room == 0 {
        return Err(Fault::new(
            code::INVALID_VALUE,
            "there is no room for a text",
        ));
    }
    let shown = text.bytes().take(room - 1).chain([0]);
    for (at, byte) in shown.enumerate() {
        put(to.wrapping_add(at), byte as c_char)?;
    }
    Ok(())
}
