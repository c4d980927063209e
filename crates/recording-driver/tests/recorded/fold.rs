//! Lines that repeat, folded into one with a count.

/// The most lines of a block that repeats.
const LONGEST: usize = 512;
/// Fewer blocks whose numbers differ are not folded.
const FEWEST: usize = 3;

/// The lines, where a block that repeats stands once, with a count. Behind a number that grows from
/// one block to the next stands its step, as in `e1{+2}`; behind one that differs otherwise, `{..}`.
pub(crate) fn folded(lines: &[String]) -> Vec<String> {
    fold(&lines.iter().map(|line| Line::new(line)).collect::<Vec<_>>())
}

fn fold(lines: &[Line]) -> Vec<String> {
    let mut told = Vec::new();
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let Some((length, times)) = best(rest) else {
            told.push(first.text());
            rest = &rest[1..];
            continue;
        };
        let repeats = |at| {
            rest[at..times * length]
                .iter()
                .step_by(length)
                .collect::<Vec<_>>()
        };
        let block: Vec<Line> = (0..length).map(|at| Line::of_all(&repeats(at))).collect();
        rest = &rest[times * length..];
        match &fold(&block)[..] {
            [line] => told.push(format!("{times} times: {line}")),
            block => {
                told.push(format!("{times} times:"));
                told.extend(block.iter().map(|line| format!("  {line}")));
            }
        }
    }
    told
}

/// The length of the block at the beginning of some lines that saves most of them when it stands once,
/// and how often it repeats.
fn best(lines: &[Line]) -> Option<(usize, usize)> {
    let (mut best, mut most) = (None, 0);
    for length in 1..=LONGEST.min(lines.len() / 2) {
        let blocks: Vec<&[Line]> = lines.chunks_exact(length).collect();
        let is_alike = |block: &&&[Line]| {
            let mut pairs = block.iter().zip(blocks[0]);
            pairs.all(|(line, first)| line.words == first.words)
        };
        let times = blocks.iter().take_while(is_alike).count();
        let fewest = if blocks[0] == blocks[1] { 2 } else { FEWEST };
        let saved = (times * length).saturating_sub(length + usize::from(length > 1));
        if times >= fewest && saved > most {
            (best, most) = (Some((length, times)), saved);
        }
    }
    best
}

/// A line, taken apart at its numbers.
#[derive(Clone, PartialEq)]
struct Line {
    /// The text before each number and behind the last.
    words: Vec<String>,
    numbers: Vec<String>,
}

impl Line {
    fn new(line: &str) -> Self {
        let (mut words, mut numbers) = (vec![String::new()], Vec::new());
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            let word = words.last_mut().expect("it begins with one");
            let before = word
                .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next();
            let before = before.unwrap_or_default();
            let is_name = !before.is_empty() && before.chars().all(|c| c.is_ascii_lowercase());
            let number = number(rest, word.ends_with([' ', '(']));
            // The digits of other names, such as a kernel's, are no numbers.
            if number.is_empty() || !before.is_empty() && !is_name {
                word.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            rest = &rest[number.len()..];
            numbers.push(number.to_owned());
            words.push(String::new());
            if is_name {
                // The offset into an allocation, which may be none.
                let offset = if rest.starts_with("+0x") {
                    self::number(rest, true)
                } else {
                    ""
                };
                rest = &rest[offset.len()..];
                numbers.push(offset.to_owned());
                words.push(String::new());
            }
        }
        Self { words, numbers }
    }

    fn text(&self) -> String {
        let numbers = self.numbers.iter().map(String::as_str);
        let words = self.words.iter().map(String::as_str);
        let pairs = words.zip(numbers.chain([""]));
        pairs.flat_map(|(word, number)| [word, number]).collect()
    }

    /// Lines with the same words in one.
    fn of_all(lines: &[&Self]) -> Self {
        let all = |at: usize| {
            lines
                .iter()
                .map(|line| &*line.numbers[at])
                .collect::<Vec<_>>()
        };
        let numbers = (0..lines[0].numbers.len()).map(|at| with_step(&all(at)));
        Self {
            words: lines[0].words.clone(),
            numbers: numbers.collect(),
        }
    }
}

/// The number that a text begins with: decimal, hexadecimal or with a point; empty if there is none.
fn number(text: &str, may_have_sign: bool) -> &str {
    let unsigned = text.trim_start_matches(['-', '+']);
    let sign = text.len() - unsigned.len();
    if sign > usize::from(may_have_sign) || !unsigned.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let is_hexadecimal = unsigned.starts_with("0x");
    let is_digit =
        |c: char| c.is_ascii_digit() || c == '.' || is_hexadecimal && c.is_ascii_alphanumeric();
    let end = unsigned.find(|c| !is_digit(c)).unwrap_or(unsigned.len());
    &text[..sign + end]
}

fn value(number: &str) -> Option<i128> {
    match number.trim_start_matches('+') {
        "" => Some(0),
        number => match number.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        },
    }
}

/// The first number with its step to the next ones.
fn with_step(numbers: &[&str]) -> String {
    let first = numbers[0];
    if numbers.iter().all(|number| *number == first) {
        return first.to_owned();
    }
    let values: Option<Vec<i128>> = numbers.iter().map(|number| value(number)).collect();
    let steps = values.map(|values| {
        values
            .windows(2)
            .map(|two| two[1] - two[0])
            .collect::<Vec<_>>()
    });
    let step = steps.filter(|steps| steps.iter().all(|step| *step == steps[0]));
    let shown = if first.is_empty() { "+0x0" } else { first };
    match step.map(|steps| steps[0]) {
        None => format!("{shown}{{..}}"),
        Some(step) if shown.contains("0x") && step > 0 => format!("{shown}{{+{step:#x}}}"),
        Some(step) => format!("{shown}{{{step:+}}}"),
    }
}
