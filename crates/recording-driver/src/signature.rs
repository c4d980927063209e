//! The kernels of a CUDA C++ source: their names, parameters and launch bounds.

use std::collections::HashMap;

use crate::expression::{self, Member};
use crate::image::{Kernel, Parameter};
use crate::preprocess::{Kind, Token, spelled, tokens};

/// Registers per thread of every kernel: a stated number, since nothing is compiled. 1024 threads
/// with as many, twice on a multiprocessor, are the most that any launch bound here asks for.
const REGISTERS: u32 = 32;
/// The most threads of a block of a kernel without launch bounds.
const MOST_THREADS: u32 = 1024;

/// Names that say nothing of a type.
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
/// A sentence where the source is malformed, or has what the parser does not know.
pub(crate) fn parse(
    source: &str,
    defined: &[(String, String)],
    architecture: u32,
) -> Result<Vec<Kernel>, String> {
    let mut defined = defined.to_vec();
    defined.push(("__CUDA_ARCH__".to_owned(), format!("{architecture}0")));
    defined.push(("__CUDACC_RTC__".to_owned(), "1".to_owned()));
    let tokens = tokens(source, &defined)?;
    check_brackets(&tokens)?;
    let file = File::new(&tokens);
    let kernels = (0..tokens.len()).filter(|&at| tokens[at].is("__global__"));
    kernels.map(|at| file.kernel(at)).collect()
}

fn check_brackets(tokens: &[Token]) -> Result<(), String> {
    let mut open = Vec::new();
    for token in tokens.iter().filter(|token| token.kind == Kind::Sign) {
        match token.text.as_str() {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" if open.pop() != Some(&token.text) => {
                return Err(format!("unexpected \"{}\"", token.text));
            }
            _ => {}
        }
    }
    match open.pop() {
        Some(missing) => Err(format!("expected a \"{missing}\"")),
        None => Ok(()),
    }
}

/// Constants by name: the tokens of their values.
type Constants<'a> = HashMap<&'a str, &'a [Token]>;

/// A struct template: its parameters and the constants within.
struct Template<'a> {
    parameters: Vec<&'a str>,
    constants: Constants<'a>,
}

/// A source without macros, and what it declares.
struct File<'a> {
    tokens: &'a [Token],
    aliases: HashMap<&'a str, &'a [Token]>,
    constants: Constants<'a>,
    templates: HashMap<&'a str, Template<'a>>,
}

impl<'a> File<'a> {
    fn new(tokens: &'a [Token]) -> Self {
        let mut file = Self {
            tokens,
            aliases: HashMap::new(),
            constants: HashMap::new(),
            templates: HashMap::new(),
        };
        let mut at = 0;
        while at < tokens.len() {
            at = file.declaration(at);
        }
        file
    }

    /// Notes the declaration that begins at `at`, and says where the next may.
    fn declaration(&mut self, at: usize) -> usize {
        let end = self.end(at);
        let declared = &self.tokens[at..end];
        match declared {
            [first, middle @ .., name] if first.is("typedef") => {
                self.aliases.insert(&name.text, middle);
            }
            [first, name, equals, of @ ..] if first.is("using") && equals.is("=") => {
                self.aliases.insert(&name.text, of);
            }
            [first, ..] if first.is("template") => {
                if let Some((name, template)) = template(declared, self.tokens, end) {
                    self.templates.insert(name, template);
                }
            }
            _ => self.constants.extend(constants(declared)),
        }
        match self.tokens.get(end) {
            Some(token) if token.is("{") => closing(self.tokens, end) + 1,
            _ => end + 1,
        }
    }

    /// Where the declaration at `at` ends, or its body begins. Braces of a value are part of it.
    fn end(&self, at: usize) -> usize {
        let mut end = at;
        while let Some(token) = self.tokens.get(end) {
            match token.text.as_str() {
                ";" => return end,
                "{" if !self.tokens[end - usize::from(end > at)].is("=") => return end,
                "(" | "[" | "{" => end = closing(self.tokens, end),
                _ => {}
            }
            end += 1;
        }
        end
    }

