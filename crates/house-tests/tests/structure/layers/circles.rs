//! The circles of files that the arrows between them make.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::modules::Arrow;

/// For each file the files that it knows, each with the first arrow that leads there.
type Known<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a Arrow>>;

/// Every two files that know each other, and for each further file in a circle a shortest one.
pub(crate) fn circles(arrows: &[Arrow]) -> Vec<Vec<&Arrow>> {
    let mut known = Known::new();
    for arrow in arrows {
        let Some(to) = &arrow.to else { continue };
        let known = known.entry(&arrow.from).or_default();
        known.entry(to).or_insert(arrow);
    }
    let first = known.values().flat_map(BTreeMap::values);
    let mut found: Vec<_> = first.filter_map(|arrow| circle(arrow, &known)).collect();
    found.sort_by_key(Vec::len);
    let mut told = BTreeSet::new();
    found.retain(|circle| {
        let new = circle.iter().filter(|a| told.insert(&a.from)).count();
        new > 0 || (circle.len() == 2 && circle[0].from < circle[1].from)
    });
    found
}

/// The shortest circle that starts with an arrow.
fn circle<'a>(first: &'a Arrow, known: &Known<'a>) -> Option<Vec<&'a Arrow>> {
    let start = first.to.as_deref()?;
    let mut ways = BTreeMap::from([(start, vec![first])]);
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        if at == first.from {
            return ways.remove(at);
        }
        for (to, arrow) in known.get(at).into_iter().flatten() {
            if !ways.contains_key(to) {
                ways.insert(to, [&ways[at][..], &[*arrow]].concat());
                next.push_back(to);
            }
        }
    }
    None
}

/// A circle as text: each file, and the line that leads to the next.
pub(crate) fn described(circle: &[&Arrow]) -> String {
    let line = |a: &&Arrow| {
        let to = a.to.as_deref().unwrap_or_default();
        format!("{} -> {to}  (line {}: {})", a.from, a.line, a.path)
    };
    circle.iter().map(line).collect::<Vec<_>>().join("\n")
}
