//! What the analyser sees in small trees.

use std::collections::BTreeSet;

use super::circles::{circles, described};
use super::modules::{Arrow, Sources, Tree};
use super::order::breaches;

/// A planted tree: the text of each file by its path.
fn planted(files: &[(&str, &str)]) -> Sources {
    let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    files.iter().map(owned).collect()
}

/// The files of each circle, sorted, in the order that they are told.
fn planted_circles(files: &[(&str, &str)]) -> Vec<String> {
    let sources = planted(files);
    let arrows = Tree::of(&sources).arrows();
    let members = |circle: &Vec<&Arrow>| {
        let files: BTreeSet<&str> = circle.iter().map(|a| a.from.as_str()).collect();
        files.into_iter().collect::<Vec<_>>().join(" ")
    };
    circles(&arrows).iter().map(members).collect()
}

/// The root, `src/b.rs` and below it `src/b/deep.rs`, which all know `src/a.rs`.
const KNOWS_A: [(&str, &str); 3] = [
    ("src/lib.rs", "mod a; mod b; use a::A;"),
    ("src/b.rs", "pub mod deep; pub use crate::a::A;"),
    ("src/b/deep.rs", "use super::super::a::A;"),
];

fn circles_with_a(text: &str) -> Vec<String> {
    planted_circles(&[&KNOWS_A[..], &[("src/a.rs", text)]].concat())
}

#[test]
fn planted_circles_are_found_however_the_path_is_written() {
    for text in [
        "use super::b::X;",
        "use super::b;",
        "use super::{b::{self, Y}};",
        "use super::{a::A, b::Y};",
        "pub use crate::b::*;",
        "fn g() { crate::b::f() }",
        "fn g() { { use crate::b; b::f() } }",
        "fn g(y: &crate::b::Y) {}",
        "fn g() -> Vec<super::b::Y> { Vec::new() }",
        "impl Trait for crate::b::Y {}",
        "fn g() { <i32 as crate::b::Trait>::f() }",
        "mod tests { use super::super::b::Y; }",
        "mod tests { fn g() { super::super::b::f() } }",
        "fn g() { assert_eq!(crate::b::X, 1) }",
        "fn g() { html! { div class=\"x\" { (crate::b::f()) } } }",
        "macro_rules! m { ($x:expr) => { $crate::b::f($x) } }",
        "m! { use super::{a::A as Y, b::Y}; }",
        "m! { use super::b::*; }",
    ] {
        assert_eq!(circles_with_a(text), ["src/a.rs src/b.rs"], "{text}");
    }
}

#[test]
fn planted_circles_are_found_through_other_names() {
    for text in [
        "use crate::b as c; fn g() { c::deep::f() }",
        "use crate::b; fn g() { b::deep::f() }",
        "use crate::b::{self as c}; use c::deep as d; fn g() { d::f() }",
        "use crate::b; mod tests { use super::*; fn g() { b::deep::f() } }",
        "use crate::b; fn g() { m!(x, b::deep::f()) }",
        "use crate::*; fn g() { b::deep::f() }",
        "fn g() { use crate::b as c; c::deep::f() }",
    ] {
        let found = circles_with_a(text).join(", ");
        assert!(found.contains("src/a.rs src/b/deep.rs"), "{text}: {found}");
    }
}

fn circles_of_a_folder(parent: &str, child: &str) -> Vec<String> {
    planted_circles(&[
        ("src/lib.rs", "mod folder;"),
        ("src/folder/mod.rs", parent),
        ("src/folder/child.rs", child),
    ])
}

#[test]
fn planted_circles_of_a_folder_and_its_module_are_found() {
    for (parent, child) in [
        ("mod child; pub use child::X;", "use super::X;"),
        ("mod child; use self::child::X;", "fn g() { super::f() }"),
        ("mod child; fn f() { child::g() }", "use super::*;"),
        ("mod child; fn f() { m!(child::g()) }", "use crate::folder;"),
        (
            "mod child; mod inner { use super::child; }",
            "use super::X;",
        ),
        ("mod child; use child as other;", "use super::other::X;"),
    ] {
        let found = circles_of_a_folder(parent, child);
        assert_eq!(found, ["src/folder/child.rs src/folder/mod.rs"], "{parent}");
    }
}

#[test]
fn planted_crates_and_methods_of_the_same_name_make_no_arrow() {
    for text in [
        "use ::child::X; fn f() { ::child::f(::child::X) }",
        "fn f() { m!(::child::f(), x.child::<u8>(), T::child::f(), y: ::child::X) }",
        "fn f(child: u8) { child.child::<u8>(Self::child::<T>) }",
    ] {
        let found = circles_of_a_folder(&format!("mod child; {text}"), "use super::X;");
        assert_eq!(found, [""; 0], "{text}");
    }
}

