//! `summary.json`, the record of a machine, and their schemas, which are generated from the types
//! that they are written from.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::tests::machines::{commit, full, laptop};
use crate::tests::profiles::profiled;
use crate::tests::refreshed;
use crossover_results::store::machine_record::MACHINES;

const SUMMARY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/summary.schema.json"
);
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/record.schema.json");

/// The differences between a value and what a schema asks of it, each with its place: all the
/// keywords that schemars writes for the types of a summary.
fn differences(schema: &Value, root: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let say = |what: &str, than: &Value| format!("{at} is {value}, and {what} is {than}");
    for (keyword, than) in schema.as_object().into_iter().flatten() {
        let inner = |schema: &Value| differences(schema, root, value, at);
        let list = || than.as_array().into_iter().flatten();
        match keyword.as_str() {
            "$ref" => {
                let pointer = than.as_str().unwrap().trim_start_matches('#');
                found.extend(inner(root.pointer(pointer).unwrap()));
            }
            "type" => {
                let names = list().chain(than.is_string().then_some(than));
                if !names.into_iter().any(|name| is_of(value, name)) {
                    found.push(say("its type", than));
                }
            }
            "const" if value != than => found.push(say("its value", than)),
            "enum" if !list().any(|one| one == value) => found.push(say("one of its values", than)),
            "anyOf" if !list().any(|one| inner(one).is_empty()) => {
                found.push(say("one of its forms", than));
            }
            "oneOf" if list().filter(|one| inner(one).is_empty()).count() != 1 => {
                found.push(say("just one of its forms", than));
            }
            "minimum" if value.as_f64() < than.as_f64() && value.is_number() => {
                found.push(say("the least", than));
            }
            "exclusiveMinimum" if value.as_f64() <= than.as_f64() && value.is_number() => {
                found.push(say("less than all", than));
            }
            "required" => {
                let lacks = |key: &&Value| value.get(key.as_str().unwrap()).is_none();
                found.extend(list().filter(lacks).map(|key| say("what it lacks", key)));
            }
            "properties" => {
                for (key, asked) in than.as_object().into_iter().flatten() {
                    if let Some(one) = value.get(key) {
                        found.extend(differences(asked, root, one, &format!("{at}/{key}")));
                    }
                }
            }
            "additionalProperties" => {
                let named = |key: &str| schema["properties"].get(key).is_some();
                let values = value.as_object().into_iter().flatten();
                for (key, one) in values.filter(|(key, _)| !named(key)) {
                    match than {
                        Value::Bool(false) => found.push(say("too much", &key.as_str().into())),
                        asked => {
                            found.extend(differences(asked, root, one, &format!("{at}/{key}")));
                        }
                    }
                }
            }
            "items" => {
                for (i, one) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(differences(than, root, one, &format!("{at}/{i}")));
                }
            }
            "prefixItems" => {
                for (asked, one) in list().zip(value.as_array().into_iter().flatten()) {
                    found.extend(differences(asked, root, one, at));
                }
            }
            "minItems" | "maxItems" => {
                let fits = |count: u64| match keyword.as_str() {
                    "minItems" => count >= than.as_u64().unwrap(),
                    _ => count <= than.as_u64().unwrap(),
                };
                if !value.as_array().is_none_or(|list| fits(list.len() as u64)) {
                    found.push(say("its length", than));
                }
            }
            "const" | "enum" | "anyOf" | "oneOf" | "minimum" | "exclusiveMinimum" => {}
            "$schema" | "$defs" | "title" | "description" | "format" => {}
            "default" | "writeOnly" | "readOnly" => {}
            unknown => panic!("this test does not know the keyword {unknown}"),
        }
    }
    found
}

fn is_of(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("there is no type {unknown}"),
    }
}

fn differences_of(summary: &Value) -> Vec<String> {
    differences_from(SUMMARY, summary)
}

