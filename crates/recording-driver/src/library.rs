//! Handles and return codes, shared by the stand-ins for CUDA's libraries.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fault::{Fault, injected};
use crate::log;
use crate::real;
use crate::state::{Answer, follow};

/// What the functions of a library return.
pub(crate) struct Library {
    /// Every status but that of success: the bindings may know no other.
    pub(crate) statuses: &'static [i32],
    /// Where an argument is null or senseless.
    pub(crate) invalid: i32,
    /// Where the driver has no memory.
    pub(crate) no_memory: i32,
    /// Where the driver fails otherwise.
    pub(crate) failed: i32,
    /// Whether refused calls are lines of the log.
    pub(crate) logged: bool,
    /// Whether calls are passed through where those of the driver are.
    pub(crate) passes: bool,
}

/// Exports functions of a library: each is counted and may be failed by a test.
macro_rules! library {
    ($library:ident: $(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, non_snake_case)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> i32 {
                let real = || {
                    type Function = unsafe extern "C" fn($($type),*) -> i32;
                    let real = $library.passed::<Function>(stringify!($name))?;
                    // SAFETY: the caller's promise.
                    Some(unsafe { real($($argument),*) })
                };
                $library.call(stringify!($name), real, || $body)
            }
        )*
    };
}
pub(crate) use library;

impl Library {
    /// Whether the real library answers, and this one only follows.
    pub(crate) fn follows(&self) -> bool {
        self.passes && real::passes()
    }

    /// The real library's function, where calls are passed through.
    pub(crate) fn passed<F: Copy>(&self, function: &str) -> Option<F> {
        real::function(function).filter(|_| self.follows())
    }

    /// Makes a call: fails it where a test wants that, ends the process where the real library would
    /// corrupt memory, and returns the status otherwise. Where the real library has answered, `body`
    /// only follows.
    pub(crate) fn call(
        &self,
        function: &str,
        real: impl FnOnce() -> Option<i32>,
        body: impl FnOnce() -> Answer,
    ) -> i32 {
        let answer = match injected(function) {
            Some(code) => Err(Fault::new(self.of_driver(code), "the test wants it")),
            None => match real() {
                Some(0) => {
                    follow(function, body());
                    return 0;
                }
                Some(code) => Err(Fault::new(code, "so the real library says")),
                None => body(),
            },
        };
        let Err(Fault {
            code,
            why,
            corrupts,
        }) = answer
        else {
            return 0;
        };
        if corrupts {
            log::call(format_args!("{function} ends the process: {why}"));
            eprintln!("the recording driver ends the process at {function}: {why}");
            std::process::abort();
        }
        if self.logged {
            log::call(format_args!("{function} fails with {code}: {why}"));
        }
        code
    }

    /// What the library makes of an error of the driver. A number that is a status of its own stays.
    pub(crate) fn of_driver(&self, code: i32) -> i32 {
        match code {
            code if self.statuses.contains(&code) => code,
            2 => self.no_memory,
            _ => self.failed,
        }
    }

    pub(crate) fn invalid(&self, why: impl Into<String>) -> Fault {
        Fault::new(self.invalid, why)
    }

    /// Writes what a call returns through a pointer.
    pub(crate) fn put<T>(&self, to: *mut T, value: T) -> Answer {
        if to.is_null() {
            return Err(self.invalid("there is nowhere to write the answer"));
        }
        if !self.follows() {
            // SAFETY: every function of a library has the caller promise that its pointers are valid.
            unsafe { to.write_unaligned(value) };
        }
        Ok(())
    }

    /// Writes the handle of `value` through a pointer, or notes the one that the real library has
    /// written there.
    pub(crate) fn make<T>(&self, to: *mut u64, handles: &Handles<T>, value: T) -> Answer<u64> {
        let given = match self.follows() {
            true => Some(self.get(to)?),
            false => None,
        };
        let handle = handles.insert(value, given);
        self.put(to, handle)?;
        Ok(handle)
    }

    /// Reads what a pointer points to.
    pub(crate) fn get<T: Copy>(&self, from: *const T) -> Answer<T> {
        if from.is_null() {
            return Err(self.invalid("an argument is null"));
        }
        // SAFETY: as in `put`.
        Ok(unsafe { from.read_unaligned() })
    }

