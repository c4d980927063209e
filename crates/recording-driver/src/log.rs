//! The log: a line per call.

use std::collections::HashMap;
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

/// The next number of each noun.
#[derive(Default)]
pub(crate) struct Names(HashMap<&'static str, u32>);

impl Names {
    /// `d1`, then `d2`, and so on.
    pub(crate) fn next(&mut self, noun: &'static str) -> String {
        let number = self.0.entry(noun).or_default();
        *number += 1;
        format!("{noun}{number}")
    }
}
