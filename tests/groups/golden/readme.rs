//! The README's list of groups is the groups' own.

use std::fs;
use std::path::Path;

use crate::golden::writes;
use crate::suite;

const BEGIN: &str = "<!-- groups:begin -->\n";
const END: &str = "<!-- groups:end -->\n";

fn list() -> String {
    let mut text = String::from("| group | what it asks |\n| --- | --- |\n");
    for group in suite::groups() {
        let topic = group.topic();
        text += &format!("| `{}` | {} |\n", topic.group, topic.question);
    }
    text
}

pub(crate) fn the_readme_lists_the_groups_with_their_questions() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    if writes() {
        fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", list())).unwrap();
        return;
    }
    assert_eq!(
        listed,
        list(),
        "CROSSOVER_GOLDEN=write cargo test --test groups golden writes it"
    );
}

pub(crate) fn every_group_has_a_heading_and_a_question() {
    for group in suite::groups() {
        let topic = group.topic();
        assert_ne!(topic.title, topic.group);
        assert!(topic.question.ends_with(['?', '.']), "{}", topic.question);
    }
}
