//! The part of the C++ preprocessor that kernel sources use: comments, macros with `##`, and
//! conditions.

use std::collections::{HashMap, HashSet};

/// A piece of C++ source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Name,
    Number,
    /// A string or a character, with its quotation marks.
    Literal,
    Sign,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

#[derive(Clone)]
struct Macro {
    /// `None` for a macro without parentheses.
    parameters: Option<Vec<String>>,
    body: Vec<Token>,
}

type Macros = HashMap<String, Macro>;

/// Signs of two characters. `>>` is left out, since it may end two lists of template arguments.
const LONG_SIGNS: [&str; 10] = ["::", "##", "&&", "||", "==", "!=", "<=", ">=", "<<", "->"];

/// The tokens of `source` that are left after macros and conditions, for an architecture such as 90.
///
/// # Errors
/// A sentence about a directive that is malformed or that the stand-in does not know.
pub(crate) fn tokens(source: &str, architecture: u32) -> Result<Vec<Token>, String> {
    let architecture = Macro {
        parameters: None,
        body: lex(&format!("{architecture}0")),
    };
    let mut macros = Macros::from([("__CUDA_ARCH__".to_owned(), architecture)]);
    let text = without_comments(&source.replace("\\\n", " "));
    let (mut out, mut pending) = (Vec::new(), Vec::new());
    // For each open condition, whether its lines are kept.
    let mut open: Vec<bool> = Vec::new();
    for line in text.lines() {
        let kept = open.iter().all(|kept| *kept);
        let Some(directive) = line.trim_start().strip_prefix('#') else {
            if kept {
                pending.extend(lex(line));
            }
            continue;
        };
        out.extend(expand(&pending, &macros, &HashSet::new())?);
        pending.clear();
        let line = lex(directive);
        let Some((name, rest)) = line.split_first() else {
            continue;
        };
        let lone = || format!("#{} without #if", name.text);
        match name.text.as_str() {
            // Conditions inside lines that are left out are not evaluated.
            "if" => open.push(kept && condition(rest, &macros)?),
            "else" => {
                let holds = open.last_mut().ok_or_else(lone)?;
                *holds = !*holds;
            }
            "endif" => drop(open.pop().ok_or_else(lone)?),
            _ if !kept => {}
            "define" => {
                let (name, value) = definition(directive)?;
                macros.insert(name, value);
            }
            // `#line` is for messages, which here name only the file.
            "pragma" | "line" => {}
            unknown => {
                return Err(format!(
                    "#{unknown}, which the recording NVRTC does not know"
                ));
            }
        }
    }
    if !open.is_empty() {
        return Err("#if without #endif".to_owned());
    }
    out.extend(expand(&pending, &macros, &HashSet::new())?);
    Ok(out)
}

/// The macro that `directive`, which begins with `define`, defines.
fn definition(directive: &str) -> Result<(String, Macro), String> {
    let text = directive
        .trim_start()
        .trim_start_matches("define")
        .trim_start();
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    // A parenthesis begins parameters only directly after the name.
    let (parameters, body) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (list, body) = rest
                .split_once(')')
                .ok_or_else(|| format!("the parameters of macro {name} do not end"))?;
            let list: Vec<String> = lex(list)
                .into_iter()
                .filter(|token| token.kind == Kind::Name)
                .map(|token| token.text)
                .collect();
            (Some(list), body)
        }
        None => (None, rest),
    };
    let body = lex(body);
    let unknown = |token: &&Token| token.is("__VA_ARGS__") || token.is("#");
    match body.iter().find(unknown) {
        Some(token) => Err(format!(
            "macro {name} uses {}, which the recording NVRTC does not know",
            token.text
        )),
        None => Ok((name.to_owned(), Macro { parameters, body })),
    }
}

/// Whether the lines of `#if left >= right` are kept.
fn condition(tokens: &[Token], macros: &Macros) -> Result<bool, String> {
    let number = |token: &Token| {
        let body = macros.get(&token.text).and_then(|found| found.body.first());
        body.unwrap_or(token).text.parse::<u32>().ok()
    };
    if let [left, sign, right] = tokens
        && sign.is(">=")
        && let (Some(left), Some(right)) = (number(left), number(right))
    {
        return Ok(left >= right);
    }
    Err(format!(
        "the condition `{}` is not known here",
        spelled(tokens)
    ))
}

