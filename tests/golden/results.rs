//! What the command says of results that earlier versions left.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::{folder, writes};

/// Standard output of the command, run where the frozen results lie.
fn crossover(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
        .args(arguments)
        .current_dir(folder())
        .env_remove("CRITERION_HOME")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.is_empty(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Holds what is said now against the golden file, or writes it.
fn hold(file: &str, now: &Value) {
    let path = folder().join(file);
    if writes() {
        std::fs::write(&path, serde_json::to_string_pretty(now).unwrap() + "\n").unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    if let Err(difference) = within(&golden, now, file) {
        panic!("{difference}");
    }
}

/// Everything of `golden` is in `now`, numbers to nine digits, since logarithms differ in the last
/// digits between machines. `now` may have more fields.
fn within(golden: &Value, now: &Value, place: &str) -> Result<(), String> {
    match (golden, now) {
        (Value::Object(golden), Value::Object(now)) => {
            for (key, value) in golden {
                let place = format!("{place}.{key}");
                let now = now.get(key).ok_or_else(|| format!("{place} is gone"))?;
                within(value, now, &place)?;
            }
            Ok(())
        }
        (Value::Array(golden), Value::Array(now)) if golden.len() == now.len() => golden
            .iter()
            .zip(now)
            .enumerate()
            .try_for_each(|(i, (golden, now))| {
                let name = golden["id"].as_str().map_or(i.to_string(), str::to_owned);
                within(golden, now, &format!("{place}[{name}]"))
            }),
        (Value::Number(golden), Value::Number(now)) if near(golden, now) => Ok(()),
        (golden, now) if golden == now => Ok(()),
        _ => Err(format!("{place} was {golden} and is {now}")),
    }
}

fn near(a: &serde_json::Number, b: &serde_json::Number) -> bool {
    let (Some(a), Some(b)) = (a.as_f64(), b.as_f64()) else {
        return false;
    };
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// What `crossover report` says of the results in this folder.
pub(crate) fn summary(root: &Path) -> Value {
    let out = tempfile::tempdir().unwrap();
    let (root, to) = (root.to_str().unwrap(), out.path().to_str().unwrap());
    crossover(&["report", "--root", root, "--out", to, "--no-reference"]);
    let summary = std::fs::read(out.path().join("summary.json")).unwrap();
    serde_json::from_slice(&summary).unwrap()
}

#[test]
fn the_report_says_what_it_said() {
    hold("summary.json", &summary(&folder().join("later/criterion")));
}

#[test]
fn the_comparison_says_what_it_said() {
    let json = crossover(&["compare", "earlier", "later", "--json"]);
    hold("compare.json", &serde_json::from_str(&json).unwrap());
}

/// The frozen results have every clock, and sidecars with and without each part that was added
/// after the first form.
#[test]
fn each_form_of_a_sidecar_is_among_the_frozen_results() {
    let sidecars: Vec<Value> = ["earlier", "later"]
        .iter()
        .flat_map(|side| sidecars(&folder().join(side)))
        .collect();
    let has = |test: &dyn Fn(&Value) -> bool| sidecars.iter().any(test);
    for clock in ["wall", "events", "events-gated", "events-cold", "submit"] {
        assert!(has(&|s| s["clock"] == clock), "{clock}");
    }
    let on_gpu = |s: &Value| s["device_state"].is_object();
    assert!(has(&|s| on_gpu(s) && s.get("monitor").is_none()));
    assert!(has(&|s| s["monitor"]["energy"].is_object()));
    assert!(has(
        &|s| s["monitor"].is_object() && s["monitor"].get("energy").is_none()
    ));
    assert!(has(&|s| s["monitor"]["events"].is_array()));
    assert!(has(&|s| s["extra"]["device_busy"].is_number()));
    assert!(has(&|s| s["extra"]["pool_peak_bytes"].is_number()));
    assert!(has(&|s| s.get("extra").is_none()));
}

fn sidecars(dir: &Path) -> Vec<Value> {
    walkdir::WalkDir::new(dir)
        .into_iter()
        .flatten()
        .filter(|entry| entry.file_name() == "crossover.json")
        .map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).unwrap()).unwrap())
        .collect()
}

#[test]
fn a_changed_a_missing_and_an_added_value_are_told_apart() {
    let golden = serde_json::json!({"id": "a", "median": 2.0, "list": [1, 2]});
    let hold = |now: Value| within(&golden, &now, "it");
    let same = serde_json::json!({"id": "a", "median": 2.0000000001, "list": [1, 2], "new": 1});
    assert_eq!(hold(same), Ok(()));
    for wrong in [
        serde_json::json!({"id": "a", "median": 2.00001, "list": [1, 2]}),
        serde_json::json!({"id": "b", "median": 2.0, "list": [1, 2]}),
        serde_json::json!({"id": "a", "list": [1, 2]}),
        serde_json::json!({"id": "a", "median": 2.0, "list": [1]}),
        serde_json::json!({"id": "a", "median": null, "list": [1, 2]}),
    ] {
        assert!(hold(wrong.clone()).is_err(), "{wrong}");
    }
}
