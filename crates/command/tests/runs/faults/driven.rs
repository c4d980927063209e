//! A run that is driven by hand, through the socket by which `crossover ab` drives its sides.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use crossover_suite::model::{RunRecord, Sidecar};
use serde_json::{Value, json};

use crate::faults::files::records_in;
use crate::faults::run::{SOUND, bench, read, shown};

/// The outcome of a run.
struct Driven {
    dir: tempfile::TempDir,
    /// The benchmarks that it could have run.
    plan: Vec<String>,
    /// The benchmarks that it set up, each once.
    ready: Vec<String>,
    choices: BTreeMap<String, String>,
    code: Option<i32>,
    said: String,
}

/// The answer to the plan that leaves everything as it is without turns.
fn everything() -> Value {
    json!({ "core": null, "only": null, "verify": true, "choices": {} })
}

fn told(changes: Value) -> Value {
    let mut told = everything();
    for (name, value) in changes.as_object().unwrap() {
        told[name] = value.clone();
    }
    told
}

/// Runs what matches `filter`, answers the plan with `told`, and every pause with `go`.
fn drive(filter: &str, told: &Value) -> Driven {
    let dir = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
    let output = File::create(dir.path().join("output")).unwrap();
    let mut child = bench(&dir.path().join("criterion"), &["--bench", filter])
        .env("CROSSOVER_TURNS", dir.path().join("socket"))
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap();
    let mut link = BufReader::new(connected(&listener, &mut child));
    let mut driven = Driven {
        dir,
        plan: Vec::new(),
        ready: Vec::new(),
        choices: BTreeMap::new(),
        code: None,
        said: String::new(),
    };
    let mut line = String::new();
    while link.read_line(&mut line).unwrap() > 0 {
        let said: Value = serde_json::from_str(&line).unwrap();
        line.clear();
        let mut answer = json!("go");
        if let Some(plan) = said.get("plan") {
            assert_eq!(plan["protocol"], 2);
            driven.plan = serde_json::from_value(plan["ids"].clone()).unwrap();
            answer = json!({ "run": told });
        } else if let Some(ready) = said.get("ready") {
            driven.ready.push(ready["id"].as_str().unwrap().to_owned());
        } else if let Some(chose) = said.get("chose") {
            driven.choices = serde_json::from_value(chose["choices"].clone()).unwrap();
        }
        writeln!(link.get_mut(), "{answer}").unwrap();
    }
    driven.code = child.wait().unwrap().code();
    driven.said = fs::read_to_string(driven.dir.path().join("output")).unwrap();
    driven
}

fn connected(listener: &UnixListener, child: &mut Child) -> UnixStream {
    listener.set_nonblocking(true).unwrap();
    loop {
        if let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(false).unwrap();
            return stream;
        }
        assert_eq!(child.try_wait().unwrap(), None, "ended without a word");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Driven {
    fn root(&self) -> PathBuf {
        self.dir.path().join("criterion")
    }

    fn record(&self) -> RunRecord {
        records_in(&self.root()).remove(0)
    }

    fn sidecar(&self, folder: &str) -> Sidecar {
        let path = self.root().join(folder).join("new/crossover.json");
        serde_json::from_value(read(&path)).unwrap()
    }
}

pub(crate) fn only() {
    // None of the others may be set up or checked.
    let told_one = told(json!({ "only": ["sound/cpu/fill/8", "nothing/cpu/such/1"] }));
    let one = drive("sound|faulty", &told_one);
    assert_eq!(one.code, Some(0), "{}", one.said);
    assert!(SOUND.iter().all(|id| one.plan.iter().any(|p| p == id)));
    assert!(one.plan.contains(&"faulty/cpu/set-up/4".to_owned()));
    assert_eq!(one.ready, ["sound/cpu/fill/8"]);
    assert_eq!(shown(&one.root()), ["sound/cpu/fill/8"]);
    let record = one.record();
    assert!(record.skipped.is_empty() && record.failed.is_empty());

    let none = drive("sound|faulty", &told(json!({ "only": [] })));
    assert_eq!(none.code, Some(0), "{}", none.said);
    assert_eq!(none.plan, one.plan);
    assert_eq!(none.ready, [""; 0]);
    assert!(!none.root().join("runs").exists());
}

pub(crate) fn choices() {
    let first = drive("choice", &everything());
    assert_eq!(first.code, Some(0), "{}", first.said);
    let note = |run: &Driven| run.sidecar("choice/cpu_best/4").notes[0].clone();
    let (choice, chosen) = first.choices.first_key_value().unwrap();
    assert_eq!(first.choices.len(), 1, "{:?}", first.choices);
    assert!(note(&first).starts_with(chosen), "{chosen}");

    // Each of these is taken, whichever is the fastest.
    for other in ["three nested loops", "gemm"] {
        let mut handed_over = BTreeMap::from([(choice.clone(), other.to_owned())]);
        handed_over.insert("not asked for here".to_owned(), "which".to_owned());
        let next = drive("choice", &told(json!({ "choices": handed_over })));
        assert_eq!(next.code, Some(0), "{}", next.said);
        assert!(note(&next).starts_with(other), "{}", note(&next));
        assert_eq!(next.choices, [(choice.clone(), other.to_owned())].into());
        // The result names the routines that it was chosen from.
        assert_eq!(next.sidecar("choice/cpu_best/4").choices, next.choices);
    }
    let gone = told(json!({ "choices": { choice: "by a library that is gone" } }));
    let measured = drive("choice", &gone);
    assert!(!measured.choices[choice].contains("gone"));
}
