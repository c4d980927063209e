//! What is written down: a line per call.

use std::cell::RefCell;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::OnceLock;

use crate::real;

/// Names the file that lines are appended to. Without it nothing is written.
pub const LOG: &str = "RECORDING_DRIVER_LOG";

thread_local! {
    static CAUGHT: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// What `body` says of the lines that this thread keeps; when the process ends, a thread has none.
fn catching(body: impl FnOnce(&mut Option<Vec<String>>) -> bool) -> bool {
    let caught = CAUGHT.try_with(|caught| body(&mut caught.borrow_mut()));
    caught.unwrap_or(false)
}

fn file() -> Option<&'static File> {
    static FILE: OnceLock<Option<File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = std::env::var_os(LOG)?;
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Some(file),
            Err(error) => {
                eprintln!(
                    "the recording driver cannot write {}: {error}",
                    path.display()
                );
                std::process::abort();
            }
        }
    })
    .as_ref()
}

/// Whether anybody reads what is written: a text that takes long to make need not be made.
pub fn enabled() -> bool {
    !real::is_real() && file().is_some() || catching(|caught| caught.is_some())
}

/// Writes one line.
pub fn call(text: impl Display) {
    if !enabled() {
        return;
    }
    let line = format!("{text}\n");
    let caught = catching(|caught| match caught {
        Some(lines) => {
            lines.push(line.trim_end().to_owned());
            true
        }
        None => false,
    });
    if let Some(mut file) = file().filter(|_| !caught) {
        // One write per line: those of several threads and processes do not mix.
        let _ = file.write_all(line.as_bytes());
    }
}

/// The lines that `body` writes on this thread, which then go into no file.
pub fn lines_of<R>(body: impl FnOnce() -> R) -> (R, Vec<String>) {
    CAUGHT.set(Some(Vec::new()));
    let result = body();
    (result, CAUGHT.take().unwrap_or_default())
}
