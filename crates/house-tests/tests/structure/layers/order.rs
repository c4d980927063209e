//! The paths that lead from a layer to one that it may not know.

use std::collections::BTreeSet;

use super::modules::{Arrow, Sources, Tree, is_root};

/// The modules of `src/` that are in no layer, and each path to what its file may not know.
pub(crate) fn breaches(sources: &Sources, layers: &[&[&str]]) -> Vec<String> {
    let named: BTreeSet<&str> = sources.keys().filter_map(|file| layer_of(file)).collect();
    let homeless = named.iter().filter(|name| rank(name, layers).is_none());
    let mut found: Vec<String> = homeless
        .map(|name| format!("src/{name} is in no layer: put it in a layer"))
        .collect();
    let arrows = Tree::of(sources).arrows();
    found.extend(arrows.iter().filter_map(|arrow| breach(arrow, layers)));
    found
}

/// The layer of a file, by name. `None` for the roots, which are above all, and outside `src/`.
fn layer_of(file: &str) -> Option<&str> {
    let below = file.strip_prefix("src/")?;
    let name = below.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (!is_root(file)).then_some(name)
}

fn rank(layer: &str, layers: &[&[&str]]) -> Option<usize> {
    layers.iter().position(|row| row.contains(&layer))
}

fn breach(arrow: &Arrow, layers: &[&[&str]]) -> Option<String> {
    let layer = layer_of(&arrow.from)?;
    let place = format!("{}, line {}: {}", arrow.from, arrow.line, arrow.path);
    let Some(named) = arrow.top.as_deref() else {
        return Some(format!("{place} is in the crate's root, above all layers"));
    };
    let (own, other) = (rank(layer, layers)?, rank(named, layers)?);
    (named != layer && other >= own)
        .then(|| format!("{place} is of `{named}`, which `{layer}` may not know"))
}