    fn kernel(&self, at: usize) -> Result<Kernel, String> {
        let bracket = |from: usize| {
            (from..self.tokens.len())
                .find(|&i| self.tokens[i].is("("))
                .ok_or_else(|| "a kernel without parameters".to_owned())
        };
        let (mut threads, mut from) = (MOST_THREADS, at + 1);
        let (name, open) = loop {
            let open = bracket(from)?;
            let name = &self.tokens[open - 1];
            let end = closing(self.tokens, open);
            match name.text.as_str() {
                "__launch_bounds__" => {
                    let first = split(&self.tokens[open + 1..end]).next();
                    threads = self.number(first.unwrap_or_default())?;
                }
                "__cluster_dims__" => {}
                _ => break (name, open),
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
        let inside = &self.tokens[open + 1..closing(self.tokens, open)];
        let parameters = split(inside).map(|parameter| self.parameter(parameter));
        Ok(Kernel {
            name: name.text.clone(),
            registers: REGISTERS,
            shared: 0,
            local: 0,
            threads,
            parameters: parameters.collect::<Result<_, _>>()?,
        })
    }

    fn number(&self, tokens: &[Token]) -> Result<u32, String> {
        self.value(tokens, &[], 0)
            .and_then(|value| u32::try_from(value).ok())
            .ok_or_else(|| format!("the value of `{}` is not known", spelled(tokens)))
    }

    /// The value of an expression, in which `local` names are known before those of the file.
    fn value(
        &self,
        tokens: &[Token],
        local: &[(&Template<'_>, &[i64])],
        depth: u32,
    ) -> Option<i64> {
        // A constant that is defined by itself has none.
        let depth = (depth < 32).then_some(depth + 1)?;
        let names = |name: &str, member: Option<Member<'_>>| {
            if let Some((arguments, member)) = member {
                let template = self.templates.get(name)?;
                let tokens = template.constants.get(member)?;
                return self.value(tokens, &[(template, arguments)], depth);
            }
            for (template, arguments) in local {
                if let Some(i) = template.parameters.iter().position(|p| *p == name) {
                    return arguments.get(i).copied();
                }
                if let Some(tokens) = template.constants.get(name) {
                    return self.value(tokens, local, depth);
                }
            }
            self.value(self.constants.get(name)?, &[], depth)
        };
        expression::value(tokens, &names)
    }

    fn parameter(&self, tokens: &[Token]) -> Result<Parameter, String> {
        let kept = tokens
            .iter()
            .filter(|token| !QUALIFIERS.contains(&token.text.as_str()));
        let mut kept: Vec<Token> = kept.cloned().collect();
        // The last word is the parameter's name, unless the type is all there is.
        let named = kept.len() > 1
            && kept
                .last()
                .is_some_and(|t| t.kind == Kind::Name && !is_word(&t.text));
        let name = kept.pop_if(|_| named).map(|token| token.text);
        let size = match kept.iter().any(|token| token.is("*") || token.is("&")) {
            true => Some(8),
            false => self.size(&kept, 0),
        };
        let type_name = spelled(&kept);
        Ok(Parameter {
            size: size
                .ok_or_else(|| format!("the size of the type \"{type_name}\" is not known"))?,
            // A line of an image needs a word here.
            name: name.unwrap_or_else(|| "_".to_owned()),
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

/// The bracket that closes the one at `open`. [`check_brackets`] saw that there is one.
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

/// What lies between the commas that are in no brackets, those of templates included.
fn split(tokens: &[Token]) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0;
    tokens
        .split(move |token| {
            match token.text.as_str() {
                "(" | "[" | "{" | "<" => depth += 1,
                ")" | "]" | "}" | ">" => depth -= 1,
                _ => {}
            }
            depth == 0 && token.is(",")
        })
        .filter(|part| !part.is_empty())
}

/// The statements of a body that lie in no brackets of their own.
fn statements(body: &[Token]) -> impl Iterator<Item = &[Token]> {
    let mut depth = 0;
    body.split(move |token| {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && matches!(token.text.as_str(), ";" | "}")
    })
}

/// The constants of `constexpr unsigned A = 1, B = 2`; none of another declaration.
fn constants(declared: &[Token]) -> Vec<(&str, &[Token])> {
    if !declared.iter().take(2).any(|token| token.is("constexpr")) {
        return Vec::new();
    }
    // A `<` in a value is a comparison far more often than a template, so only brackets count.
    let mut depth = 0;
    let parts = declared.split(move |token| {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        depth == 0 && token.is(",")
    });
    parts
        .filter_map(|part| {
            let equals = part.iter().position(|token| token.is("="))?;
            let name = part.get(equals.checked_sub(1)?)?;
            Some((name.text.as_str(), &part[equals + 1..]))
        })
        .collect()
}

/// The struct template that `declared` declares, with its body at `open`.
fn template<'a>(
    declared: &'a [Token],
    tokens: &'a [Token],
    open: usize,
) -> Option<(&'a str, Template<'a>)> {
    let end = declared.iter().position(|token| token.is(">"))?;
    let [keyword, name, ..] = &declared[end + 1..] else {
        return None;
    };
    if !keyword.is("struct") || !tokens.get(open)?.is("{") {
        return None;
    }
    let parameters = declared[2..end].split(|token| token.is(","));
    let body = &tokens[open + 1..closing(tokens, open)];
    let template = Template {
        parameters: parameters
            .filter_map(|p| Some(p.last()?.text.as_str()))
            .collect(),
        constants: statements(body).flat_map(constants).collect(),
    };
    Some((&name.text, template))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Result<Vec<Kernel>, String> {
        parse(source, &[], 90)
    }

    /// A kernel as `name threads: type name size, ...`.
    fn text(kernel: &Kernel) -> String {
        let Kernel {
            name,
            threads,
            parameters,
            ..
        } = kernel;
        let parameters = parameters.iter();
        let parameters: Vec<String> = parameters
            .map(
                |Parameter {
                     name,
                     size,
                     type_name,
                 }| format!("{type_name} {name} {size}"),
            )
            .collect();
        format!("{name} {threads}: {}", parameters.join(", "))
    }

    fn one(source: &str) -> String {
        let kernels = of(source).unwrap();
        assert_eq!(kernels.len(), 1, "{kernels:?}");
        text(&kernels[0])
    }

    #[test]
    fn parameters_have_their_types_and_sizes() {
        let source = "typedef unsigned long long u64; using h = unsigned short; struct Counter;
            extern \"C\" __global__ void k(const float *__restrict__ a, u64 n, h x, bool b,
                unsigned, signed char c, long long d, double e, const struct Counter *f) {}";
        assert_eq!(
            one(source),
            "k 1024: float * a 8, u64 n 8, h x 2, bool b 1, unsigned _ 4, signed char c 1, \
             long long d 8, double e 8, Counter * f 8"
        );
        assert_eq!(
            one("extern \"C\" __global__ void empty() {}"),
            "empty 1024: "
        );
    }

    #[test]
    fn launch_bounds_are_constants_of_the_file_or_of_a_template() {
        let source = "constexpr unsigned A = 4, B = A < 5 ? (A, 2) * A : 1;
            template <unsigned N, unsigned M> struct T {
                static constexpr unsigned HALF = N / 2;
                void f() { constexpr unsigned HALF = 1; }
                static constexpr unsigned ALL = HALF * M * A;
            };";
        let with = |bounds: &str| {
            one(&format!(
                "{source} extern \"C\" __global__ void __cluster_dims__(1, 1, 2) \
                          __launch_bounds__({bounds}) k(int n) {{ }}"
            ))
        };
        assert_eq!(with("T<8, 16>::ALL, 2"), "k 256: int n 4");
        assert_eq!(with("32 * A"), "k 128: int n 4");
    }

    #[test]
    fn what_is_malformed_or_unknown_is_a_sentence() {
        for (source, sentence) in [
            ("void f() {", "expected a \"}\""),
            ("void f() )", "unexpected \")\""),
            (
                "__global__ void k() {}",
                "kernel k is not extern \"C\", and the recording NVRTC mangles no names",
            ),
            (
                "extern \"C\" __global__ void k(float4 v) {}",
                "the size of the type \"float4\" is not known",
            ),
            (
                "extern \"C\" __global__ void __launch_bounds__(N) k() {}",
                "the value of `N` is not known",
            ),
            (
                "constexpr int N = N; extern \"C\" __global__ void __launch_bounds__(N) k() {}",
                "the value of `N` is not known",
            ),
            ("__global__", "a kernel without parameters"),
        ] {
            assert_eq!(of(source), Err(sentence.to_owned()), "{source}");
        }
    }

    /// Every kernel source of the suite, whose kernels are those that `__global__` or a macro with it
    /// makes.
    #[test]
    fn every_kernel_of_the_suite_is_understood() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let values = format!("{}{}", read("values.cuh"), read("elementwise.cuh"));
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".cu") {
                continue;
            }
            let text = format!("{values}{}", read(&name));
            let kernels = parse(&text, &[], 90).unwrap_or_else(|error| panic!("{name}: {error}"));
            let uses = |word: &str| {
                let lines = text.lines();
                lines
                    .filter(|line| line.trim_start().starts_with(word))
                    .count()
            };
            let macros = uses("LINEAR(") + uses("KERNEL(");
            let direct = text.matches("__global__ void").count();
            assert_eq!(
                kernels.len(),
                direct + macros - usize::from(macros > 0),
                "{name}"
            );
            let old = parse(&text, &[], 80).unwrap();
            assert_eq!(old.len() < kernels.len(), name == "linear.cu", "{name}");
            all.extend(kernels);
        }
        let named = |name: &str| {
            let kernel = all.iter().find(|kernel| kernel.name == name);
            text(kernel.unwrap_or_else(|| panic!("no {name}")))
        };
        assert_eq!(
            named("linear_32x32_8x4_4_2"),
            "linear_32x32_8x4_4_2 128: float * a 8, float * w 8, float * bias 8, float * added 8, \
             float * c 8, unsigned m 4, unsigned n 4, unsigned k 4, unsigned relu 4"
        );
        assert_eq!(
            named("sine_fused_fast"),
            "sine_fused_fast 128: float * x 8, float * y 8, unsigned long long n 8"
        );
        assert_eq!(
            named("sum_rows_f32"),
            "sum_rows_f32 256: float * x 8, float * sums 8, unsigned rows 4, unsigned fours 4"
        );
    }
}
