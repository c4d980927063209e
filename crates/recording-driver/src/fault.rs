//! Faults: calls that the driver forbids, and errors that a test plants.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::call::put;

/// Names a test's fault: with `cuMemAllocAsync:3:2` the third call of that function returns error 2. `*` as
/// the number means every call, `5+` the fifth and all later ones, `*` as the function every function. A
/// fourth part, as in `cuLaunchKernel:1:719:iteration`, counts only calls after the mark of that name. The
/// name of a kernel, as in `crossover_empty:2:719`, means its launches.
pub const FAULTS: &str = "RECORDING_DRIVER_FAULTS";

/// Errors of the driver that this crate returns, with the driver's numbers.
#[allow(missing_docs)]
pub mod code {
    pub const INVALID_VALUE: i32 = 1;
    pub const OUT_OF_MEMORY: i32 = 2;
    pub const INVALID_DEVICE: i32 = 101;
    pub const INVALID_IMAGE: i32 = 200;
    pub const INVALID_CONTEXT: i32 = 201;
    pub const UNSUPPORTED_LIMIT: i32 = 215;
    pub const INVALID_HANDLE: i32 = 400;
    pub const NOT_FOUND: i32 = 500;
    pub const NOT_READY: i32 = 600;
    pub const ILLEGAL_ADDRESS: i32 = 700;
    pub const LAUNCH_OUT_OF_RESOURCES: i32 = 701;
    pub const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;
    pub const NOT_SUPPORTED: i32 = 801;
    pub const CAPTURE_UNSUPPORTED: i32 = 900;
    pub const CAPTURE_INVALIDATED: i32 = 901;
    pub const CAPTURE_UNMATCHED: i32 = 903;
    pub const CAPTURE_UNJOINED: i32 = 904;
    pub const CAPTURE_ISOLATION: i32 = 905;
    pub const CAPTURED_EVENT: i32 = 907;
}

/// A refused call: an error of [`code`], and the sentence.
macro_rules! fault {
    ($code:ident, $($text:tt)*) => {
        crate::fault::Fault::new(crate::fault::code::$code, format!($($text)*))
    };
}

/// Why a call fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The driver's number, of [`code`].
    pub code: i32,
    /// A sentence about the call, with names of allocations instead of addresses.
    pub why: String,
    /// The real driver would not notice, and memory would be corrupted: the process is aborted.
    pub corrupts: bool,
}

impl Fault {
    /// The driver refuses the call.
    pub fn new(code: i32, why: impl Into<String>) -> Self {
        Self {
            code,
            why: why.into(),
            corrupts: false,
        }
    }

    /// An argument is wrong: `CUDA_ERROR_INVALID_VALUE`, or a library's status for it.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::new(code::INVALID_VALUE, why)
    }

    /// The stand-in does not know this value and would answer wrongly, so the process ends.
    pub fn unknown(what: &str, value: impl std::fmt::Display) -> Self {
        Self::corrupts(format!("the stand-in does not know {what} {value} yet"))
    }

    /// The driver would accept the call, and corrupt memory.
    pub fn corrupts(why: impl Into<String>) -> Self {
        Self {
            code: code::ILLEGAL_ADDRESS,
            why: why.into(),
            corrupts: true,
        }
    }
}

/// Whether all later calls of the process fail with this error.
pub fn is_sticky(code: i32) -> bool {
    matches!(code, 700 | 702 | 710 | 714..=719)
}

#[derive(Default)]
struct Faults {
    planned: Option<Planned>,
    phase: String,
    /// How often each function was called, by phase and name.
    calls: BTreeMap<(String, String), u64>,
}

struct Planned {
    function: String,
    /// The first call that fails, and whether all after it do.
    first: u64,
    goes_on: bool,
    code: i32,
    phase: Option<String>,
    seen: u64,
}

fn faults() -> MutexGuard<'static, Faults> {
    static FAULTS_OF_PROCESS: LazyLock<Mutex<Faults>> =
        LazyLock::new(|| Mutex::new(Faults::of(&std::env::var(FAULTS).unwrap_or_default())));
    FAULTS_OF_PROCESS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Plans a fault in place of the one before, and counts the calls anew. Returns the number of calls of each
/// function in each phase: lines `phase function count`, separated by tabs.
pub(crate) fn plan(text: &str) -> String {
    let before = std::mem::replace(&mut *faults(), Faults::of(text));
    let calls = before.calls.iter();
    let lines = calls.map(|((phase, function), n)| format!("{phase}\t{function}\t{n}\n"));
    lines.collect()
}

/// From now on, calls belong to the phase of this name.
pub(crate) fn enter(phase: &str) {
    faults().phase = phase.to_owned();
}

/// Counts a call of `function`, and returns the error that a test has planted for it.
pub(crate) fn injected(function: &str) -> Option<Fault> {
    let faults = &mut *faults();
    let call = (faults.phase.clone(), function.to_owned());
    *faults.calls.entry(call).or_default() += 1;
    faults.planted(&[function, "*"])
}

/// The error that a test has planted for a launch of `kernel`.
pub(crate) fn of_launch(kernel: &str) -> Option<Fault> {
    faults().planted(&[kernel])
}

impl Faults {
    fn planted(&mut self, names: &[&str]) -> Option<Fault> {
        let planned = self.planned.as_mut()?;
        let is_elsewhere = |phase: &String| *phase != self.phase;
        let is_named = names.contains(&&*planned.function);
        if !is_named || planned.phase.as_ref().is_some_and(is_elsewhere) {
            return None;
        }
        planned.seen += 1;
        let fails =
            planned.seen == planned.first || planned.goes_on && planned.seen > planned.first;
        fails.then(|| Fault::new(planned.code, "a fault that the test asked for"))
    }

    fn of(text: &str) -> Self {
        let planned = planned(text);
        if planned.is_none() && !text.is_empty() {
            eprintln!(
                "the recording driver does not understand the fault `{text}`; write \
                 function:n:code or function:n:code:phase"
            );
            std::process::abort();
        }
        Self {
            planned,
            ..Self::default()
        }
    }
}

fn planned(text: &str) -> Option<Planned> {
    // A phase may have colons in its name.
    let mut parts = text.splitn(4, ':');
    let function = parts.next()?.to_owned();
    let call = match parts.next()? {
        "*" => "1+",
        call => call,
    };
    let first = call.trim_end_matches('+');
    let code = parts.next()?.parse().ok()?;
    Some(Planned {
        function,
        first: first.parse().ok()?,
        goes_on: first != call,
        code,
        phase: parts.next().map(str::to_owned),
        seen: 0,
    })
}

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
