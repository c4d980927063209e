//! Panics of the driver bindings as errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex, PoisonError};

/// Runs `call`, and turns a panic in it into an error; nothing is printed.
///
/// cudarc panics at the first call into a library that is not installed, and at the first symbol
/// that an installed one lacks. A program that can do without the library reports that as an
/// absence, and a printed panic would only alarm its user.
///
/// The panic hook is replaced while `call` runs and put back afterwards. Panics of other threads
/// print as before.
///
/// # Errors
/// The message of the panic.
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    let outcome = quietly(|| catch_unwind(AssertUnwindSafe(call)));
    outcome.map_err(|payload| {
        payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("it panicked without a message")
            .to_owned()
    })
}

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// How many calls need our hook, and the hook that it replaced.
static REPLACED: Mutex<(usize, Option<Arc<Hook>>)> = Mutex::new((0, None));

thread_local!(static QUIET: Cell<usize> = const { Cell::new(0) });

/// Runs `call` with a hook that prints no panic of this thread. `call` must not unwind.
fn quietly<T>(call: impl FnOnce() -> T) -> T {
    let replaced = || REPLACED.lock().unwrap_or_else(PoisonError::into_inner);
    // While a thread unwinds, as when this is called by a destructor, it may not replace the hook.
    let may_replace = !std::thread::panicking();
    if may_replace {
        let mut replaced = replaced();
        if replaced.0 == 0 {
            let previous = Arc::new(take_hook());
            replaced.1 = Some(previous.clone());
            // This hook must not lock `REPLACED`: below, the last call waits for running hooks
            // while it holds that lock.
            set_hook(Box::new(move |info| {
                if QUIET.get() == 0 {
                    previous(info);
                }
            }));
        }
        replaced.0 += 1;
    }
    QUIET.set(QUIET.get() + 1);
    let value = call();
    QUIET.set(QUIET.get() - 1);
    if !may_replace {
        return value;
    }
    let mut replaced = replaced();
    replaced.0 -= 1;
    if replaced.0 == 0 {
        // Our hook also owns the previous one, so it must go before that can be unwrapped.
        drop(take_hook());
        if let Some(previous) = replaced.1.take().and_then(Arc::into_inner) {
            set_hook(previous);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    const ALONE: &str = "CROSSOVER_TEST_PANICS_ALONE";

    /// In a process of its own: the hook is the whole process's, and other tests replace it too.
    #[test]
    fn a_panic_becomes_its_message_and_the_hook_is_put_back() {
        if env::var_os(ALONE).is_some() {
            return panics_alone();
        }
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "--nocapture"]);
        again.arg("panic::tests::a_panic_becomes_its_message_and_the_hook_is_put_back");
        let output = again.env(ALONE, "").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains("1 passed"), "{text}");
    }

    fn panics_alone() {
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        set_hook(Box::new(|_| {
            HEARD.fetch_add(1, Ordering::SeqCst);
        }));
        let text = catch_panic(|| panic!("no {}", "library")).unwrap_err();
        assert_eq!(text, "no library");
        assert_eq!(
            catch_panic(|| panic!("no symbol")).unwrap_err(),
            "no symbol"
        );
        assert_eq!(catch_panic(|| 7), Ok(7));
        let inner = catch_panic(|| catch_panic(|| panic!("twice")).unwrap_err());
        assert_eq!(inner, Ok("twice".to_owned()));
        assert_eq!(HEARD.load(Ordering::SeqCst), 0, "nothing was printed");

        // Another thread's panic is heard even while this one is quiet.
        let other = || thread::spawn(|| panic!("elsewhere")).join().is_err();
        assert_eq!(catch_panic(other), Ok(true));
        assert_eq!(HEARD.load(Ordering::SeqCst), 1);

        assert!(catch_unwind(|| panic!("loud")).is_err());
        assert_eq!(HEARD.load(Ordering::SeqCst), 2, "the hook is back");

        struct CatchesAtItsEnd;
        impl Drop for CatchesAtItsEnd {
            fn drop(&mut self) {
                assert_eq!(catch_panic(|| 7), Ok(7));
            }
        }
        let unwinds = || {
            let _catches = CatchesAtItsEnd;
            panic!("first")
        };
        assert!(catch_unwind(unwinds).is_err(), "and no abort");
        drop(take_hook());
    }
}
