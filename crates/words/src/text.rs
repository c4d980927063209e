//! Text from outside: ids, names and messages of files, names of folders, a command line.

/// The text made safe for a terminal, a plot or a page: white space becomes a space, and a character
/// that would act on the display becomes its escape, `\u{1b}`.
pub fn visible(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if is_break(c) => out.push(' '),
            c if acts(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// As [`visible`], Markdown that cannot break out of a Markdown table cell or list item.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
    out
}

/// As [`visible`], for a text of several lines, which stay lines.
pub fn visible_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    lines.join("\n")
}

/// An error and its causes in one line, without repeating a cause that the error's text already has.
pub fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// The width of a table: that which `COLUMNS` asks for, or else the terminal's. Some terminals have none, and
/// say 0.
pub fn columns(of_terminal: Option<u16>) -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok();
    let is_readable = |columns: &u16| *columns >= 20;
    let asked = asked.and_then(|it| it.parse().ok()).filter(is_readable);
    asked.or(of_terminal.filter(is_readable))
}

/// Whether `CLICOLOR_FORCE` asks for colours where there is no terminal.
pub fn wants_colours() -> bool {
    std::env::var("CLICOLOR_FORCE").is_ok_and(|value| !matches!(&*value, "" | "0"))
}

/// Whether [`visible`] would leave a name unchanged.
pub fn is_plain(name: &str) -> bool {
    !name.chars().any(|c| acts(c) || is_break(c))
}

/// The text in at most this number of characters, without the middle of a longer one.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let tail = kept / 2;
    let begin = text.chars().take(kept - tail);
    begin
        .chain(['…'])
        .chain(text.chars().skip(length - tail))
        .collect()
}

/// Line breaks and tabs.
fn is_break(c: char) -> bool {
    matches!(c, '\t'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Control characters, which a terminal obeys and XML forbids even as a reference, the two
/// characters that XML forbids beside them, and those that turn the direction of writing, so
/// that a text reads as another one (Unicode Standard Annex 9).
fn acts(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || turns || matches!(c, '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_the_middle_is_left_out() {
        assert_eq!(shortened("a longer text", 7), "a l…ext");
        let shorter = [6, 4, 1].map(|most| shortened("größer", most));
        assert_eq!(shorter, ["größer", "gr…r", "…"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        for (text, shown) in [
            ("gpu/cublas 2²⁰ µs", "gpu/cublas 2²⁰ µs"),
            ("a\x1b[31mb\0", "a\\u{1b}[31mb\\u{0}"),
            ("user\u{202e}txt", "user\\u{202e}txt"),
            ("one\ntwo\tthree\u{2028}four", "one two three four"),
        ] {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\x07\nb\r"), "a\\u{7}\nb ");
        assert_eq!(escape("![x](y)|<b>\n"), r"!\[x\](y)\|&lt;b&gt; ");
        assert!(is_plain("größer") && !is_plain("a\nb") && !is_plain("\u{9b}31m"));
    }
}
