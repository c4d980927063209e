//! Lines that repeat, told once.

/// The most lines of a block that repeats.
const LONGEST: usize = 512;
/// Fewer blocks whose numbers grow are told one by one.
const FEWEST_STEPS: usize = 3;

/// The lines, where a block that repeats is told once, with a count. Behind a number that grows from
/// one block to the next stands its step, as in `e1{+2}`; behind a decimal that differs stands `{..}`.
pub(crate) fn folded(lines: &[String]) -> Vec<String> {
    fold(lines.iter().map(|line| Line::new(line)).collect())
}

fn fold(lines: Vec<Line>) -> Vec<String> {
    let mut told = Vec::new();
    let mut rest = &lines[..];
    while !rest.is_empty() {
        let Some((length, times)) = best(rest) else {
            told.push(rest[0].text());
            rest = &rest[1..];
            continue;
        };
        let (first, second) = (&rest[..length], &rest[length..2 * length]);
        let with_steps = first.iter().zip(second).map(|(a, b)| a.with_steps(b));
        let block = match first == second {
            true => fold(first.to_vec()),
            false => fold(with_steps.collect()),
        };
        rest = &rest[times * length..];
        match &block[..] {
            [line] => told.push(format!("{times} times: {line}")),
            _ => {
                told.push(format!("{times} times:"));
                told.extend(block.into_iter().map(|line| format!("  {line}")));
            }
        }
    }
    told
}

/// The length of the block at the beginning of some lines that saves most of them when it is told
/// once, and how often it repeats.
fn best(lines: &[Line]) -> Option<(usize, usize)> {
    let (mut best, mut most) = (None, 0);
    for length in 1..=LONGEST.min(lines.len() / 2) {
        let blocks: Vec<&[Line]> = lines.chunks_exact(length).collect();
        let fewest = match blocks[0] == blocks[1] {
            true => 2,
            false => FEWEST_STEPS,
        };
        let is_next = |&at: &usize| {
            let mut lines = blocks[0].iter().zip(blocks[1]).zip(blocks[at]);
            lines.all(|((first, second), line)| line.follows(first, second, at as i128))
        };
        let times = 1 + (1..blocks.len()).take_while(is_next).count();
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
    numbers: Vec<Number>,
}

impl Line {
    fn new(line: &str) -> Self {
        let (mut words, mut numbers) = (vec![String::new()], Vec::new());
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            let word = words.last_mut().expect("it begins with one");
            let may_be_negative = word.ends_with([' ', '(']);
            let digits = rest.strip_prefix('-').filter(|_| may_be_negative);
            if !digits
                .unwrap_or(rest)
                .starts_with(|c: char| c.is_ascii_digit())
            {
                word.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            let is_name = word.ends_with(|c: char| c.is_ascii_lowercase());
            let number = Number::first_of(rest);
            rest = &rest[number.text.len()..];
            numbers.push(number);
            words.push(String::new());
            if is_name {
                // The offset into an allocation; without one it is zero.
                let number = match rest.starts_with("+0x") {
                    true => Number::first_of(rest),
                    false => Number::default(),
                };
                rest = &rest[number.text.len()..];
                numbers.push(number);
                words.push(String::new());
            }
        }
        Self { words, numbers }
    }

    fn text(&self) -> String {
        let numbers = self.numbers.iter().map(|number| number.text.as_str());
        let words = self.words.iter().map(String::as_str);
        let pairs = words.zip(numbers.chain([""]));
        pairs.flat_map(|(word, number)| [word, number]).collect()
    }

    /// Whether this is the line so many steps after the first.
    fn follows(&self, first: &Self, second: &Self, times: i128) -> bool {
        let numbers = first.numbers.iter().zip(&second.numbers).zip(&self.numbers);
        let mut values =
            numbers.map(|((first, second), now)| (first.value, second.value, now.value));
        self.words == first.words
            && self.words == second.words
            && values.all(|values| match values {
                (Some(first), Some(second), Some(now)) => now == first + (second - first) * times,
                values => values == (None, None, None),
            })
    }

    /// This line, where the next one that repeats it is `next`.
    fn with_steps(&self, next: &Self) -> Self {
        let steps = self.numbers.iter().zip(&next.numbers);
        let numbers = steps.map(|(number, next)| number.with_step(next)).collect();
        Self {
            words: self.words.clone(),
            numbers,
        }
    }
}

#[derive(Clone, PartialEq)]
struct Number {
    text: String,
    /// None of a decimal.
    value: Option<i128>,
}

impl Default for Number {
    fn default() -> Self {
        Self {
            text: String::new(),
            value: Some(0),
        }
    }
}

impl Number {
    /// The number that a text begins with: decimal, hexadecimal, or with digits behind a point.
    fn first_of(text: &str) -> Self {
        let sign = text.len() - text.trim_start_matches(['-', '+']).len();
        let (start, radix) = match text[sign..].starts_with("0x") {
            true => (sign + 2, 16),
            false => (sign, 10),
        };
        let is_digit = |c: char| c.is_digit(radix) || radix == 10 && c == '.';
        let rest = text[start..].trim_start_matches(is_digit);
        let text = &text[..text.len() - rest.len()];
        let value = match radix {
            16 => i128::from_str_radix(&text[start..], 16),
            _ => text.parse(),
        };
        Self {
            text: text.to_owned(),
            value: value.ok(),
        }
    }

    fn with_step(&self, next: &Self) -> Self {
        let (Some(first), Some(second)) = (self.value, next.value) else {
            let differs = if self == next { "" } else { "{..}" };
            return Self {
                text: format!("{}{differs}", self.text),
                value: None,
            };
        };
        let step = second - first;
        let sign = if step < 0 { '-' } else { '+' };
        let size = step.unsigned_abs();
        let text = match self.text.as_str() {
            text if step == 0 => text.to_owned(),
            "" => format!("+0x0{{{sign}{size:#x}}}"),
            text if text.contains("0x") => format!("{text}{{{sign}{size:#x}}}"),
            text => format!("{text}{{{sign}{size}}}"),
        };
        Self { text, value: None }
    }
}
