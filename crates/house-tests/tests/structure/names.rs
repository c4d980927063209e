//! No code depends on the name of a group or an implementation: the modules that read results
//! contain no such name at all, and no source compares text with one, or with a part of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crossover::suite::Profile;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ItemMod, Lit, Pat};
use walkdir::WalkDir;

use crate::{ROOT, suite};

/// Methods that compare text, or look something up by it.
const COMPARING: [&str; 12] = [
    "starts_with",
    "ends_with",
    "contains",
    "strip_prefix",
    "strip_suffix",
    "trim_start_matches",
    "trim_end_matches",
    "split_once",
    "rsplit_once",
    "find",
    "group",
    "eq",
];

/// The modules that read results. A text here that is a name is taken for one that results are
/// looked up by, unless it is an ordinary word: those are listed in [`WORDS`].
const READERS: [&str; 6] = [
    "analysis",
    "compare",
    "command",
    "presentation",
    "report",
    "results",
];

/// Names that are ordinary words in these files: nothing is looked up by them.
const WORDS: [(&str, &str); 7] = [
    // The key of a figure.
    ("analysis/findings/allocation.rs", "malloc"),
    // What code without a library is called in a sentence.
    ("analysis/findings/precision.rs", "f32"),
    // Kinds of memory in the table of a profile.
    ("report/profile.rs", "pinned"),
    ("report/profile.rs", "managed"),
    // What a limit is of.
    ("analysis/limits.rs", "memory"),
    // What NVML saw, as the page's script has it.
    ("report/page/data.rs", "events"),
    // A row of what was found on this machine.
    ("command/env.rs", "memory"),
];

/// Shorter parts of a name occur in too many other words.
const SHORTEST: usize = 4;

/// Text in a source, each with its line.
#[derive(Default)]
struct Found {
    /// That something is compared with.
    compared: Vec<(usize, String)>,
    /// All of it.
    all: Vec<(usize, String)>,
}

impl Found {
    fn literal(&mut self, expr: &Expr) {
        if let Expr::Lit(lit) = expr
            && let Lit::Str(text) = &lit.lit
        {
            let at = (text.span().start().line, text.value());
            self.compared.push(at);
        }
    }

    fn tokens(&mut self, tokens: TokenStream, compared: bool) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream(), compared),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        let at = (text.span().start().line, text.value());
                        if compared {
                            self.compared.push(at.clone());
                        }
                        self.all.push(at);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Found {
    fn visit_lit_str(&mut self, node: &'a syn::LitStr) {
        self.all.push((node.span().start().line, node.value()));
    }

    fn visit_expr_binary(&mut self, node: &'a syn::ExprBinary) {
        if matches!(node.op, BinOp::Eq(_) | BinOp::Ne(_)) {
            self.literal(&node.left);
            self.literal(&node.right);
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_method_call(&mut self, node: &'a syn::ExprMethodCall) {
        if COMPARING.iter().any(|name| node.method == name) {
            node.args.iter().for_each(|argument| self.literal(argument));
        }
        visit::visit_expr_method_call(self, node);
    }

    fn visit_pat(&mut self, node: &'a Pat) {
        if let Pat::Lit(lit) = node {
            self.literal(&Expr::Lit(lit.clone()));
        }
        visit::visit_pat(self, node);
    }

    fn visit_macro(&mut self, node: &'a syn::Macro) {
        self.tokens(node.tokens.clone(), node.path.is_ident("matches"));
    }

    fn visit_item_mod(&mut self, node: &'a ItemMod) {
        // Tests plant results by name.
        if node.ident != "tests" {
            visit::visit_item_mod(self, node);
        }
    }
}

fn found(source: &str) -> Found {
    let mut found = Found::default();
    found.visit_file(&syn::parse_file(source).unwrap());
    found
}

/// Of groups and implementations.
fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for group in suite::groups() {
        names.insert(group.name().to_owned());
        for planned in group.planned(Profile::Full) {
            let parts: Vec<&str> = planned.id.split('/').collect();
            names.insert(parts[2].to_owned());
        }
    }
    names
}

/// Whether text is a name, or a part of one.
fn is_of(text: &str, names: &BTreeSet<String>) -> bool {
    names.contains(text) || text.len() >= SHORTEST && names.iter().any(|name| name.contains(text))
}

/// The lines of a source, by its path below `src`, that go by a name.
fn by_name(file: &str, source: &str, names: &BTreeSet<String>) -> Vec<String> {
    let found = found(source);
    let layer = file.split('/').next().unwrap_or_default();
    let word = |text: &str| WORDS.contains(&(file, text));
    let compared = found.compared.iter().filter(|(_, t)| is_of(t, names));
    let held = found
        .all
        .iter()
        .filter(|(_, t)| READERS.contains(&layer) && names.contains(t) && !word(t));
    let mut lines: Vec<String> = compared
        .chain(held)
        .map(|(line, text)| format!("src/{file}:{line}: {text:?}"))
        .collect();
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn no_source_goes_by_a_name() {
    let names = names();
    assert!(names.len() > 90, "{}", names.len());
    let root = Path::new(ROOT).join("src");
    let mut found = Vec::new();
    for entry in WalkDir::new(&root).into_iter().map(Result::unwrap) {
        let path = entry.path();
        let below = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let of_tests = below.contains("/tests/") || below.ends_with("/tests.rs");
        if path.extension().is_none_or(|e| e != "rs") || of_tests {
            continue;
        }
        let source = fs::read_to_string(path).unwrap();
        found.extend(by_name(below, &source, &names));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_name_is_seen_in_each_of_its_forms() {
    let names = names();
    let seen = |file, form: &str| !by_name(file, form, &names).is_empty();
    for form in [
        r#"fn f(s: &str) -> bool { s == "cublas" }"#,
        r#"fn f(s: &str) -> bool { s.starts_with("transfer") }"#,
        r#"fn f(s: &str) -> u8 { match s { "fused" => 1, _ => 0 } }"#,
        r#"fn f(s: &str) -> bool { matches!(s, "eager" | "graph") }"#,
        r#"fn f(s: &str) -> bool { s.ends_with("-thread") }"#,
    ] {
        assert!(seen("suite/any.rs", form), "{form}");
    }
    for form in [
        r#"const GROUP: &str = "streams";"#,
        r#"fn f(g: &G) -> S { curve(g, "per-kernel", Clock::Events) }"#,
        r#"const ROWS: [(&str, &str); 1] = [("threads-2", "two such threads")];"#,
        r#"fn f(s: Option<&str>) -> bool { s == Some("h2d-pinned") }"#,
        r#"fn f() -> M { html! { p { (group("host_sync")) } } }"#,
    ] {
        assert!(seen("analysis/any.rs", form), "{form}");
    }
    let words = r#"fn f() -> String { format!("cublas {}", "not a name") }"#;
    assert!(!seen("analysis/any.rs", words));
}