#[test]
fn planted_circles_are_found_in_a_test_with_a_path_of_its_own() {
    let found = planted_circles(&[
        (
            "tests/one/main.rs",
            r#"#[path = "../two/x.rs"] mod help; mod y;"#,
        ),
        ("tests/two/x.rs", "use crate::y::Y; mod beside;"),
        ("tests/two/beside.rs", ""),
        ("tests/one/y.rs", "use super::help::X;"),
    ]);
    assert_eq!(found, ["tests/one/y.rs tests/two/x.rs"]);
}

#[test]
fn planted_circles_of_three_are_told_with_lines_and_paths() {
    let sources = planted(&[
        ("src/lib.rs", "mod a;\nmod b;\nmod c;"),
        ("src/a.rs", "\nuse super::b::B;\nuse super::b::More;"),
        ("src/b.rs", "fn f() {\n    let _ = 1;\n    crate::c::g()\n}"),
        ("src/c.rs", "use super::a::{\n    self,\n    A,\n};"),
    ]);
    let arrows = Tree::of(&sources).arrows();
    let found: Vec<String> = circles(&arrows).iter().map(|c| described(c)).collect();
    let expected = "src/a.rs -> src/b.rs  (line 2: super::b::B)\n\
                    src/b.rs -> src/c.rs  (line 3: crate::c::g)\n\
                    src/c.rs -> src/a.rs  (line 1: super::a)";
    assert_eq!(found, [expected]);
}

#[test]
fn planted_mentions_that_are_no_import_make_no_arrow() {
    for text in [
        "/// See [`x`](crate::b::f) and crate::b.\n//// crate::b::f\nfn g() {}",
        "//! crate::b::f\n/* crate::b::f */ fn g() -> &'static str { \"crate::b::f()\" }",
        "m! { /** crate::b::f */ fn g() { f(\"crate::b::f\") } }",
        "mod tests { use super::*; use super::A; fn g() { super::g() } }",
        "use crate::a::A; use self::inner::B; mod inner { pub struct B; } fn g() { self::f() }",
        "pub(super) struct A; mod inner { pub(in super::super) fn g() {} }",
        "use b::f; use serde::b; fn g() { b::f() }",
        "use other as other; use x::{self, x as y}; fn g() { y::f() }",
    ] {
        assert_eq!(circles_with_a(text), [""; 0], "{text}");
    }
}

#[test]
fn planted_breaches_of_the_layers_are_found_and_nothing_else() {
    let layers: &[&[&str]] = &[&["low", "equal"], &["middle"], &["high"]];
    let found = |low: &str| {
        let sources = planted(&[
            (
                "src/lib.rs",
                "pub use outer as high; mod low; mod equal; mod middle;",
            ),
            ("src/main.rs", "mod command; use command::run;"),
            ("src/command/mod.rs", ""),
            ("src/low/mod.rs", "mod part;"),
            ("src/low/part.rs", low),
            ("src/equal.rs", ""),
            (
                "src/middle.rs",
                "use crate::low::A; type X = super::low::part::X;",
            ),
        ]);
        breaches(&sources, layers)
    };
    let homeless = "src/command is in no layer: put it in a layer";
    assert_eq!(found("use super::X; use crate::low;"), [homeless]);
    for (text, path, layer) in [
        ("use crate::middle::X;", "crate::middle::X", "middle"),
        ("type X = crate::middle::X;", "crate::middle::X", "middle"),
        ("use crate::equal::X;", "crate::equal::X", "equal"),
        ("use super::super::equal;", "super::super::equal", "equal"),
        ("use crate::high::X;", "crate::high::X", "high"),
    ] {
        let place = "src/low/part.rs, line 1";
        let told = format!("{place}: {path} is of `{layer}`, which `low` may not know");
        assert_eq!(found(text), [homeless.to_owned(), told]);
    }
    let above = "src/low/part.rs, line 1: crate::A is in the crate's root, above all layers";
    assert_eq!(found("use crate::A;"), [homeless, above]);
}

#[test]
fn planted_names_of_another_crate_in_the_root_make_no_circle() {
    let circles = |root: &str| {
        let child = "use crate::timing::Clock; use crate::Other; fn f() { crate::timing::f() }";
        planted_circles(&[("src/lib.rs", root), ("src/a.rs", child)])
    };
    let outer = "mod a; pub use crossover_timing as timing; pub use outer::Other; use a::f;";
    assert_eq!(circles(outer), [""; 0]);
    let own = "mod a; mod timing {} use a::f;";
    assert_eq!(circles(own), ["src/a.rs src/lib.rs"]);
}