/// Replaces macros, except those already being replaced.
fn expand(tokens: &[Token], macros: &Macros, inside: &HashSet<&str>) -> Result<Vec<Token>, String> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let found = macros.get_key_value(token.text.as_str());
        let Some((name, definition)) = found.filter(|(name, _)| !inside.contains(name.as_str()))
        else {
            out.push(token.clone());
            continue;
        };
        let arguments = match &definition.parameters {
            None => Vec::new(),
            Some(_) if !tokens.get(at).is_some_and(|t| t.is("(")) => {
                out.push(token.clone());
                continue;
            }
            Some(parameters) => {
                let (arguments, end) = arguments(tokens, at + 1)
                    .ok_or_else(|| format!("the arguments of macro {name} do not end"))?;
                at = end;
                if arguments.len() != parameters.len().max(1) {
                    let (has, takes) = (arguments.len(), parameters.len());
                    return Err(format!(
                        "macro {name} takes {takes} arguments and has {has}"
                    ));
                }
                arguments
            }
        };
        let replaced = substituted(definition, &arguments, macros, inside)?;
        let mut inside = inside.clone();
        inside.insert(name);
        out.extend(expand(&replaced, macros, &inside)?);
    }
    Ok(out)
}

/// The arguments that begin at `at`, and the index behind the closing parenthesis.
fn arguments(tokens: &[Token], mut at: usize) -> Option<(Vec<Vec<Token>>, usize)> {
    let (mut all, mut one, mut depth) = (Vec::new(), Vec::new(), 0);
    loop {
        let token = tokens.get(at)?;
        at += 1;
        match token.text.as_str() {
            "(" => depth += 1,
            ")" if depth == 0 => {
                all.push(one);
                return Some((all, at));
            }
            ")" => depth -= 1,
            "," if depth == 0 => {
                all.push(std::mem::take(&mut one));
                continue;
            }
            _ => {}
        }
        one.push(token.clone());
    }
}

/// The body of a macro with its arguments, pasted at `##`.
fn substituted(
    definition: &Macro,
    arguments: &[Vec<Token>],
    macros: &Macros,
    inside: &HashSet<&str>,
) -> Result<Vec<Token>, String> {
    let Macro { parameters, body } = definition;
    let argument = |token: &Token| {
        let index = parameters
            .iter()
            .flatten()
            .position(|name| token.is(name))?;
        arguments.get(index)
    };
    let mut out: Vec<Token> = Vec::new();
    let mut pasting = false;
    for (i, token) in body.iter().enumerate() {
        if token.is("##") {
            pasting = true;
            continue;
        }
        let pasted = pasting || body.get(i + 1).is_some_and(|next| next.is("##"));
        let mut tokens = match argument(token) {
            // An operand of `##` is not expanded.
            Some(argument) if pasted => argument.clone(),
            Some(argument) => expand(argument, macros, inside)?,
            None => vec![token.clone()],
        };
        if std::mem::take(&mut pasting)
            && let (Some(last), false) = (out.pop(), tokens.is_empty())
        {
            let both = format!("{}{}", last.text, tokens.remove(0).text);
            out.extend(lex(&both));
        }
        out.extend(tokens);
    }
    Ok(out)
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kept, length) = match first {
            '/' if rest.starts_with("//") => ("", rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (" ", rest.find("*/").map_or(rest.len(), |at| at + 2)),
            '"' | '\'' => {
                let length = literal_length(rest);
                (&rest[..length], length)
            }
            _ => (&rest[..first.len_utf8()], first.len_utf8()),
        };
        out.push_str(kept);
        rest = &rest[length..];
    }
    out
}

/// Bytes of the string or character that `text` begins with.
fn literal_length(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        if !escaped && byte == quote {
            return at + 1;
        }
        escaped = !escaped && byte == b'\\';
    }
    text.len()
}

/// The tokens of a line.
fn lex(line: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || (c == '.' && first.is_numeric());
        let end_of_word = || rest.find(|c| !word(c)).unwrap_or(rest.len());
        let (kind, length) = match first {
            '"' | '\'' => (Kind::Literal, literal_length(rest)),
            '0'..='9' => (Kind::Number, end_of_word()),
            c if word(c) => (Kind::Name, end_of_word()),
            c => {
                let long = LONG_SIGNS.iter().any(|sign| rest.starts_with(sign));
                (Kind::Sign, if long { 2 } else { c.len_utf8() })
            }
        };
        let text = rest[..length].to_owned();
        out.push(Token { kind, text });
        rest = rest[length..].trim_start();
    }
    out
}

/// Tokens as text, a blank between two words.
pub(crate) fn spelled(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if out.ends_with(word) && (token.text.starts_with(word) || token.is("*")) {
            out.push(' ');
        }
        out.push_str(&token.text);
    }
    out
}
