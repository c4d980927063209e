//! Scripts that tests start, the output of a process, and how it ended.

#[cfg(unix)]
use std::path::Path;
use std::process::{Command, Output};

/// Tests by the names of their functions.
macro_rules! named {
    ($($test:path,)*) => {
        vec![$(libtest_mimic::Trial::test(stringify!($test), || {
            $test();
            Ok(())
        })),*]
    };
}
pub(crate) use named;

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Standard output and, behind it, standard error.
pub(crate) fn printed(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

/// Gives a command the words of a line as a shell would: first variables, `NAME=value`, then arguments.
pub(crate) fn with_line<'a>(command: &'a mut Command, line: &str) -> &'a mut Command {
    let is_variable = |name: &str| {
        !name.contains(|c: char| c != '_' && !c.is_ascii_uppercase() && !c.is_ascii_digit())
    };
    for word in line.split_whitespace() {
        match word.split_once('=').filter(|(name, _)| is_variable(name)) {
            Some((name, value)) => command.env(name, value),
            None => command.arg(word),
        };
    }
    command
}

/// The rows of a text, with ` | ` between their columns.
#[cfg(unix)]
pub(crate) fn table<const N: usize>(text: &str) -> impl Iterator<Item = [&str; N]> {
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    rows.map(|row| {
        let columns = Vec::from_iter(row.split(" | ").map(str::trim));
        columns.try_into().expect(row)
    })
}

/// Fails where it did not end with this code or did not print these words (see [`holds`]); what it printed.
pub(crate) fn ended(output: &Output, code: i32, words: &str) -> String {
    let printed = printed(output);
    assert_eq!(output.status.code(), Some(code), "{printed}");
    holds(&printed, words);
    printed
}

/// Runs it; see [`ended`].
pub(crate) fn expect(command: &mut Command, code: i32, words: &str) -> String {
    let output = command.output().unwrap();
    let printed = printed(&output);
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{printed}");
    holds(&printed, words);
    lacks(&printed, &["panicked"]);
    printed
}

/// Waits until a condition holds, for a minute at most. Returns whether it does.
#[cfg(unix)]
pub(crate) fn comes_true(condition: impl Fn() -> bool) -> bool {
    let moment = std::time::Duration::from_millis(10);
    let mut moments = (0..6_000).map(|_| std::thread::sleep(moment));
    condition() || moments.any(|()| condition())
}

/// Fails where a process goes on.
#[cfg(unix)]
pub(crate) fn ends(process: &str) {
    let stat = || std::fs::read_to_string(format!("/proc/{process}/stat"));
    // It may wait a moment to be reaped.
    let is_over = || stat().map_or(true, |stat| stat.contains(") Z "));
    assert!(comes_true(is_over), "process {process} was left");
}

/// Writes a script in a process of its own: a child of another test would hold open for a moment what this
/// process writes, and it could not be started ("Text file busy").
#[cfg(unix)]
pub(crate) fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writes = Command::new("sh");
    writes.args(["-c", r#"printf %s "$1" > "$0" && chmod +x "$0""#]);
    assert!(writes.arg(path).arg(text).status().unwrap().success());
}

/// Fails where the text lacks these words; ` … ` stands for any text between them.
pub(crate) fn holds(text: &str, words: &str) {
    let mut rest = text;
    for part in words.split(" … ") {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part:?} of {words:?} is not in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

/// Fails where the text has any of these words.
pub(crate) fn lacks(text: &str, words: &[&str]) {
    for words in words {
        assert!(!text.contains(words), "{words:?} is in:\n{text}");
    }
}
