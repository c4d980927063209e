//! Names and texts of the driver's errors.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::LazyLock;

use crate::call::put;
use crate::fault::code;

/// The driver's errors, a line each: number, name and text.
const ERRORS: &str = include_str!("errors.txt");

/// `CUDA_ERROR_UNKNOWN`.
const UNKNOWN: &str = "999";

/// Writes the name of an error, or its text, which live as long as the process.
fn written(number: i32, part: usize, to: *mut *const c_char) -> i32 {
    static TEXTS: LazyLock<BTreeMap<&str, [CString; 2]>> = LazyLock::new(|| {
        let line = |line: &'static str| {
            let [number, name, text] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                return None;
            };
            Some((number, [CString::new(name).ok()?, CString::new(text).ok()?]))
        };
        ERRORS.lines().filter_map(line).collect()
    });
    let known = TEXTS.get(&*number.to_string());
    let texts = known.unwrap_or_else(|| &TEXTS[UNKNOWN]);
    put(to, texts[part].as_ptr()).map_or(code::INVALID_VALUE, |()| 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(number: i32, to: *mut *const c_char) -> i32 {
    written(number, 0, to)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(number: i32, to: *mut *const c_char) -> i32 {
    written(number, 1, to)
}
