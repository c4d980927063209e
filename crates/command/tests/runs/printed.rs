//! The output of a process, and how it ended.

use std::process::{Command, Output};

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output and, behind it, standard error.
pub(crate) fn printed(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Fails where it did not end with this code or did not print these words; what it printed.
pub(crate) fn ended(output: &Output, code: i32, words: &str) -> String {
    let printed = printed(output);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    holds(&printed, words);
    printed
}

/// Runs it; see [`ended`].
pub(crate) fn expect(command: &mut Command, code: i32, words: &str) -> String {
    let said = ended(&command.output().unwrap(), code, words);
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Fails where the text lacks these words.
pub(crate) fn holds(text: &str, words: &str) {
    assert!(text.contains(words), "{words:?} is not in:\n{text}");
}
