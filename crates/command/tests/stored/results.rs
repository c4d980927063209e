//! What the command says of stored results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};
use walkdir::WalkDir;

use crate::{folder, writes};

/// Standard output of the command, run in `folder`.
fn crossover(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
        .args(arguments)
        .current_dir(folder)
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
    reported(root, &[])
}

/// What it says of the results in `root` beside others.
fn reported(root: &Path, others: &[&str]) -> Value {
    let out = tempfile::tempdir().unwrap();
    let (root, to) = (root.to_str().unwrap(), out.path().to_str().unwrap());
    let arguments = ["report", "--root", root, "--out", to, "--no-reference"];
    crossover(&folder(), &[&arguments, others].concat());
    let summary = std::fs::read(out.path().join("summary.json")).unwrap();
    serde_json::from_slice(&summary).unwrap()
}

/// The record of the stored results, in this folder.
fn record(to: &Path) -> PathBuf {
    let output = Command::new(env!("CARGO_BIN_EXE_crossover"))
        .arg("export")
        .arg(to)
        .env("CRITERION_HOME", folder().join("results/criterion"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut all = WalkDir::new(to)
        .into_iter()
        .map(|entry| entry.unwrap().into_path());
    all.find(|path| path.is_file()).unwrap()
}

#[test]
fn the_report_says_of_the_record_what_it_said() {
    let dir = tempfile::tempdir().unwrap();
    let record = record(dir.path());
    let none = dir.path().join("none");
    let now = reported(&none, &["--with", record.to_str().unwrap()]);
    hold("summary.json", &now);
    // Of the folder it says the same, but for whose results they are and the board.
    let mut of_folder = summary(&folder().join("results/criterion"));
    for (field, value) in [
        ("/machine", "nvidia-h200--intel-xeon-processor".into()),
        ("/other", true.into()),
        (
            "/environment/gpu/uuid",
            now["environment"]["gpu"]["uuid"].clone(),
        ),
    ] {
        assert_ne!(of_folder.pointer(field), Some(&value));
        *of_folder.pointer_mut(field).unwrap() = value;
    }
    assert_eq!(now, of_folder);
}

#[test]
fn the_program_in_the_docs_reads_a_curve() {
    let docs = include_str!("../../../../docs/records.md");
    let program = docs.split("```python\n").nth(1).unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let record = record(dir.path());
    let curve = "matmul/gpu/cublas";
    let mut python = Command::new("python3");
    python.current_dir(dir.path()).arg("-c").arg(program);
    let Ok(output) = python.arg(record).arg(curve).output() else {
        println!("skipped: there is no python3 here");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    let summary = summary(&folder().join("results/criterion"));
    let rows = summary["benchmarks"].as_array().unwrap().iter();
    let rows = rows.filter(|row| {
        row["id"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{curve}/"))
    });
    let of_curve = rows.flat_map(|row| [&row["size"], &row["median_ns"]]);
    let expected: Vec<f64> = of_curve.map(|number| number.as_f64().unwrap()).collect();
    let said = String::from_utf8(output.stdout).unwrap();
    let said = said
        .split_whitespace()
        .map(|number| number.parse().unwrap());
    assert_eq!(said.collect::<Vec<f64>>(), expected);
    assert!(expected.len() >= 6, "{expected:?}");
}

#[test]
fn the_comparison_says_what_it_said() {
    let root = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        let to = root.path().join(name);
        copy(&folder().join("results"), &to);
        to
    };
    copy("before");
    change(&copy("after"));
    let json = crossover(root.path(), &["compare", "before", "after", "--json"]);
    hold("compare.json", &serde_json::from_str(&json).unwrap());
}

fn copy(from: &Path, to: &Path) {
    for entry in WalkDir::new(from).into_iter().map(Result::unwrap) {
        let place = to.join(entry.path().strip_prefix(from).unwrap());
        match entry.file_type().is_dir() {
            true => fs::create_dir_all(place).unwrap(),
            false => drop(fs::copy(entry.path(), place).unwrap()),
        }
    }
}

/// Another process's results: every time within 0.5 % of what it was, but every seventh benchmark
/// takes 10 % longer, every eleventh 10 % less, and every fortieth is gone.
fn change(results: &Path) {
    let sidecars = WalkDir::new(results).sort_by_file_name().into_iter();
    let sidecars = sidecars
        .map(Result::unwrap)
        .filter(|entry| entry.file_name() == "crossover.json");
    for (i, entry) in sidecars.enumerate() {
        let dir = entry.path().parent().unwrap();
        if i % 40 == 39 {
            fs::remove_dir_all(dir.parent().unwrap()).unwrap();
            continue;
        }
        let changed = match (i % 7, i % 11) {
            (6, _) => 1.1,
            (_, 10) => 0.9,
            _ => 1.0,
        };
        // Fibonacci hashing: spread evenly from 0 to 1.
        let spread = (i as f64 * 0.618_033_988_749_895).fract();
        let factor = changed * (0.995 + 0.01 * spread);
        let path = dir.join("sample.json");
        let mut sample: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for time in sample["times"].as_array_mut().unwrap() {
            *time = (time.as_f64().unwrap() * factor).into();
        }
        let text = sample.to_string();
        fs::write(path, &text).unwrap();
        let mut sidecar: Value = serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap();
        let digest = Sha256::digest(text);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        sidecar["samples_sha256"] = hex.into();
        fs::write(entry.path(), sidecar.to_string()).unwrap();
    }
}

/// The stored results have every clock, and sidecars with and without each part that not every
/// result has.
#[test]
fn each_form_of_a_sidecar_is_among_the_stored_results() {
    let stored = WalkDir::new(folder().join("results")).into_iter().flatten();
    let sidecars: Vec<Value> = stored
        .filter(|entry| entry.file_name() == "crossover.json")
        .map(|entry| serde_json::from_slice(&fs::read(entry.path()).unwrap()).unwrap())
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
    assert!(has(&|s| s["extra"]["kernel_running_share"].is_number()));
    assert!(has(&|s| s["extra"]["pool_peak_bytes"].is_number()));
    assert!(has(&|s| s.get("extra").is_none()));
    assert!(has(&|s| s["unsteady"].is_string()));
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
