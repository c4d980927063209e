//! Which file knows which: the project's sources, read as text, and the paths in them.
//!
//! No file may know, however indirectly, a file that knows it, and a module of `src/` knows
//! only the layers before its own. A path leads to the file of its longest part that is a
//! module; the rest is an item there. Re-exports are not followed: what is named through
//! `folder/mod.rs` is an arrow to that file. A path into another crate is none: a circle of
//! crates does not build. The analyser works on a map of sources, so the tests named `planted`
//! show on small trees that it sees what it should.

mod circles;
mod modules;
mod order;
mod planted;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use walkdir::WalkDir;

use circles::{circles, described};
use modules::{Sources, Tree};
use order::breaches;

use crate::ROOT;

/// The modules of `src/`: each may know those of the rows before it. Two in one row may not
/// know each other.
const LAYERS: &[&[&str]] = &[
    &["timing"],
    &["model"],
    &["presentation", "statistics"],
    &["device"],
    &["machine"],
    &["results"],
    &["analysis"],
    &["workload"],
    &["suite"],
    &["report", "compare"],
    &["command"],
];

/// The folders whose files may not know each other in a circle.
const TREES: [&str; 7] = [
    "src",
    "crates/advice/src",
    "timing/src",
    "benches/crossover",
    "examples",
    "tests",
    "crates/house-tests/tests",
];

fn sources() -> Sources {
    let root = Path::new(ROOT);
    let files = TREES
        .iter()
        .map(|tree| root.join(tree))
        .flat_map(WalkDir::new);
    files
        .map(|entry| entry.expect("a tree that exists can be read").into_path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a source is UTF-8");
            let below = path.strip_prefix(root).expect("it was found there");
            (below.to_string_lossy().replace('\\', "/"), text)
        })
        .collect()
}

#[test]
fn no_file_imports_in_a_circle() {
    let sources = sources();
    let arrows = Tree::of(&sources).arrows();
    let circles = circles(&arrows);
    let told: Vec<String> = circles.iter().map(|circle| described(circle)).collect();
    assert!(told.is_empty(), "{}", told.join("\n\n"));
}

#[test]
fn each_layer_knows_only_those_before_it() {
    let breaches = breaches(&sources(), LAYERS);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

/// What decides for programs knows nothing of this crate, and only what shows decisions knows it.
#[test]
fn decisions_are_shown_and_made_nowhere_else() {
    let asks = |file: &str| {
        ["src/report/", "src/command/"]
            .iter()
            .any(|room| file.starts_with(room))
    };
    let all = sources();
    let named = all
        .iter()
        .filter(|(_, text)| text.contains("crossover_advice"));
    let files: Vec<&String> = named
        .map(|(file, _)| file)
        .filter(|file| file.starts_with("src/"))
        .collect();
    assert!(!files.is_empty(), "the report makes thresholds");
    let others: Vec<&String> = files.into_iter().filter(|file| !asks(file)).collect();
    assert!(
        others.is_empty(),
        "{others:?} may not know crossover-advice"
    );
}

#[test]
fn every_file_is_part_of_a_crate() {
    let sources = sources();
    let tree = Tree::of(&sources);
    let read: BTreeSet<&String> = tree.modules.iter().map(|m| &m.file).collect();
    let unread: Vec<&String> = sources.keys().filter(|file| !read.contains(file)).collect();
    assert!(unread.is_empty(), "no `mod` leads to {unread:?}");
}
