//! No code asks what a group or an implementation is called: the sources have no comparison with
//! such a name, or with a part of one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crossover::suite::Profile;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ItemMod, Lit, Pat};
use walkdir::WalkDir;

use crate::suite;

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

/// A part of a name that is shorter says nothing.
const SHORTEST: usize = 4;

/// Text that a source compares with, each with its line.
#[derive(Default)]
struct Compared(Vec<(usize, String)>);

impl Compared {
    fn literal(&mut self, expr: &Expr) {
        if let Expr::Lit(lit) = expr
            && let Lit::Str(text) = &lit.lit
        {
            self.0.push((text.span().start().line, text.value()));
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    if let Lit::Str(text) = Lit::new(literal) {
                        self.0.push((text.span().start().line, text.value()));
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Compared {
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
        if node.path.is_ident("matches") {
            self.tokens(node.tokens.clone());
        }
    }

    fn visit_item_mod(&mut self, node: &'a ItemMod) {
        // Tests plant results by name.
        if node.ident != "tests" {
            visit::visit_item_mod(self, node);
        }
    }
}

fn compared(source: &str) -> Vec<(usize, String)> {
    let mut compared = Compared::default();
    compared.visit_file(&syn::parse_file(source).unwrap());
    compared.0
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

#[test]
fn no_source_compares_with_a_name() {
    let names = names();
    assert!(names.len() > 90, "{}", names.len());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for entry in WalkDir::new(&root).into_iter().map(Result::unwrap) {
        let path = entry.path();
        let below = path.strip_prefix(&root).unwrap();
        let of_tests = below
            .iter()
            .any(|part| part == "tests" || part == "tests.rs");
        if path.extension().is_none_or(|e| e != "rs") || of_tests {
            continue;
        }
        let compared = compared(&fs::read_to_string(path).unwrap());
        let named = compared.into_iter().filter(|(_, text)| is_of(text, &names));
        found.extend(named.map(|(line, text)| format!("src/{}:{line}: {text:?}", below.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_comparison_is_seen_in_each_of_its_forms() {
    for form in [
        r#"fn f(s: &str) -> bool { s == "cublas" }"#,
        r#"fn f(s: &str) -> bool { s.starts_with("transfer") }"#,
        r#"fn f(s: &str) -> u8 { match s { "fused" => 1, _ => 0 } }"#,
        r#"fn f(s: &str) -> bool { matches!(s, "eager" | "graph") }"#,
        r#"fn f(m: &M) -> G { if let Some(g) = m.group("matmul") { g } else { m.find("gpu/x") } }"#,
        r#"fn f(s: &str) -> bool { s.ends_with("-thread") }"#,
    ] {
        let names = names();
        let seen = compared(form);
        assert!(seen.iter().any(|(_, text)| is_of(text, &names)), "{form}");
    }
    assert!(compared(r#"fn f() -> String { format!("cublas {}", "fused") }"#).is_empty());
}
