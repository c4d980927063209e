//! The log: a line per call.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::LazyLock;

/// Names the file that lines are appended to. Without it nothing is written.
pub const LOG: &str = "RECORDING_DRIVER_LOG";

fn file() -> Option<&'static File> {
    static FILE: LazyLock<Option<File>> = LazyLock::new(|| {
        let path = std::env::var_os(LOG)?;
        let file = OpenOptions::new().create(true).append(true).open(path);
        Some(file.expect("the recording driver can write its log"))
    });
    FILE.as_ref()
}

/// Whether the log is written; texts that take long are made only then.
pub(crate) fn enabled() -> bool {
    file().is_some()
}

/// Writes one line, if the log is written.
macro_rules! log {
    ($($text:tt)*) => {
        if crate::log::enabled() {
            crate::log::line(&format!($($text)*))
        }
    };
}

/// See [`log!`].
pub(crate) fn line(text: &str) {
    if let Some(mut file) = file() {
        // One write per line: those of several threads and processes do not mix.
        let _ = file.write_all(format!("{text}\n").as_bytes());
    }
}
