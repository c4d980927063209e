//! `summary.json` against its schema.

use std::fs;

use serde_json::Value;

use crate::report::assemble::Options;
use crate::report::tests::fixture::{full, laptop};
use crate::report::write;

fn check(summary: &Value) {
    let schema = include_str!("../../../docs/summary.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(summary)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_summary_matches_its_schema() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("criterion");
    laptop(&root);
    full(
        &dir.path().join("reference/big-gpu/criterion"),
        "Example GPU",
    );
    let options = Options {
        with: vec![dir.path().join("reference/big-gpu")],
        ..Options::default()
    };
    for root in [root, dir.path().join("none")] {
        let written = write::refresh(&root, dir.path(), &options).unwrap();
        let text = fs::read_to_string(written.summary()).unwrap();
        let summary: Value = serde_json::from_str(&text).unwrap();
        check(&summary);
        assert!(!summary["benchmarks"].as_array().unwrap().is_empty());
        assert!(!summary["crossovers"].as_array().unwrap().is_empty());
        assert_eq!(summary["others"][0]["machine"], "big-gpu");
    }
}

#[test]
fn the_schema_rejects_what_is_not_a_summary() {
    let schema = include_str!("../../../docs/summary.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let dir = tempfile::tempdir().unwrap();
    full(&dir.path().join("criterion"), "Example GPU");
    let written = write::refresh(
        &dir.path().join("criterion"),
        dir.path(),
        &Options::default(),
    )
    .unwrap();
    let text = fs::read_to_string(written.summary()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let spoil = |path: &str, value: Value| {
        let mut summary: Value = serde_json::from_str(&text).unwrap();
        *summary.pointer_mut(path).unwrap() = value;
        !validator.is_valid(&summary)
    };
    assert!(spoil("/schema", 1.into()));
    assert!(spoil("/benchmarks/0/device", "tpu".into()));
    assert!(spoil("/benchmarks/0/median_ns", Value::Null));
    assert!(spoil("/crossovers/0/answer", "perhaps".into()));
    assert!(spoil("/findings/0/text", Value::Null));
}