    /// Reads a string of C.
    pub(crate) fn text(&self, from: *const c_char) -> Answer<String> {
        if from.is_null() {
            return Err(self.invalid("a text is null"));
        }
        // SAFETY: as in `put`.
        let text = unsafe { CStr::from_ptr(from) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// The stand-in would answer wrongly if it went on without knowing what it is asked, so the process
/// ends.
pub(crate) fn unknown(what: &str, value: impl std::fmt::Display) -> Fault {
    Fault::corrupts(format!("the stand-in does not know {what} {value} yet"))
}

/// What a library has given out and not yet destroyed. A handle is no address, so that nothing but
/// the library can use it.
pub(crate) struct Handles<T> {
    noun: &'static str,
    /// What the library returns for a handle that is null.
    null: i32,
    first: u64,
    live: Mutex<Live<T>>,
}

struct Live<T> {
    /// How many handles were given out.
    given: u64,
    /// How many of these there were when names began at 1.
    earlier: u64,
    /// The values with the number of their handles.
    values: BTreeMap<u64, (u64, T)>,
    destroyed: BTreeMap<u64, u64>,
}

impl<T> Handles<T> {
    /// Handles from `first` on, called `noun` in the log.
    pub(crate) const fn new(noun: &'static str, null: i32, first: u64) -> Self {
        let live = Live {
            given: 0,
            earlier: 0,
            values: BTreeMap::new(),
            destroyed: BTreeMap::new(),
        };
        Self {
            noun,
            null,
            first,
            live: Mutex::new(live),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Live<T>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle of a value: the real library's, or a new one.
    pub(crate) fn insert(&self, value: T, real: Option<u64>) -> u64 {
        let mut live = self.lock();
        live.given += 1;
        let number = live.given;
        let handle = real.unwrap_or(self.first + number);
        live.values.insert(handle, (number, value));
        live.destroyed.remove(&handle);
        handle
    }

    /// # Errors
    /// The handle is null, which libraries notice, or was destroyed, which they do not.
    pub(crate) fn with<R>(&self, handle: u64, use_it: impl FnOnce(&mut T) -> R) -> Answer<R> {
        let mut live = self.lock();
        match live.values.get_mut(&handle) {
            Some((_, value)) => Ok(use_it(value)),
            None => Err(self.missing(handle, &live)),
        }
    }

    pub(crate) fn copy(&self, handle: u64) -> Answer<T>
    where
        T: Clone,
    {
        self.with(handle, |value| value.clone())
    }

    pub(crate) fn remove(&self, handle: u64) -> Answer<String> {
        let mut live = self.lock();
        let Some((number, _)) = live.values.remove(&handle) else {
            return Err(self.missing(handle, &live));
        };
        live.destroyed.insert(handle, number);
        Ok(self.named(number, &live))
    }

    /// What the log calls the handle.
    pub(crate) fn name_of(&self, handle: u64) -> String {
        let live = self.lock();
        let number = live.values.get(&handle).map_or(0, |(number, _)| *number);
        self.named(number, &live)
    }

    fn named(&self, number: u64, live: &Live<T>) -> String {
        match number.checked_sub(live.earlier) {
            Some(number @ 1..) => format!("{}{number}", self.noun),
            _ => format!("earlier {}{number}", self.noun),
        }
    }

    fn missing(&self, handle: u64, live: &Live<T>) -> Fault {
        let noun = self.noun;
        if handle == 0 {
            return Fault::new(self.null, format!("the {noun} is null"));
        }
        match live.destroyed.get(&handle) {
            Some(&number) => Fault::corrupts(format!("{} was destroyed", self.named(number, live))),
            None => Fault::corrupts(format!("{handle:#x} is no {noun}")),
        }
    }
}

/// Handles of any kind, as the log and the end of a process have them.
pub(crate) trait Named: Sync {
    /// Names begin at 1 again.
    fn restart_names(&self);
    /// What was not destroyed.
    fn leaks(&self) -> Vec<String>;
}

impl<T: Send> Named for Handles<T> {
    fn restart_names(&self) {
        let mut live = self.lock();
        live.earlier = live.given;
    }

    fn leaks(&self) -> Vec<String> {
        let live = self.lock();
        let numbers = live.values.values().map(|(number, _)| *number);
        numbers.map(|number| self.named(number, &live)).collect()
    }
}

/// What the tests of the libraries share: the driver of this process.
#[cfg(test)]
pub(crate) mod testing {
    use crate::context;
    use crate::state::{State, lock};

    fn with<R>(body: impl FnOnce(&mut State) -> R) -> R {
        let mut state = lock();
        let context = state.retain();
        context::set_current(context);
        body(&mut state)
    }

    pub(crate) fn stream() -> u64 {
        with(|state| state.create_stream(true).unwrap())
    }

    /// Device memory of so many bytes.
    pub(crate) fn allocated(bytes: u64) -> u64 {
        with(|state| state.allocate(bytes).unwrap())
    }

    pub(crate) fn freed(bytes: u64) -> u64 {
        let address = allocated(bytes);
        with(|state| state.memory.free(address));
        address
    }
}
