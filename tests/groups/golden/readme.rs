//! The lists of groups in the README and in docs/groups.md are the groups' own.

use std::fs;
use std::path::Path;

use crate::golden::writes;
use crate::suite;

const BEGIN: &str = "<!-- groups:begin -->\n";
const END: &str = "<!-- groups:end -->\n";

/// The groups that the README names; docs/groups.md has all.
const SHOWN: [&str; 6] = [
    "matmul",
    "precision",
    "transformer",
    "graph_replay",
    "transfer",
    "timing_methods",
];

fn list(is_listed: impl Fn(&str) -> bool) -> String {
    let mut text = String::from("| group | question |\n| --- | --- |\n");
    for group in suite::groups() {
        let topic = group.topic();
        if is_listed(&topic.group) {
            text += &format!("| `{}` | {} |\n", topic.group, topic.question);
        }
    }
    text
}

pub(crate) fn documents_list_the_groups_with_their_questions() {
    let shown = list(|group| SHOWN.contains(&group));
    assert_eq!(shown.lines().count(), 2 + SHOWN.len());
    for (file, list) in [("README.md", shown), ("docs/groups.md", list(|_| true))] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (listed, after) = rest.split_once(END).unwrap();
        if writes() {
            fs::write(&path, format!("{before}{BEGIN}{list}{END}{after}")).unwrap();
            continue;
        }
        let hint = "CROSSOVER_GOLDEN=write cargo test --test groups golden writes it";
        assert_eq!(listed, list, "{file}: {hint}");
    }
}

pub(crate) fn every_group_has_a_heading_and_a_question() {
    for group in suite::groups() {
        let topic = group.topic();
        assert_ne!(topic.title, topic.group);
        assert!(topic.question.ends_with(['?', '.']), "{}", topic.question);
    }
}
