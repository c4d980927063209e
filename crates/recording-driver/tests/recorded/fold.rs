//! Lines that repeat, told once.

/// The most lines of a block that repeats.
const LONGEST: usize = 512;
/// Fewer blocks whose numbers grow are told one by one.
const FEWEST_STEPS: usize = 4;

/// The lines, where a block of them repeats with a count. Its numbers may grow by equal steps: the
/// first block and the last then say all of those between.
pub(crate) fn folded(lines: &[String]) -> Vec<String> {
    let parsed: Vec<Parsed> = lines.iter().map(|line| Parsed::new(line)).collect();
    fold(lines, &parsed)
}

fn fold(lines: &[String], parsed: &[Parsed]) -> Vec<String> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (lines, parsed) = (&lines[at..], &parsed[at..]);
        let blocks = 1..=LONGEST.min(lines.len() / 2);
        let repeats = blocks.flat_map(|block| repeats(parsed, block));
        // The shortest block of those that save most.
        let Some(best) = repeats
            .rev()
            .max_by_key(Repeat::saves)
            .filter(|r| r.saves() > 0)
        else {
            out.push(lines[0].clone());
            at += 1;
            continue;
        };
        let Repeat {
            block,
            times,
            steps,
        } = best;
        let told = |first: usize| fold(&lines[first..first + block], &parsed[first..first + block]);
        let (first, last) = (told(0), told((times - 1) * block));
        let inner = |block: Vec<String>| block.into_iter().map(|line| format!("  {line}"));
        match (steps, block) {
            (false, 1) => out.push(format!("{times} times: {}", first[0])),
            (false, _) => {
                out.push(format!("{times} times:"));
                out.extend(inner(first));
            }
            (true, 1) => out.push(format!(
                "{times} times by equal steps: {} ... {}",
                first[0], last[0]
            )),
            (true, _) => {
                out.push(format!("{times} times by equal steps, the first:"));
                out.extend(inner(first));
                out.push("and the last:".to_owned());
                out.extend(inner(last));
            }
        }
        at += times * block;
    }
    out
}

/// A line's words, and the numbers in it.
struct Parsed {
    words: String,
    numbers: Vec<i128>,
}

impl Parsed {
    fn new(line: &str) -> Self {
        let (mut words, mut numbers) = (String::new(), Vec::new());
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            if !next.is_ascii_digit() {
                words.push(next);
                rest = &rest[next.len_utf8()..];
                continue;
            }
            // The number of an allocation has its offset behind it, unless that is zero.
            let is_name = words.ends_with(|c: char| c.is_ascii_lowercase());
            numbers.push(number(&mut rest));
            words.push('#');
            if is_name {
                let offset = rest.strip_prefix('+').filter(|rest| rest.starts_with("0x"));
                rest = offset.unwrap_or(rest);
                numbers.push(offset.map_or(0, |_| number(&mut rest)));
            }
        }
        Self { words, numbers }
    }
}

/// The number that a text begins with, decimal or hexadecimal; `rest` is what follows it.
fn number(rest: &mut &str) -> i128 {
    let (digits, radix) = match rest.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (*rest, 10),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    *rest = &digits[end..];
    i128::from_str_radix(&digits[..end], radix).unwrap_or(0)
}

struct Repeat {
    block: usize,
    times: usize,
    /// Whether numbers in it grow.
    steps: bool,
}

impl Repeat {
    /// Lines that need not be told.
    fn saves(&self) -> usize {
        let told = match (self.steps, self.block) {
            (true, _) if self.times < FEWEST_STEPS => return 0,
            (_, 1) => 1,
            (false, block) => 1 + block,
            (true, block) => 2 + 2 * block,
        };
        (self.times * self.block).saturating_sub(told)
    }
}

/// How often a block of the first lines repeats, as it is and by equal steps.
fn repeats(lines: &[Parsed], block: usize) -> impl DoubleEndedIterator<Item = Repeat> {
    let follows = |steps: bool| {
        let mut times = 1;
        while lines.len() >= (times + 1) * block {
            let is_next = (0..block).all(|at| {
                let [first, second, now] = [0, 1, times].map(|time| &lines[time * block + at]);
                let mut numbers = first.numbers.iter().zip(&second.numbers).zip(&now.numbers);
                now.words == first.words
                    && numbers.all(|((first, second), now)| {
                        let step = if steps { second - first } else { 0 };
                        *now == first + step * times as i128
                    })
            });
            if !is_next {
                break;
            }
            times += 1;
        }
        Repeat {
            block,
            times,
            steps,
        }
    };
    [follows(false), follows(true)].into_iter()
}
