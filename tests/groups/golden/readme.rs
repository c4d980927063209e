//! The list of groups in docs/groups.md is the groups' own.

use std::fs;
use std::path::Path;

use crate::golden::writes;
use crate::suite;

const BEGIN: &str = "<!-- groups:begin -->\n";
const END: &str = "<!-- groups:end -->\n";

pub(crate) fn the_document_lists_the_groups_with_their_questions() {
    let mut list = String::new();
    for group in suite::groups() {
        let topic = group.topic();
        assert_ne!(topic.title, topic.group);
        assert!(topic.question.ends_with(['?', '.']), "{}", topic.question);
        list += &format!("- `{}`: {}\n", topic.group, topic.question);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/groups.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    if writes() {
        fs::write(&path, format!("{before}{BEGIN}{list}{END}{after}")).unwrap();
        return;
    }
    let hint = "CROSSOVER_GOLDEN=write cargo test --test groups golden writes it";
    assert_eq!(listed, list, "{hint}");
}
