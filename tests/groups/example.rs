//! `examples/your_operation.rs` as a user's own crate would run it, on the CPU alone.

use std::fs;
use std::process::Command;

use crossover_suite::suite::{AnyGroup, SizeSet};

#[allow(dead_code, reason = "its main function is the example's")]
#[path = "../../examples/your_operation.rs"]
mod operation;

/// Says that this process is a run of the group and not the test.
pub(crate) const RUN: &str = "CROSSOVER_TEST_EXAMPLE";

pub(crate) fn group() -> AnyGroup {
    operation::group().into()
}

/// The page has what the group declares.
pub(crate) fn page() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--bench", "--quick", "--noplot"])
        .env(RUN, "1")
        .env("CRITERION_HOME", dir.path().join("criterion"))
        .env("CROSSOVER_SIZES", "quick")
        .env("CROSSOVER_DEVICE", "none")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let group = group();
    let planned = group.planned(SizeSet::Quick);
    let topic = group.topic();
    let page = dir.path().join(format!("groups/{}.html", topic.group));
    let page = fs::read_to_string(page).unwrap();
    let heading = format!("<h1>{}", topic.title);
    let measured = planned.iter().filter(|p| p.device_bytes.is_none());
    let ids = measured.map(|p| p.id.as_str());
    for text in [&*heading, &topic.question].into_iter().chain(ids) {
        assert!(page.contains(text), "{text}");
    }
}