fn differences_from(schema: &str, value: &Value) -> Vec<String> {
    let schema = fs::read_to_string(schema).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    differences(&schema, &schema, value, "")
}

/// `CROSSOVER_GOLDEN=write cargo test -p crossover-report --features schema schema` writes them.
#[cfg(feature = "schema")]
#[test]
fn the_committed_schemas_are_current() {
    holds::<crate::summary::Summary>(SUMMARY);
    holds::<crossover_results::export::MachineRecord>(RECORD);
}

#[cfg(feature = "schema")]
fn holds<T: schemars::JsonSchema>(path: &str) {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let now = serde_json::to_string_pretty(&Value::from(schema)).unwrap() + "\n";
    if std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write") {
        fs::write(path, &now).unwrap();
    }
    let committed = fs::read_to_string(path).unwrap();
    assert!(
        committed == now,
        "CROSSOVER_GOLDEN=write cargo test -p crossover-report --features schema schema writes it"
    );
}

/// No number became null on the way, as one that is not finite does, and none is out of its range.
#[test]
fn the_summary_matches_its_schema() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    commit(dir.path(), |root| full(root, "Example GPU"));
    commit(dir.path(), laptop);
    for root in [root, dir.path().join("none")] {
        let (_, _, summary) = refreshed(&root, dir.path());
        let differences = differences_of(&summary);
        assert!(differences.is_empty(), "{differences:#?}");
        assert!(!summary["benchmarks"].as_array().unwrap().is_empty());
        assert!(!summary["crossovers"].as_array().unwrap().is_empty());
        let other = &summary["others"][0]["machine"];
        assert!(
            other.as_str().unwrap().ends_with("--example-cpu-9000"),
            "{other}"
        );
    }
}

/// Of planted results and of the committed ones.
#[test]
fn records_match_their_schema() {
    let dir = crate::tests::folder();
    commit(dir.path(), |root| full(root, "Example GPU"));
    commit(dir.path(), profiled);
    let committed = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target-reports");
    let mut read = 0;
    for out in [dir.path(), Path::new(committed)] {
        let machines = fs::read_dir(out.join(MACHINES)).into_iter().flatten();
        let records = machines.flat_map(|machine| fs::read_dir(machine.unwrap().path()).unwrap());
        for path in records.map(|record| record.unwrap().path()) {
            let record = record(&path);
            let differences = differences_from(RECORD, &record);
            assert!(
                differences.is_empty(),
                "{}: {differences:#?}",
                path.display()
            );
            assert!(!record["benchmarks"].as_array().unwrap().is_empty());
            read += 1;
        }
    }
    assert!(read >= 2, "{read}");
}

/// The JSON of a record.
fn record(path: &Path) -> Value {
    let packed = fs::read(path).unwrap();
    // Behind the ten bytes of a header without names and before the checksum and the length.
    let deflated = &packed[10..packed.len() - 8];
    let text = miniz_oxide::inflate::decompress_to_vec(deflated).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn the_schema_rejects_what_is_not_a_summary() {
    let (dir, root) = crate::tests::folders();
    full(&root, "Example GPU");
    let (_, _, sound) = refreshed(&root, dir.path());
    assert!(differences_of(&sound).is_empty());
    let spoil = |path: &str, value: Value| {
        let mut summary = sound.clone();
        *summary.pointer_mut(path).unwrap() = value;
        !differences_of(&summary).is_empty()
    };
    assert!(spoil("/schema", 2.into()));
    assert!(spoil("/benchmarks/0/device", "tpu".into()));
    assert!(spoil("/benchmarks/0/clock", "sundial".into()));
    assert!(spoil("/benchmarks/0/median_ns", Value::Null));
    assert!(spoil("/benchmarks/0/median_ns", 0.into()));
    assert!(spoil("/crossovers/0/answer", "perhaps".into()));
    assert!(spoil("/crossovers/0/range", serde_json::json!([1.0])));
    assert!(spoil("/findings/0/text", Value::Null));
}
