//! The kernels of a CUDA C++ source: their names, parameters and launch bounds.

use std::collections::HashMap;

use crate::image::{Kernel, MOST_THREADS, Parameter};
use crate::preprocess::{Kind, Token, spelled, tokens};

/// Names that are no part of a type.
const QUALIFIERS: [&str; 6] = [
    "const",
    "volatile",
    "__restrict__",
    "__restrict",
    "__grid_constant__",
    "struct",
];

/// The kernels of `source` for an architecture such as 90, in order.
///
/// # Errors
/// A sentence about source that the parser does not know.
pub(crate) fn parse(source: &str, architecture: u32) -> Result<Vec<Kernel>, String> {
    let tokens = tokens(source, architecture)?;
    let file = File::new(&tokens);
    let kernels = (0..tokens.len()).filter(|&at| tokens[at].is("__global__"));
    kernels.map(|at| file.kernel(at)).collect()
}

/// A source without macros, with its types and constants.
struct File<'a> {
    tokens: &'a [Token],
    /// Types by the names that `typedef` gives them.
    aliases: HashMap<&'a str, &'a [Token]>,
    /// Numbers by the names that they are assigned to.
    constants: HashMap<&'a str, u32>,
}

impl<'a> File<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        let typedefs = (0..tokens.len()).filter(|&at| tokens[at].is("typedef"));
        let aliases = typedefs.filter_map(|at| {
            let declared = tokens[at + 1..].split(|token| token.is(";")).next()?;
            let (name, of) = declared.split_last()?;
            Some((name.text.as_str(), of))
        });
        let constants = tokens.windows(4).filter_map(|words| match words {
            [name, equals, number, end] if equals.is("=") && (end.is(";") || end.is(",")) => {
                Some((name.text.as_str(), number.text.parse().ok()?))
            }
            _ => None,
        });
        Self {
            tokens,
            aliases: aliases.collect(),
            constants: constants.collect(),
        }
    }

    fn kernel(&self, at: usize) -> Result<Kernel, String> {
        let (mut threads, mut from) = (MOST_THREADS, at + 1);
        let (name, inside) = loop {
            let open = (from..self.tokens.len())
                .find(|&i| self.tokens[i].is("("))
                .ok_or_else(|| "a kernel without parameters".to_owned())?;
            let end = closing(self.tokens, open);
            let (name, inside) = (&self.tokens[open - 1], &self.tokens[open + 1..end]);
            match name.text.as_str() {
                "__launch_bounds__" => threads = self.threads(inside),
                "__cluster_dims__" => {}
                _ => break (name, inside),
            }
            from = end + 1;
        };
        let before = self.tokens[..at].iter().rev();
        let is_c = before
            .take_while(|token| !matches!(token.text.as_str(), ";" | "}" | "{" | ">"))
            .any(|token| token.is("\"C\""));
        if !is_c {
            return Err(format!(
                "kernel {} is not extern \"C\", and the recording NVRTC mangles no names",
                name.text
            ));
        }
        // No type of a kernel's parameter has a comma in it.
        let parameters = inside
            .split(|token| token.is(","))
            .filter(|part| !part.is_empty());
        Ok(Kernel {
            name: name.text.clone(),
            threads,
            parameters: parameters
                .map(|part| self.parameter(part))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The first of some launch bounds.
    fn threads(&self, bounds: &[Token]) -> u32 {
        match bounds.split(|token| token.is(",")).next() {
            Some([bound]) => {
                let constant = self.constants.get(bound.text.as_str()).copied();
                constant.or(bound.text.parse().ok()).unwrap_or(MOST_THREADS)
            }
            _ => MOST_THREADS,
        }
    }

    fn parameter(&self, tokens: &[Token]) -> Result<Parameter, String> {
        let kept = tokens
            .iter()
            .filter(|token| !QUALIFIERS.contains(&token.text.as_str()));
        let mut kept: Vec<Token> = kept.cloned().collect();
        // The last word is the parameter's name, unless it is the whole type.
        let named = kept.len() > 1
            && kept
                .last()
                .is_some_and(|t| t.kind == Kind::Name && !is_word(&t.text));
        kept.pop_if(|_| named);
        let size = match kept.iter().any(|token| token.is("*") || token.is("&")) {
            true => Some(8),
            false => self.size(&kept, 0),
        };
        let type_name = spelled(&kept);
        Ok(Parameter {
            size: size
                .ok_or_else(|| format!("the size of the type \"{type_name}\" is not known"))?,
            type_name,
        })
    }

    fn size(&self, words: &[Token], depth: u32) -> Option<usize> {
        if let [name] = words
            && let Some(of) = self.aliases.get(name.text.as_str())
            && depth < 32
        {
            return self.size(of, depth + 1);
        }
        let has = |word: &str| words.iter().filter(|token| token.is(word)).count();
        if words.is_empty() || !words.iter().all(|token| is_word(&token.text)) {
            return None;
        }
        Some(match () {
            () if has("char") + has("bool") > 0 => 1,
            () if has("short") > 0 => 2,
            () if has("long") + has("double") + has("size_t") > 0 => 8,
            () => 4,
        })
    }
}

/// Whether this is a word of a built-in type.
fn is_word(word: &str) -> bool {
    const WORDS: [&str; 11] = [
        "char", "bool", "short", "int", "long", "float", "double", "signed", "unsigned", "size_t",
        "void",
    ];
    WORDS.contains(&word)
}

/// The bracket that closes the one at `open`, or the end.
fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len() - 1
}
